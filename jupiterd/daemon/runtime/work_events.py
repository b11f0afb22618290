"""What a running piece of work says of itself, as the daemon's own values.

Owns the values and their protobuf form. Doesn't know where the work runs.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, cast

import msgpack

from jupiterd.cluster.values.bounds import is_bounded
from jupiterd.cycle.base.work_item import WorkResult
from jupiterd.errors import JupiterError, MalformedError, from_wire
from jupiterd.ids import ArtifactId, NodeId
from jupiterd.rpc import peer_pb2

DIGEST_BYTES = 32
"""Size of a BLAKE3 digest; a value of another size equals none."""

BUSY: Final = "busy"
"""Among the readings of a rank: something else than a step comes next, and takes its time."""

BEGINS: Final = "begins"
"""Sent along with BUSY (older leaders know that alone): its first step comes next."""

MAX_SAVE_S = 600.0
"""The longest that a node waits for a rank to write down its state."""


@dataclass(frozen=True)
class WorkOrder:
    """An order to a node: the task, its parameters and inputs, and the leader's term."""

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
        """Return the first part of its id: a prefix of the cycle's id that is unique."""
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
    """Seconds that it has run; more than 0 where a later leader attaches to it."""


@dataclass(frozen=True)
class Advanced:
    """How far it is."""

    done: int
    total: int
    unit: str
    values: Mapping[str, float]


@dataclass(frozen=True)
class CheckpointStored:
    """A checkpoint lies in the store of the node that made it."""

    artifact: ArtifactId
    step: int
    tokens: int
    cursor: int
    loss: float
    horizon: Mapping[str, float] = field(default_factory=dict[str, float])
    """What losses on held-out text had decided by then, see `cycle.training.horizon`."""


@dataclass(frozen=True)
class PseudoGradientStored:
    """An island's pseudo-gradient since an outer step lies in the store of its node."""

    artifact: ArtifactId
    after: str
    """Hash of that step's fact."""
    tokens: int
    """Trained on since then."""
    norm: float
    elapsed_s: float
    logits: bytes = b""
    """Of a batch that is the same everywhere, at that step's weights, see `model_fingerprint`."""
    size_bytes: int = 0
    """Of the artifact; 0: nobody knows."""
    stands_at: str = ""
    """Hash of the last outer step that the island had taken by then; empty: nobody knows."""
    digest: bytes = b""
    """Of what it had after that one, see `cycle.state_divergence`; empty: nobody knows."""
    scored_step: int = 0
    """Steps that the weights contain that it has scored last on held-out text; 0: none."""
    held_out: float = 0.0
    """Their loss, see `cycle.islands.outer_horizon`."""
    counted: int = 0
    """Of the tokens, those that the loss counts; 0: all of them."""


@dataclass(frozen=True)
class Unsaved:
    """There was no room for a checkpoint; the rank trains on, and writes the next in its time."""

    step: int
    message: str


@dataclass(frozen=True)
class LastStepStored:
    """The last finished step of a rank lies in its node's store; no other node gets this."""

    checkpoint: CheckpointStored | None
    """None where there was nothing to save."""


@dataclass(frozen=True)
class Stuck:
    """A rank can't go on, and lingers with the state it holds; its followers see it fail."""

    error: JupiterError


@dataclass(frozen=True)
class SaveRequest:
    """Asks the ranks of an attempt to save their last finished step before they end."""

    after_step: int
    """Only a step later than this is saved."""
    within_s: float

    @classmethod
    def from_proto(cls, request: peer_pb2.EndAttemptRequest) -> "SaveRequest | None":
        """Read it from an order to end; None where nothing is to be saved."""
        within_s = min(request.keep_within_s, MAX_SAVE_S)
        return cls(request.keep_after_step, within_s) if within_s > 0 else None


@dataclass(frozen=True)
class Listening:
    """A rank of a ring accepts its neighbour on this port."""

    port: int


@dataclass(frozen=True)
class Joined:
    """A rank has met the others."""

    device: str
    note: str
    """Something people should know about the device, or empty."""


@dataclass(frozen=True)
class Finished:
    """The result; the last event of a stream."""

    result: WorkResult


@dataclass(frozen=True)
class Alive:
    """Nothing new; the node of a gang's rank is there."""


WorkEvent = (
    Started
    | Advanced
    | CheckpointStored
    | PseudoGradientStored
    | Unsaved
    | Listening
    | Joined
    | Alive
    | Finished
)
LocalEvent = WorkEvent | LastStepStored | Stuck
"""The events that a worker's own node gets: those for others, and two more."""


def to_proto(event: WorkEvent) -> peer_pb2.WorkEvent:
    """Return the message for the wire."""
    match event:
        case Started(pid, device, running_s):
            started = peer_pb2.WorkStarted(pid=pid, device=device, running_s=running_s)
            return peer_pb2.WorkEvent(started=started)
        case Advanced(done, total, unit, values):
            progress = peer_pb2.WorkProgress(done=done, total=total, unit=unit, values=dict(values))
            return peer_pb2.WorkEvent(progress=progress)
        case CheckpointStored():
            return peer_pb2.WorkEvent(checkpoint=checkpoint_to_proto(event))
        case PseudoGradientStored():
            message = peer_pb2.WorkEvent(
                pseudo_gradient=peer_pb2.WorkPseudoGradient(**asdict(event))
            )
        case Unsaved(step, text):
            message = peer_pb2.WorkEvent(unsaved=peer_pb2.WorkUnsaved(step=step, message=text))
        case Listening(port):
            return peer_pb2.WorkEvent(listening=peer_pb2.WorkListening(port=port))
        case Joined(device, note):
            return peer_pb2.WorkEvent(joined=peer_pb2.WorkJoined(device=device, note=note))
        case Alive():
            message = peer_pb2.WorkEvent(alive=peer_pb2.WorkAlive())
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


def _unpacked(packed: bytes) -> dict[str, Any]:
    """Return the plain values that a message carries by name; raises MalformedError if it doesn't.

    Nothing at all is none, as where a message has no such part.
    """
    try:
        values = msgpack.unpackb(packed, raw=False, strict_map_key=True) if packed else {}
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException) as error:
        raise MalformedError("a message about work can't be read") from error
    if not isinstance(values, dict) or not is_bounded(cast("object", values)):
        raise MalformedError("a message about work holds what can't be meant")
    return cast("dict[str, Any]", values)


def _started(message: peer_pb2.WorkStarted) -> Started:
    return Started(message.pid, message.device, message.running_s)


def checkpoint_to_proto(checkpoint: CheckpointStored) -> peer_pb2.WorkCheckpoint:
    """Return the message for the wire."""
    return peer_pb2.WorkCheckpoint(
        artifact=checkpoint.artifact,
        step=checkpoint.step,
        tokens=checkpoint.tokens,
        cursor=checkpoint.cursor,
        loss=checkpoint.loss,
        horizon=checkpoint.horizon,
    )


def checkpoint_from_proto(message: peer_pb2.WorkCheckpoint) -> CheckpointStored:
    """Rebuild it."""
    artifact = ArtifactId(message.artifact)
    counts = message.step, message.tokens, message.cursor
    return CheckpointStored(artifact, *counts, message.loss, dict(message.horizon))


def _pseudo_gradient(message: peer_pb2.WorkPseudoGradient) -> PseudoGradientStored:
    artifact = ArtifactId(message.artifact)
    return PseudoGradientStored(
        artifact,
        message.after,
        message.tokens,
        message.norm,
        message.elapsed_s,
        message.logits,
        message.size_bytes,
        message.stands_at,
        message.digest[:DIGEST_BYTES],
        message.scored_step,
        message.held_out,
        message.counted,
    )


def _advanced(message: peer_pb2.WorkProgress) -> Advanced:
    return Advanced(message.done, message.total, message.unit, dict(message.values))


_READERS: Mapping[str, Callable[[peer_pb2.WorkEvent], WorkEvent]] = {
    "started": lambda event: _started(event.started),
    "progress": lambda event: _advanced(event.progress),
    "checkpoint": lambda event: checkpoint_from_proto(event.checkpoint),
    "pseudo_gradient": lambda event: _pseudo_gradient(event.pseudo_gradient),
    "unsaved": lambda event: Unsaved(event.unsaved.step, event.unsaved.message),
    "listening": lambda event: Listening(event.listening.port),
    "alive": lambda _: Alive(),
    "joined": lambda event: Joined(event.joined.device, event.joined.note),
    "finished": lambda event: _finished(event.finished),
}
