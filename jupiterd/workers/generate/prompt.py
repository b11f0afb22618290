"""The task `prompt`: let a model write on from a few prompts, for people to read.

Owns nothing but the way from params to a summary. Doesn't keep anything: there are no outputs.

inputs: model · params: prompts, max_tokens, seed, temperature (0: the likeliest), top_p
summary: completion.0, completion.1, ... without their prompts
"""

import torch

from jupiterd.frames import Scalar, TaskFinished
from jupiterd.workers.generate.model_folder import open_generator
from jupiterd.workers.generate.sampler import Sampling, write_on
from jupiterd.workers.link import Task

DEFAULT_MAX_TOKENS = 64


def run(task: Task) -> TaskFinished:
    """Do the task that a daemon gave."""
    generator = open_generator(task.inputs["model"])
    sampling = Sampling(
        max_tokens=int(task.params.get("max_tokens", DEFAULT_MAX_TOKENS)),
        temperature=float(task.params.get("temperature", 0.0)),
        top_p=float(task.params.get("top_p", 1.0)),
    )
    draw = torch.Generator().manual_seed(int(task.params.get("seed", 0)))
    prompts = [
        generator.tokenizer.encode(str(prompt), add_special_tokens=False).ids
        for prompt in task.params["prompts"]
    ]
    longest = generator.max_tokens // 2
    started = [[generator.end_token, *ids[-longest:]] for ids in prompts]
    rows = write_on(generator, started, sampling, draw)
    summary: dict[str, Scalar] = {
        f"completion.{number}": generator.tokenizer.decode(row) for number, row in enumerate(rows)
    }
    return TaskFinished({}, {"tokens": sum(map(len, rows))}, summary)
