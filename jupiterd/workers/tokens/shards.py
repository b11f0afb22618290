"""Packed tokens on disk: files of ids beside an `index.json`, read through memory maps.

Owns that format, both ways. Doesn't know tokenizers, samples, or who reads which sequence when.
Which document each token is of says `documents.index` (`cycle.data.document_index`), where the
writer was told.

All files together are one stream of tokens. Sequence i is the tokens [i * seq_len, i * seq_len +
seq_len + 1): the inputs are its first seq_len, the targets its last seq_len, so neighbouring
sequences share one token. An id takes 16 bits, or 32 where the vocabulary needs them
(`cycle.data.token_width`); all files of a folder are alike.
"""

import json
import mmap
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from blake3 import blake3
from numpy.typing import NDArray

from jupiterd.cycle.data.document_index import (
    DOCUMENTS_FILE,
    ENTRY,
    HEAD,
    DocumentIndex,
    DocumentIndexBuilder,
)
from jupiterd.cycle.data.token_width import NARROW_BYTES, WIDE_BYTES, token_bytes
from jupiterd.errors import Bug, CorruptArtifactError, UsageError
from jupiterd.workers.tokens.loss_mask import MASK_FILE, LossMask, LossMaskWriter

INDEX_FILE = "index.json"
_TYPES = {NARROW_BYTES: np.dtype("<u2"), WIDE_BYTES: np.dtype("<u4")}
MAX_FILE_BYTES = 64 << 20


@dataclass(frozen=True)
class ShardIndex:
    """What index.json says."""

    seq_len: int
    """0 where the stream isn't cut: whoever reads it chooses."""
    tokens: int
    sequences: int
    vocab_size: int
    tokenizer_hash: str
    """BLAKE3 of tokenizer.json."""
    documents: int
    bytes: int
    """Bytes of text, end marks not counted."""
    files: tuple[dict[str, Any], ...]
    """{name, tokens, hash} of each file, in the order of the stream."""
    document_offsets: str = ""
    """The file with the offset and sample of each document; empty where nobody noted them."""
    hash: str = ""
    """BLAKE3 of the whole stream's bytes."""
    token_bytes: int = NARROW_BYTES
    """Of an id. The file says so only where it isn't 2: older builds refuse what they don't know.
    """
    loss_mask: str = ""
    """The file that says which tokens the loss counts; empty, and not said: it counts all."""
    counted_tokens: int = 0
    """So many are counted, where not all are."""
    loss_on: str = ""
    """What the loss counts of conversations, `answers` or `all`; empty, and not said: it counts
    every token."""


class ShardWriter:
    """Appends tokens to a new folder; `finish` writes the index."""

    def __init__(self, folder: Path, vocab_size: int, max_file_tokens: int = 0) -> None:
        """Begin a stream of ids below `vocab_size`, which decides how many bytes one takes.

        max_file_tokens: of one file; 0: what MAX_FILE_BYTES hold
        """
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._vocab_size = vocab_size
        self._token_bytes = token_bytes(vocab_size)
        self._max_file_tokens = max_file_tokens or MAX_FILE_BYTES // self._token_bytes
        self._files: list[dict[str, Any]] = []
        self._hashes: list[blake3] = []
        self._hash = blake3()
        self._tokens = 0
        self._documents = DocumentIndexBuilder()
        self._mask = LossMaskWriter(folder)

    def append_masked(self, ids: Sequence[int], counted: Sequence[bool], document: str) -> None:
        """Add a document of which the loss counts some tokens; its sample's id is `document`.

        What is appended in this way is all that there is, or none of it.
        """
        self.append(ids, [(document, len(ids))])
        self._mask.append(np.asarray(counted, dtype=np.bool_))

    def append(self, ids: Sequence[int], documents: Sequence[tuple[str, int]] = ()) -> None:
        """Add tokens to the end of the stream.

        `documents` says whose they are: sample id and number of tokens, one after the other.

        Raises:
            Bug: an id isn't of the vocabulary.
        """
        given = np.asarray(ids, dtype=np.int64)
        outside = given[(given < 0) | (given >= self._vocab_size)]
        if len(outside):
            raise Bug(f"the vocabulary of {self._vocab_size} has no token {outside[0]}")
        first = self._tokens
        for sample_id, tokens in documents:
            self._documents.note(sample_id, first)
            first += tokens
        rest = given.astype(_TYPES[self._token_bytes])
        while len(rest):
            room = self._room()
            data = rest[:room].tobytes()
            with (self._folder / self._files[-1]["name"]).open("ab") as file:
                file.write(data)
            self._hash.update(data)
            self._hashes[-1].update(data)
            self._files[-1]["tokens"] += min(room, len(rest))
            self._tokens += min(room, len(rest))
            rest = rest[room:]

    def finish(
        self,
        *,
        seq_len: int,
        tokenizer_hash: str,
        documents: int,
        size_bytes: int,
        loss_on: str = "",
    ) -> ShardIndex:
        """Write index.json and return what it says; `loss_on` is said of what was masked."""
        if not self._documents.is_empty:
            offsets = self._documents.encode(self._tokens)
            (self._folder / DOCUMENTS_FILE).write_bytes(offsets)
        if not self._mask.is_empty:
            self._mask.finish()
        index = ShardIndex(
            seq_len=seq_len,
            tokens=self._tokens,
            sequences=_sequences_in(self._tokens, seq_len),
            vocab_size=self._vocab_size,
            tokenizer_hash=tokenizer_hash,
            documents=documents,
            bytes=size_bytes,
            files=tuple(
                file | {"hash": hashed.hexdigest()}
                for file, hashed in zip(self._files, self._hashes, strict=True)
            ),
            document_offsets="" if self._documents.is_empty else DOCUMENTS_FILE,
            hash=self._hash.hexdigest(),
            token_bytes=self._token_bytes,
            loss_mask="" if self._mask.is_empty else MASK_FILE,
            counted_tokens=self._mask.counted,
            loss_on="" if self._mask.is_empty else loss_on,
        )
        text = json.dumps(_said_of(index), indent=2, sort_keys=True)
        (self._folder / INDEX_FILE).write_text(text + "\n", encoding="utf-8")
        return index

    def _room(self) -> int:
        if not self._files or self._files[-1]["tokens"] == self._max_file_tokens:
            name = f"{len(self._files):05}.bin"
            (self._folder / name).unlink(missing_ok=True)
            self._files.append({"name": name, "tokens": 0})
            self._hashes.append(blake3())
        return int(self._max_file_tokens - self._files[-1]["tokens"])


class ShardSet:
    """The sequences of a shard folder."""

    def __init__(self, folder: Path, seq_len: int = 0) -> None:
        """Open a folder; one that isn't cut yet is cut into sequences of `seq_len`."""
        self.index = _read_index(folder)
        self.seq_len = self.index.seq_len or seq_len
        """Tokens that one sequence trains on; it holds one more."""
        form = _TYPES[self.index.token_bytes]
        self._maps = [_map_file(folder, file, form) for file in self.index.files]
        self._starts = np.cumsum([0, *(len(tokens) for tokens in self._maps)])
        self._folder = folder

    @property
    def sequences(self) -> int:
        """Return how many sequences there are."""
        return _sequences_in(self.index.tokens, self.seq_len)

    def sequences_at(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the token ids of sequences, [sequences, seq_len + 1], as a copy.

        Raises:
            Bug: there is no such sequence.
        """
        self._check(numbers)
        found = np.empty((len(numbers), self.seq_len + 1), dtype=np.int64)
        firsts = numbers * self.seq_len
        files = np.searchsorted(self._starts, firsts, side="right") - 1
        places = zip(found, files.tolist(), (firsts - self._starts[files]).tolist(), strict=True)
        for row, file, place in places:
            tokens = self._maps[file][place : place + self.seq_len + 1]
            row[: len(tokens)] = tokens
            if len(tokens) < len(row):
                self._fill(row[len(tokens) :], file + 1)
        return found

    def documents_at(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of each token's document, [sequences, seq_len + 1].

        All are 0 where nobody noted the documents.

        Raises:
            Bug: there is no such sequence.
        """
        self._check(numbers)
        found = np.zeros((len(numbers), self.seq_len + 1), dtype=np.int64)
        if not self.index.document_offsets:
            return found
        # Only where documents begin is looked up: each of a sequence's tokens would take long.
        begins, firsts = self._documents, numbers * self.seq_len
        following = np.searchsorted(begins, firsts, side="right")
        ends = np.searchsorted(begins, firsts + self.seq_len, side="right")
        for row, first, one, end in zip(found, firsts.tolist(), following, ends, strict=True):
            np.add.at(row, begins[one:end] - first, 1)
        found[:, 0] = following - 1
        return np.cumsum(found, axis=1, out=found)

    def counted_at(self, numbers: NDArray[np.int64]) -> NDArray[np.bool_] | None:
        """Return which targets of sequences the loss counts, [sequences, seq_len]; None: all.

        Raises:
            Bug: there is no such sequence.
        """
        self._check(numbers)
        if self._mask is None:
            return None
        return self._mask.at(numbers * self.seq_len + 1, self.seq_len)

    @cached_property
    def _mask(self) -> LossMask | None:
        """Return what counts, opened once somebody asks."""
        return LossMask(self._folder, self.index.tokens) if self.index.loss_mask else None

    @cached_property
    def _documents(self) -> NDArray[np.int64]:
        """Return where each document begins, read once somebody asks: most never do."""
        return _map_documents(self._folder)

    def _check(self, numbers: NDArray[np.int64]) -> None:
        outside = numbers[(numbers < 0) | (numbers >= self.sequences)]
        if len(outside):
            raise Bug(f"there is no sequence {outside[0]} among {self.sequences}")

    def _fill(self, row: NDArray[np.int64], file: int) -> None:
        """Read a sequence's rest from the beginning of the next files."""
        while len(row):
            tokens = self._maps[file][: len(row)]
            row[: len(tokens)] = tokens
            row, file = row[len(tokens) :], file + 1


def _sequences_in(tokens: int, seq_len: int) -> int:
    return max(0, tokens - 1) // seq_len if seq_len else 0


def _said_of(index: ShardIndex) -> dict[str, Any]:
    """Return what the file says: nothing new of what has been said since there was nothing else."""
    said = asdict(index)
    if index.token_bytes == NARROW_BYTES:
        del said["token_bytes"]
    if not index.loss_mask:
        del said["loss_mask"], said["counted_tokens"]
    if not index.loss_on:
        del said["loss_on"]
    return said


def _read_index(folder: Path) -> ShardIndex:
    try:
        said: dict[str, Any] = json.loads((folder / INDEX_FILE).read_text(encoding="utf-8"))
        said["files"] = tuple(said["files"])
        _check_known(folder, said)
        return ShardIndex(**said)
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise CorruptArtifactError(f"the shard folder {folder.name} has no usable index") from error


def _check_known(folder: Path, said: dict[str, Any]) -> None:
    """Refuse what another build would read otherwise than it was meant.

    Raises:
        UsageError: the index says what this build doesn't know.
    """
    unknown = sorted(said.keys() - {field.name for field in fields(ShardIndex)})
    width = said.get("token_bytes", NARROW_BYTES)
    if width not in _TYPES:
        unknown.append(f"token_bytes: {width}")
    if unknown:
        raise UsageError(
            f"the shard folder {folder.name} was packed by a newer jupiterd: it says {unknown[0]}",
            "upgrade jupiterd on this node, or prepare the data again with this version",
        )


def _map_file(folder: Path, file: dict[str, Any], form: np.dtype[Any]) -> NDArray[Any]:
    name, tokens = str(file["name"]), int(file["tokens"])
    if Path(name).name != name:
        raise CorruptArtifactError(f"the shard index names a file outside its folder: {name}")
    try:
        # A memmap's slices are memmaps, which take longer to make than a sequence to read.
        mapped = np.frombuffer(_mapped(folder / name), dtype=form)
    except (OSError, ValueError) as error:
        raise CorruptArtifactError(f"the shard {name} can't be read") from error
    if len(mapped) != tokens:
        raise CorruptArtifactError(f"the shard {name} holds {len(mapped)} tokens, not {tokens}")
    return mapped


def _mapped(path: Path) -> memoryview:
    with path.open("rb") as file:
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def _map_documents(folder: Path) -> NDArray[np.int64]:
    """Return where each document begins."""
    try:
        data = _mapped(folder / DOCUMENTS_FILE)
    except (OSError, ValueError) as error:
        raise CorruptArtifactError(f"{DOCUMENTS_FILE} can't be read") from error
    count = DocumentIndex(data).documents
    entry = np.dtype([("first", "<u8"), ("id", f"V{ENTRY.size - 8}")])
    entries = np.frombuffer(data, dtype=entry, count=count, offset=HEAD.size)
    return entries["first"].astype(np.int64)
