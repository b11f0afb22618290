"""How much generated text goes beside the real one, and which.

Owns the cap on the synthetic share. Doesn't know tokenizers, files or who generated anything.
Real text is never left out, so this module only ever chooses among the synthetic samples.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from blake3 import blake3

from jupiterd.errors import Bug

SHARE_OF_OTHERS: Final = 0.4
MAX_SHARE_OF_OTHERS: Final = 0.6
"""Of generated text where the generator is a model that others made: mostly, and at most."""

MAX_OWN_SHARE: Final = 0.3
"""Where it is our own student; more of what a model said itself makes it worse."""

MAX_VARIANTS: Final = 4
"""Synthetic samples of one real document, at most: else a few documents colour the whole."""


def share_cap(wanted: float | None, *, is_own: bool) -> float:
    """Return the greatest share of a round's bytes that may be synthetic.

    Args:
        wanted: what the domain file says; None where it leaves that to us.
        is_own: the generator in force is our own student.
    """
    ceiling, usual = (
        (MAX_OWN_SHARE, MAX_OWN_SHARE) if is_own else (MAX_SHARE_OF_OTHERS, SHARE_OF_OTHERS)
    )
    return min(usual if wanted is None else wanted, ceiling)


def shuffle_key(sample_id: str, salt: str) -> bytes:
    """Return a sample's place in an order that looks random and is the same on every machine."""
    return blake3(f"{salt}\0{sample_id}".encode()).digest(16)


@dataclass(frozen=True)
class Offered:
    """A synthetic sample that may be taken."""

    id: str
    size_bytes: int
    parent: str
    """The real sample it was made from."""


def take_synthetic(
    real_bytes: int, synthetic: Iterable[Offered], share: float, salt: str
) -> tuple[frozenset[str], str]:
    """Choose among synthetic samples: at most `share` of all bytes, at most 4 of one parent.

    They are taken in keyed hash order up to the first that doesn't fit; passing over that one for a
    smaller one would favour short samples. Returns the ids and the reason in one sentence.
    """
    if not 0 <= share < 1:
        raise Bug(f"a synthetic share of {share} is no share below 1")
    offered = sorted(synthetic, key=lambda each: shuffle_key(each.id, salt))
    varied = _few_of_each(offered)
    budget_bytes = int(real_bytes * share / (1 - share))
    taken: list[str] = []
    taken_bytes = 0
    for sample in varied:
        if taken_bytes + sample.size_bytes > budget_bytes:
            break
        taken.append(sample.id)
        taken_bytes += sample.size_bytes
    all_fit = len(taken) == len(varied)
    why = _why(len(offered) - len(varied), all_fit=all_fit)
    return frozenset(taken), _reason(len(taken), len(offered), taken_bytes, real_bytes, share, why)


def _few_of_each(offered: Iterable[Offered]) -> list[Offered]:
    """Return the samples without those beyond MAX_VARIANTS of one real document."""
    seen: Counter[str] = Counter()
    found: list[Offered] = []
    for sample in offered:
        seen[sample.parent] += 1
        if seen[sample.parent] <= MAX_VARIANTS:
            found.append(sample)
    return found


def _why(left_out: int, *, all_fit: bool) -> str:
    if not all_fit:
        return "more would exceed the cap"
    if left_out:
        return f"the others are more than {MAX_VARIANTS} of one document"
    return "all of them fit"


def _reason(
    taken: int, offered: int, taken_bytes: int, real_bytes: int, share: float, why: str
) -> str:
    if not offered:
        return "real text alone: there are no synthetic samples"
    reached = taken_bytes / max(1, taken_bytes + real_bytes)
    return (
        f"{taken} of {offered} synthetic samples, {reached:.1%} of the bytes "
        f"under a cap of {share:.0%}: {why}"
    )
