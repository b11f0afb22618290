"""The signed entries that admit, remove and shut the door, kept beside what is summed up.

Owns which are kept, and their bound. Doesn't know who is a member (`roster`), or check signatures.

A snapshot is its author's word, and counts for nothing where its author isn't known. These entries
prove themselves: whoever knows one member follows the admissions from there to all others.
"""

from collections.abc import Mapping
from operator import attrgetter

from jupiterd.cluster.facts.facts import NodeAdmitted, NodeRemoved, PairingWindowLocked
from jupiterd.cluster.ledger.entry import Entry
from jupiterd.cluster.ledger.roster import RosterFact

MAX_BOOK_BYTES = 1 << 20
"""Over a thousand admissions. Beyond it the oldest go: who was away lacks the newest."""


def roster_facts(entry: Entry) -> list[RosterFact]:
    """Return whom an entry admits and removes, and who was in as the door was shut."""
    return [
        fact
        for fact in entry.facts
        if isinstance(fact, NodeAdmitted | NodeRemoved | PairingWindowLocked)
    ]


class RosterBook:
    """Entries with at least one admission, removal or shut door, each once."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._size_bytes = 0

    def __contains__(self, digest: str) -> bool:
        return digest in self._entries

    def keep(self, entry: Entry) -> None:
        """Keep an entry if it belongs here."""
        if entry.hash in self._entries or not roster_facts(entry):
            return
        self._entries[entry.hash] = entry
        self._size_bytes += len(entry.raw)
        while self._size_bytes > MAX_BOOK_BYTES:
            oldest = min(self._entries.values(), key=attrgetter("order"))
            self._size_bytes -= len(self._entries.pop(oldest.hash).raw)

    def beyond(self, tips: Mapping[str, int]) -> list[Entry]:
        """Return the entries that aren't among the first so many of their writers, in order."""
        found = (e for e in self._entries.values() if e.index > tips.get(str(e.writer), 0))
        return sorted(found, key=attrgetter("order"))
