"""What a running piece of work says of itself, from its node to whoever ordered it.

Owns the protobuf form of these events, and those that a worker's frame can't be: where the frame
says it all, the event is the frame. Doesn't know where the work runs.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, cast

import msgpack

from jupiterd.cluster.values.bounds import is_bounded
from jupiterd.cycle.base.work_item import WorkResult
from jupiterd.document_schema import finite
from jupiterd.errors import MalformedError, from_wire
from jupiterd.ids import ArtifactId, NodeId
from jupiterd.protocol.frames import (
    CheckpointUnsaved,
    GangJoined,
    Preparing,
    Progressed,
    RankListening,
    RankStuck,
)
from jupiterd.protocol.preparing_stage import STAGES
from jupiterd.protocol.training_values import PseudoGradient, TrainingProgress
from jupiterd.rpc import peer_pb2

DIGEST_BYTES = 32
"""Of BLAKE3; whatever else is told is no digest, and differs from all of them."""

BUSY: Final = "busy"
"""Among the readings of a rank: something else than a step comes next, and takes its time."""

BEGINS: Final = "begins"
"""The same, beside BUSY, which leaders of before know alone: its first step comes next."""

MAX_SAVE_S = 600.0
"""The longest that a node waits for a rank to write down its state."""


@dataclass(frozen=True)
class WorkOrder:
    """A piece of work on its way to a node."""

    id: str
    term: int
    task: str
    params: Mapping[str, Any]
    inputs: Mapping[str, ArtifactId]
    attempt: int = 0
    """The gang's attempt; 0 where no gang is meant."""
    is_attach: bool = False
    """Nothing begins: a new leader wants to follow the work of this id that runs already."""
    ordered_by: NodeId | None = field(default=None, compare=False)
    """Who sent it, as its key says; it isn't on the wire."""

    @property
    def cycle(self) -> str:
        """Return what its id begins with: so much of the cycle's id as tells two apart."""
        return self.id.partition("/")[0]

    def to_proto(self) -> peer_pb2.WorkRequest:
        """Return the message for the wire."""
        return peer_pb2.WorkRequest(
            id=self.id,
            term=self.term,
            attempt=self.attempt,
            task=self.task,
            params=msgpack.packb(dict(self.params)),
            inputs=dict(self.inputs),
            attach=self.is_attach,
        )

    @classmethod
    def from_proto(cls, message: peer_pb2.WorkRequest) -> "WorkOrder":
        """Rebuild the order.

        Raises:
            MalformedError: its parameters are none.
        """
        return cls(
            id=message.id,
            term=message.term,
            task=message.task,
            params=_unpacked(message.params),
            inputs={name: ArtifactId(value) for name, value in message.inputs.items()},
            attempt=message.attempt,
            is_attach=message.attach,
        )


@dataclass(frozen=True)
class Started:
    """The worker process runs."""

    pid: int
    device: str
    running_s: float = 0.0
    """For how long already; more than 0 where another leader is told of it."""


@dataclass(frozen=True)
class CheckpointStored:
    """A checkpoint lies in the store of the node that wrote it."""

    artifact: ArtifactId
    progress: TrainingProgress


@dataclass(frozen=True)
class PseudoGradientStored:
    """An island's pseudo-gradient since an outer step lies in the store of its node."""

    artifact: ArtifactId
    pseudo_gradient: PseudoGradient


@dataclass(frozen=True)
class StateStored:
    """The last finished step of a rank lies in the store of its node, which alone hears of it."""

    checkpoint: CheckpointStored | None
    """None where there was nothing to save."""


@dataclass(frozen=True)
class SaveRequest:
    """What the ranks of an attempt are to save before they end: their last finished step."""

    after_step: int
    """No step that is no later than this."""
    within_s: float

    @classmethod
    def from_proto(cls, request: peer_pb2.EndAttemptRequest) -> "SaveRequest | None":
        """Read it from an order to end; None where nothing is wanted."""
        within_s = min(request.keep_within_s, MAX_SAVE_S)
        return cls(request.keep_after_step, within_s) if within_s > 0 else None


@dataclass(frozen=True)
class Finished:
    """The result; the last event of a stream."""

    result: WorkResult


@dataclass(frozen=True)
class Alive:
    """Nothing new; the node of a gang's rank is there."""


WorkEvent = (
    Started
    | Progressed
    | CheckpointStored
    | PseudoGradientStored
    | CheckpointUnsaved
    | RankListening
    | GangJoined
    | Alive
    | Preparing
    | Finished
)
LocalWorkEvent = WorkEvent | StateStored | RankStuck
"""What a worker's own node hears of it: more than it passes on."""


def to_proto(event: WorkEvent) -> peer_pb2.WorkEvent:
    """Return the message for the wire."""
    match event:
        case Started(pid, device, running_s):
            started = peer_pb2.WorkStarted(pid=pid, device=device, running_s=running_s)
            return peer_pb2.WorkEvent(started=started)
        case Progressed(done, total, unit, values):
            progress = peer_pb2.WorkProgress(done=done, total=total, unit=unit, values=dict(values))
            return peer_pb2.WorkEvent(progress=progress)
        case CheckpointStored():
            return peer_pb2.WorkEvent(checkpoint=checkpoint_to_proto(event))
        case PseudoGradientStored(artifact, pseudo_gradient):
            fields = asdict(pseudo_gradient)
            stored = peer_pb2.WorkPseudoGradient(artifact=artifact, **fields)
            message = peer_pb2.WorkEvent(pseudo_gradient=stored)
        case CheckpointUnsaved(step, text):
            message = peer_pb2.WorkEvent(unsaved=peer_pb2.WorkUnsaved(step=step, message=text))
        case RankListening(port):
            return peer_pb2.WorkEvent(listening=peer_pb2.WorkListening(port=port))
        case GangJoined(device, note):
            return peer_pb2.WorkEvent(joined=peer_pb2.WorkJoined(device=device, note=note))
        case Alive() | Preparing():
            message = peer_pb2.WorkEvent(alive=_alive_to_proto(event))
        case Finished(result):
            finished = peer_pb2.WorkFinished(
                outputs=dict(result.outputs),
                counts=dict(result.counts),
                summary=msgpack.packb(dict(result.summary)),
            )
            message = peer_pb2.WorkEvent(finished=finished)
    return message


def from_proto(message: peer_pb2.WorkEvent) -> WorkEvent:
    """Rebuild the event.

    Raises:
        JupiterError: the message is a failure, whatever the worker said.
        MalformedError: it says nothing.
    """
    kind = message.WhichOneof("event")
    if kind == "failure":
        raise from_wire(message.failure.code, message.failure.message, message.failure.hint)
    reader = _READERS.get(kind or "")
    if reader is None:
        raise MalformedError("a message about work says nothing that this node knows")
    return reader(message)


def _finished(message: peer_pb2.WorkFinished) -> Finished:
    outputs = {name: ArtifactId(value) for name, value in message.outputs.items()}
    return Finished(WorkResult(outputs, dict(message.counts), _unpacked(message.summary)))


def _unpacked(told: bytes) -> dict[str, Any]:
    """Return the plain values that a message carries by name; raises MalformedError if it doesn't.

    Nothing at all is none, as where a message has no such part.
    """
    try:
        values = msgpack.unpackb(told, raw=False, strict_map_key=True) if told else {}
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException) as error:
        raise MalformedError("a message about work can't be read") from error
    if not isinstance(values, dict) or not is_bounded(cast("object", values)):
        raise MalformedError("a message about work holds what can't be meant")
    return cast("dict[str, Any]", values)


def _started(message: peer_pb2.WorkStarted) -> Started:
    return Started(message.pid, message.device, message.running_s)


def checkpoint_to_proto(stored: CheckpointStored) -> peer_pb2.WorkCheckpoint:
    """Return the message for the wire."""
    return peer_pb2.WorkCheckpoint(artifact=stored.artifact, **asdict(stored.progress))


def checkpoint_from_proto(message: peer_pb2.WorkCheckpoint) -> CheckpointStored:
    """Rebuild it."""
    counts = message.step, message.tokens, message.cursor
    progress = TrainingProgress(*counts, message.loss, dict(message.horizon))
    return CheckpointStored(ArtifactId(message.artifact), progress)


def _pseudo_gradient(message: peer_pb2.WorkPseudoGradient) -> PseudoGradientStored:
    return PseudoGradientStored(
        ArtifactId(message.artifact),
        PseudoGradient(
            after=message.after,
            tokens=message.tokens,
            norm=message.norm,
            elapsed_s=message.elapsed_s,
            logits=message.logits,
            size_bytes=message.size_bytes,
            stands_at=message.stands_at,
            digest=message.digest[:DIGEST_BYTES],
            scored_step=message.scored_step,
            held_out=message.held_out,
            counted=message.counted,
        ),
    )


MAX_DETAIL_CHARACTERS = 40
"""Of what a worker does before its first step."""


def _alive_to_proto(event: Alive | Preparing) -> peer_pb2.WorkAlive:
    """Return the message; leaders of before read a stage as `Alive`."""
    if isinstance(event, Preparing):
        return peer_pb2.WorkAlive(
            stage=event.stage, expected_s=event.expected_s, detail=event.detail
        )
    return peer_pb2.WorkAlive()


def _alive(message: peer_pb2.WorkAlive) -> Alive | Preparing:
    if message.stage not in STAGES:
        return Alive()
    expected_s = max(0.0, finite(message.expected_s) or 0.0)
    return Preparing(message.stage, expected_s, message.detail[:MAX_DETAIL_CHARACTERS])


def _progressed(message: peer_pb2.WorkProgress) -> Progressed:
    return Progressed(message.done, message.total, message.unit, dict(message.values))


_READERS: Mapping[str, Callable[[peer_pb2.WorkEvent], WorkEvent]] = {
    "started": lambda event: _started(event.started),
    "progress": lambda event: _progressed(event.progress),
    "checkpoint": lambda event: checkpoint_from_proto(event.checkpoint),
    "pseudo_gradient": lambda event: _pseudo_gradient(event.pseudo_gradient),
    "unsaved": lambda event: CheckpointUnsaved(event.unsaved.step, event.unsaved.message),
    "listening": lambda event: RankListening(event.listening.port),
    "alive": lambda event: _alive(event.alive),
    "joined": lambda event: GangJoined(event.joined.device, event.joined.note),
    "finished": lambda event: _finished(event.finished),
}
