"""Micro batches that were found before, as one file holds them: by all that decides about speed.

Pure. Owns that text. Doesn't know where it lies, or how a micro batch is found (`batch_search`). A
text that can't be read knows nothing: then the search is made again.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, cast

from jupiterd.cycle.base.plain_text import hash_of
from jupiterd.cycle.training.adapters.adapter import AdapterOptions
from jupiterd.cycle.training.engine_options import ResolvedOptions
from jupiterd.cycle.training.plan import ModelShape

KEPT: Final = 64
"""Choices in the file; the oldest makes room."""

MOST_BEGUN: Final = 2
"""Searches that end their worker before the default is taken without another one."""


@dataclass(frozen=True)
class Choice:
    """What a search has found."""

    micro_batch: int
    """Sequences at a time."""
    most: int
    """The most that might have been tried."""
    tokens_per_s: float
    """Forward and backward alone, without the update; 0: the search hasn't come to its end."""
    begun: int = 0
    """How often one was begun that never came to its end."""

    @property
    def is_made(self) -> bool:
        """Say whether it is one: after so many workers that died in a search there is no other."""
        return self.tokens_per_s > 0 or self.begun >= MOST_BEGUN


def key_of(
    shape: ModelShape,
    batch_sequences: int,
    options: ResolvedOptions,
    device: str,
    versions: Mapping[str, str],
    adapter: AdapterOptions | None = None,
) -> str:
    """Return what a choice holds for, as 64 hex digits.

    Args:
        shape: the model; neither its name nor its recipe counts.
        batch_sequences: of a step.
        options: how it is computed.
        device: its name, such as `NVIDIA H100 80GB HBM3`.
        versions: of Jupiter and of the framework.
        adapter: what is trained in place of the weights, which takes far less memory.
    """
    computed = ("precision", "weights", "gradient_checkpointing", "attention", "documents_apart")
    trained = {} if adapter is None else {"adapter": adapter.to_text()}
    return hash_of(
        {
            "model": shape.model_dump(mode="json", exclude={"version", "size", "recipe"}),
            "batch": batch_sequences,
            "options": {name: getattr(options, name) for name in computed},
            "device": device,
            "versions": dict(versions),
            **trained,
        }
    )


def choice_in(text: str, key: str, most: int) -> Choice | None:
    """Return the choice that the text has, made or only begun; None where none holds now.

    most: what may be tried now: one that was made among fewer says nothing about more
    """
    choice = kept_choice(text, key)
    return choice if choice is not None and choice.micro_batch <= most <= choice.most else None


def kept_choice(text: str, key: str) -> Choice | None:
    """Return the same, whatever may be tried; None where there is none."""
    try:
        choice = Choice(**cast("dict[str, Any]", _choices(text).get(key)))
        counts = 1 <= choice.micro_batch <= choice.most and choice.begun >= 0
        is_right = counts and choice.tokens_per_s >= 0
    except TypeError:
        return None
    return choice if is_right else None


def with_choice(text: str, key: str, choice: Choice) -> str:
    """Return the text with a choice as its newest."""
    choices = _choices(text)
    choices.pop(key, None)
    choices[key] = asdict(choice)
    return json.dumps(dict(list(choices.items())[-KEPT:]))


def _choices(text: str) -> dict[str, object]:
    try:
        told = json.loads(text)
    except ValueError:
        return {}
    return cast("dict[str, object]", told) if isinstance(told, dict) else {}
