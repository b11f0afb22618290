"""The messages between a daemon and its worker processes: length-prefixed msgpack.

Owns their schema and their bytes. Doesn't know pipes, processes, or what any piece of work means.
Tensors never travel here: a worker writes a file and sends its path.
"""

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar, cast

import msgpack

from jupiterd.errors import Bug, MalformedError
from jupiterd.protocol.training_values import PseudoGradient, RoundOrder, TrainingProgress

MAX_FRAME_BYTES = 1 << 20
"""No frame is larger (1 MiB); a longer one means the two sides have lost step."""

_LENGTH = struct.Struct(">I")

LINK_FD_VARIABLE = "JUPITER_LINK_FD"
"""The environment variable that names the worker's end of the socket pair."""

_TAG = "type"

Scalar = str | int | float | bool | None


@dataclass(frozen=True)
class RunTask:
    """Daemon to worker, first and once: what to do."""

    task: str
    """Which worker module does it, such as collect or train (see `jupiterd.workers.__main__`)."""
    params: Mapping[str, Any]
    inputs: Mapping[str, str]
    """Name of an input -> path of the artifact's folder on this machine."""
    output_dir: str
    """An empty folder; every output is a file or folder directly inside it."""
    scratch_dir: str = ""
    """A folder of this machine that the same item finds again if its worker is killed; the worker
    makes it, the daemon removes it once the item is finished. Empty: there is none."""
    threads: int = 0
    """Its share of the machine's cores; 0: as many as the environment says."""


@dataclass(frozen=True)
class StopTask:
    """Daemon to worker: finish the step, keep what is finished, end."""

    reason: str


@dataclass(frozen=True)
class SaveState:
    """Daemon to worker: save the last finished step at once, and answer with `StateSaved`."""

    after_step: int
    """Nothing is to be written where no later step than this one has been finished."""


@dataclass(frozen=True)
class ThreadsShared:
    """Daemon to worker: another worker has begun or ended here, so compute with so many threads."""

    threads: int


@dataclass(frozen=True)
class InputArrived:
    """Daemon to worker: an input that was still on its way is here."""

    name: str
    path: str
    """Of the artifact's folder on this machine; empty where it won't come."""
    reason: str = ""
    """Why not."""


@dataclass(frozen=True)
class OuterStepArrived:
    """Daemon to worker: the islands' next outer step, with what follows it."""

    after: str
    """The step before it, as the rank has named it."""
    order: RoundOrder
    """This island's part of the round that it orders."""
    pseudo_gradients: Sequence[str] = ()
    """Folders of the pseudo-gradients that are merged, in their order, on this machine."""
    tokens: Sequence[int] = ()
    """How weighty each is."""
    rate: float = 0.0
    momentum: float = 0.0
    is_counted: bool = True
    """This island's own pseudo-gradient is among those that are merged."""
    is_compared: bool = True
    """Logits of what follows are asked for: an island has a part in the round that isn't known."""
    horizon: Mapping[str, float] = field(default_factory=dict[str, float])
    """What losses on held-out text have decided, see `cycle.training.horizon`."""


@dataclass(frozen=True)
class OuterStepMissing:
    """Daemon to worker: the outer step after this one won't come."""

    after: str
    reason: str


@dataclass(frozen=True)
class Progressed:
    """Worker to daemon: how far it is; the latest one replaces the ones before."""

    done: int
    total: int
    unit: str
    values: Mapping[str, float] = field(default_factory=dict[str, float])
    """Named readings, such as loss or tokens_per_s."""


@dataclass(frozen=True)
class RankBusy:
    """Worker to daemon: after so many steps something else comes next, and takes its time."""

    step: int
    begins: bool = False
    """All is ready, and what comes next is the first step of this rank: it may be judged."""


@dataclass(frozen=True)
class Preparing:
    """Worker to daemon: what it does before its first step; the latest one replaces the others."""

    stage: str
    """One of `preparing_stage.STAGES`."""
    expected_s: float = 0.0
    """How long it took here before, in s; 0 where that isn't known. The daemon fills it in, but
    where the worker knows its limit."""
    detail: str = ""
    """How far it is, such as `32 of 64`."""


@dataclass(frozen=True)
class CheckpointWritten:
    """Worker to daemon: a complete checkpoint folder lies at `path`, below the output folder."""

    path: str
    progress: TrainingProgress


@dataclass(frozen=True)
class CheckpointUnsaved:
    """Worker to daemon: the disk had no room for a checkpoint; training goes on without it."""

    step: int
    message: str


@dataclass(frozen=True)
class StateSaved:
    """Worker to daemon: the answer to `SaveState`, once the last finished step is on the disk."""

    checkpoint: CheckpointWritten | None = None
    """None where there was nothing to save."""


@dataclass(frozen=True)
class OuterStepWanted:
    """Worker to daemon: the islands' outer step after this one is waited for."""

    after: str
    """The step that the rank's weights contain; empty: none, it wants the first."""


@dataclass(frozen=True)
class PseudoGradientWritten:
    """Worker to daemon: an island's pseudo-gradient since an outer step lies at `path`, packed."""

    path: str
    pseudo_gradient: PseudoGradient


@dataclass(frozen=True)
class RankStuck:
    """Worker to daemon: it can't go on, and lingers a while with the state it holds."""

    code: str
    message: str
    hint: str


@dataclass(frozen=True)
class BatchWritten:
    """Worker to whoever runs it: a batch of requests or of answers lies in a file.

    Requests are answered by an `InputArrived` of the same name.
    """

    name: str
    path: str


@dataclass(frozen=True)
class RankListening:
    """Worker to daemon: a rank of a ring is about to accept others on this port.

    It says so before it does: MLX lets no other line of its process run until all have met.
    """

    port: int
    held: int = 0
    """Sockets of this rank that listen at the port already, and aren't the ring's."""


class StoreVerb(StrEnum):
    """What a rank may want of the store where its gang meets."""

    SET = "set"
    GET = "get"
    """The value of a key; waited for until it is there."""
    GET_ALL = "get_all"
    """The values of several keys, `packed_values` of them; waited for until all are there."""
    ADD = "add"
    """To the whole number that a key holds; the sum, in digits."""
    COMPARE_SET = "compare_set"
    """The second value in place of the first; the value that is there then."""
    CHECK = "check"
    """Whether all of the keys are there."""
    WAIT = "wait"
    """For all of the keys."""
    DELETE = "delete"
    """A key; whether it was there."""
    COUNT = "count"
    """How many keys there are, in digits."""


@dataclass(frozen=True)
class StoreAsked:
    """Worker to daemon: a question to the store where its gang meets; `StoreAnswered` answers."""

    number: int
    """Which question it is, of this rank."""
    verb: str
    """A `StoreVerb`."""
    keys: Sequence[str] = ()
    values: Sequence[bytes] = ()
    within_s: float = 0.0
    """How long what isn't there yet is waited for."""


@dataclass(frozen=True)
class StoreAnswered:
    """Daemon to worker: what the gang's store answers to a question."""

    number: int
    value: bytes = b""
    code: str = ""
    """Of the error (see `errors`); empty where there is none."""
    message: str = ""
    hint: str = ""


@dataclass(frozen=True)
class GangJoined:
    """Worker to daemon: it has met the other ranks, and begins."""

    device: str
    """What it computes on: cpu or gpu."""
    note: str
    """Something people should know about that, or empty."""


@dataclass(frozen=True)
class ConnectionsRefused:
    """Worker to daemon: somebody who is no member of its gang tried to connect to this rank."""

    count: int
    """Tries since the last such frame."""
    hosts: Sequence[str] = ()
    """Whose they were, as far as it can be known: the kernel doesn't say whom it kept out."""


@dataclass(frozen=True)
class TaskFinished:
    """Worker to daemon, last: the outputs are complete."""

    outputs: Mapping[str, str]
    """Name of an output -> its path relative to the output folder."""
    counts: Mapping[str, float] = field(default_factory=dict[str, float])
    summary: Mapping[str, Scalar] = field(default_factory=dict[str, Scalar])


@dataclass(frozen=True)
class TaskFailed:
    """Worker to daemon, last: why there is no result (see `errors`)."""

    code: str
    message: str
    hint: str


Frame = (
    RunTask
    | StopTask
    | SaveState
    | ThreadsShared
    | InputArrived
    | OuterStepArrived
    | OuterStepMissing
    | OuterStepWanted
    | PseudoGradientWritten
    | Progressed
    | RankBusy
    | Preparing
    | CheckpointWritten
    | CheckpointUnsaved
    | StateSaved
    | RankStuck
    | BatchWritten
    | RankListening
    | StoreAsked
    | StoreAnswered
    | GangJoined
    | ConnectionsRefused
    | TaskFinished
    | TaskFailed
)

_KINDS: dict[str, type[Frame]] = {
    kind.__name__: kind
    for kind in (
        RunTask,
        StopTask,
        SaveState,
        ThreadsShared,
        InputArrived,
        OuterStepArrived,
        OuterStepMissing,
        OuterStepWanted,
        PseudoGradientWritten,
        Progressed,
        RankBusy,
        Preparing,
        CheckpointWritten,
        CheckpointUnsaved,
        StateSaved,
        RankStuck,
        BatchWritten,
        RankListening,
        StoreAsked,
        StoreAnswered,
        GangJoined,
        ConnectionsRefused,
        TaskFinished,
        TaskFailed,
    )
}


_PARTS: Mapping[str, Callable[..., object]] = {
    "order": RoundOrder,
    "progress": TrainingProgress,
    "pseudo_gradient": PseudoGradient,
    "checkpoint": CheckpointWritten,
}
"""Fields of frames that are values of several fields themselves, and what each of them is."""

_Value = TypeVar("_Value")


def packed_values(values: Sequence[bytes]) -> bytes:
    """Return several values as one: each after its length."""
    return b"".join(_LENGTH.pack(len(value)) + value for value in values)


def unpacked_values(packed: bytes) -> list[bytes]:
    """Return the values again.

    Raises:
        MalformedError: it is none of `packed_values`.
    """
    found: list[bytes] = []
    at = 0
    while at < len(packed):
        if at + _LENGTH.size > len(packed):
            raise MalformedError("a gang's store answers with half a value")
        (size,) = _LENGTH.unpack_from(packed, at)
        at += _LENGTH.size + size
        if at > len(packed):
            raise MalformedError("a gang's store answers with half a value")
        found.append(packed[at - size : at])
    return found


def encode(frame: Frame) -> bytes:
    """Return the frame's bytes: four bytes of length (big-endian), then msgpack.

    Raises:
        Bug: the frame is larger than MAX_FRAME_BYTES.
    """
    fields: dict[str, Any] = {_TAG: type(frame).__name__, **vars(frame)}
    body = cast("bytes", msgpack.packb(fields, use_bin_type=True, default=_fields))
    if len(body) > MAX_FRAME_BYTES:
        raise Bug(f"a frame of {len(body)} bytes is over the limit")
    return len(body).to_bytes(4, "big") + body


def decode(body: bytes) -> Frame:
    """Rebuild one frame from its msgpack body.

    Raises:
        Bug: the bytes aren't a frame of a known type.
    """
    try:
        fields = msgpack.unpackb(body, raw=False, strict_map_key=True, max_ext_len=0)
        return _built(_KINDS[fields.pop(_TAG)], fields)
    except (ValueError, KeyError, TypeError, AttributeError, msgpack.UnpackException) as error:
        raise Bug("the worker link carried something that is no frame") from error


def _fields(part: object) -> dict[str, Any]:
    """Return the fields of a value that a frame holds; raises TypeError where it holds no such."""
    if isinstance(part, RoundOrder | TrainingProgress | PseudoGradient | CheckpointWritten):
        return vars(part)
    raise TypeError(f"a frame can't hold a {type(part).__name__}")


def _built(kind: Callable[..., _Value], fields: Mapping[str, Any]) -> _Value:
    """Rebuild a value from its fields, and the values that it holds from theirs."""
    return kind(
        **{
            name: _built(_PARTS[name], part) if name in _PARTS and isinstance(part, dict) else part
            for name, part in fields.items()
        }
    )


class FrameReader:
    """Cuts a byte stream into frames; keeps what isn't complete yet."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Take in more bytes and yield every frame that is complete.

        Raises:
            Bug: the stream announces a frame over the limit, or one that can't be decoded.
        """
        self._buffer += data
        while len(self._buffer) >= 4:
            size = int.from_bytes(self._buffer[:4], "big")
            if size > MAX_FRAME_BYTES:
                raise Bug(f"the worker link announced a frame of {size} bytes")
            if len(self._buffer) < 4 + size:
                return
            body = bytes(self._buffer[4 : 4 + size])
            del self._buffer[: 4 + size]
            yield decode(body)
