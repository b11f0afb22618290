"""The task `generate`: the generator in force makes new samples of real ones.

Owns the way from an item's documents to its samples: what is asked, what was answered before, what
is counted. Each sample names the real one that it is grounded in. Doesn't judge them beyond what
their template asks for: they pass the same filters as real text.

inputs: train.N (sample folders), model (unless a server is asked)
params: template {kind, samples}, order, stripe, stripes, seed, language, max_tokens, temperature,
top_p, engine, server, batch, generator, fetched_at, purged
outputs: samples, parents (the real ones they began from: what was collected goes some day)
"""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from blake3 import blake3

from jupiterd.cycle.lineage import Sample, text_hash
from jupiterd.cycle.purge import Purge
from jupiterd.cycle.secrets import cleaned
from jupiterd.cycle.templates.prompt import Written
from jupiterd.cycle.templates.refusal import Refusal
from jupiterd.cycle.templates.texts import TEMPLATES
from jupiterd.errors import UsageError, WorkStoppedError
from jupiterd.frames import Scalar, TaskFinished
from jupiterd.workers.data.sample_file import SampleWriter, read_all
from jupiterd.workers.generate.answer_cache import AnswerCache, key_of
from jupiterd.workers.generate.ask import Ask, Asker
from jupiterd.workers.generate.documents import Numbered, Stripe, choose_asks, own_documents
from jupiterd.workers.generate.engine import Engine, Request, Sampling
from jupiterd.workers.generate.engines import open_engine
from jupiterd.workers.generate.function_asks import KIND as COMPLETE_FUNCTION
from jupiterd.workers.generate.function_asks import FunctionAsker
from jupiterd.workers.generate.rewriting import RewritingAsker
from jupiterd.workers.link import Task

CACHE = "answers"
"""The folder beside this node's scratch folders in which answers are kept."""


@dataclass
class Tally:
    """What has come of an item so far."""

    began_s: float = field(default_factory=time.monotonic)
    answered: int = 0
    accepted: int = 0
    tokens: int = 0
    """Written now; those of answers that were kept cost nothing."""
    kept: int = 0
    """Answers that this machine had before."""

    def rates(self) -> dict[str, float]:
        """Return tokens a second, and samples that are accepted a minute."""
        elapsed_s = max(time.monotonic() - self.began_s, 1e-9)
        return {
            "tokens_per_s": self.tokens / elapsed_s,
            "accepted_per_min": 60 * self.accepted / elapsed_s,
        }


def run(task: Task) -> TaskFinished:
    """Do the task that a daemon gave."""
    engine = open_engine(task)
    asker = asker_of(task, engine)
    chosen = _chosen(task, asker, engine)
    tally = Tally()
    answers = _answers(task, engine, chosen, tally)
    counts: Counter[str] = Counter()
    made: dict[str, Sample] = {}
    parents: dict[str, Sample] = {}
    for numbered, text in zip(chosen, answers, strict=True):
        if isinstance(text, Refusal):
            counts[f"refused.{text}"] += 1
            continue
        parent = numbered.ask.parent
        sample = _sample(task, asker, numbered.ask, text)
        made[sample.id] = sample
        parents[parent.id] = parent
    for name, samples in (("samples", made), ("parents", parents)):
        _write(task.output_dir / name, samples)
    told = {
        "prompts": len(chosen),
        "samples": len(made),
        "tokens": tally.tokens,
        "kept": tally.kept,
        "writing_s": round(time.monotonic() - tally.began_s, 3),
    }
    outputs = {"samples": "samples", "parents": "parents"}
    return TaskFinished(outputs, {**told, **counts}, _whose(task))


def _whose(task: Task) -> dict[str, Scalar]:
    template = str(task.params["template"]["kind"])
    return {"generator": str(task.params["generator"]), "template": template}


def asker_of(task: Task, engine: Engine) -> Asker:
    """Return the task's template at work; raises UsageError where there is none of that name."""
    kind = str(task.params["template"]["kind"])
    if kind == COMPLETE_FUNCTION:
        return FunctionAsker()
    if kind not in TEMPLATES:
        known = ", ".join([COMPLETE_FUNCTION, *TEMPLATES])
        raise UsageError(f"there is no template {kind}", f"templates: {known}")
    return RewritingAsker(TEMPLATES[kind], str(task.params.get("language", "")), engine.specials)


def _chosen(task: Task, asker: Asker, engine: Engine) -> list[Numbered]:
    """Return what is asked, the shortest first: prompts of like length share a batch."""
    params = task.params
    purge = Purge(map(str, params.get("purged", ())))
    wanted, max_tokens = int(params["template"]["samples"]), int(params["max_tokens"])

    def read() -> Iterator[Sample]:
        return purge.left(read_all(task.inputs_named("train")))

    chosen = choose_asks(
        own_documents(read, Stripe.of(params), wanted),
        asker,
        lambda prompt: engine.fits(prompt, max_tokens),
        wanted=wanted,
        seed=int(params["seed"]),
        may_repeat=float(params["temperature"]) > 0,
    )
    return sorted(chosen, key=lambda each: (engine.size(each.ask.prompt), each.ask.prompt.opening))


def _answers(
    task: Task, engine: Engine, chosen: Sequence[Numbered], tally: Tally
) -> list[str | Refusal]:
    """Return the text of each answer, or why it is refused."""
    sampling = _sampling(task)
    requests = [_request(numbered, int(task.params["seed"])) for numbered in chosen]
    keys = [key_of(request, str(task.params["generator"]), sampling) for request in requests]
    found: dict[int, str | Refusal] = {}

    def take(number: int, written: Written) -> None:
        found[number] = chosen[number].ask.taken(written)
        tally.answered += 1
        tally.accepted += not isinstance(found[number], Refusal)
        task.progress(tally.answered, len(chosen), "prompts", **tally.rates())

    with AnswerCache(cache_folder(task)) as cache:
        for number, key in enumerate(keys):
            if (written := cache.get(key)) is not None:
                tally.kept += 1
                take(number, written)
        left = [number for number in range(len(chosen)) if number not in found]
        size = int(task.params.get("batch", engine.batch))
        for start in range(0, len(left), size):
            if task.stop_requested:
                raise WorkStoppedError("generating was stopped")
            batch = left[start : start + size]
            for at, written in engine.write([requests[number] for number in batch], sampling):
                tally.tokens += written.tokens
                cache.put(keys[batch[at]], written)
                take(batch[at], written)
    return [found[number] for number in range(len(chosen))]


def _request(numbered: Numbered, seed: int) -> Request:
    named = f"{seed}\0{numbered.ask.parent.id}\0{numbered.variant}"
    own = int.from_bytes(blake3(named.encode()).digest(4), "big") >> 1  # servers take 31 bits
    return Request(numbered.ask.prompt, own, numbered.ask.is_done)


def _sampling(task: Task) -> Sampling:
    params = task.params
    return Sampling(int(params["max_tokens"]), float(params["temperature"]), float(params["top_p"]))


def cache_folder(task: Task) -> Path:
    """Return where this node keeps answers."""
    return task.scratch_dir.parent / CACHE


def _write(folder: Path, samples: dict[str, Sample]) -> None:
    with SampleWriter(folder) as writer:
        for id_ in sorted(samples):
            writer.add(samples[id_])


def _sample(task: Task, asker: Asker, ask: Ask, text: str) -> Sample:
    text = cleaned(text).text  # a generator from elsewhere may recite what it was trained on
    sampling, parent = _sampling(task), ask.parent
    return Sample(
        id=text_hash(text),
        text=text,
        kind="synthetic",
        depth=parent.depth + 1,
        parents=(parent.id,),
        cluster_id=parent.cluster_id,
        source_uri=parent.source_uri,
        revision=parent.revision,
        license=parent.license,
        collector=asker.version,
        fetched_at=str(task.params["fetched_at"]),
        language=parent.language,
        source=parent.source,
        template=str(task.params["template"]["kind"]),
        generator=str(task.params["generator"]),
        sampler={
            "seed": int(task.params["seed"]),
            "max_tokens": sampling.max_tokens,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            **ask.origin,
        },
    )
