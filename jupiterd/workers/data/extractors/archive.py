"""Office documents and e-books are ZIP archives of XML: members read within bounds.

Owns the bounds, and that no XML of theirs brings entities along. Doesn't know what members mean.
"""

import io
import zipfile
from typing import Any

from jupiterd.workers.data.skips import SkipReason, UnreadableError

MAX_MEMBERS = 20_000
MAX_UNPACKED_BYTES = 256 << 20
"""Of all members together; an archive that says less of one is cut there by its reader."""

_ENTITIES = (b"<!ENTITY", "<!ENTITY".encode("utf-16-le"), "<!ENTITY".encode("utf-16-be"))


class Archive:
    """The members of a document."""

    def __init__(self, data: bytes) -> None:
        """Look at what it lists.

        Raises:
            UnreadableError: it is none, is encrypted, or would unpack to too much.
        """
        try:
            self._file = zipfile.ZipFile(io.BytesIO(data))
        except (zipfile.BadZipFile, OSError) as error:
            raise UnreadableError(SkipReason.BROKEN) from error
        members = self._file.infolist()
        if any(member.flag_bits & 1 for member in members):
            raise UnreadableError(SkipReason.ENCRYPTED)
        unpacked_bytes = sum(member.file_size for member in members)
        if len(members) > MAX_MEMBERS or unpacked_bytes > MAX_UNPACKED_BYTES:
            raise UnreadableError(SkipReason.TOO_LARGE)
        self.names = frozenset(member.filename for member in members)

    def read(self, name: str) -> bytes:
        """Return the bytes of a member.

        Raises:
            UnreadableError: there is no such member, or it is broken.
        """
        try:
            return self._file.read(name)
        except (KeyError, zipfile.BadZipFile, EOFError, NotImplementedError) as error:
            raise UnreadableError(SkipReason.BROKEN) from error

    def tree(self, name: str) -> Any:  # noqa: ANN401 - lxml has no types
        """Return the root of a member that is XML, with no entity unfolded."""
        from lxml import etree  # pyright: ignore[reportAttributeAccessIssue] - it has no types

        parser = etree.XMLParser(resolve_entities=False, no_network=True, recover=True)
        root = etree.fromstring(self.read(name), parser)
        if root is None:
            raise UnreadableError(SkipReason.BROKEN)
        return root

    def refuse_entities(self) -> None:
        """Raise where any XML in it declares entities: no office program writes those."""
        for name in self.names:
            if name.endswith((".xml", ".rels")):
                data = self.read(name)
                if any(mark in data for mark in _ENTITIES):
                    raise UnreadableError(SkipReason.BROKEN)
