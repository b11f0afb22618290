"""Who belongs to a cluster, and who is trusted in it: which admissions and removals count.

Owns the rule. Doesn't know keys, or when a door is shut: it is told.

1. A removal names the admissions that it withdraws; whoever is admitted anew is a member again.
2. A removal also says how far the removed node's entries were known. What that node wrote beyond
   that, on the strength of the admissions withdrawn, admits and removes nobody.
3. Of two nodes that remove each other, the removal that comes first in the order counts.
4. An admission or removal by somebody who was never admitted doesn't count.
5. Somebody has said yes to a member that was admitted for any other reason than that it walked in
   through the open door, by one to whom somebody had said yes before; the founder is the first.
   Such a member is *trusted*: it alone removes, says yes, and lets in once the door was shut. Until
   then who walked in may let others walk in, for it may lead. What stands before that yes in the
   order never counts for more. An entry that was written before it, but stands after it, counts:
   entries carry no proof of when they were written, and a trusted member may write the same.
6. Entries carry no proof of when they were written. So whoever shuts the door names the admissions
   by members that aren't trusted, as far as they are known: no other one counts from then on.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import itemgetter

from blake3 import blake3

from jupiterd.cluster.facts.fact_wire import to_wire
from jupiterd.cluster.facts.facts import NodeAdmitted, NodeRemoved, PairingWindowLocked
from jupiterd.cluster.ledger.lww_registers import Order, canonical_bytes, fact_hash
from jupiterd.ids import NodeId

RosterFact = NodeAdmitted | NodeRemoved | PairingWindowLocked
Placed = tuple[Order, RosterFact]
Admission = tuple[Order, NodeAdmitted]

MAX_NAMED_ADMISSIONS = 256
"""Of those by members that aren't trusted: of more, which no cluster has room for, the first."""


def entry_name(order: Order) -> str:
    """Return what a removal calls an admission: the writer and the number of its entry."""
    _, node, ledger, index = order
    return f"{node}/{ledger}/{index}"


def admission_name(order: Order, node: NodeId) -> str:
    """Return what whoever shuts the door calls an admission: its entry, and who it lets in."""
    return f"{entry_name(order)}/{node}"


class Roster:
    """Grows by facts in any order, any number of times; who is a member follows from their set."""

    def __init__(self, shut: Callable[[], Iterable[Order]] = tuple) -> None:
        """Take what tells the orders of all entries that shut the door, or began work."""
        self._shut = shut
        self._facts: dict[tuple[Order, NodeId, str], RosterFact] = {}
        self._admissions: dict[NodeId, dict[Order, NodeAdmitted]] = {}
        """Those of the facts that admit a node."""
        self._evaluated: _Evaluated | None = None
        self._digest: bytes | None = None

    def apply(self, fact: RosterFact, order: Order) -> None:
        """Take in one fact of the entry that stands at `order`; of two of one entry the lesser."""
        key = _key(fact, order)
        known = self._facts.get(key)
        if known is None or fact_hash(fact) < fact_hash(known):
            self._facts[key] = fact
            if isinstance(fact, NodeAdmitted):
                self._admissions.setdefault(fact.node, {})[order] = fact
            self._evaluated = self._digest = None

    def has(self, fact: RosterFact, order: Order) -> bool:
        """Say whether that fact of the entry at `order` was taken in."""
        return self._facts.get(_key(fact, order)) == fact

    def reconsider(self) -> None:
        """Take note that other entries may shut the door now."""
        self._evaluated = None

    @property
    def members(self) -> Mapping[NodeId, NodeAdmitted]:
        """Everybody who was admitted and not removed since, each with the admission that counts.

        That is the first that says yes, or else the first.
        """
        return self._result().members

    def is_member(self, node: str) -> bool:
        """Say whether a node was admitted, and not removed since."""
        return node in self.members

    @property
    def trusted(self) -> frozenset[NodeId]:
        """The members to whom somebody has said yes."""
        return self._result().trusted

    @property
    def is_shut(self) -> bool:
        """Say whether a trusted member has ever shut the door, or begun work."""
        return self._result().is_shut

    @property
    def is_named(self) -> bool:
        """Say whether a trusted member has named whom others let in before the door was shut."""
        return bool(self._result().named)

    def let_in_by_others(self) -> tuple[str, ...]:
        """Return the names of the admissions that count, though their authors weren't trusted."""
        return self._result().by_others[:MAX_NAMED_ADMISSIONS]

    def may_decide(self, order: Order) -> bool:
        """Say whether the author of the entry at `order` was trusted by then, and not removed.

        Before anybody was admitted nobody is told from others; no entry comes before the founder's.
        """
        if not self._facts:
            return True
        result = self._result()
        return _is_by_trusted(result.vouched, order, result.removals)

    @property
    def has_removals(self) -> bool:
        """Say whether anybody was ever removed."""
        return any(isinstance(fact, NodeRemoved) for fact in self._facts.values())

    def admissions(self) -> Iterator[NodeAdmitted]:
        """Return everybody's admissions, also of those who were removed since.

        Those aren't among them that never counted, as nobody had said yes to their authors.
        """
        idle = self._result().idle
        return (
            fact
            for (order, _, _), fact in self._facts.items()
            if isinstance(fact, NodeAdmitted) and (order, fact.node) not in idle
        )

    def known(self, node: NodeId) -> NodeAdmitted | None:
        """Return the first admission of a node, also of one that was removed.

        Those that say yes come first, and last those that never counted.
        """
        found = self._admissions.get(node, {})
        if len(found) <= 1:
            return next(iter(found.values()), None)
        result = self._result()
        _, first = min(
            found.items(),
            key=lambda at: (at not in result.vouched, (at[0], node) in result.idle, at[0]),
        )
        return first

    def was_removed(self, node: NodeId) -> bool:
        """Say whether a node was let in once, and is no member."""
        is_known = any(fact.node == node for fact in self.admissions())
        return is_known and node not in self.members

    def admitted_at(self, node: NodeId) -> Order | None:
        """Return the order of the entry that first admitted a node; None where none did."""
        return min(self._admissions.get(node, ()), default=None)

    def admissions_of(self, node: NodeId) -> tuple[str, ...]:
        """Return the names of all admissions of a node: what its removal withdraws."""
        return tuple(entry_name(order) for order, _ in self._admissions_of(node))

    def placed(self) -> Iterator[Placed]:
        """Return every fact with the order of its entry."""
        for (order, _, _), fact in self._facts.items():
            yield order, fact

    def digest(self) -> bytes:
        """Return BLAKE3 of everything that tells two rosters apart, made anew after changes."""
        if self._digest is None:
            rows = [[*key[0], to_wire(self._facts[key])] for key in sorted(self._facts)]
            self._digest = blake3(canonical_bytes(rows)).digest()
        return self._digest

    def _admissions_of(self, node: NodeId) -> list[Admission]:
        return sorted(self._admissions.get(node, {}).items(), key=itemgetter(0))

    def _result(self) -> "_Evaluated":
        if self._evaluated is None:
            facts = [(key[0], self._facts[key]) for key in sorted(self._facts, key=_founder_first)]
            self._evaluated = _evaluate(facts, self._shut())
        return self._evaluated


@dataclass(frozen=True)
class _Evaluated:
    """What the facts add up to."""

    vouched: list[Admission]
    """The admissions that say yes and count, withdrawn or not."""
    removals: list[NodeRemoved]
    members: dict[NodeId, NodeAdmitted]
    trusted: frozenset[NodeId]
    is_shut: bool
    idle: frozenset[tuple[Order, NodeId]]
    """Admissions that never counted, as nobody had said yes to their authors."""
    named: list[frozenset[str]]
    """What trusted members named as they shut the door."""
    by_others: tuple[str, ...]
    """Admissions that count, though their authors weren't trusted."""


def _key(fact: RosterFact, order: Order) -> tuple[Order, NodeId, str]:
    node = order[1] if isinstance(fact, PairingWindowLocked) else fact.node
    return order, NodeId(node), type(fact).__name__


def _evaluate(facts: list[Placed], shut: Iterable[Order]) -> _Evaluated:
    removals = _counting_removals(facts)
    vouched = _vouched(facts, removals)
    namings = [
        (at, frozenset(fact.admissions))
        for at, fact in facts
        if isinstance(fact, PairingWindowLocked) and _is_by_trusted(vouched, at, removals)
    ]
    named = [names for _, names in namings]
    counting = [at for at in shut if _is_by_trusted(vouched, at, removals)]
    shut_at = min([*counting, *(at for at, _ in namings)], default=None)
    admitted, by_others, idle = _admitted(facts, removals, shut_at, named)
    members: dict[NodeId, NodeAdmitted] = {}
    for order, fact in [*vouched, *admitted]:
        if not _is_withdrawn(order, fact.node, removals):
            members.setdefault(fact.node, fact)
    trusted = (fact.node for at, fact in vouched if not _is_withdrawn(at, fact.node, removals))
    return _Evaluated(
        vouched=vouched,
        removals=removals,
        members=members,
        trusted=frozenset(trusted),
        is_shut=shut_at is not None,
        idle=frozenset(idle),
        named=named,
        by_others=tuple(admission_name(at, fact.node) for at, fact in by_others),
    )


def _founder_first(key: tuple[Order, NodeId, str]) -> tuple[Order, bool, NodeId, str]:
    """Sort in the total order; in an entry that admits its own author, that comes first."""
    order, node, kind = key
    return order, node != order[1], node, kind


def _counting_removals(facts: list[Placed]) -> list[NodeRemoved]:
    """A removal can only be undone by one that comes before it."""
    vouched: list[Admission] = []
    removals: list[NodeRemoved] = []
    for order, fact in facts:
        if isinstance(fact, PairingWindowLocked) or not _is_by_one_of(
            vouched, order, fact, removals
        ):
            continue
        if isinstance(fact, NodeRemoved):
            removals.append(fact)
        elif not fact.walked_in:
            vouched.append((order, fact))
    return removals


def _vouched(facts: list[Placed], removals: list[NodeRemoved]) -> list[Admission]:
    """An admission is undone by any removal of its author, wherever that stands."""
    vouched: list[Admission] = []
    for order, fact in facts:
        if not isinstance(fact, NodeAdmitted) or fact.walked_in:
            continue
        if _is_by_one_of(vouched, order, fact, removals):
            vouched.append((order, fact))
    return vouched


def _admitted(
    facts: list[Placed],
    removals: list[NodeRemoved],
    shut_at: Order | None,
    named: list[frozenset[str]],
) -> tuple[list[Admission], list[Admission], list[tuple[Order, NodeId]]]:
    """Return the admissions that count, those of them by untrusted members, and the idle ones."""
    vouched: list[Admission] = []
    admitted: list[Admission] = []
    by_others: list[Admission] = []
    idle: list[tuple[Order, NodeId]] = []
    for order, fact in facts:
        if not isinstance(fact, NodeAdmitted):
            continue
        is_trusted = _is_by_one_of(vouched, order, fact, removals)
        if is_trusted and not fact.walked_in:
            vouched.append((order, fact))
        is_open = shut_at is None or order < shut_at
        is_in_time = is_open and _is_named(order, fact.node, named)
        if is_trusted:
            admitted.append((order, fact))
        elif is_in_time and _is_by_one_of(admitted, order, fact, removals):
            admitted.append((order, fact))
            by_others.append((order, fact))
        elif all(order[1] != known.node for _, known in vouched):
            idle.append((order, fact.node))
    return admitted, by_others, idle


def _is_named(order: Order, node: NodeId, named: list[frozenset[str]]) -> bool:
    """Say whether everybody who shut the door knew of an admission by then."""
    return all(admission_name(order, node) in names for names in named)


def _is_by_trusted(vouched: list[Admission], order: Order, removals: list[NodeRemoved]) -> bool:
    """Say whether the author of the entry at `order` was trusted by then, and not removed."""
    before = [(at, admission) for at, admission in vouched if at <= order]
    return _is_by_one_of(before, order, None, removals)


def _is_by_one_of(
    admitted: list[Admission], order: Order, fact: RosterFact | None, removals: list[NodeRemoved]
) -> bool:
    """Say whether some of these admissions lets the author write this fact."""
    author = order[1]
    own = [at for at, admission in admitted if admission.node == author]
    if not own:  # the founder's entry, which comes before all others, admits its author
        return not admitted and isinstance(fact, NodeAdmitted) and fact.node == author
    return any(
        all(
            entry_name(at) not in removal.admissions or _was_known(order, removal)
            for removal in removals
            if removal.node == author
        )
        for at in own
    )


def _was_known(order: Order, removal: NodeRemoved) -> bool:
    _, _, ledger, index = order
    return index <= removal.last_seen.get(ledger, 0)


def _is_withdrawn(order: Order, node: NodeId, removals: list[NodeRemoved]) -> bool:
    name = entry_name(order)
    return any(removal.node == node and name in removal.admissions for removal in removals)
