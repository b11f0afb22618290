"""The task `write_pairs`: two students go on from the same real text, for a judge to compare.

Owns which documents are taken and how the students are asked. Which pairs are planted, and how, is
`cycle.judge.planted`'s. Doesn't know judges.

Both students have the same beginnings, seeds and sampling. Two answers of which one is too short
to be judged, or which are the same, are no pair: nothing could be said of them.

inputs: model, incumbent, holdout.N
params: language, limits of `evaluation`, pairs, planted, max_tokens, temperature, top_p, seed,
engine, purged
outputs: pairs (a folder with pairs.jsonl, in which nobody has said anything yet)
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from jupiterd.cycle.data.purge import Purge
from jupiterd.cycle.data.split import DEV
from jupiterd.cycle.gate.record import PAIRS_FILE, pair_lines
from jupiterd.cycle.judge.pair import Pair, PairKind
from jupiterd.cycle.judge.planted import (
    MIN_CHARS,
    Begun,
    begun,
    planted_pairs,
    same_length,
    spread,
)
from jupiterd.cycle.templates.prompt import Prompt
from jupiterd.errors import WorkStoppedError
from jupiterd.protocol.frames import TaskFinished
from jupiterd.workers.evaluate.documents import ScoringLimits, choose_documents
from jupiterd.workers.evaluate.score_file import write_text
from jupiterd.workers.generate.engine import Request, Sampling, WritingEngine
from jupiterd.workers.generate.engines import engine_of_folder
from jupiterd.workers.link import Task
from jupiterd.workers.samples.sample_file import read_all


def run(task: Task) -> TaskFinished:
    """Do the task that a daemon gave."""
    params = task.params
    documents = _documents(task)
    seed = int(params["seed"])
    planted = planted_pairs(documents, int(params["planted"]), str(seed))
    chosen = spread(documents, int(params["pairs"])) if planted else []
    answers = _answers(task, chosen, seed) if chosen else []
    pairs = [*planted, *answers]
    write_text(task.output_dir / "pairs" / PAIRS_FILE, pair_lines(pairs))
    counts = {
        "planted_pairs": len(planted),
        "answer_pairs": len(answers),
        "pair_clusters": len({pair.cluster for pair in answers}),
    }
    return TaskFinished({"pairs": "pairs"}, counts)


def _documents(task: Task) -> list[Begun]:
    """Return the development text that can be gone on from, in the order of the texts' hashes."""
    limits = ScoringLimits(**{name: int(value) for name, value in task.params["limits"].items()})
    purge = Purge(map(str, task.params.get("purged", ())))
    held_out = purge.left(read_all(task.inputs_named("holdout")))
    dev = (sample for sample in held_out if sample.split == DEV)
    language = str(task.params["language"])
    found = (
        begun(each.id, each.cluster, each.text, language)
        for each in choose_documents(dev, limits, 0, 1)
    )
    return [each for each in found if each is not None]


def _answers(task: Task, documents: Sequence[Begun], seed: int) -> list[Pair]:
    """Return what both students write, where it can be compared."""
    both = [
        _written(task, task.inputs[name], documents, seed, place)
        for place, name in enumerate(("model", "incumbent"))
    ]
    pairs = (
        _pair(document, ours, theirs)
        for document, ours, theirs in zip(documents, *both, strict=True)
    )
    return [pair for pair in pairs if pair is not None]


def _pair(document: Begun, ours: str, theirs: str) -> Pair | None:
    ours, theirs = same_length(ours, theirs)
    if ours == theirs or min(len(ours.strip()), len(theirs.strip())) < MIN_CHARS:
        return None
    return Pair(
        str(PairKind.STUDENTS),
        document.document,
        document.cluster,
        document.beginning,
        ours,
        theirs,
    )


def _written(
    task: Task, folder: Path, documents: Sequence[Begun], seed: int, place: int
) -> list[str]:
    """Return what one student writes; `place` is how many have written before it."""
    params = task.params
    engine = engine_of_folder(folder, params)
    sampling = Sampling(
        int(params["max_tokens"]), float(params["temperature"]), float(params["top_p"])
    )
    requests = [
        Request(_prompt(engine, each.beginning, sampling.max_tokens), (seed + number) >> 1)
        for number, each in enumerate(documents)
    ]
    found: dict[int, str] = {}
    for start, batch in _batches(requests, engine.batch):
        if task.stop_requested:
            raise WorkStoppedError("writing for a judge was stopped")
        for at, written in engine.write(batch, sampling):
            found[start + at] = written.text
            done = place * len(requests) + len(found)
            task.progress(done, 2 * len(requests), "answers")
    return [found[number] for number in range(len(requests))]


def _prompt(engine: WritingEngine, beginning: str, max_tokens: int) -> Prompt:
    """Return the beginning, or as much of its end as a student can hold and go on from."""
    prompt = Prompt(beginning, beginning, goes_on=True)
    while not engine.fits(prompt, max_tokens) and len(beginning) > 1:
        beginning = beginning[len(beginning) // 4 or 1 :]
        prompt = Prompt(beginning, beginning, goes_on=True)
    return prompt


def _batches(requests: Sequence[Request], size: int) -> Iterator[tuple[int, Sequence[Request]]]:
    for start in range(0, len(requests), size):
        yield start, requests[start : start + size]
