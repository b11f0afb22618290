"""Names the merge of a round's batches that counts: after a purge they are merged once more.

The merge keeps one of several equal texts. If a purge removes that one before it is packed, its
copies would be missing. So the batches are merged again under another id, and the earlier merge no
longer counts. Owns these ids. Doesn't know the ledger or nodes.
"""

from collections.abc import Iterable, Mapping

from blake3 import blake3

from jupiterd.cycle.base.purge_counts import LEFT_OUT_COUNT
from jupiterd.cycle.base.work_item import Phase

Counts = Mapping[str, float]


def uniting_id(round_number: int, purged: Iterable[str]) -> str:
    """Return the id of the item that unites a round's batches without what was purged."""
    names, first = sorted(purged), f"r{round_number}/{Phase.FILTER}/0"
    return f"{first}/{blake3(chr(0).join(names).encode()).hexdigest(4)}" if names else first


def united(round_number: int, done: Mapping[str, Counts]) -> str:
    """Return the id of the uniting that counts: that which knew of most purges; empty: none yet.

    Args:
        round_number: the round that it belongs to.
        done: the counts of what is done, by item.
    """
    first = uniting_id(round_number, ())
    found = [item for item in done if _first_of(item) == first]
    return max(found, key=lambda item: (len(_known(done[item])), item), default="")


def knew_of(counts: Counts, purged: Iterable[str]) -> bool:
    """Say whether a uniting with these counts left out all that was purged."""
    return _known(counts).issuperset(purged)


def without_repeated(done: Mapping[str, Counts]) -> set[str]:
    """Return the items of any rounds that count: all but the batches' unitings but the last."""
    last: dict[str, tuple[int, str]] = {}
    for item in done:
        first = _first_of(item)
        last[first] = max(last.get(first, (-1, "")), (len(_known(done[item])), item))
    return {item for _, item in last.values()}


def _first_of(item: str) -> str:
    """Return what a uniting is called before any purge; any other item as it is."""
    _, phase, number, *_ = (*item.split("/"), "", "")
    is_uniting = (phase, number) == (Phase.FILTER, "0")
    return "/".join(item.split("/")[:3]) if is_uniting else item


def _known(counts: Counts) -> set[str]:
    return {name.removeprefix(LEFT_OUT_COUNT) for name in counts if name.startswith(LEFT_OUT_COUNT)}
