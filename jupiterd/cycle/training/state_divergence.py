"""Whether islands have the same outer state: weights and momentum, equal to the bit.

Owns the choice of the island that has diverged. Pure. Doesn't know how digests are computed, when
states are comparable, or how a diverged island is repaired.

Each island computes an outer step by itself from the same pseudo-gradients. Faulty memory or a
library's bug gives one of them another result, and what it trains afterwards leads away from the
others' weights for good. Digests can't show which of two states is correct. That isn't needed:
training can continue from either, as long as all islands have the same.
"""

from collections.abc import Collection, Mapping


def adrift(
    stated: Mapping[str, bytes], counted: Collection[str], before: Collection[str] = ()
) -> tuple[str, ...]:
    """Return the islands, sorted, whose state differs from the one that most islands have.

    In a draw the reference is the state of the first island, by name, of those in `before`. Only
    the state of an island in `counted` can be the reference.

    Args:
        stated: island -> digest of its state after the same outer step; empty: it reported none.
        counted: islands whose pseudo-gradients are valid and can be merged.
        before: islands that took part in an earlier merge; a newcomer's state doesn't outweigh
            theirs.
    """
    order = sorted(stated, key=lambda name: (name not in before, name))
    known = {name: stated[name] for name in order if stated[name]}
    digests = [*known.values()]
    candidates = [digest for name, digest in known.items() if name in counted]
    if not candidates:
        return ()
    right = max(candidates, key=digests.count)  # of equals, it returns the first
    return tuple(sorted(name for name, digest in known.items() if digest != right))
