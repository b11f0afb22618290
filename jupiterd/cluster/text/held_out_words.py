"""What is told of the loss on held-out text, by what was decided with a checkpoint.

Pure. Owns the words. Doesn't know how it was decided (`cycle.training.horizon`), which has written
these numbers, or who is told.
"""

from collections.abc import Mapping

from jupiterd.cluster.facts.facts import CheckpointCommitted
from jupiterd.formats import bits_per_byte, is_worse

_IN_BITS = {
    "first_loss": "bits_per_byte_before",
    "loss": "bits_per_byte",
    "best_loss": "best_bits_per_byte",
}


def held_out_readings(horizon: Mapping[str, float]) -> dict[str, float]:
    """Return the readings of a checkpoint; nothing where there was no such text."""
    if not horizon.get("step"):
        return {}
    names = {"loss": "held_out", "best_step": "best_step", "best_loss": "best_held_out"}
    found = {label: horizon[name] for name, label in names.items() if name in horizon}
    if "first_loss" in horizon:  # weights were given: 0 says that none was better
        found.setdefault("best_step", 0.0)
    return found | in_bits(horizon)


def in_bits(horizon: Mapping[str, float]) -> dict[str, float]:
    """Return in bits per byte what is known of weights that were given, and of what they became."""
    per_token = horizon.get("bytes_per_token", 0.0)
    if not horizon.get("first_loss") or not per_token:
        return {}
    known = {label: horizon[name] for name, label in _IN_BITS.items() if horizon.get(name)}
    return {label: bits_per_byte(nats, per_token) for label, nats in known.items()}


def ends_worse(horizon: Mapping[str, float]) -> bool:
    """Say whether a training of weights that were given ended with worse ones."""
    loss, first = horizon.get("loss", 0.0), horizon.get("first_loss", 0.0)
    return bool(horizon.get("step")) and is_worse(loss, first)


def held_out_summary(checkpoint: CheckpointCommitted) -> list[str]:
    """Return what the end of a training tells of it; nothing where there was no such text."""
    horizon = checkpoint.horizon
    if not horizon.get("step") or not horizon.get("best_loss"):
        return []
    step = horizon.get("best_step", 0.0)
    where = f"best at step {step:.0f}" if step else "best as the weights were given"
    lines = [f"held out {horizon['best_loss']:.3f}, {where}", *before_and_after(horizon)]
    return [*lines, *(["ended early"] if horizon.get("ended") else [])]


def before_and_after(horizon: Mapping[str, float]) -> list[str]:
    """Return the score of weights that were given beside that of the model that counts."""
    bits = in_bits(horizon)
    if "best_bits_per_byte" not in bits:
        return []
    after, before = bits["best_bits_per_byte"], bits["bits_per_byte_before"]
    worse = [f"ended worse than it began, at {bits['bits_per_byte']:.4f}"]
    text = f"{after:.4f} bits per byte, {before:.4f} before training"
    return [text, *(worse if ends_worse(horizon) else [])]


def began_with(checkpoint: CheckpointCommitted) -> str:
    """Return the score of weights that were given, before training; empty: nobody knows it."""
    bits = in_bits(checkpoint.horizon).get("bits_per_byte_before")
    return f"held out: {bits:.4f} bits per byte before training" if bits else ""


def early_end(checkpoint: CheckpointCommitted) -> str:
    """Return that a training ended early, and why; empty where it didn't."""
    horizon = checkpoint.horizon
    if not checkpoint.is_final or not horizon.get("ended"):
        return ""
    best_step = f"{horizon.get('best_step', 0):,.0f}"
    return (
        f"round {checkpoint.round} ended early after step {checkpoint.step:,}: "
        f"the loss on held-out text has risen since step {best_step}, whose weights count"
    )


def worse_end(checkpoint: CheckpointCommitted) -> str:
    """Return that a training ended worse than it began; empty where it didn't."""
    horizon = checkpoint.horizon
    if not checkpoint.is_final or not ends_worse(horizon):
        return ""
    step = horizon.get("best_step", 0.0)
    counts = f"those of step {step:,.0f} count" if step else "the weights as they came count"
    bits = in_bits(horizon)
    scores = f"{horizon['loss']:.4f} nats a token, {horizon['first_loss']:.4f} before"
    if bits:
        now, before = bits["bits_per_byte"], bits["bits_per_byte_before"]
        scores = f"{now:.4f} bits per byte of held-out text, {before:.4f} before"
    return f"round {checkpoint.round} ended worse than it began ({scores}): {counts}"
