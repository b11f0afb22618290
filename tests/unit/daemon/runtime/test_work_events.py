"""Orders and events on the wire."""

import pytest

from jupiterd.cycle.base.work_item import WorkResult
from jupiterd.daemon.runtime.work_events import (
    DIGEST_BYTES,
    Alive,
    CheckpointStored,
    Finished,
    PseudoGradientStored,
    Started,
    WorkEvent,
    WorkOrder,
    from_proto,
    to_proto,
)
from jupiterd.errors import EmptySourceError, JupiterError, MalformedError
from jupiterd.ids import ArtifactId
from jupiterd.protocol.frames import (
    CheckpointUnsaved,
    GangJoined,
    Preparing,
    Progressed,
    RankListening,
)
from jupiterd.protocol.training_values import PseudoGradient, TrainingProgress
from jupiterd.rpc import peer_pb2

ARTIFACT = ArtifactId("a" * 64)


@pytest.mark.parametrize(
    "event",
    [
        Started(4711, "cpu"),
        Progressed(3, 10, "steps", {"loss": 2.5}),
        Progressed(0, 0, "", {}),
        CheckpointStored(ARTIFACT, TrainingProgress(100, 25_600, 400, 3.25, {"best_step": 90.0})),
        CheckpointUnsaved(100, "no room"),
        PseudoGradientStored(
            ARTIFACT,
            PseudoGradient(
                "5" * 64, 960, 1.5, 12.5, b"\0\0\x80?", 4096, "6" * 64, b"\7" * 32, 24, 2.5, 900
            ),
        ),
        RankListening(4000),
        GangJoined("gpu", "without OpenBLAS"),
        Preparing("compiling", 41.5),
        Preparing("trying_micro_batches", 20.0, "32 of 64"),
        Alive(),
        Finished(WorkResult({"kept": ARTIFACT}, {"kept": 3.0}, {"why": "x", "n": 1, "none": None})),
        Finished(WorkResult({})),
    ],
    ids=lambda event: type(event).__name__,
)
def test_an_event_arrives_as_it_was_sent(event: WorkEvent) -> None:
    wire = to_proto(event).SerializeToString()
    assert from_proto(peer_pb2.WorkEvent.FromString(wire)) == event


@pytest.mark.parametrize(
    ("told", "read"),
    [
        (peer_pb2.WorkAlive(stage="a stage of later"), Alive()),
        (peer_pb2.WorkAlive(stage="loading", expected_s=float("nan")), Preparing("loading")),
        (peer_pb2.WorkAlive(stage="loading", expected_s=-1.0), Preparing("loading")),
    ],
)
def test_a_stage_that_is_none_says_that_the_node_is_there(
    told: peer_pb2.WorkAlive, read: WorkEvent
) -> None:
    assert from_proto(peer_pb2.WorkEvent(alive=told)) == read


def test_a_way_of_which_less_is_told_or_more_than_a_digest_arrives() -> None:
    way = peer_pb2.WorkPseudoGradient(artifact=ARTIFACT, after="5" * 64, tokens=960, norm=1.5)
    assert from_proto(peer_pb2.WorkEvent(pseudo_gradient=way)) == PseudoGradientStored(
        ARTIFACT, PseudoGradient("5" * 64, 960, 1.5)
    )
    way.digest = b"\7" * 1000
    made = from_proto(peer_pb2.WorkEvent(pseudo_gradient=way))
    assert isinstance(made, PseudoGradientStored)
    assert made.pseudo_gradient.digest == b"\7" * DIGEST_BYTES


def test_an_order_arrives_as_it_was_sent() -> None:
    order = WorkOrder(
        id="cycle/r1/train/1/0",
        term=7,
        task="train",
        params={"shape": {"hidden": 128}, "plan": [1, 2.5, None, True], "name": "x"},
        inputs={"shards": ARTIFACT},
        attempt=3,
    )
    wire = order.to_proto().SerializeToString()
    assert WorkOrder.from_proto(peer_pb2.WorkRequest.FromString(wire)) == order


def test_a_failure_is_raised_as_the_error_it_was() -> None:
    failure = peer_pb2.Failure(code="empty-source", message="nothing there", hint="look again")
    with pytest.raises(EmptySourceError, match="nothing there") as error:
        from_proto(peer_pb2.WorkEvent(failure=failure))
    assert error.value.hint == "look again"


def test_a_failure_nobody_knows_is_still_an_error_for_people() -> None:
    failure = peer_pb2.Failure(code="from-the-future", message="too new", hint="update")
    with pytest.raises(JupiterError, match="too new"):
        from_proto(peer_pb2.WorkEvent(failure=failure))


def test_an_event_without_content_is_refused() -> None:
    with pytest.raises(MalformedError):
        from_proto(peer_pb2.WorkEvent())


@pytest.mark.parametrize(
    "params", [b"\xc1", b"\x90", b"\x81\xa1x\xcf" + b"\xff" * 8, b"\x91" * 999]
)
def test_an_order_whose_parameters_are_none_is_refused(params: bytes) -> None:
    with pytest.raises(MalformedError):
        WorkOrder.from_proto(peer_pb2.WorkRequest(id="x", task="store", params=params))
