"""Whose documents can be kept apart: which models let nobody see another document.

Owns that question, asked before a run is launched. Doesn't know engines or masks.
"""

from typing import Final

from jupiterd.cycle.training.architectures import QWEN3
from jupiterd.cycle.training.engine_options import EngineOptions
from jupiterd.cycle.training.model_traits import shortest_window
from jupiterd.cycle.training.plan import ModelShape
from jupiterd.errors import UsageError

MASKED: Final = frozenset({
    QWEN3, "gemma3_text", "gpt2", "gpt_neox", "granite", "llama", "mistral", "olmo2", "phi3",
    "qwen2", "smollm3",
})  # fmt: skip
"""Architectures that take a mask of one's own in the place of theirs, and have no other memory."""


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
    window = shortest_window({**shape.config, "model_type": name})
    if shape.seq_len > window > 0:
        raise _refused(f"in a model that sees {window} tokens", f"choose sequences of {window}")


def _refused(where: str, hint: str) -> UsageError:
    return UsageError(f"documents can't be kept apart {where}", f"{hint}, or document masks: off")
