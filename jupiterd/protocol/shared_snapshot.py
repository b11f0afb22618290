"""A snapshot of training's state as it lies in shared memory: the bytes of a checkpoint's files.

Owns the form, and what makes a snapshot whole. Doesn't know where the memory comes from
(`processes.snapshot_memory`), what tensors mean, or when a snapshot is taken.

    0        header: magic, sequence, length of the description, offset and length of the data,
             BLAKE3 of the header's numbers, the description and the data
    128      description: JSON, see `Description`
    offset   data: files of tensors, one after the other

Whoever writes first takes the header away, and writes it last: a writer that is killed in between
leaves memory without a snapshot, whatever else is in it. Two such memories are filled by turns, so
that the snapshot before is whole then.
"""

import json
import struct
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from blake3 import blake3

from jupiterd.errors import MalformedError
from jupiterd.protocol.training_values import TrainingProgress

MAGIC = b"JUPSNAP1"
_NUMBERS = struct.Struct("<8sQQQQ")
CHECKSUM_BYTES = 32
HEADER_BYTES = 128
PAGE_BYTES = 4096
MAX_DESCRIPTION_BYTES = 1 << 20


@dataclass(frozen=True)
class Description:
    """What a snapshot is of, and the files that are made of it."""

    run: str
    """The worker's order with its model and plan; memory of another one is nobody's snapshot."""
    progress: TrainingProgress
    texts: Mapping[str, str]
    """Path in the checkpoint's folder -> the text of that file."""
    tensors: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    """Path in the folder -> (offset in the data, length) of that file's bytes."""
    best: str = ""
    """Path of the best weights' file in the worker's output folder; empty: there are no others."""

    def encoded(self) -> bytes:
        """Return it as it lies in memory."""
        return json.dumps(asdict(self), sort_keys=True).encode()


@dataclass(frozen=True)
class SharedSnapshot:
    """A whole snapshot that was found in memory."""

    sequence: int
    """Counts the snapshots of one worker: the higher is the later one."""
    description: Description
    data: memoryview

    def file(self, path: str) -> memoryview:
        """Return the bytes of one file of tensors."""
        offset, length = self.description.tensors[path]
        return self.data[offset : offset + length]


def data_offset(description_bytes: int) -> int:
    """Return where the data begins, on a page of its own."""
    return -(-(HEADER_BYTES + description_bytes) // PAGE_BYTES) * PAGE_BYTES


def wipe(memory: memoryview) -> None:
    """Take a snapshot's header away: from now on there is none."""
    memory[: len(MAGIC)] = bytes(len(MAGIC))


def seal(memory: memoryview, sequence: int, description: bytes, offset: int, length: int) -> None:
    """Write description and header, once the data lies at `offset`: from now on it is whole."""
    memory[HEADER_BYTES : HEADER_BYTES + len(description)] = description
    numbers = _NUMBERS.pack(MAGIC, sequence, len(description), offset, length)
    checksum = _checksum(numbers, memory)
    memory[len(MAGIC) : _NUMBERS.size + CHECKSUM_BYTES] = numbers[len(MAGIC) :] + checksum
    memory[: len(MAGIC)] = MAGIC


def found_snapshot(memory: memoryview, run: str) -> SharedSnapshot | None:
    """Return the snapshot of a run that lies in memory; None where there is no whole one."""
    if len(memory) < HEADER_BYTES or bytes(memory[: len(MAGIC)]) != MAGIC:
        return None
    numbers = bytes(memory[: _NUMBERS.size])
    _, sequence, described, offset, length = _NUMBERS.unpack(numbers)
    is_inside = offset >= HEADER_BYTES + described and offset + length <= len(memory)
    if not is_inside or described > MAX_DESCRIPTION_BYTES:
        return None
    written = bytes(memory[_NUMBERS.size : _NUMBERS.size + CHECKSUM_BYTES])
    if written != _checksum(numbers, memory):
        return None
    description = _description(bytes(memory[HEADER_BYTES : HEADER_BYTES + described]))
    if description.run != run or not _fits(description, length):
        return None
    return SharedSnapshot(sequence, description, memory[offset : offset + length])


def _checksum(numbers: bytes, memory: memoryview) -> bytes:
    """Return BLAKE3 of all but the checksum itself; it lets other threads run meanwhile."""
    _, _, described, offset, length = _NUMBERS.unpack(numbers)
    hasher = blake3(numbers)
    hasher.update(memory[HEADER_BYTES : HEADER_BYTES + described])
    hasher.update(memory[offset : offset + length])
    return hasher.digest()


def _description(raw: bytes) -> Description:
    """Read a description.

    Raises:
        MalformedError: it is of another form, though its checksum is right: ours to mend.
    """
    try:
        plain = json.loads(raw)
        return Description(
            run=plain["run"],
            progress=TrainingProgress(**plain["progress"]),
            texts=plain["texts"],
            tensors={path: (int(at), int(size)) for path, (at, size) in plain["tensors"].items()},
            best=plain["best"],
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise MalformedError("a snapshot's description is of another form") from error


def _fits(description: Description, length: int) -> bool:
    return all(0 <= at <= at + size <= length for at, size in description.tensors.values())
