"""Artifacts on this node's disk.

Owns the folders below `store/` and their integrity: an artifact in place is complete, verified and
never changes. Doesn't know where artifacts come from, or which are still needed.

    <first 2 digits>/<id>/manifest, files/…     complete; appears by one rename
    partial/<id>/manifest, files/…              being fetched; survives a restart
    incoming/<id>/…                             being imported; deleted at the next start
    adapted/<id>/…                              links to an adapter's files and to its base's;
                                                deleted at the next start: this folder may move
"""

import asyncio
import contextlib
import math
import os
import shutil
import stat
import threading
from collections.abc import Container, Generator, Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Final
from weakref import WeakValueDictionary

from blake3 import blake3

from jupiterd.adapter_folder import base_named_in, join
from jupiterd.errors import CorruptArtifactError, NotFoundError
from jupiterd.ids import ArtifactId
from jupiterd.store.disk import exclusively, put_in_place, sync_folder, sync_tree, written
from jupiterd.store.disk_room import NO_LIMITS, DiskRoom
from jupiterd.store.manifest import (
    CHUNK_BYTES,
    MAX_MANIFEST_BYTES,
    Manifest,
    ManifestFile,
    artifact_id,
    check,
    decode,
    is_artifact_id,
)
from jupiterd.store.partial import PartialArtifact
from jupiterd.store.partial_availability import PartialAvailability
from jupiterd.store.seeding import seed

USE_NOTED_S: Final = 3600.0

_NO_LINK: Final = "put a copy of the file, or the folder, in the place of the link"
_MANIFEST: Final = "manifest"
_FILES: Final = "files"
_GONE: Final = "gone"
_ADAPTED: Final = "adapted"
_PREFIX_DIGITS: Final = 2


class ArtifactStore:
    """Stores artifacts below one folder; every method may be called from any thread.

    A method that writes raises DiskFullError where the disk has no room.
    """

    def __init__(self, root: Path, room: DiskRoom = NO_LIMITS) -> None:
        self._root = root
        self._room = room
        self._changes = 0
        """The number of artifacts added and removed so far."""
        self._counted = (-1, 0)
        """The value of `_changes` at the last count of the files, and their bytes then."""
        self._arrivals: WeakValueDictionary[ArtifactId, asyncio.Lock] = WeakValueDictionary()
        self._growing: dict[ArtifactId, PartialAvailability] = {}
        self._going = threading.Lock()
        """Locked while an artifact is chosen for removal, and while one is looked up."""
        self.manifest = lru_cache(maxsize=32)(self._read_manifest)
        """Return the decoded manifest; raises NotFoundError where the artifact isn't stored."""
        with written():
            for left in ("incoming", _ADAPTED):
                shutil.rmtree(root / left, ignore_errors=True)
            (root / "incoming").mkdir(parents=True)
            (root / "partial").mkdir(exist_ok=True)

    def holds(self, artifact: ArtifactId) -> bool:
        """Say whether a complete, verified copy is here."""
        return is_artifact_id(artifact) and (self._place(artifact) / _MANIFEST).is_file()

    def path(self, artifact: ArtifactId) -> Path:
        """Return the folder of its files; raises NotFoundError where the artifact isn't stored."""
        if not self.holds(artifact):
            raise NotFoundError(f"artifact {artifact[:8]} isn't on this node")
        return self._place(artifact) / _FILES

    def model_path(self, artifact: ArtifactId) -> Path:
        """Return the folder of a model's files; that of an adapter has its base beside it.

        Raises NotFoundError where the artifact isn't stored, or its base.
        """
        files = self.path(artifact)
        base = self.base_of(artifact)
        if base is None:
            return files
        frozen, place = self.path(base), self._root / _ADAPTED / artifact
        if not place.is_dir():
            with written():
                waste = exclusively(self._root / "incoming", artifact)
                join(files, frozen, waste / _FILES)
                place.parent.mkdir(exist_ok=True)
                put_in_place(waste / _FILES, place)
                shutil.rmtree(waste, ignore_errors=True)
        return place

    def base_of(self, artifact: ArtifactId) -> ArtifactId | None:
        """Return the base of an adapter; None of a whole model, and of what isn't here."""
        named = base_named_in(self.path(artifact)) if self.holds(artifact) else ""
        return ArtifactId(named) if is_artifact_id(named) else None

    def ids(self) -> list[ArtifactId]:
        """Return the ids of all stored artifacts, sorted."""
        found = self._root.glob(f"{'[0-9a-f]' * _PREFIX_DIGITS}/*/{_MANIFEST}")
        return sorted(ArtifactId(path.parent.name) for path in found)

    def manifest_bytes(self, artifact: ArtifactId) -> bytes:
        """Return the bytes that the id hashes; raises NotFoundError where it isn't stored."""
        return (self.path(artifact).parent / _MANIFEST).read_bytes()

    def read(self, artifact: ArtifactId, offset: int, length: int) -> bytes:
        """Return `length` bytes at `offset` of the concatenated files.

        Raises:
            NotFoundError: the artifact isn't stored.
            CorruptArtifactError: the range reaches beyond the end, or a file was cut short.
        """
        data = read_range(self.path(artifact), self.manifest(artifact), offset, length)
        if len(data) != length:
            raise CorruptArtifactError(f"artifact {artifact[:8]} is damaged on this disk")
        return data

    def growing(self, artifact: ArtifactId) -> PartialAvailability | None:
        """Return the available chunks of an artifact that is being fetched; None where none is."""
        return self._growing.get(artifact)

    @contextlib.contextmanager
    def grown(
        self, partial: PartialArtifact, manifest_bytes: bytes
    ) -> Generator[PartialAvailability]:
        """Let others have what is here of an artifact while it is being fetched."""
        artifact = artifact_id(manifest_bytes)
        growth = PartialAvailability(
            manifest_bytes, partial, self._root / "partial" / artifact / _FILES
        )
        self._growing[artifact] = growth
        try:
            yield growth
        finally:
            del self._growing[artifact]
            growth.note()

    def ingest(self, source: Path) -> ArtifactId:
        """Take in a folder of files, or one file as a folder of itself; the source is then gone.

        The source must lie on the store's file system and nobody may be writing to it. Empty
        folders are dropped.

        Raises:
            CorruptArtifactError: it holds links or the like, or names that can't travel.
        """
        with written():
            manifest = _describe(source)
            manifest_bytes = manifest.encode()
            if len(manifest_bytes) > MAX_MANIFEST_BYTES:
                raise CorruptArtifactError(
                    f"{source} is too large to be one artifact", "divide it into several folders"
                )
            artifact = artifact_id(manifest_bytes)
            if not self._is_used_again(artifact):
                draft = self._draft(artifact, source)
                try:
                    (draft / _MANIFEST).write_bytes(manifest_bytes)
                    self._publish(draft, artifact)
                except OSError:
                    shutil.rmtree(draft, ignore_errors=True)
                    raise
            _remove(source)
        return artifact

    @contextlib.contextmanager
    def draft(self) -> Generator[Path]:
        """Yield a path for a folder that is to be taken in; what is left there goes at the end."""
        place = exclusively(self._root / "incoming", "draft")
        try:
            yield place / _FILES
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def set_aside(self, artifact: ArtifactId) -> None:
        """Hold a copy no more that was found damaged; the next fetch brings only what is damaged.

        What reads it just now keeps its files.
        """
        with written():
            draft = self._root / "partial" / artifact
            shutil.rmtree(draft, ignore_errors=True)
            self._place(artifact).rename(draft)
            os.utime(draft)
            sync_folder(draft.parent)
        self.manifest.cache_clear()

    def put_back(self, artifact: ArtifactId) -> None:
        """Hold a copy again that was set aside and couldn't be mended: most of it is whole."""
        draft = self._root / "partial" / artifact
        with written():
            if not self.holds(artifact) and (draft / _MANIFEST).exists():
                self._publish(draft, artifact)

    def free_bytes(self) -> int:
        """Return how much more may be fetched, as far as the disk and people's limits go.

        What is being fetched just now counts once it is here. Reads the disk.
        """
        changes = self._changes
        if self._counted[0] != changes:
            self._counted = changes, self._room.taken_bytes(self._root)
        return self._room.free_bytes(self._root, self._counted[1])

    def begin(self, manifest_bytes: bytes, like: Iterable[ArtifactId] = ()) -> PartialArtifact:
        """Start to write an artifact that is fetched, or go on where a fetch was broken off.

        like: others that may hold parts of it, which needn't be fetched then

        Raises:
            CorruptArtifactError: the manifest names anything that mustn't be written.
            DiskFullError: it would take more room than it may.
        """
        manifest = decode(manifest_bytes)
        artifact = artifact_id(manifest_bytes)
        draft = self._root / "partial" / artifact
        with written():
            if not draft.exists():
                self._room.check(self._root, manifest.size_bytes)
                held = [each for each in like if self.holds(each)]
                others = [(self.path(each), self.manifest(each)) for each in held]
                seed(draft / _FILES, manifest, others)
            (draft / _FILES).mkdir(parents=True, exist_ok=True)
            os.utime(draft)
            (draft / _MANIFEST).write_bytes(manifest_bytes)
        return PartialArtifact(
            manifest, draft / _FILES, publish=lambda: self._publish(draft, artifact)
        )

    def note_use(self, artifact: ArtifactId, at_s: float) -> None:
        """Take note that an artifact is used (wall time); written down once an hour at most."""
        with contextlib.suppress(OSError):
            if self._place(artifact).stat().st_mtime < at_s - USE_NOTED_S:
                os.utime(self._place(artifact), (at_s, at_s))

    def unused_since(self, wall_s: float) -> list[ArtifactId]:
        """Return what was taken in, and last used, before that."""
        return [one for one in self.ids() if _is_older(self._place(one), wall_s)]

    def partial_ids(self) -> list[ArtifactId]:
        """Return what was begun and isn't all here."""
        return [ArtifactId(draft.name) for draft in (self._root / "partial").iterdir()]

    def remove_partial(self, wall_s: float, going: Container[ArtifactId]) -> None:
        """Throw away fetches of these that nobody has gone on with since then."""
        for artifact in self.partial_ids():
            draft = self._root / "partial" / artifact
            if artifact in going and artifact not in self._growing and _is_older(draft, wall_s):
                shutil.rmtree(draft, ignore_errors=True)
                self._changes += 1

    def remove(self, artifact: ArtifactId, unused_since_s: float = math.inf) -> bool:
        """Give an artifact up and say so, unless it isn't held or was used since then (wall time).

        A crash leaves it whole or gone.
        """
        if not self.holds(artifact):
            return False
        place = self._place(artifact)
        with written():
            waste = exclusively(self._root / "incoming", artifact)  # emptied at the next start
            with self._going:
                is_going = self.holds(artifact) and _is_older(place, unused_since_s)
                if is_going:
                    place.rename(waste / _GONE)
            if is_going:
                sync_folder(place.parent)
        self.manifest.cache_clear()
        shutil.rmtree(waste, ignore_errors=True)
        if is_going:
            shutil.rmtree(self._root / _ADAPTED / artifact, ignore_errors=True)
        self._changes += 1
        return is_going

    def arrival(self, artifact: ArtifactId) -> asyncio.Lock:
        """Return the lock that a fetch holds, so that two of one artifact don't mix."""
        return self._arrivals.setdefault(artifact, asyncio.Lock())

    def _is_used_again(self, artifact: ArtifactId) -> bool:
        """Say whether it is held, and take note that somebody has just made it anew."""
        with self._going:
            if is_held := self.holds(artifact):
                os.utime(self._place(artifact))
        return is_held

    def _draft(self, artifact: ArtifactId, source: Path) -> Path:
        draft = exclusively(self._root / "incoming", artifact)
        if source.is_dir():
            source.rename(draft / _FILES)
        else:
            (draft / _FILES).mkdir()
            source.rename(draft / _FILES / source.name)
        return draft

    def _publish(self, draft: Path, artifact: ArtifactId) -> None:
        sync_tree(draft)
        put_in_place(draft, self._place(artifact))
        self._changes += 1

    def _place(self, artifact: ArtifactId) -> Path:
        return self._root / artifact[:_PREFIX_DIGITS] / artifact

    def _read_manifest(self, artifact: ArtifactId) -> Manifest:
        return decode(self.manifest_bytes(artifact))


def _is_older(folder: Path, wall_s: float) -> bool:
    try:
        return folder.stat().st_mtime < wall_s
    except FileNotFoundError:
        return False


def read_range(files: Path, manifest: Manifest, offset: int, length: int) -> bytes:
    """Return a range of the files laid end to end; less where one was cut short.

    Raises:
        CorruptArtifactError: the range reaches beyond the end.
    """
    pieces: list[bytes] = []
    for file, start, size_bytes in manifest.spans(offset, length):
        with (files / file.path).open("rb", buffering=0) as source:
            source.seek(start)
            pieces.append(source.read(size_bytes))
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _describe(source: Path) -> Manifest:
    """Hash a folder or a single file."""
    if source.is_dir() and not source.is_symlink():
        names = sorted(path.relative_to(source).as_posix() for path in _files_below(source))
        found = tuple(_describe_file(source / name, name) for name in names)
    else:
        found = (_describe_file(source, source.name),)
    manifest = Manifest(found)
    check(manifest)
    return manifest


def _files_below(folder: Path) -> Iterator[Path]:
    for base, folders, files in os.walk(folder):
        for name in folders:
            if (Path(base) / name).is_symlink():
                raise CorruptArtifactError(f"{Path(base) / name} is a link, not a folder", _NO_LINK)
        yield from (Path(base) / name for name in files)


def _describe_file(path: Path, name: str) -> ManifestFile:
    if not stat.S_ISREG(path.lstat().st_mode):
        raise CorruptArtifactError(f"{path} is no plain file", _NO_LINK)
    chunks: list[str] = []
    size_bytes = 0
    with path.open("rb") as file:
        while data := file.read(CHUNK_BYTES):
            chunks.append(blake3(data).hexdigest())
            size_bytes += len(data)
    return ManifestFile(name, size_bytes, tuple(chunks))


def _remove(source: Path) -> None:
    if source.is_dir():
        shutil.rmtree(source)
    else:
        source.unlink(missing_ok=True)
