"""Elections among three to five nodes over a bad network, in virtual time.

The real `FailureDetector` and `Election` of each node, joined by a network that delays, loses
and cuts.
"""

import heapq
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import count

import pytest

from jupiterd.cluster.membership.election import (
    BeatSeen,
    BecomeLeader,
    Effect,
    Election,
    ElectionInput,
    ElectionRole,
    ElectionTicked,
    GangChanged,
    PersistTerm,
    PresenceChanged,
    PreVoteAnswered,
    RequestPreVote,
    Resigned,
)
from jupiterd.cluster.membership.failure_detector import (
    FailureDetector,
    Heard,
    MembershipInput,
    RosterChanged,
)
from jupiterd.cluster.membership.failure_detector import Ticked as MembershipTicked
from jupiterd.cluster.values.timing import Timing
from jupiterd.ids import NodeId

TIMING = Timing(suspect_s=1.0, gone_s=2.5)
"""Membership is quicker than in life, so that a seed is soon done; the election's waits aren't."""

BEAT_S = 0.5
SETTLED_S = 8.0


@dataclass
class Host:
    """One node's machines, and what it has on disk."""

    node: NodeId
    stability: int
    membership: FailureDetector
    election: Election
    disk_term: int = 0
    terms_led: list[int] = field(default_factory=list[int])
    is_up: bool = True


class Network:
    """Runs hosts in virtual time; every random choice comes from one seed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.now = 0.0
        self.loss = self.rng.choice([0.0, 0.05, 0.2])
        self.delay_s = self.rng.choice([0.002, 0.05, 0.2])
        self.runs_gangs = seed % 2 == 1
        """Whether whoever leads runs a gang: it is given up sooner when it is silent."""
        self.cut: set[frozenset[NodeId]] = set()
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._count = count()
        nodes = [NodeId(letter * 32) for letter in "abcde"[: self.rng.randrange(3, 6)]]
        self.hosts = {node: self._host(node, 0, nodes) for node in nodes}
        for host in self.hosts.values():
            self.at(self.rng.uniform(0.0, 0.5), lambda host=host: self._beat_for_ever(host))

    def _host(self, node: NodeId, term: int, nodes: Iterable[NodeId]) -> Host:
        membership = FailureDetector(node, self.now, TIMING)
        election = Election(node, term, self.now, self.rng, TIMING)
        election.stability = self.rng.randrange(3)
        host = Host(node, election.stability, membership, election, term)
        self._tell_membership(host, RosterChanged(frozenset(nodes)))
        return host

    def at(self, delay_s: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._queue, (self.now + delay_s, next(self._count), action))

    def run(self, seconds: float) -> None:
        until = self.now + seconds
        while self._queue and self._queue[0][0] <= until:
            self.now, _, action = heapq.heappop(self._queue)
            action()
        self.now = until

    def partition(self, *groups: set[NodeId]) -> None:
        self.cut = {
            frozenset((one, other))
            for group in groups
            for one in group
            for other in set(self.hosts) - group
        }

    def crash(self, node: NodeId) -> None:
        self.hosts[node].is_up = False

    def restart(self, node: NodeId) -> None:
        old = self.hosts[node]
        self.hosts[node] = self._host(node, old.disk_term, self.hosts)
        self.hosts[node].terms_led = old.terms_led
        self._beat_for_ever(self.hosts[node])

    def leaders(self, group: Iterable[NodeId]) -> list[NodeId]:
        up = (self.hosts[node] for node in group if self.hosts[node].is_up)
        return [host.node for host in up if host.election.role is ElectionRole.LEADER]

    def assert_one_leader(self, group: Iterable[NodeId]) -> NodeId:
        group = list(group)
        (leader,) = self.leaders(group)
        for node in group:
            if self.hosts[node].is_up:
                assert self.hosts[node].election.leader == leader
                assert self.hosts[node].election.term <= self.hosts[leader].election.term
        return leader

    def _send(self, source: Host, target: NodeId, arrive: Callable[[Host], None]) -> None:
        if frozenset((source.node, target)) in self.cut or self.rng.random() < self.loss:
            return

        def deliver() -> None:
            host = self.hosts[target]
            if host.is_up and frozenset((source.node, target)) not in self.cut:
                arrive(host)

        self.at(self.rng.uniform(0.0, 2 * self.delay_s), deliver)

    def _beat_for_ever(self, host: Host) -> None:
        if not host.is_up or self.hosts[host.node] is not host:
            return
        self._tell_membership(host, MembershipTicked(0.0))
        self._tell(host, ElectionTicked())
        beat = self._beat_of(host)
        ages_s = host.membership.ages(self.now)
        for node in self.hosts:
            if node != host.node:
                self._send(host, node, lambda to: self._hear(to, beat, Heard(host.node, ages_s)))
        self.at(BEAT_S, lambda: self._beat_for_ever(host))

    def _beat_of(self, host: Host) -> BeatSeen:
        election = host.election
        is_leader = election.role is ElectionRole.LEADER
        election.step(self.now, GangChanged(self.runs_gangs and is_leader))
        return BeatSeen(
            host.node,
            election.term,
            election.leader,
            host.stability,
            election.members_alive(self.now),
            election.runs_gang,
        )

    def _hear(self, host: Host, beat: BeatSeen, heard: Heard) -> None:
        self._tell_membership(host, heard)
        self._tell(host, beat)

    def _tell_membership(self, host: Host, event: MembershipInput) -> None:
        if host.membership.step(self.now, event):
            self._tell(host, PresenceChanged(host.membership.present() - {host.node}))

    def _tell(self, host: Host, event: ElectionInput) -> None:
        before = host.election.term
        effects = host.election.step(self.now, event)
        assert host.election.term >= before
        for effect in effects:
            self._do(host, effect)

    def _do(self, host: Host, effect: Effect) -> None:
        match effect:
            case PersistTerm(term):
                assert term > host.disk_term
                host.disk_term = term
            case BecomeLeader(term):
                assert term == host.disk_term
                assert not host.terms_led or term > host.terms_led[-1]
                host.terms_led.append(term)
            case RequestPreVote(nodes, term):
                for node in sorted(nodes):
                    self._send(host, node, lambda to, term=term: self._ask(host, to, term))
            case _:
                pass

    def _ask(self, asker: Host, asked: Host, term: int) -> None:
        granted, _ = asked.election.answer_pre_vote(self.now, asker.node, term, asker.stability)
        answer = PreVoteAnswered(asked.node, granted, asked.election.term)
        self._send(asked, asker.node, lambda to: self._tell(to, answer))


def random_groups(network: Network) -> tuple[set[NodeId], set[NodeId]]:
    nodes = sorted(network.hosts)
    network.rng.shuffle(nodes)
    size = network.rng.randrange(1, len(nodes))
    return set(nodes[:size]), set(nodes[size:])


def make_calm(network: Network) -> None:
    network.loss = 0.0
    network.cut = set()


@pytest.mark.parametrize("batch", range(4))
def test_every_connected_group_has_one_leader_and_a_healed_split_has_one(batch: int) -> None:
    for seed in range(batch * 50, batch * 50 + 50):
        network = Network(seed)
        network.run(6.0)
        network.loss = 0.0
        groups = random_groups(network)
        network.partition(*groups)
        network.run(TIMING.gone_s + SETTLED_S)
        for group in groups:
            network.assert_one_leader(group)
        make_calm(network)
        network.run(SETTLED_S)
        network.assert_one_leader(network.hosts)


@pytest.mark.parametrize("batch", range(2))
def test_a_crashed_leader_is_replaced_and_comes_back_as_a_follower(batch: int) -> None:
    for seed in range(batch * 50, batch * 50 + 50):
        network = Network(seed)
        make_calm(network)
        network.run(SETTLED_S)
        first = network.assert_one_leader(network.hosts)
        network.crash(first)
        network.run(SETTLED_S)
        second = network.assert_one_leader(network.hosts)
        assert second != first
        network.restart(first)
        network.run(SETTLED_S)
        assert network.assert_one_leader(network.hosts) == second


def test_terms_led_after_a_heal_are_above_all_those_led_before() -> None:
    for seed in range(30):
        network = Network(seed)
        make_calm(network)
        network.partition(*random_groups(network))
        network.run(TIMING.gone_s + SETTLED_S)
        highest = max(host.disk_term for host in network.hosts.values())
        make_calm(network)
        network.run(SETTLED_S)
        leader = network.assert_one_leader(network.hosts)
        assert network.hosts[leader].election.term >= highest
        rivals = [host for host in network.hosts.values() if host.node != leader]
        assert all(network.hosts[leader].terms_led[-1] > t for h in rivals for t in h.terms_led)


def test_a_leader_that_resigns_is_replaced_within_two_seconds() -> None:
    for seed in range(30):
        network = Network(seed)
        make_calm(network)
        network.delay_s = 0.002
        network.run(SETTLED_S)
        first = network.assert_one_leader(network.hosts)
        network.hosts[first].election.step(network.now, Resigned())
        network.run(2.5)
        assert network.leaders(network.hosts) != [first]
        assert len(network.leaders(network.hosts)) == 1


def test_a_steady_network_keeps_its_leader_under_loss() -> None:
    changes = 0
    for seed in range(20):
        network = Network(seed)
        make_calm(network)
        network.delay_s = 0.05
        network.run(SETTLED_S)
        before = network.assert_one_leader(network.hosts)
        network.loss = 0.1
        network.run(30.0)
        changes += network.hosts[before].election.role is not ElectionRole.LEADER
    assert changes == 0


def test_the_same_seed_gives_the_same_history() -> None:
    histories = []
    for _ in range(2):
        network = Network(17)
        network.run(20.0)
        histories.append([host.terms_led for host in network.hosts.values()])
    assert histories[0] == histories[1]
