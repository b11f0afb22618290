"""Whose documents can be kept apart: which models let nobody see another document.

Owns that question, asked before a run is launched. Doesn't know engines or masks.
"""

from typing import Final

from jupiterd.cycle.architectures import QWEN3
from jupiterd.cycle.engine_options import EngineOptions
from jupiterd.cycle.plan import ModelShape
from jupiterd.errors import UsageError

MASKED: Final = frozenset({QWEN3, "gpt2", "llama", "mistral", "qwen2"})
"""Architectures that take a mask of one's own in the place of theirs, and have no other memory."""

_USUAL_WINDOWS = {"mistral": 4096}
"""How far tokens see where a configuration doesn't say so."""


def check_documents_apart(shape: ModelShape, options: EngineOptions) -> None:
    """Make sure that documents can be kept apart, where that was asked for.

    Raises:
        UsageError: the model can't.
    """
    if options.document_masks == "off":
        return
    name = shape.architecture
    if name not in MASKED:
        raise _refused(f"in a {name} model", f"it works for {', '.join(sorted(MASKED))}")
    if options.attention == "flash" and name != QWEN3:
        raise _refused(f"in a {name} model with flash-attn", "choose attention: sdpa")
    if shape.seq_len > (window := _window(shape)) > 0:
        raise _refused(f"in a model that sees {window} tokens", f"choose sequences of {window}")


def _window(shape: ModelShape) -> int:
    """Return how many tokens before it a token sees; 0: all."""
    slides = shape.config.get("use_sliding_window", True)
    usual = _USUAL_WINDOWS.get(shape.architecture, 0)
    return int(shape.config.get("sliding_window", usual) or 0) if slides else 0


def _refused(where: str, hint: str) -> UsageError:
    return UsageError(f"documents can't be kept apart {where}", f"{hint}, or document masks: off")
