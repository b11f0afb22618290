"""What the models of a round answered to the same prompts, kept beside its verdict.

Owns the form of the file, and which answers of an earlier round hold for this one. Pure. Decides
nothing: no verdict is computed from these answers, and a round without them is a round.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from jupiterd.cycle.generation.asked_prompts import MAX_QUESTION_CHARS, PROMPTS, AskedPrompt
from jupiterd.errors import CorruptArtifactError

ANSWERS: Final = "answers"
"""The output, of the piece of evaluation that tries the candidate out."""

ANSWERS_FILE: Final = "answers.json"

TROUBLE: Final = "answers_trouble"
"""In the summary of that piece: why there are none, or not of all models."""

MAX_ANSWERS_BYTES: Final = 1 << 20

NEW_TOKENS: Final = 64
"""A model writes for each prompt at most."""

MAX_ANSWER_CHARS: Final = 600
"""Kept of an answer: tokens of some vocabularies are long runs of blanks."""

BASE, INCUMBENT, CANDIDATE = "base", "incumbent", "candidate"
ROLES: Final = (BASE, INCUMBENT, CANDIDATE)
"""As people see them from left to right: the model that the cycle began with, the one to beat, and
the one that was judged."""


@dataclass(frozen=True)
class RoundAnswers:
    """The answers of a round's models to the cycle's prompts."""

    models: Mapping[str, str]
    """Role -> the model's artifact; roles that nobody plays are absent. One may play two."""
    prompts: tuple[AskedPrompt, ...]
    written: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, "tuple[str, ...]"])
    """Artifact of a model -> its answers, one for each prompt."""

    def of_model(self, model: str) -> Mapping[AskedPrompt, str]:
        """Return what a model answered to each prompt; nothing where it wasn't asked."""
        answers = self.written.get(model)
        return {} if answers is None else dict(zip(self.prompts, answers, strict=True))

    def to_json(self) -> str:
        """Return the file's text; equal answers have equal bytes."""
        rows = [
            {"document": each.document, "text": each.text, "is_question": each.is_question}
            for each in self.prompts
        ]
        plain = {"models": dict(self.models), "prompts": rows, "written": dict(self.written)}
        return json.dumps(plain, sort_keys=True)

    def to_plain(self) -> dict[str, Any]:
        """Return the form that documents have: a row for each prompt, with None for no answer."""
        of_role = {role: self.of_model(self.models.get(role, "")) for role in ROLES}
        rows = [
            {
                "prompt": prompt.text,
                "is_question": prompt.is_question,
                **{role: answers.get(prompt) for role, answers in of_role.items()},
            }
            for prompt in self.prompts
        ]
        return {"models": {role: self.models.get(role) for role in ROLES}, "rows": rows}


def read_answers(text: str) -> RoundAnswers:
    """Return what the file says; a node that isn't trusted may have written it.

    Raises:
        CorruptArtifactError: it says something else.
    """
    try:
        return _answers(json.loads(text))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise CorruptArtifactError(f"{ANSWERS_FILE} doesn't hold a round's answers") from error


def _answers(plain: Any) -> RoundAnswers:  # noqa: ANN401 - JSON
    models = {role: _text(plain["models"][role]) for role in ROLES if role in plain["models"]}
    prompts = tuple(_prompts(plain["prompts"]))
    written = {
        model: tuple(_text(each)[:MAX_ANSWER_CHARS] for each in plain["written"][model])
        for model in models.values()
        if model in plain["written"]
    }
    if any(len(answers) != len(prompts) for answers in written.values()):
        raise ValueError("a model has another number of answers than there are prompts")
    return RoundAnswers(models, prompts, written)


def _prompts(rows: Sequence[Mapping[str, Any]]) -> Iterator[AskedPrompt]:
    if len(rows) > PROMPTS:
        raise ValueError(f"there are {len(rows)} prompts")
    for row in rows:
        text = _text(row["text"])[:MAX_QUESTION_CHARS]
        yield AskedPrompt(_text(row["document"]), text, row["is_question"] is True)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value
