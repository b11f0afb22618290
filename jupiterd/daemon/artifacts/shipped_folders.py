"""Working folders that travel with launches: taken in, fetched, laid out for runs, and removed.

Owns the folders of runs, and which artifacts are such folders: no fact names those. What is taken
in is what somebody names on this machine's own control socket. Doesn't know who may run scripts.

    artifacts/<id>     an empty file, touched at each use
    folders/<run>/     a copy that one run works in
"""

import asyncio
import contextlib
import logging
import os
import re
import secrets
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import psutil

from jupiterd.daemon.artifacts.artifact_cache import ArtifactCache
from jupiterd.daemon.runtime.state_dir import StateDir
from jupiterd.errors import MalformedError, NotFoundError, UsageError
from jupiterd.ids import ArtifactId, short
from jupiterd.processes.script_plan import ScriptOrder
from jupiterd.processes.scripts.run_names import run_name
from jupiterd.store.disk import written
from jupiterd.store.seeding import new_bytes

log = logging.getLogger(__name__)

SHIPPED: Final = "shipped"
"""The folder of all this in the state folder."""

UNUSED_S: Final = 7 * 86_400.0
"""How long the folder of a run stays after something was last written at its top."""

CACHED_S: Final = 86_400.0
"""How long an artifact stays after its last use: what hasn't changed needn't be sent again."""

MAX_LIKE: Final = 4
"""Earlier folders in which parts of a new one are looked for."""

_RUN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_SCRIPT_MARK: Final = b"#!"
_RUNNABLE: Final = 0o700


class ShippedFolders:
    """Those of one daemon; what touches disks does so in threads."""

    def __init__(self, state_dir: StateDir, artifact_cache: ArtifactCache) -> None:
        """Take where all of it lies, and the artifacts."""
        self._artifacts = state_dir.root / SHIPPED / "artifacts"
        self.folders = state_dir.root / SHIPPED / "folders"
        self._spool = state_dir.spool
        self._artifact_cache = artifact_cache
        self._laying: dict[str, asyncio.Task[None]] = {}

    async def take_in(self, folder: Path, files: Sequence[str]) -> ArtifactId:
        """Make an artifact of these files of a folder of this machine.

        Raises:
            UsageError: one leads out of the folder.
            NotFoundError: the folder can't be read.
            DiskFullError, StateDirError: the copy can't be written.
        """
        draft = self._spool / secrets.token_hex(8)
        try:
            await asyncio.to_thread(_copied, folder, files, draft)
            artifact = await asyncio.to_thread(self._artifact_cache.store.ingest, draft)
        finally:
            await asyncio.to_thread(shutil.rmtree, draft, ignore_errors=True)
        await asyncio.to_thread(self._note, artifact)
        return artifact

    async def bring(self, artifact: ArtifactId) -> int:
        """See that an artifact is here; return how many bytes of it were new.

        Raises:
            NotFoundError: nobody who can be reached has it.
        """
        store = self._artifact_cache.store
        like = [] if store.holds(artifact) else await asyncio.to_thread(self._latest)
        is_new = not store.holds(artifact)
        await self._artifact_cache.ensure(artifact, like)
        await asyncio.to_thread(self._note, artifact)
        if not is_new:
            return 0
        others = [store.manifest(each) for each in like if store.holds(each)]
        return new_bytes(store.manifest(artifact), others)

    async def placed(self, order: ScriptOrder) -> ScriptOrder:
        """Return an order with the folder of its own in which it runs; as it is without any.

        One that is there already is used as it lies: a run that is tried again goes on in it.

        Raises:
            MalformedError: the run has no name that could be a folder's.
            NotFoundError: nobody who can be reached has the artifact.
        """
        if not order.shipped:
            return order
        run, artifact = _checked(run_name(order.id)), ArtifactId(order.shipped)
        await self.bring(artifact)
        return replace(order, folder=str(await self.laid_out(artifact, run)))

    async def laid_out(self, artifact: ArtifactId, run: str) -> Path:
        """Return the folder of a run, with what an artifact that is here holds.

        Whoever asks while that is being done waits for the same; it goes on where nobody waits.

        Raises:
            MalformedError: the run has no name that could be a folder's.
            DiskFullError, StateDirError: it can't be written.
        """
        folder = self.folders / _checked(run)
        laying = self._laying.get(run)
        if laying is None:
            files = self._artifact_cache.store.path(artifact)
            loop = asyncio.get_running_loop()
            laying = self._laying[run] = loop.create_task(
                asyncio.to_thread(_lay_out, files, folder)
            )
            laying.add_done_callback(lambda _: self._laying.pop(run))
        await asyncio.shield(laying)
        return folder

    def look(self, at_s: float) -> None:
        """Remove what nobody works in or has used for long; `at_s`: wall time."""
        for folder in _older(self.folders, at_s - UNUSED_S):
            if not _is_worked_in(folder):
                shutil.rmtree(folder, ignore_errors=True)
                log.info("shipped_folder_removed", extra={"run": folder.name})
        for mark in _older(self._artifacts, at_s - CACHED_S):
            artifact = ArtifactId(mark.name)
            self._artifact_cache.store.remove(artifact, at_s - CACHED_S)
            mark.unlink(missing_ok=True)
            log.info("shipped_artifact_removed", extra={"artifact": short(artifact)})

    def _note(self, artifact: ArtifactId) -> None:
        with written():
            self._artifacts.mkdir(parents=True, exist_ok=True, mode=0o700)
            (self._artifacts / artifact).touch()

    def _latest(self) -> list[ArtifactId]:
        """Return the artifacts that were used last, those first."""
        marks = sorted(_each(self._artifacts), key=_touched_s, reverse=True)
        return [ArtifactId(mark.name) for mark in marks[:MAX_LIKE]]


def _copied(folder: Path, files: Sequence[str], draft: Path) -> None:
    root = folder.resolve()
    with written():
        draft.mkdir(mode=0o700)
    for name in files:
        source = (folder / name).resolve()
        target = Path(os.path.normpath(draft / name))
        if not (source.is_relative_to(root) and target.is_relative_to(draft)):
            raise UsageError(f"{name} leads out of {folder}", "leave it out, or copy it there")
        try:
            data = source.open("rb")
        except FileNotFoundError:  # an editor's, gone since the folder was listed
            continue
        except OSError as error:
            raise NotFoundError(f"{folder / name} can't be read: {error.strerror}") from error
        with data, written():
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("wb") as copy:
                shutil.copyfileobj(data, copy)


def _checked(run: str) -> str:
    if not _RUN.fullmatch(run):
        raise MalformedError("a run whose folder travels has no name")
    return run


def _lay_out(files: Path, folder: Path) -> None:
    """Copy an artifact for a run, unless it was; the folder appears when it is whole."""
    if folder.is_dir():
        return
    draft = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}")
    try:
        with written():
            draft.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            shutil.copytree(files, draft, copy_function=_copy)
            draft.rename(folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _copy(source: str, target: str) -> None:
    """Copy a file, so that it may be written to; artifacts know no modes: `#!` makes a script."""
    shutil.copyfile(source, target)
    with Path(target).open("rb") as file:
        is_script = file.read(len(_SCRIPT_MARK)) == _SCRIPT_MARK
    if is_script:
        Path(target).chmod(_RUNNABLE)


def _older(folder: Path, before_s: float) -> list[Path]:
    return [each for each in _each(folder) if _touched_s(each) < before_s]


def _each(folder: Path) -> list[Path]:
    try:
        return [*folder.iterdir()]
    except OSError:  # nothing has ever travelled here
        return []


def _touched_s(path: Path) -> float:
    """Return when a file, a folder, or anything directly in it was written last (wall time)."""
    times_s = [0.0]
    with contextlib.suppress(OSError):
        inner = path.iterdir() if path.is_dir() else ()
        for each in (path, *inner):
            with contextlib.suppress(OSError):
                times_s.append(each.lstat().st_mtime)
    return max(times_s)


def _is_worked_in(folder: Path) -> bool:
    """Say whether a process of this user has it, or a folder in it, as its working folder."""
    return any(Path(cwd).is_relative_to(folder) for cwd in _working_folders())


def _working_folders() -> Iterator[str]:
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            yield process.cwd()
