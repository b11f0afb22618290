"""One writer's entries, the first of which may only be known by what they add up to.

Owns their order and numbers. Doesn't know the other writers, or what entries say.
"""

from dataclasses import dataclass

from jupiterd.cluster.ledger.entry import Entry


@dataclass(frozen=True)
class Tip:
    """The last entry of a writer, as far as anybody has it."""

    index: int
    term: int
    hash: str


NOTHING = Tip(0, 0, "")
"""The tip of a writer that has written nothing."""


class Chain:
    """Entries 1 to `tip.index`; those up to `base.index` aren't held one by one."""

    def __init__(self) -> None:
        self.base = NOTHING
        """The last entry that is summed up in a snapshot."""
        self.tip = NOTHING
        """The last entry."""
        self._entries: list[Entry] = []

    @property
    def entry_count(self) -> int:
        """How many entries are held one by one."""
        return len(self._entries)

    def hash_at(self, index: int) -> str | None:
        """Return the hash of an entry, or None where it isn't held any more, or not yet."""
        if index == self.base.index:
            return self.base.hash
        position = index - self.base.index - 1
        return self._entries[position].hash if 0 <= position < len(self._entries) else None

    def append(self, entry: Entry) -> None:
        """Add the next entry, whose place was checked."""
        self._entries.append(entry)
        self.tip = _tip_of(entry)

    def after(self, index: int) -> list[Entry]:
        """Return the held entries behind that one."""
        return self._entries[max(index - self.base.index, 0) :]

    def forget(self, index: int) -> None:
        """Hold entries up to that one no longer one by one."""
        count = min(index - self.base.index, len(self._entries))
        if count > 0:
            self.base = _tip_of(self._entries[count - 1])
            del self._entries[:count]

    def skip_to(self, tip: Tip) -> None:
        """Take over that everything up to `tip` is summed up elsewhere."""
        self.base = self.tip = tip
        self._entries.clear()


def _tip_of(entry: Entry) -> Tip:
    return Tip(entry.index, entry.term, entry.hash)
