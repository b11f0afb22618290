"""Whether islands stand at the same outer state: weights and momentum, equal to the bit.

Owns who is taken for the one that has drifted. Pure. Doesn't know how digests are computed, when
states are comparable, or what becomes of whoever differs.

Islands work out each outer step by themselves, from the same ways: where memory or a library is at
fault, one gets something else, and what it trains from there leads away from the others' weights
for good. Nobody can say from digests which of two states is the right one. That isn't needed: each
is as good to go on from as the other, as long as all have the same.
"""

from collections.abc import Collection, Mapping


def adrift(
    stated: Mapping[str, bytes], counted: Collection[str], before: Collection[str] = ()
) -> tuple[str, ...]:
    """Return whose state isn't the one that most have.

    Where it is a draw, it is the one that the first has of those who were there before.

    Only states of islands whose ways can be merged are gone on from: somebody always can.

    Args:
        stated: digests of those who are in, after the same outer step; empty where one tells none.
        counted: those of them whose ways are sound.
        before: those whose ways were merged before; a newcomer's state is no reason to doubt them.
    """
    order = sorted(stated, key=lambda name: (name not in before, name))
    known = {name: stated[name] for name in order if stated[name]}
    digests = [*known.values()]
    candidates = [digest for name, digest in known.items() if name in counted]
    if not candidates:
        return ()
    right = max(candidates, key=digests.count)  # of equals, it returns the first
    return tuple(sorted(name for name, digest in known.items() if digest != right))
