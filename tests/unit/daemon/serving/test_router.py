"""A request's way to the node that answers it, and to another where that one can't."""

import asyncio
from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from jupiterd.cluster.serving.answer_request import AnswerRequest
from jupiterd.cluster.serving.routing import ServingNode
from jupiterd.cluster.serving.served_model import ServedModel
from jupiterd.cluster.serving.serving_rows import ModelLoad, NodeServing
from jupiterd.daemon.serving.answering import Answer
from jupiterd.daemon.serving.router import MAX_TRIES, Router
from jupiterd.errors import (
    BusyError,
    CorruptWeightsError,
    EngineLostError,
    JupiterError,
    MissingExtraError,
    ModelNotServedError,
    OutOfMemoryError,
    PeerUnreachableError,
    WorkFailedError,
)
from jupiterd.ids import ArtifactId, NodeId
from tests.support.serving.written_engines import EVENTS, WrittenEngines, chat

MODEL = ServedModel("promoted", ArtifactId("a" * 64))
READY = NodeServing((ModelLoad("promoted", MODEL.artifact),))
OWN = NodeId("own")


def serving(name: str, load: int = 0) -> ServingNode:
    models = (ModelLoad("promoted", MODEL.artifact, running=load),)
    return ServingNode(NodeId(name), name, is_own=name == OWN, serving=NodeServing(models))


@dataclass
class Fleet:
    """Members as a test has them; those in `files` have the model and don't serve it."""

    members: list[ServingNode]
    files: set[str] = field(default_factory=set[str])
    asked: int = 0
    lost: list[str] = field(default_factory=list[str])
    _found: set[str] = field(default_factory=set[str])

    async def find_holders(self, artifact: ArtifactId) -> None:
        assert artifact == MODEL.artifact
        self.asked += 1
        self._found = set(self.files)
        await asyncio.sleep(0)

    def note_lost(self, node: NodeId) -> None:
        self.lost.append(node)

    def nodes(
        self, _: ServedModel, in_flight: Mapping[NodeId, int], without: Collection[NodeId] = ()
    ) -> list[ServingNode]:
        return [
            ServingNode(
                each.node,
                each.name,
                absence=each.absence,
                is_own=each.is_own,
                can_compute=each.can_compute,
                serving=each.serving,
                holds=each.node in self._found,
                in_flight=in_flight.get(each.node, 0),
            )
            for each in self.members
            if each.node not in without
        ]


class Named:
    """Engines of a node that say its name."""

    def __init__(self, name: str, refuses: JupiterError | None = None) -> None:
        self.name, self.refuses, self.running = name, refuses, 0

    @asynccontextmanager
    async def answering(self, _model: ServedModel, _: AnswerRequest) -> AsyncGenerator[Answer]:
        if self.refuses is not None:
            raise self.refuses
        self.running += 1
        try:
            yield Answer(200, EVENTS, self._chunks())
        finally:
            self.running -= 1

    async def _chunks(self) -> AsyncGenerator[bytes]:
        yield self.name.encode()


def router_of(fleet: Fleet, **engines: Named) -> Router:
    local = engines.get("own", Named("own"))
    return Router(OWN, local, lambda node: engines[node], fleet)


async def answered_by(router: Router, model: ServedModel = MODEL) -> str:
    async with router.answering(model, chat()) as answer:
        return b"".join([chunk async for chunk in answer.chunks]).decode()


async def test_requests_go_to_the_node_with_the_least_to_do() -> None:
    fleet = Fleet([serving("own", 3), serving("two", 1)])
    assert await answered_by(router_of(fleet, two=Named("two"))) == "two"
    assert not fleet.asked, "who has the files was asked though somebody serves the model"


async def test_eight_at_once_are_spread_before_any_report_tells_of_them() -> None:
    engines = {"two": Named("two"), "six": Named("six")}
    router = router_of(Fleet([serving("own"), serving("two"), serving("six")]), **engines)
    everybody = asyncio.Barrier(9)

    async def one() -> str:
        async with router.answering(MODEL, chat()) as answer:
            await everybody.wait()
            return b"".join([chunk async for chunk in answer.chunks]).decode()

    asking = [asyncio.ensure_future(one()) for _ in range(8)]
    async with asyncio.timeout(5.0):
        await everybody.wait()
    names = await asyncio.gather(*asking)
    assert sorted(map(names.count, ("own", "two", "six"))) == [2, 3, 3]
    assert not router._in_flight


@pytest.mark.parametrize(
    "error", [EngineLostError("it died"), BusyError("full"), PeerUnreachableError("no link")]
)
async def test_a_request_that_has_not_begun_goes_to_another_node(error: JupiterError) -> None:
    engines = {"two": Named("two", error), "six": Named("six")}
    fleet = Fleet([serving("two"), serving("six", 9)])
    assert await answered_by(router_of(fleet, **engines)) == "six"


async def test_damaged_files_of_one_node_leave_a_request_to_another_that_has_them() -> None:
    fleet = Fleet([serving("own"), serving("two", 3)])
    damaged = Named("own", CorruptWeightsError("model.safetensors is cut off"))
    assert await answered_by(router_of(fleet, own=damaged, two=Named("two"))) == "two"
    assert not fleet.lost, "a node with a damaged model was taken for one that is gone"
    with pytest.raises(CorruptWeightsError, match="cut off"):
        await answered_by(router_of(Fleet([serving("own")]), own=damaged))


@pytest.mark.parametrize("kind", [WorkFailedError, OutOfMemoryError])
async def test_a_model_that_one_node_can_not_load_is_loaded_by_another(
    kind: type[JupiterError],
) -> None:
    fleet = Fleet([serving("own"), serving("two", 3)])
    failing = Named("own", kind("torch: it ended with status 1"))
    assert await answered_by(router_of(fleet, own=failing, two=Named("two"))) == "two"
    assert not fleet.lost, "a node that can't load a model was taken for one that is gone"
    with pytest.raises(kind, match="status 1"):
        await answered_by(router_of(Fleet([serving("own")]), own=failing))


async def test_that_no_node_can_load_a_model_is_said_as_the_last_one_said_it() -> None:
    fleet = Fleet([serving("own"), serving("two", 3)])
    own, two = Named("own", WorkFailedError("own's")), Named("two", WorkFailedError("two's"))
    with pytest.raises(WorkFailedError, match="two's"):
        await answered_by(router_of(fleet, own=own, two=two))


async def test_a_model_that_fails_once_its_answer_has_begun_goes_to_nobody_else() -> None:
    two, six = Failing("two"), Named("six")
    router = router_of(Fleet([serving("two"), serving("six", 9)]), two=two, six=six)
    with pytest.raises(WorkFailedError):
        await answered_by(router)


async def test_what_has_begun_is_not_asked_again() -> None:
    two = Named("two")
    router = router_of(Fleet([serving("two"), serving("own", 1)]), two=two)
    with pytest.raises(EngineLostError):
        async with router.answering(MODEL, chat()):
            raise EngineLostError("in mid answer")
    assert two.running == 0
    assert not router._in_flight


async def test_the_shortest_wait_is_told_where_all_are_busy() -> None:
    engines = {
        "two": Named("two", BusyError("two is full", retry_after_s=60.0)),
        "six": Named("six", BusyError("six is full", retry_after_s=3.0)),
    }
    router = router_of(Fleet([serving("two"), serving("six")]), **engines)
    with pytest.raises(BusyError, match="six is full"):
        await answered_by(router)


async def test_a_request_is_not_offered_to_everybody() -> None:
    names = [f"n{number}" for number in range(9)]
    engines = {name: Named(name, BusyError("full")) for name in names}
    fleet = Fleet([serving(name) for name in names])
    with pytest.raises(BusyError):
        await answered_by(router_of(fleet, **engines))
    assert len(names) > MAX_TRIES


async def test_nodes_that_can_not_be_reached_keep_no_request_from_one_that_can() -> None:
    names = [f"n{number}" for number in range(MAX_TRIES + 2)]
    engines = {name: Named(name, PeerUnreachableError("too old")) for name in names}
    fleet = Fleet([*map(serving, names), serving("own", 9)])
    assert await answered_by(router_of(fleet, **engines)) == "own"


async def test_another_error_of_a_node_is_the_answer() -> None:
    two = Named("two", MissingExtraError("no engine"))
    with pytest.raises(MissingExtraError):
        await answered_by(router_of(Fleet([serving("two"), serving("own", 5)]), two=two))


async def test_where_nobody_serves_it_whoever_has_the_files_loads_it() -> None:
    idle = [ServingNode(NodeId(name), name) for name in ("two", "six")]
    fleet = Fleet(idle, files={"six"})
    assert await answered_by(router_of(fleet, six=Named("six"))) == "six"
    assert fleet.asked == 1


@pytest.mark.parametrize(
    ("member", "error", "words"),
    [
        (ServingNode(NodeId("two"), "two"), ModelNotServedError, "no machine has promoted"),
        (
            ServingNode(NodeId("nuc"), "nuc", absence="sleeps since 21:14", serving=READY),
            BusyError,
            "promoted is only on nuc, which sleeps since 21:14",
        ),
        (
            ServingNode(NodeId("two"), "two", can_compute=False, serving=READY),
            MissingExtraError,
            "no engine is installed",
        ),
    ],
    ids=["unknown", "away", "no engine"],
)
async def test_what_nobody_can_answer_is_refused_with_the_reason(
    member: ServingNode, error: type[JupiterError], words: str
) -> None:
    with pytest.raises(error, match=words):
        await answered_by(router_of(Fleet([member])))


async def test_leaving_an_answer_leaves_the_node_that_writes_it() -> None:
    engines = WrittenEngines(token_s=0.01)
    router = Router(OWN, engines, lambda _: engines, Fleet([serving("own")]))
    async with router.answering(MODEL, chat(100_000)) as answer:
        await anext(answer.chunks)
        assert engines.running == [MODEL]
    assert engines.ended == ["cut"]


class Dying(Named):
    """Engines that die after their first token."""

    async def _chunks(self) -> AsyncGenerator[bytes]:
        yield self.name.encode()
        raise EngineLostError("it died")


class Failing(Named):
    """Engines that fail after their first token."""

    async def _chunks(self) -> AsyncGenerator[bytes]:
        yield self.name.encode()
        raise WorkFailedError("it failed")


async def test_a_node_that_loses_an_answer_is_noted_and_one_that_is_full_is_not() -> None:
    fleet = Fleet([serving("two"), serving("six", 3), serving("own", 9)])
    engines = {"two": Named("two", BusyError("full")), "six": Dying("six")}
    with pytest.raises(EngineLostError):
        await answered_by(router_of(fleet, **engines))
    assert fleet.lost == ["six"]
