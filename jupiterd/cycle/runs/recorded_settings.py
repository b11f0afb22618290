"""What the recorded settings of a cycle or a run say, for those who only read them.

Owns the names and values that a reader looks for. Doesn't know how settings are checked
(`run_settings`): that takes a library of 8 MB, which a daemon without work doesn't load.
"""

from collections.abc import Mapping
from typing import Any

from jupiterd.cycle.questions.question_file import QUESTIONS

OF_THE_SIZE, OF_TUNING = "size", "tuning"


def base_of(settings: Mapping[str, Any]) -> str:
    """Return the model that was brought and is to be beaten; empty: none, or by an older build.

    That of an adapter that was given means the adapter and the weights beside which it stands.
    """
    first = settings.get("adapter_from") or settings.get("start_from", "")
    return str(first) if settings.get("recipe") == OF_TUNING else ""


LOSS_ON = "loss_on"
"""What the loss counts of conversations: of a cycle's settings, where its first model is talked to,
and of a data set of conversations."""


def loss_on(settings: Mapping[str, Any]) -> str:
    """Return what the loss counts of a cycle's questions and answers; empty: there are none."""
    return str(settings.get(LOSS_ON, ""))


def questions_of(settings: Mapping[str, Any]) -> str:
    """Return the artifact of a cycle's own questions; empty: there are none."""
    return str(settings.get(QUESTIONS, ""))


NAMED_GENERATOR = "generator_is_named"
"""Of a cycle's settings: people named its generator, which may be the model that it begins with.
Cycles of older builds lack it."""
