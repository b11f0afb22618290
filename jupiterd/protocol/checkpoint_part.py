"""One rank's part of a checkpoint: which bytes of which files it holds, where no rank holds all.

Owns the form of a part's folder, and whether parts make up whole files. Doesn't know tensors, or
who writes and who puts together. Other ranks' parts fill what this one leaves out.

    part.json   {"name": ..., "extents": [[file, offset, length], ...]}: where the bytes lie
    part.bin    those bytes, one extent after the other
    files/      whole files of the checkpoint, which one rank alone has: texts, the tokenizer
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import PurePosixPath
from typing import Final, Self

from jupiterd.errors import CorruptArtifactError

DESCRIPTION_FILE: Final = "part.json"
DATA_FILE: Final = "part.bin"
FILES_DIR: Final = "files"


@dataclass(frozen=True)
class Extent:
    """Bytes that lie together in a file."""

    file: str
    """Path in the checkpoint's folder."""
    offset: int
    """In that file."""
    size_bytes: int

    @property
    def end(self) -> int:
        """Return the offset behind its last byte."""
        return self.offset + self.size_bytes


@dataclass(frozen=True)
class CheckpointPart:
    """What a part's data is."""

    extents: Sequence[Extent]
    """In the order in which their bytes follow each other."""
    name: str = ""
    """Says whose it is: parts without bytes would be the same artifact otherwise, and go with one
    that is old."""

    def to_text(self) -> str:
        """Return it as part.json has it."""
        rows = [astuple(extent) for extent in self.extents]
        return json.dumps({"name": self.name, "extents": rows})

    @classmethod
    def of_text(cls, text: str) -> Self:
        """Read part.json.

        Raises:
            CorruptArtifactError: it isn't one, or names a file outside the checkpoint.
        """
        try:
            rows = json.loads(text)["extents"]
            found = [Extent(str(file), int(offset), int(size)) for file, offset, size in rows]
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            raise CorruptArtifactError("a part of a checkpoint can't be read") from error
        for extent in found:
            path = PurePosixPath(extent.file)
            is_outside = not path.parts or path.is_absolute() or ".." in path.parts
            if is_outside or "\0" in extent.file or min(extent.offset, extent.size_bytes) < 0:
                raise CorruptArtifactError(f"a part of a checkpoint names {extent.file}")
        return cls(found)


def check_whole(parts: Iterable[CheckpointPart]) -> Mapping[str, int]:
    """Return the size in bytes of each file that parts make up together.

    Raises:
        CorruptArtifactError: bytes are missing, or two parts hold the same ones.
    """
    by_file: defaultdict[str, list[Extent]] = defaultdict(list)
    for part in parts:
        for extent in part.extents:
            by_file[extent.file].append(extent)
    for file, extents in by_file.items():
        end = 0
        for extent in sorted(extents, key=lambda each: each.offset):
            if extent.offset != end:
                problem = "lacks bytes" if extent.offset > end else "is there twice"
                raise CorruptArtifactError(f"{file} of a checkpoint {problem} at {end}")
            end = extent.end
    return {file: max(extent.end for extent in extents) for file, extents in by_file.items()}
