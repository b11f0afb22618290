"""What is told of the loss on held-out text, by what was decided with a checkpoint.

Pure. Owns the words. Doesn't know how it was decided (`cycle.training.horizon`), which has written
these numbers, or who is told.
"""

from collections.abc import Mapping

from jupiterd.cluster.facts import CheckpointCommitted


def held_out_readings(horizon: Mapping[str, float]) -> dict[str, float]:
    """Return the readings of a checkpoint; nothing where there was no such text."""
    if not horizon.get("step"):
        return {}
    names = {"loss": "held_out", "best_step": "best_step", "best_loss": "best_held_out"}
    return {told: horizon[name] for name, told in names.items() if name in horizon}


def held_out_told(made: CheckpointCommitted) -> list[str]:
    """Return what the end of a training tells of it; nothing where there was no such text."""
    horizon = made.horizon
    if not horizon.get("step") or not horizon.get("best_step"):
        return []
    best = f"held out {horizon['best_loss']:.3f}, best at step {horizon['best_step']:.0f}"
    return [best, *(["ended early"] if horizon.get("ended") else [])]


def early_end(made: CheckpointCommitted) -> str:
    """Return that a training ended early, and why; empty where it didn't."""
    horizon = made.horizon
    if not made.is_final or not horizon.get("ended"):
        return ""
    return (
        f"round {made.round} ended early after step {made.step:,}: the loss on held-out text has "
        f"risen since step {horizon.get('best_step', 0):,.0f}, whose weights count"
    )
