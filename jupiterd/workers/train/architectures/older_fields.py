"""Fields of config.json as transformers called them before version 5, which mlx-lm still reads.

Owns that list. Everything here follows from the newer fields, so both may stand in one file:
transformers reads the newer ones.
"""

from collections.abc import Mapping
from typing import Any

_FULL, _SLIDING = "full_attention", "sliding_attention"


def older_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the older fields that say what these say; those that stand there already are kept."""
    said: Mapping[str, Any] = fields.get("rope_parameters") or {}
    by_kind = _FULL in said or _SLIDING in said
    rope: Mapping[str, Any] = (said.get(_FULL) or {}) if by_kind else said
    sliding: Mapping[str, Any] = (said.get(_SLIDING) or {}) if by_kind else {}
    found = {
        "rope_theta": rope.get("rope_theta"),
        "rope_scaling": _scaling(rope),
        "partial_rotary_factor": rope.get("partial_rotary_factor"),
        "rope_local_base_freq": sliding.get("rope_theta"),
        "sliding_window_pattern": _pattern(fields) if by_kind else None,
    }
    older = {name: value for name, value in found.items() if value is not None}
    of_one = _OF_ONE.get(str(fields.get("model_type")))
    return older | (of_one(fields, rope) if of_one is not None else {})


def _scaling(rope: Mapping[str, Any]) -> dict[str, Any] | None:
    kind = rope.get("rope_type", "default")
    if kind == "default":
        return None
    left_out = ("rope_theta", "partial_rotary_factor")
    remaining = {name: value for name, value in rope.items() if name not in left_out}
    return remaining | {"type": kind}  # phi3 of mlx-lm knows the name of before alone


def _pattern(fields: Mapping[str, Any]) -> int | None:
    """Return of how many layers one sees everything, where that repeats."""
    kinds = list(fields.get("layer_types") or [])
    if _FULL not in kinds:
        return len(kinds) + 1 if kinds else None
    every = kinds.index(_FULL) + 1
    fits = all((kind == _FULL) == ((n + 1) % every == 0) for n, kind in enumerate(kinds))
    return every if fits else None


def _gpt2(fields: Mapping[str, Any], _rope: Mapping[str, Any]) -> dict[str, Any]:
    return {"n_ctx": fields.get("n_positions")}


def _gpt_neox(_fields: Mapping[str, Any], rope: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "rotary_emb_base": rope.get("rope_theta", 10_000),
        "rotary_pct": rope.get("partial_rotary_factor", 1.0),
    }


_OF_ONE = {"gpt2": _gpt2, "gpt_neox": _gpt_neox}
