"""Which members of a gang can meet, over real connections; and what becomes of the others."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from jupiterd.cluster.links.gang_links import HANDSHAKES
from jupiterd.cluster.planning.engines import MLX, TORCH, EngineChoice
from jupiterd.cluster.training.scale_policy import ScalePolicy
from jupiterd.daemon.app.node import Node
from jupiterd.daemon.gangs.gang_reachability import GangReachability
from jupiterd.daemon.links import reachability_probe
from jupiterd.daemon.planning.gang_plan import GangPlan
from jupiterd.errors import BadRouteError, JupiterError
from jupiterd.ids import NodeId
from jupiterd.ports import Address
from jupiterd.processes.routes import free_port
from jupiterd.rpc import peer_pb2
from tests.support.daemon.two_nodes import lead, serving, unite

NAMES = ("alpha", "beta", "gamma")


class Three:
    """Three members of a cluster; the first one leads, and forms gangs."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = nodes
        self.ids = tuple(node.identity.node_id for node in nodes)
        self.scale_policy = ScalePolicy()
        assert nodes[0].leading is not None
        self.leading = nodes[0].leading
        self.answering = frozenset(self.ids)
        self.leading.machines.answering = lambda: self.answering  # nobody beats here
        self.reach = GangReachability(
            self.leading.machines,
            self.leading.connectivity,
            self.scale_policy,
            lambda node: f"node {node}",
        )

    def gang_plan(self, gang: Sequence[NodeId]) -> GangPlan:
        return GangPlan(1, EngineChoice(TORCH, tuple(gang), "as asked"), "", 0, 0.0)


@pytest.fixture
async def three(tmp_path: Path) -> AsyncGenerator[Three]:
    async with AsyncExitStack() as stack:
        nodes = [await stack.enter_async_context(serving(tmp_path, name)) for name in NAMES]
        await unite(*nodes)
        await lead(nodes[0])
        yield Three(nodes)


@pytest.fixture
def gamma_is_walled_in(three: Three, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nobody reach what the third node listens on, as behind a firewall."""
    probes = three.nodes[2].preflight_listener
    real = probes.open

    async def elsewhere(request: peer_pb2.OpenProbeRequest) -> peer_pb2.OpenProbeReply:
        place = await real(request)
        place.port = free_port(place.host)
        return place

    monkeypatch.setattr(probes, "open", elsewhere)


@pytest.fixture
def gamma_loses_packets(three: Three, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a third of the handshakes with the third node fail."""
    port = three.nodes[2].local_view.port

    async def counted(addresses: Sequence[Address], each: int) -> list[int]:
        return [each // 3 if address.port == port else 0 for address in addresses]

    monkeypatch.setattr(reachability_probe, "unanswered", counted)


async def test_all_meet_where_nothing_is_in_the_way(three: Three) -> None:
    places = await three.reach.prove_routes(three.leading.connectivity, three.ids, reserve=False)
    assert list(places) == list(three.ids)
    assert await three.reach.hindering(three.gang_plan(three.ids)) == []
    met = await three.reach.can_be_met(three.gang_plan(three.ids[:2]), three.ids[2:])
    assert met == {three.ids[2]}
    assert three.scale_policy.left_out == frozenset()


@pytest.mark.usefixtures("gamma_is_walled_in")
async def test_one_whom_the_others_can_not_reach_is_left_out_of_the_next_gang(
    three: Three, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(BadRouteError, match="can't reach"):
        await three.reach.prove_routes(three.leading.connectivity, three.ids, reserve=False)
    assert three.scale_policy.left_out == {three.ids[2]}
    assert "left_out_of_gang" in caplog.text
    assert three.ids[2] not in three.leading.machines.fit_nodes()
    rest = await three.reach.prove_routes(three.leading.connectivity, three.ids[:2], reserve=True)
    assert list(rest) == list(three.ids[:2])


async def test_one_to_whom_there_is_no_link_is_left_out(three: Three) -> None:
    await three.nodes[0].peers.unlink(three.ids[2])
    with pytest.raises(JupiterError, match="no link"):
        await three.reach.prove_routes(three.leading.connectivity, three.ids, reserve=False)
    assert three.scale_policy.left_out == {three.ids[2]}


async def test_the_leader_is_not_the_one_that_goes_where_its_only_other_has_gone(
    three: Three,
) -> None:
    await three.nodes[0].peers.unlink(three.ids[1])
    with pytest.raises(JupiterError, match="no link"):
        await three.reach.prove_routes(three.leading.connectivity, three.ids[:2], reserve=False)
    assert three.scale_policy.left_out == {three.ids[1]}


async def test_a_leader_that_only_leads_leaves_out_whom_it_has_no_link_to(three: Three) -> None:
    await three.nodes[0].peers.unlink(three.ids[1])
    with pytest.raises(JupiterError, match="no link"):
        await three.reach.prove_routes(three.leading.connectivity, three.ids[1:], reserve=False)
    assert three.scale_policy.left_out == {three.ids[1]}


@pytest.mark.usefixtures("gamma_is_walled_in")
async def test_a_newcomer_that_can_not_be_met_is_passed_over_until_it_can(
    three: Three, monkeypatch: pytest.MonkeyPatch
) -> None:
    gang, newcomers = three.gang_plan(three.ids[:2]), three.ids[2:]
    assert await three.reach.can_be_met(gang, newcomers) == frozenset()
    assert three.scale_policy.left_out == set(newcomers)
    monkeypatch.undo()
    assert await three.reach.can_be_met(gang, newcomers) == set(newcomers)
    assert three.scale_policy.left_out == frozenset()


@pytest.mark.usefixtures("gamma_loses_packets")
async def test_one_that_loses_a_third_is_found_in_a_gang_and_not_taken_into_one(
    three: Three, caplog: pytest.LogCaptureFixture
) -> None:
    assert await three.reach.hindering(three.gang_plan(three.ids)) == [three.ids[2]]
    assert three.scale_policy.left_out == {three.ids[2]}
    assert "loses packets" in str([vars(record) for record in caplog.records])
    three.scale_policy.admit(three.ids[2])
    assert (
        await three.reach.can_be_met(three.gang_plan(three.ids[:2]), three.ids[2:]) == frozenset()
    )
    assert three.scale_policy.left_out == {three.ids[2]}


async def test_one_that_has_fallen_silent_is_why_nothing_comes_of_a_gang(three: Three) -> None:
    three.answering = frozenset(three.ids[:2])  # its kernel goes on answering when it is frozen
    assert await three.reach.hindering(three.gang_plan(three.ids)) == [three.ids[2]]
    assert three.scale_policy.left_out == {three.ids[2]}


async def test_a_member_tells_how_its_links_do(three: Three) -> None:
    peer = three.nodes[0].peers.require(three.ids[1])
    request = peer_pb2.TryLinksRequest(nodes=[three.ids[2], "nobody", three.ids[1]])
    reply = await peer.channels.control.TryLinks(request, timeout=5.0)
    assert [(link.node, link.handshakes, link.unanswered) for link in reply.links] == [
        (three.ids[2], HANDSHAKES, 0)
    ]


@pytest.fixture
def gamma_has_ipv6_alone(three: Three, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let the third node be reached by IPv6, and count how often it is asked."""
    probes, asked = three.nodes[2].preflight_listener, list[str]()

    async def of_ipv6(request: peer_pb2.OpenProbeRequest) -> peer_pb2.OpenProbeReply:
        asked.append(request.toward)
        return await real(peer_pb2.OpenProbeRequest(toward="::1", reserve=request.reserve))

    real = probes.open
    monkeypatch.setattr(probes, "open", of_ipv6)
    return asked


async def test_a_ring_goes_on_without_one_that_has_ipv6_alone_and_never_tries_it_again(
    three: Three, gamma_has_ipv6_alone: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(BadRouteError, match="needs IPv4"):
        await three.reach.prove_routes(three.leading.connectivity, three.ids, reserve=True)
    assert three.scale_policy.left_out == {three.ids[2]}
    gang = GangPlan(1, EngineChoice(MLX, three.ids[:2], "as asked"), "", 0, 0.0)
    times = len(gamma_has_ipv6_alone)
    for _ in range(3):
        assert await three.reach.can_be_met(gang, three.ids[2:]) == frozenset()
    assert len(gamma_has_ipv6_alone) == times, "as long as its addresses are the same"
    assert caplog.text.count("left_out_of_gang") == 1
    three.leading.connectivity.peers.require(three.ids[2]).addresses = ("10.0.0.3:47470",)
    await three.reach.can_be_met(gang, three.ids[2:])
    assert len(gamma_has_ipv6_alone) == times + 1
