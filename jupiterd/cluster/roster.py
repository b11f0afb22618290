"""Who belongs to a cluster: admissions, removals, and which of them count.

Owns the rule. Doesn't know keys, or who may remove whom.

1. A removal names the admissions that it withdraws; whoever is admitted anew is a member again.
2. A removal also says how far the removed node's entries were known. What that node wrote beyond
   that, on the strength of the admissions withdrawn, admits and removes nobody.
3. Of two nodes that remove each other, the removal that comes first in the order counts.
4. An admission or removal by somebody who was never admitted doesn't count.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from blake3 import blake3

from jupiterd.cluster.fact_wire import to_wire
from jupiterd.cluster.facts import NodeAdmitted, NodeRemoved
from jupiterd.cluster.registers import Order, canonical_bytes, fact_hash
from jupiterd.ids import NodeId

RosterFact = NodeAdmitted | NodeRemoved
Placed = tuple[Order, RosterFact]


def entry_name(order: Order) -> str:
    """Return what a removal calls an admission: the writer and the number of its entry."""
    _, node, ledger, index = order
    return f"{node}/{ledger}/{index}"


class Roster:
    """Grows by facts in any order, any number of times; who is a member follows from their set."""

    def __init__(self) -> None:
        self._facts: dict[tuple[Order, NodeId, str], RosterFact] = {}
        self._evaluated: _Evaluated | None = None
        self._digest: bytes | None = None

    def apply(self, fact: RosterFact, order: Order) -> None:
        """Take in one fact of the entry that stands at `order`; of two of one entry the lesser."""
        key = (order, fact.node, type(fact).__name__)
        known = self._facts.get(key)
        if known is None or fact_hash(fact) < fact_hash(known):
            self._facts[key] = fact
            self._evaluated = self._digest = None

    def has(self, fact: RosterFact, order: Order) -> bool:
        """Say whether that fact of the entry at `order` was taken in."""
        return self._facts.get((order, fact.node, type(fact).__name__)) == fact

    @property
    def members(self) -> Mapping[NodeId, NodeAdmitted]:
        """Everybody who was admitted and not removed since; of several admissions the first."""
        return self._result().members

    def may_decide(self, order: Order) -> bool:
        """Say whether the author of the entry at `order` was a member who hadn't been removed."""
        result = self._result()
        return _is_by_member(order, None, result.admitted, result.removals)

    @property
    def has_removals(self) -> bool:
        """Say whether anybody was ever removed."""
        return any(isinstance(fact, NodeRemoved) for fact in self._facts.values())

    def admissions(self) -> Iterator[NodeAdmitted]:
        """Return everybody's admissions, also of those who were removed since."""
        return (fact for fact in self._facts.values() if isinstance(fact, NodeAdmitted))

    def known(self, node: NodeId) -> NodeAdmitted | None:
        """Return the first admission of a node, also of one that was removed."""
        return next((fact for _, fact in self._admissions(node)), None)

    def admitted_at(self, node: NodeId) -> Order | None:
        """Return the order of the entry that first admitted a node; None where none did."""
        return next((order for order, _ in self._admissions(node)), None)

    def admissions_of(self, node: NodeId) -> tuple[str, ...]:
        """Return the names of all admissions of a node: what its removal withdraws."""
        return tuple(entry_name(order) for order, _ in self._admissions(node))

    def placed(self) -> Iterator[Placed]:
        """Return every fact with the order of its entry."""
        for (order, _, _), fact in self._facts.items():
            yield order, fact

    def digest(self) -> bytes:
        """Return BLAKE3 of everything that tells two rosters apart, made anew after changes."""
        if self._digest is None:
            told = [[*key[0], to_wire(self._facts[key])] for key in sorted(self._facts)]
            self._digest = blake3(canonical_bytes(told)).digest()
        return self._digest

    def _admissions(self, node: NodeId) -> Iterator[tuple[Order, NodeAdmitted]]:
        found = [
            (order, fact)
            for (order, who, _), fact in self._facts.items()
            if who == node and isinstance(fact, NodeAdmitted)
        ]
        return iter(sorted(found, key=lambda placed: placed[0]))

    def _result(self) -> "_Evaluated":
        if self._evaluated is None:
            facts = [(key[0], self._facts[key]) for key in sorted(self._facts, key=_founder_first)]
            self._evaluated = _evaluate(facts)
        return self._evaluated


@dataclass(frozen=True)
class _Evaluated:
    """What the facts add up to."""

    admitted: list[tuple[Order, NodeAdmitted]]
    """Those that count, withdrawn or not."""
    removals: list[NodeRemoved]
    members: dict[NodeId, NodeAdmitted]


def _evaluate(facts: list[Placed]) -> _Evaluated:
    removals = _counting_removals(facts)
    admitted = _counting_admissions(facts, removals)
    members: dict[NodeId, NodeAdmitted] = {}
    for order, fact in admitted:
        if not _is_withdrawn(order, fact.node, removals):
            members.setdefault(fact.node, fact)
    return _Evaluated(admitted, removals, members)


def _founder_first(key: tuple[Order, NodeId, str]) -> tuple[Order, bool, NodeId, str]:
    """Sort in the total order; in an entry that admits its own author, that comes first."""
    order, node, kind = key
    return order, node != order[1], node, kind


def _counting_removals(facts: list[Placed]) -> list[NodeRemoved]:
    """A removal can only be undone by one that comes before it."""
    admitted: list[tuple[Order, NodeAdmitted]] = []
    removals: list[NodeRemoved] = []
    for order, fact in facts:
        if not _is_by_member(order, fact, admitted, removals):
            continue
        if isinstance(fact, NodeAdmitted):
            admitted.append((order, fact))
        else:
            removals.append(fact)
    return removals


def _counting_admissions(
    facts: list[Placed], removals: list[NodeRemoved]
) -> list[tuple[Order, NodeAdmitted]]:
    """An admission is undone by any removal of its author, wherever that stands."""
    admitted: list[tuple[Order, NodeAdmitted]] = []
    for order, fact in facts:
        if isinstance(fact, NodeAdmitted) and _is_by_member(order, fact, admitted, removals):
            admitted.append((order, fact))
    return admitted


def _is_by_member(
    order: Order,
    fact: RosterFact | None,
    admitted: list[tuple[Order, NodeAdmitted]],
    removals: list[NodeRemoved],
) -> bool:
    """Say whether some admission lets the author write this fact."""
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
