"""The causal mask of transformers' models, which attention's kernels know without one.

Owns when none is made. transformers leaves it out as well, but not while a graph is traced: it
can't look then whether positions begin anew within a sequence, and before torch 2.14 it takes
compiling for exporting. A mask costs memory and the fastest kernels. Ours tell documents apart by
masks that are given, never by positions, so there is nothing to look for.
"""

from typing import Any

from torch import Tensor
from transformers import masking_utils
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

_KERNEL = "sdpa"
_LOOK = "find_packed_sequence_indices"


def leave_out_causal_masks() -> None:
    """Let models of transformers that use torch's kernels make no mask that is plainly causal.

    It holds for the whole process. A transformers without these parts goes on as it is: slower.
    """
    AttentionMaskInterface.register(_KERNEL, mask_unless_causal)
    if hasattr(masking_utils, _LOOK):
        setattr(masking_utils, _LOOK, nothing_packed)


def nothing_packed(_position_ids: Tensor) -> None:
    """Say that each sequence counts its positions from its beginning to its end."""


def mask_unless_causal(*given: Any, **named: Any) -> Tensor | None:
    """Return transformers' own mask; None where the kernel's causal one is the same."""
    return None if not given and _is_plainly_causal(named) else sdpa_mask(*given, **named)


def _is_plainly_causal(named: dict[str, Any]) -> bool:
    """Say whether each token sees itself and all tokens before it.

    transformers allows to leave a mask out where nothing else was added to it.
    """
    if not named.get("allow_is_causal_skip", False) or named.get("attention_mask") is not None:
        return False
    queries, keys, window = (named.get(n) for n in ("q_length", "kv_length", "local_size"))
    is_whole = isinstance(queries, int) and queries == keys
    return is_whole and (window is None or queries < window)
