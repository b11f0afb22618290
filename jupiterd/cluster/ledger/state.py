"""What a cluster has agreed on: the fold of its facts.

Owns what each fact does to the agreed state. Doesn't know entries, signatures or who may write.

`apply` is commutative and idempotent: the same set of (fact, order) gives an equal state, in
whatever order and however often each is applied. Set facts keep the first in the order, settings
the greatest (edit, order).
"""

from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Any

from blake3 import blake3

from jupiterd.cluster.facts.dismissal_fact import AlarmDismissed
from jupiterd.cluster.facts.facts import (
    ClusterFounded,
    ClusterMerged,
    ClusterRenamed,
    CycleStarted,
    DataRequested,
    Fact,
    NodeAdmitted,
    NodeRemoved,
    PairingWindowLocked,
    PairingWindowSet,
    RoleAssigned,
    RolePinned,
    SourcePurged,
    TokenIssued,
    TokenWithdrawn,
    TrainingStarted,
    UnknownFact,
    WorkCompleted,
)
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.ledger.dismissals import Dismissals
from jupiterd.cluster.ledger.lww_registers import ONLY, Order, Register, fact_hash, packed
from jupiterd.cluster.ledger.roster import Roster
from jupiterd.cluster.ledger.tokens import still_count
from jupiterd.cluster.values.bounds import MAX_NUMBER
from jupiterd.ids import CycleId, NodeId


class State:
    """The agreed state of one cluster; two are equal when they came from the same set of facts."""

    def __init__(self) -> None:
        self.cycles: dict[CycleId, CycleState] = {}
        """Every cycle of which any fact is known."""
        self._founded: Register[str, ClusterFounded] = Register(greatest_wins=False)
        self._roster = Roster(self._shut)
        self._names: Register[str, ClusterRenamed] = Register(greatest_wins=True)
        self._merges: Register[str, ClusterMerged] = Register(greatest_wins=False)
        self._pins: Register[NodeId, RolePinned] = Register(greatest_wins=True)
        self._tokens: Register[str, TokenIssued] = Register(greatest_wins=False)
        self._withdrawn: Register[str, TokenWithdrawn] = Register(greatest_wins=False)
        self._roles: Register[NodeId, RoleAssigned] = Register(greatest_wins=True)
        # What only trusted members decide is kept of each author: another's word hides none.
        self._window: Register[tuple[str, bool], PairingWindowSet] = Register(greatest_wins=True)
        self._closings: Register[Order, PairingWindowSet] = Register(greatest_wins=False)
        self._purges: Register[tuple[str, str, str, str], SourcePurged] = Register(
            greatest_wins=False
        )
        self.dismissals = Dismissals(self._roster.may_decide, self._roster.is_member)
        """Alarms that people have seen."""
        self._unknown: Register[str, UnknownFact] = Register(greatest_wins=False)

    def apply(self, fact: Fact, order: Order) -> None:  # noqa: C901, PLR0912 - a case for each fact
        """Take in one fact of the entry that stands at `order`."""
        match fact:
            case WorkCompleted():  # most facts are
                self._cycle(fact.cycle).apply(fact, order)
            case ClusterFounded():
                self._founded.offer(ONLY, fact, order)
            case NodeAdmitted() | NodeRemoved() | PairingWindowLocked():
                self._roster.apply(fact, order)
            case ClusterRenamed():
                self._names.offer(ONLY, fact, (fact.edit, *order))
            case ClusterMerged():
                self._merges.offer(f"{order[1]}/{fact_hash(fact)}", fact, order)
            case RolePinned():
                self._pins.offer(fact.node, fact, (fact.edit, *order))
            case TokenIssued():
                self._tokens.offer(f"{order[1]}/{fact.token}", fact, order)
            case TokenWithdrawn():
                self._withdrawn.offer(fact.token, fact, order)
            case RoleAssigned():
                self._roles.offer(fact.node, fact, (fact.edit, *order))
            case PairingWindowSet():
                if not fact.is_open:
                    self._closings.offer(order, fact, order)
                    self._roster.reconsider()
                # At the bound the order alone decides, or what was shut there stayed so for ever.
                is_shut = not fact.is_open and fact.edit < MAX_NUMBER
                self._window.offer((order[1], fact.is_open), fact, (fact.edit, is_shut, *order))
            case SourcePurged():
                self._purges.offer((fact.domain, fact.cycle, fact.source, order[1]), fact, order)
            case AlarmDismissed():
                self.dismissals.apply(fact, order)
            case UnknownFact():
                self._unknown.offer(fact_hash(fact), fact, order)
            case _:
                self._cycle(fact.cycle).apply(fact, order)
                if isinstance(fact, CycleStarted | DataRequested | TrainingStarted):
                    self._roster.reconsider()

    def _cycle(self, cycle: CycleId) -> CycleState:
        """Return a cycle's state; an empty one is dear, and only made for one that is new."""
        if cycle not in self.cycles:
            self.cycles[cycle] = CycleState(self._roster.may_decide)
        return self.cycles[cycle]

    @property
    def label(self) -> str:
        """The cluster's name for people; empty before its founding is known."""
        named = self._names.facts.get(ONLY) or self._founded.facts.get(ONLY)
        return named.label if named else ""

    @property
    def label_edit(self) -> int:
        """The edit number of the cluster's name; the next one carries one more."""
        named = self._names.facts.get(ONLY)
        return named.edit if named else 0

    @property
    def members(self) -> Mapping[NodeId, NodeAdmitted]:
        """Everybody who was admitted and not removed since."""
        return self._roster.members

    @property
    def roster(self) -> Roster:
        """Admissions and removals."""
        return self._roster

    @property
    def roles(self) -> Mapping[NodeId, RoleAssigned]:
        """What the leader wants each node to do."""
        return self._roles.facts

    def admitted_at(self, node: NodeId) -> Order | None:
        """Return the order of the entry that first admitted a node; None where none ever did."""
        return self._roster.admitted_at(node)

    @property
    def issued_tokens(self) -> Mapping[str, TokenIssued]:
        """Every join token there ever was, by its id; of two of one id a trusted member's."""
        return {fact.token: fact for _, fact in self._issued()}

    @property
    def tokens(self) -> Mapping[str, TokenIssued]:
        """The join tokens that still count, by their ids."""
        withdrawn, admissions = self._withdrawn.facts, self._roster.admissions()
        counting = {fact.token: fact for counts, fact in self._issued() if counts}
        return still_count(counting, withdrawn, admissions)

    def _issued(self) -> list[tuple[bool, TokenIssued]]:
        """Return every token, and whether it counts: of two of one id the last is in force."""
        found = [(self._roster.may_decide(at), at, fact) for at, fact in self._tokens.placed()]
        # Those of trusted members last, and of theirs the first in the order.
        found.sort(key=itemgetter(1), reverse=True)
        found.sort(key=itemgetter(0))
        return [(counts, fact) for counts, _, fact in found]

    @property
    def has_worked(self) -> bool:
        """Say whether any cycle, training or data set was ever asked for."""
        return any(cycle.begun for cycle in self.cycles.values())

    @property
    def pins(self) -> Mapping[NodeId, RolePinned]:
        """What people want each node to do."""
        return self._pins.facts

    def purged(self, domain: str, cycle: CycleId) -> frozenset[str]:
        """Return the sources of which a cycle on this domain uses nothing any more."""
        return frozenset(
            fact.source
            for order, fact in self._purges.placed()
            if fact.domain == domain
            and fact.cycle in ("", cycle)
            and self._roster.may_decide(order)
        )

    @property
    def merges(self) -> Iterable[ClusterMerged]:
        """Every merge that was agreed to or done, of this cluster and of those it absorbed."""
        return [fact for order, fact in self._merges.placed() if self._roster.may_decide(order)]

    @property
    def barred(self) -> frozenset[NodeId]:
        """Keys that were removed from a cluster that is part of this one now."""
        return frozenset(node for merge in self.merges for node in merge.removed)

    @property
    def window_open(self) -> bool:
        """Newcomers are let in: as was last set, else as long as the cluster has never run work."""
        window = self._window_in_force
        return window.is_open if window else not self.has_worked

    @property
    def window_edit(self) -> int:
        """The edit number of the window's setting; the next one carries one more."""
        window = self._window_in_force
        return window.edit if window else 0

    @property
    def _window_in_force(self) -> PairingWindowSet | None:
        """Anybody may shut the door; who opens it is trusted."""
        counting = [
            key
            for key, fact in self._window.facts.items()
            if not fact.is_open or self._roster.may_decide(self._window.order(key))
        ]
        last = max(counting, key=lambda key: self._window.rank(key) or (), default=None)
        return None if last is None else self._window.facts[last]

    def _shut(self) -> Iterator[Order]:
        """Yield the orders of all entries that shut the door, by word or as work began."""
        yield from self._closings.facts
        for cycle in self.cycles.values():
            if begun := cycle.start_order:
                yield begun[1]

    @property
    def blank(self) -> bool:
        """Nothing would be lost if this ledger were dropped: nobody has worked or decided."""
        decided = (
            self._closings,
            self._unknown,
            self._names,
            self._merges,
            self._pins,
            self._tokens,
            self._purges,
        )
        return not (
            self.cycles or self._roster.has_removals or any(register.facts for register in decided)
        )

    @property
    def is_understood(self) -> bool:
        """No fact is of a newer version."""
        return not self._unknown.facts

    def placed(self) -> Iterator[tuple[Order, Fact]]:
        """Return the facts in force with the order of their entries: they make an equal state.

        Facts of newer versions are among them, for those who will understand them.
        """
        yield from self._roster.placed()
        for register in self._registers():
            yield from register.placed()
        yield from self.dismissals.placed()
        for cycle in self.cycles.values():
            yield from cycle.placed()

    def digest(self) -> str:
        """Return BLAKE3 of everything that tells two states apart, 64 hex digits."""
        plain = [
            self._roster.digest(),
            [register.digest() for register in self._registers()],
            self.dismissals.digest(),
            [[cycle, self.cycles[cycle].digest()] for cycle in sorted(self.cycles)],
        ]
        return blake3(packed(plain)).hexdigest()

    def _registers(self) -> tuple[Register[Any, Any], ...]:
        return (
            self._founded,
            self._names,
            self._merges,
            self._pins,
            self._tokens,
            self._withdrawn,
            self._roles,
            self._window,
            self._closings,
            self._purges,
            self._unknown,
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, State) and self.digest() == other.digest()

    __hash__ = None  # pyright: ignore[reportAssignmentType] - it changes
