"""One live gang for each GPU of this machine, whichever daemon's it is.

Owns the locks: a file for each GPU's UUID in a folder of the whole machine. Doesn't know GPUs. A
lock goes with the processes that hold its descriptor: a worker is given it, so a GPU is free as
soon as the worker is gone, and not before, whatever has become of its daemon. Any user may lock
such a file; whether that counts is for the driver to say (`lock_holders`). A launched script takes
the locks of all its GPUs, and each of its ranks is given them.

Other work borrows a GPU meanwhile (`device_loans`), under a second file; whoever takes the lock
waits until that is over, which is at once.
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

FOLDER: Final = Path("/tmp/jupiter-devices")  # noqa: S108 - all users' daemons must find it
_MODE_OF_FOLDER: Final = 0o1777
_MODE_OF_FILE: Final = 0o644
_MAX_HOLDER_CHARS: Final = 60

TAKE_S: Final = 1.0
"""How long a lock is tried for: a worker that ends, or somebody who looks, has it for a moment."""

RETURN_S: Final = 3.0
"""How long a loan is waited for: a borrower looks five times a second, and ends its worker then."""

TOUCH_S: Final = 12 * 3600.0
"""So often a file that is held is touched: many systems sweep /tmp of what is ten days old."""

LENT: Final = ".lent"
"""Ends the name of a GPU's second file."""

_LOCK: Final = ".lock"
_POLL_S: Final = 0.02

log = logging.getLogger(__name__)

_holders = LockHolders()


def judge_by(computing: Computing) -> None:
    """Have locks of other users judged by what tells which processes compute on a GPU."""
    _holders.computing = computing


async def holder_of(uuid: str, folder: Path = FOLDER) -> str:
    """Return who goes on training on a GPU; empty where nobody does, or nobody can tell."""
    deadline_s = time.monotonic() + TAKE_S
    while (holder := holder_now(uuid, folder)) and time.monotonic() < deadline_s:  # noqa: ASYNC110
        await asyncio.sleep(_POLL_S)
    return holder


async def call_in(uuid: str, holder: str, folder: Path = FOLDER) -> None:
    """Have a GPU given back that is lent, on behalf of a gang; nothing where it isn't.

    Raises:
        DeviceBusyError: it isn't given back, or somebody holds it.
    """
    if holder_now(uuid, folder, LENT):
        async with device_locked(uuid, holder, folder):
            pass


def holder_now(uuid: str, folder: Path, suffix: str = _LOCK) -> str:
    """Return who holds one of a GPU's files; empty where nobody does, or nobody can tell."""
    try:
        descriptor = _open(_path(uuid, folder, suffix))
    except OSError:  # mostly there is no such file: nobody has ever held it
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
    """Hold a GPU that nobody uses, and yield the descriptor to hand on; None without any locks.

    Raises:
        DeviceBusyError: somebody else holds it, or a borrower doesn't give it back.
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
    """Hold GPUs that nobody uses, and yield the descriptors to hand on to each rank.

    Raises:
        DeviceBusyError: somebody holds one, or doesn't give it back.
    """
    async with AsyncExitStack() as stack:
        holder = f"a script, {run or 'launched'} (process {os.getpid()})"
        taken = [
            await stack.enter_async_context(device_locked(uuid, holder, folder))
            for uuid in sorted(uuids)
        ]
        yield tuple(descriptor for descriptor in taken if descriptor is not None)


async def _taken(uuid: str, folder: Path) -> int | None:
    """Return the locked file; None where there can't be any."""
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
    """Have a file look new for as long as it is held: old ones are swept away."""
    loop = asyncio.get_running_loop()

    def touch() -> None:
        nonlocal timer
        with contextlib.suppress(OSError):  # another user's is read alone, which counts as well
            os.pread(descriptor, 1, 0)
            os.utime(descriptor)
        timer = loop.call_later(TOUCH_S, touch)

    timer = loop.call_later(TOUCH_S, touch)
    try:
        yield
    finally:
        timer.cancel()


async def _take(uuid: str, descriptor: int) -> bool:
    """Say whether it is locked now; not, where somebody locks it who doesn't use the GPU."""
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
    """Wait until no worker uses the GPU on loan: it sees by itself that the GPU is held now."""
    deadline_s = time.monotonic() + RETURN_S
    while borrower := holder_now(uuid, folder, LENT):
        if time.monotonic() >= deadline_s:
            raise DeviceBusyError(f"its GPU isn't given back by {borrower}")
        await asyncio.sleep(_POLL_S)


def opened(uuid: str, folder: Path, suffix: str = _LOCK) -> int | None:
    """Open a file of a GPU; another user's may be locked too, and needn't be written for that."""
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
    """Return who holds a file that is locked; empty where that is nobody who uses the GPU."""
    holder = _holders.holder(uuid, descriptor, signed(descriptor))
    if not holder:
        log.warning("device_lock_of_nobody", extra={"uuid": uuid})
    return holder


def put_aside(uuid: str, folder: Path, suffix: str = _LOCK) -> bool:
    """Remove a file that somebody locks in vain; say whether a new one can take its place.

    Whose file it is, nobody else can remove it from that folder: then it goes on without a lock.
    """
    try:
        _path(uuid, folder, suffix).unlink()
    except OSError as error:
        log.warning("device_not_locked", extra={"uuid": uuid, "reason": str(error)})
        return False
    return True


def is_in_place(descriptor: int, uuid: str, folder: Path, suffix: str = _LOCK) -> bool:
    """Say whether a lock holds for others: one on a file that was swept away meanwhile doesn't."""
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
            folder.chmod(_MODE_OF_FOLDER)  # mkdir's own mode is cut down by the umask


def _make_file(path: Path) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE_OF_FILE)
    try:
        os.fchmod(descriptor, _MODE_OF_FILE)  # the umask may have hidden it from other users
    finally:
        os.close(descriptor)


def _path(uuid: str, folder: Path, suffix: str) -> Path:
    return folder / f"{re.sub(r'[^A-Za-z0-9-]', '_', uuid)}{suffix}"


def sign(uuid: str, folder: Path, holder: str, suffix: str = _LOCK) -> None:
    """Say who holds it, where the file is ours; whoever finds it held reads that."""
    path = _path(uuid, folder, suffix)
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(holder)


def signed(descriptor: int) -> str:
    """Return who has signed a file last, in one short line."""
    said = os.pread(descriptor, _MAX_HOLDER_CHARS, 0).decode("utf-8", "replace")
    return "".join(filter(str.isprintable, said)) or "another worker"
