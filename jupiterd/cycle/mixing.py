"""How much generated text goes beside the real one, and which.

Owns the cap on the synthetic share. Doesn't know tokenizers, files or who generated anything.
Real text is never left out, so this module only ever chooses among the synthetic samples.
"""

from collections.abc import Iterable

from blake3 import blake3

from jupiterd.errors import Bug


def shuffle_key(sample_id: str, salt: str) -> bytes:
    """Return a sample's place in an order that looks random and is the same on every machine."""
    return blake3(f"{salt}\0{sample_id}".encode()).digest(16)


def take_synthetic(
    real_bytes: int, synthetic: Iterable[tuple[str, int]], share: float, salt: str
) -> tuple[frozenset[str], str]:
    """Choose among synthetic (sample id, size in bytes): at most `share` of all bytes.

    They are taken in keyed hash order up to the first that doesn't fit; passing over that one for a
    smaller one would favour short samples. Returns the ids and the reason in one sentence.
    """
    if not 0 <= share < 1:
        raise Bug(f"a synthetic share of {share} is no share below 1")
    offered = sorted(synthetic, key=lambda item: shuffle_key(item[0], salt))
    budget_bytes = int(real_bytes * share / (1 - share))
    taken: list[str] = []
    taken_bytes = 0
    for sample_id, size_bytes in offered:
        if taken_bytes + size_bytes > budget_bytes:
            break
        taken.append(sample_id)
        taken_bytes += size_bytes
    return frozenset(taken), _reason(len(taken), len(offered), taken_bytes, real_bytes, share)


def _reason(taken: int, offered: int, taken_bytes: int, real_bytes: int, share: float) -> str:
    if not offered:
        return "real text alone: there are no synthetic samples"
    reached = taken_bytes / max(1, taken_bytes + real_bytes)
    why = "all of them fit" if taken == offered else "more would exceed the cap"
    return (
        f"{taken} of {offered} synthetic samples, {reached:.1%} of the bytes "
        f"under a cap of {share:.0%}: {why}"
    )
