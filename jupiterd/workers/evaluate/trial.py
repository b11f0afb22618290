"""Trying a candidate out: does it load, does it write anything but the same again, is it code?

Owns the few seeded completions and what is counted of them. Doesn't judge (`cycle.gate` does).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from jupiterd.cycle.gate.sanity import Sanity
from jupiterd.cycle.generation.completions import Completion
from jupiterd.cycle.text_rules.code_parsing import PARSED_LANGUAGES, parseable_beginning, parses_on
from jupiterd.cycle.text_rules.looping import is_looping
from jupiterd.errors import CorruptArtifactError
from jupiterd.workers.evaluate.scorers import CPU, TORCH, open_scorer

NEW_TOKENS = 64
TEMPERATURE = 0.8
MIN_PROMPT_CHARS = 48
MAX_PROMPT_CHARS = 320


@dataclass(frozen=True)
class WritingTrial:
    """What a candidate is asked to write."""

    completions: int
    seed: int
    language: str
    """Of the domain; of a code that can be parsed here, what was written is parsed."""
    engine: str = TORCH
    device: str = CPU


@dataclass(frozen=True)
class Tried:
    """What came of it: the counts that are judged, and the texts, for people."""

    sanity: Sanity
    completions: Sequence[Completion] = ()


def texts_to_write(candidate: Path, generator: Path | None, trial: WritingTrial) -> int:
    """Return how many texts are written in a trial: of code also those of the model in force."""
    return trial.completions * (2 if _has_generator(candidate, generator, trial) else 1)


def _has_generator(candidate: Path, generator: Path | None, trial: WritingTrial) -> bool:
    is_code = trial.language in PARSED_LANGUAGES
    return is_code and generator is not None and generator != candidate


def try_out(
    candidate: Path,
    generator: Path | None,
    texts: Sequence[str],
    trial: WritingTrial,
    on_written: Callable[[int], None],
) -> Tried:
    """Return what was seen when the models went on from the beginnings of some texts.

    Args:
        candidate: a model folder.
        generator: that of the model in force, to compare the share that parses with; or None.
        texts: held-out documents; the first ones that can be begun are taken.
        trial: how many, and how.
        on_written: told how many texts are written so far, by both.
    """
    try:
        model = open_scorer(candidate, trial.engine, trial.device)
    except CorruptArtifactError as error:
        return Tried(Sanity(loads=False, trouble=error.message, seed=trial.seed))
    is_code = trial.language in PARSED_LANGUAGES
    prompts = _prompts(texts, trial.completions, is_code=is_code)
    written = model.write_on(prompts, NEW_TOKENS, TEMPERATURE, trial.seed, on_written)
    theirs = None
    if generator is not None and _has_generator(candidate, generator, trial):
        writer = open_scorer(generator, trial.engine, trial.device)
        others = writer.write_on(
            prompts, NEW_TOKENS, TEMPERATURE, trial.seed, lambda n: on_written(len(written) + n)
        )
        theirs = _parsed(prompts, others)
    pairs = zip(prompts, written, strict=True)
    completions = [Completion(prompt, text, is_looping(text)) for prompt, text in pairs]
    sanity = Sanity(
        loads=True,
        seed=trial.seed,
        completions=len(written),
        looping=sum(each.is_looping for each in completions),
        empty=sum(not text.strip() for text in written),
        code=len(written) if is_code else 0,
        parsed=_parsed(prompts, written) if is_code else 0,
        generator_parsed=theirs,
    )
    return Tried(sanity, completions)


def _prompts(texts: Sequence[str], wanted: int, *, is_code: bool) -> list[str]:
    begun = (
        parseable_beginning(text, MIN_PROMPT_CHARS, MAX_PROMPT_CHARS)
        if is_code
        else text[: min(MAX_PROMPT_CHARS, len(text) // 2)]
        for text in texts
    )
    return [prompt for prompt in begun if prompt][:wanted]


def _parsed(prompts: Sequence[str], written: Sequence[str]) -> int:
    return sum(parses_on(*pair) for pair in zip(prompts, written, strict=True))
