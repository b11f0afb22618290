"""Which sample each token of a round comes from: the form of `documents.index` beside the shards.

Owns its bytes, which are equal for equal documents. Doesn't know files or tokens: it is given
offsets into the stream that all shards are together.

After the head stand (offset of the first token, sample id) of each document in the order of the
stream, then the documents' numbers in the order of their ids.
"""

import struct
from dataclasses import dataclass

from jupiterd.cycle.data.sample_index import ID_BYTES, id_bytes
from jupiterd.errors import CorruptArtifactError

DOCUMENTS_FILE = "documents.index"

_MAGIC = b"JDOCUMS1"
HEAD = struct.Struct("<8sQQ")
ENTRY = struct.Struct(f"<Q{ID_BYTES}s")
_NUMBER = struct.Struct("<I")


@dataclass(frozen=True)
class DocumentSpan:
    """One document in the stream: the tokens [first, end), its end mark among them."""

    number: int
    sample_id: str
    first: int
    end: int


class DocumentIndexBuilder:
    """Notes documents in the order of the stream; `encode` gives the bytes of the index."""

    def __init__(self) -> None:
        self._entries: list[tuple[int, bytes]] = []

    @property
    def is_empty(self) -> bool:
        """Say whether no document was noted."""
        return not self._entries

    def note(self, sample_id: str, first: int) -> None:
        """Note the document that begins at this token."""
        self._entries.append((first, id_bytes(sample_id)))

    def encode(self, tokens: int) -> bytes:
        """Return the index of a stream of so many tokens."""
        head = HEAD.pack(_MAGIC, len(self._entries), tokens)
        by_id = sorted(range(len(self._entries)), key=lambda number: self._entries[number][::-1])
        entries = (ENTRY.pack(*entry) for entry in self._entries)
        return b"".join((head, *entries, *map(_NUMBER.pack, by_id)))


class DocumentIndex:
    """Looks documents up in the bytes of an index, which may be mapped.

    Raises CorruptArtifactError where they are none.
    """

    def __init__(self, data: memoryview) -> None:
        if len(data) < HEAD.size:
            raise CorruptArtifactError(f"{DOCUMENTS_FILE} is cut off")
        magic, self.documents, self.tokens = HEAD.unpack_from(data)
        size_bytes = HEAD.size + (ENTRY.size + _NUMBER.size) * self.documents
        if magic != _MAGIC or len(data) != size_bytes:
            raise CorruptArtifactError(f"{DOCUMENTS_FILE} isn't what it should be")
        self._data = data

    def at(self, offset: int) -> DocumentSpan | None:
        """Return the document that the token belongs to; None beyond the stream."""
        if not (self.documents and 0 <= offset < self.tokens):
            return None
        first, end = 0, self.documents
        while end - first > 1:
            middle = (first + end) // 2
            if self._first(middle) <= offset:
                first = middle
            else:
                end = middle
        return self.document(first)

    def of(self, sample_id: str) -> DocumentSpan | None:
        """Return where a sample stands in the stream; None where it doesn't."""
        wanted = id_bytes(sample_id)
        first, end = 0, self.documents
        while first < end:
            middle = (first + end) // 2
            if self._id(self._by_id(middle)) < wanted:
                first = middle + 1
            else:
                end = middle
        if first == self.documents:
            return None
        number = self._by_id(first)
        return self.document(number) if self._id(number) == wanted else None

    def document(self, number: int) -> DocumentSpan:
        """Return the n-th document of the stream."""
        last = number + 1 == self.documents
        end = self.tokens if last else self._first(number + 1)
        return DocumentSpan(number, self._id(number).hex(), self._first(number), end)

    def _first(self, number: int) -> int:
        return int(ENTRY.unpack_from(self._data, HEAD.size + number * ENTRY.size)[0])

    def _id(self, number: int) -> bytes:
        return bytes(ENTRY.unpack_from(self._data, HEAD.size + number * ENTRY.size)[1])

    def _by_id(self, place: int) -> int:
        at = HEAD.size + self.documents * ENTRY.size + place * _NUMBER.size
        number = int(_NUMBER.unpack_from(self._data, at)[0])
        if number >= self.documents:
            raise CorruptArtifactError(f"{DOCUMENTS_FILE} names a document that isn't there")
        return number
