"""Locks the GPUs of this machine, so that each runs one gang, whichever daemon it belongs to.

Owns the locks: a file for each GPU's UUID in a folder that all users share. Doesn't know GPUs. A
lock lasts as long as a process holds its descriptor: a worker inherits it, so a GPU becomes free
exactly when the worker ends, whatever happens to its daemon. Any user may lock such a file;
`lock_holders` decides with the driver whether that lock counts. A launched script takes the locks
of all its GPUs, and each of its ranks inherits them.

Other work may borrow a GPU (`device_loans`) under a second file; a gang that takes the lock waits
until the borrower ends its worker.
"""

import asyncio
import contextlib
import fcntl
import logging
import os
import re
import time
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final

from jupiterd.errors import DeviceBusyError
from jupiterd.processes.lock_holders import Computing, LockHolders

FOLDER: Final = Path("/tmp/jupiter-devices")  # noqa: S108 - all users' daemons share it
_MODE_OF_FOLDER: Final = 0o1777
_MODE_OF_FILE: Final = 0o644
_MAX_HOLDER_CHARS: Final = 60

TAKE_S: Final = 1.0
"""How long to try for a lock, in s: a worker that is ending, or a process that checks the lock,
holds it briefly."""

RETURN_S: Final = 3.0
"""How long to wait for a loan to end, in s: a borrower checks five times a second and then ends its
worker."""

TOUCH_S: Final = 12 * 3600.0
"""How often a held file is touched, in s: many systems delete files in /tmp after ten days."""

LENT: Final = ".lent"
"""Suffix of a GPU's second file, which borrowers lock."""

_LOCK: Final = ".lock"
_POLL_S: Final = 0.02

log = logging.getLogger(__name__)

_holders = LockHolders()


def judge_by(computing: Computing) -> None:
    """Set the function that tells which processes compute on a GPU."""
    _holders.computing = computing


async def holder_of(uuid: str, folder: Path = FOLDER) -> str:
    """Return who keeps a GPU's lock for `TAKE_S`; empty if nobody does or it can't be read."""
    deadline_s = time.monotonic() + TAKE_S
    while (holder := holder_now(uuid, folder)) and time.monotonic() < deadline_s:  # noqa: ASYNC110
        await asyncio.sleep(_POLL_S)
    return holder


async def call_in(uuid: str, holder: str, folder: Path = FOLDER) -> None:
    """End the loan of a GPU on behalf of a gang; do nothing if it isn't lent.

    Raises:
        DeviceBusyError: the borrower doesn't return it, or another gang holds it.
    """
    if holder_now(uuid, folder, LENT):
        async with device_locked(uuid, holder, folder):
            pass


def holder_now(uuid: str, folder: Path, suffix: str = _LOCK) -> str:
    """Return who holds one of a GPU's files; empty if nobody does or it can't be read."""
    try:
        descriptor = _open(_path(uuid, folder, suffix))
    except OSError:  # usually the file doesn't exist: nobody has ever held it
        return ""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return true_holder(uuid, descriptor)
    except OSError:  # a file system without locks
        return ""
    else:
        _holders.free(descriptor)
        return ""
    finally:
        os.close(descriptor)


@asynccontextmanager
async def device_locked(
    uuid: str, holder: str, folder: Path = FOLDER
) -> AsyncGenerator[int | None]:
    """Lock a GPU and yield the descriptor for workers to inherit; None if files can't be locked.

    Raises:
        DeviceBusyError: somebody else holds it, or a borrower doesn't return it.
    """
    descriptor = await _taken(uuid, folder)
    if descriptor is None:
        yield None
        return
    try:
        sign(uuid, folder, holder)
        await _returned(uuid, folder)
        with _touched(descriptor):
            yield descriptor
    finally:
        os.close(descriptor)


@asynccontextmanager
async def gpus_locked(
    uuids: Sequence[str], run: str, folder: Path = FOLDER
) -> AsyncGenerator[tuple[int, ...]]:
    """Lock GPUs and yield the descriptors for each rank to inherit.

    Raises:
        DeviceBusyError: somebody else holds one, or a borrower doesn't return it.
    """
    async with AsyncExitStack() as stack:
        holder = f"a script, {run or 'launched'} (process {os.getpid()})"
        taken = [
            await stack.enter_async_context(device_locked(uuid, holder, folder))
            for uuid in sorted(uuids)
        ]
        yield tuple(descriptor for descriptor in taken if descriptor is not None)


async def _taken(uuid: str, folder: Path) -> int | None:
    """Return the locked file; None if it can't be made or locked."""
    while (descriptor := opened(uuid, folder)) is not None:
        try:
            is_taken = await _take(uuid, descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        if is_taken and is_in_place(descriptor, uuid, folder):
            return descriptor
        os.close(descriptor)
        if not is_taken and not put_aside(uuid, folder):
            return None
    return None


@contextmanager
def _touched(descriptor: int) -> Generator[None]:
    """Touch a file again and again while it is held: the system deletes old files in /tmp."""
    loop = asyncio.get_running_loop()

    def touch() -> None:
        nonlocal timer
        with contextlib.suppress(OSError):  # another user's file: reading it will do
            os.pread(descriptor, 1, 0)
            os.utime(descriptor)
        timer = loop.call_later(TOUCH_S, touch)

    timer = loop.call_later(TOUCH_S, touch)
    try:
        yield
    finally:
        timer.cancel()


async def _take(uuid: str, descriptor: int) -> bool:
    """Return whether the file is locked now; False if its holder doesn't use the GPU."""
    deadline_s = time.monotonic() + TAKE_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() >= deadline_s:
                if holder := true_holder(uuid, descriptor):
                    raise DeviceBusyError(f"its GPU is held by {holder}") from error
                return False
            await asyncio.sleep(_POLL_S)
        else:
            return True


async def _returned(uuid: str, folder: Path) -> None:
    """Wait until no borrower holds the GPU: it notices by itself that the GPU is locked."""
    deadline_s = time.monotonic() + RETURN_S
    while borrower := holder_now(uuid, folder, LENT):
        if time.monotonic() >= deadline_s:
            raise DeviceBusyError(f"its GPU isn't given back by {borrower}")
        await asyncio.sleep(_POLL_S)


def opened(uuid: str, folder: Path, suffix: str = _LOCK) -> int | None:
    """Open a file of a GPU for reading; that is enough to lock it, even if another user owns it."""
    path = _path(uuid, folder, suffix)
    try:
        _make(folder)
        with contextlib.suppress(FileExistsError):
            _make_file(path)
        return _open(path)
    except OSError as error:
        log.warning("device_not_locked", extra={"uuid": uuid, "reason": str(error)})
        return None


def true_holder(uuid: str, descriptor: int) -> str:
    """Return who holds a locked file; empty if the holder doesn't use the GPU."""
    holder = _holders.holder(uuid, descriptor, signed(descriptor))
    if not holder:
        log.warning("device_lock_of_nobody", extra={"uuid": uuid})
    return holder


def put_aside(uuid: str, folder: Path, suffix: str = _LOCK) -> bool:
    """Remove a file that a process locks without using the GPU; return whether that succeeded.

    The folder is sticky, so only the file's owner can remove it; if that fails, the caller goes on
    without a lock.
    """
    try:
        _path(uuid, folder, suffix).unlink()
    except OSError as error:
        log.warning("device_not_locked", extra={"uuid": uuid, "reason": str(error)})
        return False
    return True


def is_in_place(descriptor: int, uuid: str, folder: Path, suffix: str = _LOCK) -> bool:
    """Return whether a locked file is still at its path: a lock on a deleted file binds nobody."""
    try:
        there = _path(uuid, folder, suffix).stat(follow_symlinks=False)
    except OSError:
        return False
    return os.path.samestat(os.fstat(descriptor), there)


def _open(path: Path) -> int:
    return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)


def _make(folder: Path) -> None:
    if not folder.is_dir():
        with contextlib.suppress(FileExistsError):
            folder.mkdir()
            folder.chmod(_MODE_OF_FOLDER)  # the umask restricts the mode of mkdir


def _make_file(path: Path) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE_OF_FILE)
    try:
        os.fchmod(descriptor, _MODE_OF_FILE)  # the umask may hide it from other users
    finally:
        os.close(descriptor)


def _path(uuid: str, folder: Path, suffix: str) -> Path:
    return folder / f"{re.sub(r'[^A-Za-z0-9-]', '_', uuid)}{suffix}"


def sign(uuid: str, folder: Path, holder: str, suffix: str = _LOCK) -> None:
    """Write the holder's name into its file, if this user owns it; others read it there."""
    path = _path(uuid, folder, suffix)
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(holder)


def signed(descriptor: int) -> str:
    """Return the name in a lock file, as one short line."""
    said = os.pread(descriptor, _MAX_HOLDER_CHARS, 0).decode("utf-8", "replace")
    return "".join(filter(str.isprintable, said)) or "another worker"
