"""Writes the answers of a round's models, many prompts at once, one model in memory at a time.

Owns what is asked of whom, and that what a model has answered before isn't written again. Doesn't
know how prompts are chosen (`cycle.generation.asked_prompts`), or who reads the answers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jupiterd.cycle.generation.asked_prompts import AskedPrompt
from jupiterd.cycle.generation.round_answers import MAX_ANSWER_CHARS, NEW_TOKENS, RoundAnswers
from jupiterd.cycle.templates.prompt import Prompt
from jupiterd.errors import JupiterError
from jupiterd.workers.generate.engine import Request, Sampling, WritingEngine
from jupiterd.workers.generate.engines import AUTO, engine_of_folder

GREEDY = Sampling(NEW_TOKENS, temperature=0.0, top_p=1.0)

MAX_REASON_CHARS = 200

OnWritten = Callable[[int], None]
"""Told how many answers are written so far."""


@dataclass(frozen=True)
class AskedModel:
    """A model that answers."""

    artifact: str
    folder: Path


@dataclass(frozen=True)
class Asking:
    """What is asked of whom in one round."""

    models: Mapping[str, AskedModel]
    """By their roles, in the order in which they answer."""
    prompts: tuple[AskedPrompt, ...]
    before: RoundAnswers | None = None
    """Of an earlier round."""

    @property
    def to_write(self) -> int:
        """Return how many answers nobody has written yet."""
        return sum(len(self.open_for(model)) for model in self.different)

    @property
    def different(self) -> tuple[AskedModel, ...]:
        """Return the different models: one may play two roles."""
        return tuple(dict.fromkeys(self.models.values()))

    def known_of(self, model: AskedModel) -> Mapping[AskedPrompt, str]:
        """Return what a model has answered in an earlier round."""
        return {} if self.before is None else self.before.of_model(model.artifact)

    def open_for(self, model: AskedModel) -> list[AskedPrompt]:
        """Return the prompts that a model hasn't answered yet."""
        known = self.known_of(model)
        return [prompt for prompt in self.prompts if prompt not in known]


def answered(
    asking: Asking, params: Mapping[str, Any], on_written: OnWritten
) -> tuple[RoundAnswers, str]:
    """Return the answers of all models that can write, and why others can't; empty: all can.

    params: engine (torch or mlx, as the node has it) and device (of torch)
    """
    written: dict[str, tuple[str, ...]] = {}
    troubles: list[str] = []
    count = 0
    for model in asking.different:
        before = count
        try:
            found = _of_model(asking, model, params, lambda n, b=before: on_written(b + n))
            written[model.artifact] = tuple(found[prompt] for prompt in asking.prompts)
        except Exception as error:  # noqa: BLE001 - another model may still answer
            roles = " and ".join(role for role, each in asking.models.items() if each == model)
            troubles.append(f"{roles}: {reason_of(error)}")
        count += len(asking.open_for(model))
    models = {role: model.artifact for role, model in asking.models.items()}
    return RoundAnswers(models, asking.prompts, written), "; ".join(troubles)


def reason_of(error: Exception) -> str:
    """Return one line for people on why something couldn't be written."""
    if isinstance(error, JupiterError):
        return error.message
    return " ".join(f"{type(error).__name__}: {error}".split())[:MAX_REASON_CHARS]


def _of_model(
    asking: Asking, model: AskedModel, params: Mapping[str, Any], on_written: OnWritten
) -> Mapping[AskedPrompt, str]:
    """Return a model's answer to each prompt; it is opened only where one isn't known."""
    known, new = asking.known_of(model), asking.open_for(model)
    if not new:
        return known
    means = {name: params[name] for name in ("engine", "device") if name in params}
    engine = engine_of_folder(model.folder, {**means, "wanted_engine": AUTO})
    return {**known, **_written(engine, new, on_written)}


def _written(
    engine: WritingEngine, prompts: Sequence[AskedPrompt], on_written: OnWritten
) -> dict[AskedPrompt, str]:
    requests = [Request(fitting(engine, prompt.for_models()), seed=0) for prompt in prompts]
    found: dict[AskedPrompt, str] = {}
    for number, answer in engine.write(requests, GREEDY):
        # The last token may be the first bytes of a character of which nothing more was written.
        found[prompts[number]] = answer.text[:MAX_ANSWER_CHARS].rstrip("\ufffd")
        on_written(len(found))
    return found


def fitting(engine: WritingEngine, prompt: Prompt) -> Prompt:
    """Return the prompt, or as much of its end as a model of short context can hold."""
    text = prompt.opening
    while not engine.fits(prompt, NEW_TOKENS) and len(text) > 1:
        text = text[len(text) // 4 or 1 :]
        prompt = Prompt(text, text, prompt.goes_on)
    return prompt
