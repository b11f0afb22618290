"""Packed tokens on disk: uint16 files beside an `index.json`, read through memory maps.

Owns that format, both ways. Doesn't know tokenizers, samples, or who reads which sequence when.

All files together are one stream of tokens. Sequence i is the tokens [i * seq_len, i * seq_len +
seq_len + 1): the inputs are its first seq_len, the targets its last seq_len, so neighbouring
sequences share one token.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jupiterd.errors import Bug, CorruptArtifactError

INDEX_FILE = "index.json"
TOKEN_TYPE = np.dtype("<u2")
MAX_VOCAB = 1 << 16
MAX_FILE_TOKENS = 32 << 20
"""Tokens of one file: 64 MiB."""


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
    """{name, tokens} of each file, in the order of the stream."""


class ShardWriter:
    """Appends tokens to a new folder; `finish` writes the index."""

    def __init__(self, folder: Path, max_file_tokens: int = MAX_FILE_TOKENS) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._max_file_tokens = max_file_tokens
        self._files: list[dict[str, Any]] = []

    def append(self, ids: Sequence[int]) -> None:
        """Add tokens (each below 65,536) to the end of the stream."""
        rest = np.asarray(ids, dtype=TOKEN_TYPE)
        while len(rest):
            room = self._room()
            with (self._folder / self._files[-1]["name"]).open("ab") as file:
                file.write(rest[:room].tobytes())
            self._files[-1]["tokens"] += min(room, len(rest))
            rest = rest[room:]

    def finish(
        self, *, seq_len: int, vocab_size: int, tokenizer_hash: str, documents: int, size_bytes: int
    ) -> ShardIndex:
        """Write index.json and return what it says."""
        tokens = sum(file["tokens"] for file in self._files)
        index = ShardIndex(
            seq_len=seq_len,
            tokens=tokens,
            sequences=_sequences_in(tokens, seq_len),
            vocab_size=vocab_size,
            tokenizer_hash=tokenizer_hash,
            documents=documents,
            bytes=size_bytes,
            files=tuple(self._files),
        )
        text = json.dumps(asdict(index), indent=2, sort_keys=True)
        (self._folder / INDEX_FILE).write_text(text + "\n", encoding="utf-8")
        return index

    def _room(self) -> int:
        if not self._files or self._files[-1]["tokens"] == self._max_file_tokens:
            name = f"{len(self._files):05}.bin"
            (self._folder / name).unlink(missing_ok=True)
            self._files.append({"name": name, "tokens": 0})
        return int(self._max_file_tokens - self._files[-1]["tokens"])


class ShardSet:
    """The sequences of a shard folder."""

    def __init__(self, folder: Path, seq_len: int = 0) -> None:
        """Open a folder; one that isn't cut yet is cut into sequences of `seq_len`."""
        self.index = _read_index(folder)
        self.seq_len = self.index.seq_len or seq_len
        """Tokens that one sequence trains on; it holds one more."""
        self._maps = [_map_file(folder, file) for file in self.index.files]
        self._starts = np.cumsum([0, *(len(tokens) for tokens in self._maps)])

    @property
    def sequences(self) -> int:
        """Return how many sequences there are."""
        return _sequences_in(self.index.tokens, self.seq_len)

    def sequence(self, number: int) -> NDArray[np.int64]:
        """Return the seq_len + 1 token ids of sequence `number`, as a copy.

        Raises:
            Bug: there is no such sequence.
        """
        if not 0 <= number < self.sequences:
            raise Bug(f"there is no sequence {number} among {self.sequences}")
        start = number * self.seq_len
        return self._slice(start, start + self.seq_len + 1)

    def _slice(self, start: int, stop: int) -> NDArray[np.int64]:
        first = int(np.searchsorted(self._starts, start, side="right")) - 1
        parts: list[NDArray[np.uint16]] = []
        for tokens, offset in zip(self._maps[first:], self._starts[first:], strict=False):
            if offset >= stop:
                break
            parts.append(tokens[max(0, start - int(offset)) : stop - int(offset)])
        return np.concatenate(parts).astype(np.int64)


def _sequences_in(tokens: int, seq_len: int) -> int:
    return max(0, tokens - 1) // seq_len if seq_len else 0


def _read_index(folder: Path) -> ShardIndex:
    try:
        fields: dict[str, Any] = json.loads((folder / INDEX_FILE).read_text(encoding="utf-8"))
        fields["files"] = tuple(fields["files"])
        return ShardIndex(**fields)
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise CorruptArtifactError(f"the shard folder {folder.name} has no usable index") from error


def _map_file(folder: Path, file: dict[str, Any]) -> NDArray[np.uint16]:
    name, tokens = str(file["name"]), int(file["tokens"])
    if Path(name).name != name:
        raise CorruptArtifactError(f"the shard index names a file outside its folder: {name}")
    try:
        mapped = np.memmap(folder / name, dtype=TOKEN_TYPE, mode="r")
    except (OSError, ValueError) as error:
        raise CorruptArtifactError(f"the shard {name} can't be read") from error
    if len(mapped) != tokens:
        raise CorruptArtifactError(f"the shard {name} holds {len(mapped)} tokens, not {tokens}")
    return mapped
