"""The task `generate`: the generator in force completes the beginnings of real functions.

Owns which functions are asked for, and the synthetic samples that come of it, each with the real
sample it began from as its parent. Doesn't judge them: they pass the same filters as real text.

inputs: model, train.N (sample folders)
params: template {kind, samples}, seed, max_tokens, temperature, top_p, batch, generator,
fetched_at, purged
outputs: samples, parents (the real ones they began from: what was collected goes some day)
"""

import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from jupiterd.cycle.lineage import Sample, text_hash
from jupiterd.cycle.purge import Purge
from jupiterd.cycle.secrets import cleaned
from jupiterd.errors import EmptySourceError, UsageError, WorkStoppedError
from jupiterd.frames import TaskFinished
from jupiterd.workers.data.sample_file import SampleWriter, read_all
from jupiterd.workers.generate.functions import Opening, completed, ends_function, openings
from jupiterd.workers.generate.model_folder import Generator, open_generator
from jupiterd.workers.generate.sampler import Sampling, write_on
from jupiterd.workers.link import Task

TEMPLATE = "complete_function"
COLLECTOR = f"{TEMPLATE}@1"
MAX_VARIANTS = 4
"""Synthetic samples of one real document, at most: else a few documents colour the whole."""

BATCH = 32
PROMPT_SHARE = 0.5
"""A prompt takes at most this share of what the model can hold, so that there is room to write."""


@dataclass(frozen=True)
class GenerateParams:
    """What decides the samples, beside the model and the documents."""

    samples: int
    """Completions that are asked for; what doesn't parse is left out."""
    seed: int
    sampling: Sampling
    batch: int
    generator: str
    """Artifact id of the model."""
    fetched_at: str


@dataclass(frozen=True)
class Prompt:
    """One function to be completed."""

    parent: Sample
    opening: Opening
    tokens: list[int]


def run(task: Task) -> TaskFinished:
    """Do the task that a daemon gave."""
    params = _params(task.params)
    purge = Purge(map(str, task.params.get("purged", ())))
    documents = list(purge.left(read_all(task.inputs_named("train"))))
    generator = open_generator(task.inputs["model"])
    prompts = choose_prompts(documents, generator, params)
    if not prompts:
        raise EmptySourceError("the documents hold no function that could be completed")
    return _complete_all(task, generator, prompts, params)


def choose_prompts(
    documents: Sequence[Sample], generator: Generator, params: GenerateParams
) -> list[Prompt]:
    """Return functions of different documents first, chosen by the seed; shortest prompts first."""
    chosen: list[Prompt] = []
    for prompt in _candidates(documents, generator, random.Random(params.seed)):  # noqa: S311
        chosen.append(prompt)
        if len(chosen) == params.samples:
            break
    # Prompts of like length share a batch, so that little of it is filling.
    return sorted(chosen, key=lambda prompt: (len(prompt.tokens), prompt.opening.prompt))


def _params(plain: Mapping[str, Any]) -> GenerateParams:
    template = plain["template"]
    if template["kind"] != TEMPLATE:
        raise UsageError(f"there is no template {template['kind']}", f"the template is {TEMPLATE}")
    return GenerateParams(
        samples=int(template["samples"]),
        seed=int(plain["seed"]),
        sampling=Sampling(
            int(plain["max_tokens"]), float(plain["temperature"]), float(plain["top_p"])
        ),
        batch=int(plain.get("batch", BATCH)),
        generator=str(plain["generator"]),
        fetched_at=str(plain["fetched_at"]),
    )


def _candidates(
    documents: Sequence[Sample], generator: Generator, choice: random.Random
) -> Iterator[Prompt]:
    """Yield one function of each document in a chosen order, then a second of each, and so on."""
    order = sorted((sample for sample in documents if sample.kind == "real"), key=lambda s: s.id)
    choice.shuffle(order)
    widest = int(generator.max_tokens * PROMPT_SHARE)
    left: list[tuple[Sample, list[Opening]]] = []
    for sample in order:
        found = openings(sample.text)
        choice.shuffle(found)
        if (prompt := _take(sample, found, generator, widest)) is not None:
            yield prompt
        left.append((sample, found))
    for _ in range(MAX_VARIANTS - 1):
        for sample, found in left:
            if (prompt := _take(sample, found, generator, widest)) is not None:
                yield prompt


def _take(sample: Sample, found: list[Opening], generator: Generator, widest: int) -> Prompt | None:
    while found:
        opening = found.pop()
        encoded = generator.tokenizer.encode(opening.prompt, add_special_tokens=False)
        if len(encoded.ids) < widest:
            return Prompt(sample, opening, [generator.end_token, *encoded.ids])
    return None


def _complete_all(
    task: Task, generator: Generator, prompts: Sequence[Prompt], params: GenerateParams
) -> TaskFinished:
    draw = torch.Generator().manual_seed(params.seed)
    kept: dict[str, Sample] = {}
    parents: dict[str, Sample] = {}
    tokens, began_s = 0, time.monotonic()
    for start in range(0, len(prompts), params.batch):
        if task.stop_requested:
            raise WorkStoppedError("generating was stopped")
        batch = prompts[start : start + params.batch]
        rows = _write_batch(generator, batch, params.sampling, draw)
        tokens += sum(map(len, rows))
        for prompt, row in zip(batch, rows, strict=True):
            text = completed(prompt.opening, generator.tokenizer.decode(row))
            if text is not None:
                sample = _sample(prompt.parent, text, params)
                kept[sample.id] = sample
                parents[prompt.parent.id] = prompt.parent
        rate = tokens / max(time.monotonic() - began_s, 1e-9)
        task.progress(start + len(batch), len(prompts), "samples", tokens_per_s=rate)
    for name, samples in (("samples", kept), ("parents", parents)):
        with SampleWriter(task.output_dir / name) as writer:
            for id_ in sorted(samples):
                writer.add(samples[id_])
    counts = {"prompts": len(prompts), "samples": len(kept), "tokens": tokens}
    return TaskFinished({"samples": "samples", "parents": "parents"}, counts)


def _write_batch(
    generator: Generator, batch: Sequence[Prompt], sampling: Sampling, draw: torch.Generator
) -> list[list[int]]:
    def is_done(number: int, row: Sequence[int]) -> bool:
        return ends_function(generator.tokenizer.decode(row), batch[number].opening.indent)

    return write_on(generator, [prompt.tokens for prompt in batch], sampling, draw, is_done)


def _sample(parent: Sample, text: str, params: GenerateParams) -> Sample:
    text = cleaned(text).text  # a generator from elsewhere may recite what it was trained on
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
        collector=COLLECTOR,
        fetched_at=params.fetched_at,
        language=parent.language,
        source=parent.source,
        template=TEMPLATE,
        generator=params.generator,
        sampler={
            "seed": params.seed,
            "max_tokens": params.sampling.max_tokens,
            "temperature": params.sampling.temperature,
            "top_p": params.sampling.top_p,
        },
    )
