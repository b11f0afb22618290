"""The task `prompt`: let a model write on from a few prompts, for people to read.

Owns nothing but the way from params to a summary. Doesn't keep anything: there are no outputs.

inputs: model · params: prompts, max_tokens, seed, temperature (0: the likeliest), top_p
summary: completion.0, completion.1, ... without their prompts
"""

from jupiterd.protocol.frames import Scalar, TaskFinished
from jupiterd.workers.generate.engine import Sampling
from jupiterd.workers.generate.model_folder import open_model
from jupiterd.workers.generate.sampler import write_on
from jupiterd.workers.link import Task

DEFAULT_MAX_TOKENS = 64


def run(task: Task) -> TaskFinished:
    """Do the task that a daemon gave."""
    generator = open_model(task.inputs["model"])
    sampling = Sampling(
        max_tokens=int(task.params.get("max_tokens", DEFAULT_MAX_TOKENS)),
        temperature=float(task.params.get("temperature", 0.0)),
        top_p=float(task.params.get("top_p", 1.0)),
    )
    longest = generator.max_tokens // 2
    ids = [generator.text.ids_of_text(str(prompt)) for prompt in task.params["prompts"]]
    started = [[*each[:1], *each[1:][-longest:]] for each in ids]
    seed = int(task.params.get("seed", 0))
    rows = write_on(generator, started, sampling, [seed + number for number in range(len(started))])
    summary: dict[str, Scalar] = {
        f"completion.{number}": generator.text.decode(row) for number, (row, _) in enumerate(rows)
    }
    return TaskFinished({}, {"tokens": sum(len(row) for row, _ in rows)}, summary)
