"""The progress of a run that islands train, as one: people see one run.

Owns the sums. Pure. Doesn't know where readings come from, or who shows them.

    step, time left    the islands' least, as far as they train
    tokens/s           those of the last outer steps, exchanges among them; before, their sum
    predicted          what the leader predicts of all of them together, with their exchanges
    peak               of all their devices, where it is known of all
    loss               their mean, each as weighty as what it does in a second
    held out           of the weights that all have merged, as the leader has decided by it
    gang               all their ranks, each with its island
"""

from collections.abc import Mapping, Sequence
from typing import Any

from jupiterd.cluster.planning.predicted_throughput import PREDICTED

Plain = Mapping[str, Any]

TOKENS_PER_S = "tokens_per_s"
PEAK = "peak_flops_per_s"
TRAIN = "train"
OUTER_STEP = "outer_step"
OF_ONE_ISLAND = frozenset(
    {OUTER_STEP, "waiting", PREDICTED, "rank_tokens_per_s", "rank_sequences_per_s"}
    | {"held_out", "held_out_step", "best_step", "best_held_out", "risen"}
    | {"bits_per_byte", "best_bits_per_byte"}
)
NOT_AT_WORK = frozenset({"away", "failed"})


def united(run: Plain, parts: Sequence[Plain]) -> dict[str, Any]:
    """Return a run's progress with that of its islands; without any it is what it was."""
    outer: Plain | None = run.get("outer")
    if outer is None or run["phase"] != TRAIN:
        return {key: value for key, value in run.items() if key != "outer"}
    states: Mapping[str, str] = outer["states"]
    at_work = [p for p in parts if p["done"] and states.get(p["cycle"]) not in NOT_AT_WORK]
    least = min(at_work, key=lambda part: part["done"], default=None)
    step = outer["first_step"] if least is None else least["done"]
    attempt = max((part["epoch"] or 0 for part in parts), default=None)
    tokens = outer["tokens"] + max(0, step - outer["first_step"]) * outer["step_tokens"]
    return {
        **run,
        "done": step,
        "total": outer["steps"],
        "unit": "steps",
        "rate": None if least is None else least["rate"],
        "eta_s": None if least is None else least["eta_s"],
        **({"stalled_s": least["stalled_s"]} if least and "stalled_s" in least else {}),
        "values": {
            **_values(at_work),
            **_rates(outer),
            **outer.get("held_out", {}),
            "tokens": tokens,
        },
        "gang": _gang(states, parts),
        "epoch": attempt,
        "attempt": attempt,
        "resumed_from_step": max((part["resumed_from_step"] or 0 for part in parts), default=None),
        "preparing": next((part["preparing"] for part in parts if part.get("preparing")), None),
        "detail": "; ".join(filter(None, [run["detail"], *(part["detail"] for part in parts)])),
        "outer": {
            "number": outer["number"],
            "islands": [_island(state, each, at_work) for each, state in states.items()],
        },
    }


def _gang(states: Mapping[str, str], parts: Sequence[Plain]) -> list[Plain]:
    """Return all ranks, each with its island; behind is whoever is behind the foremost island."""
    foremost = max((_foremost(part) for part in parts), default=0)
    return [
        _behind(seat, foremost - _foremost(part)) | {"island": number}
        for number, island in enumerate(states, 1)
        for part in parts
        if part["cycle"] == island
        for seat in part["gang"]
    ]


def _foremost(part: Plain) -> int:
    return max((seat.get("step") or 0 for seat in part["gang"]), default=0)


def _behind(seat: Plain, more_steps: int) -> dict[str, Any]:
    lag = seat.get("step_lag")
    return {**seat} if lag is None else {**seat, "step_lag": lag + more_steps}


def _island(state: str, island: str, parts: Sequence[Plain]) -> dict[str, Any]:
    found = next((part for part in parts if part["cycle"] == island), None)
    if found is None:
        return {"state": state}
    values: Mapping[str, float] = found["values"]
    row: dict[str, Any] = {"state": state, "step": found["done"]}
    if TOKENS_PER_S in values:
        row[TOKENS_PER_S] = values[TOKENS_PER_S]
    if values.get(OUTER_STEP, -1.0) >= 0:
        row[OUTER_STEP] = int(values[OUTER_STEP])
    return row


def _rates(outer: Plain) -> dict[str, float]:
    return {name: outer[name] for name in (TOKENS_PER_S, PREDICTED) if outer.get(name)}


def _values(parts: Sequence[Plain]) -> dict[str, float]:
    values: dict[str, float] = {}
    names = dict.fromkeys(name for part in parts for name in part["values"])
    for name in [name for name in names if name not in OF_ONE_ISLAND]:
        found = [part for part in parts if name in part["values"]]
        if name in {TOKENS_PER_S, PEAK}:
            values[name] = sum(part["values"][name] for part in found)
        else:
            values[name] = _mean(name, found)
    if not all(PEAK in part["values"] for part in parts):
        values.pop(PEAK, None)
    return values


def _mean(name: str, parts: Sequence[Plain]) -> float:
    """Return the mean of a reading, each as weighty as its island is fast."""
    weights = [part["values"].get(TOKENS_PER_S) or 0.0 for part in parts]
    if not all(weights):
        weights = [1.0] * len(parts)
    pairs = zip(parts, weights, strict=True)
    return sum(part["values"][name] * weight for part, weight in pairs) / sum(weights)
