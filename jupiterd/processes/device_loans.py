"""Loans of GPUs to work that gives way to training: generating, scoring, training small students.

Owns the loans of one daemon. Each GPU has a second file beside its lock (`device_locks`); the
workers of one daemon at a time hold that file, and only while nobody holds the lock. A gang needs
no permission: it takes the lock. The borrower sees that within `LOOK_S` and ends its worker, and
the gang starts once the loan is over. The system ends a loan with the processes that hold its
descriptor, like a lock.

Several workers of one daemon may share a loan: the leader that placed them there decided so.
"""

import asyncio
import fcntl
import os
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jupiterd.errors import DeviceBusyError
from jupiterd.processes.device_locks import (
    FOLDER,
    LENT,
    TAKE_S,
    holder_now,
    is_in_place,
    opened,
    put_aside,
    sign,
    true_holder,
)

LOOK_S: Final = 0.2
"""How often a borrower checks whether a gang wants its GPU, in s."""


@dataclass
class _Shared:
    descriptor: int
    workers: int


@dataclass(frozen=True)
class Loan:
    """A GPU that a worker may use until a gang takes the GPU's lock."""

    uuid: str
    descriptor: int
    """The locked file, for the worker to inherit."""
    folder: Path

    async def recalled(self) -> str:
        """Return the holder of the GPU's lock as soon as there is one."""
        while not (holder := holder_now(self.uuid, self.folder)):  # noqa: ASYNC110 - no event
            await asyncio.sleep(LOOK_S)
        return holder


class DeviceLoans:
    """The loans of one daemon's workers."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._folder = folder
        self._shared: dict[str, _Shared] = {}
        self._taking = asyncio.Lock()

    @asynccontextmanager
    async def borrowed(self, uuid: str, borrower: str) -> AsyncGenerator[Loan | None]:
        """Borrow a GPU; yields None if this machine can't lock files for loans.

        Raises:
            DeviceBusyError: a gang holds the GPU, or another daemon's workers use it.
        """
        async with self._taking:
            shared = self._shared.get(uuid) or await self._take(uuid, borrower)
        if shared is None:
            yield None
            return
        shared.workers += 1
        try:
            yield Loan(uuid, shared.descriptor, self._folder)
        finally:
            shared.workers -= 1
            if not shared.workers:
                del self._shared[uuid]
                os.close(shared.descriptor)

    async def _take(self, uuid: str, borrower: str) -> _Shared | None:
        while (descriptor := opened(uuid, self._folder, LENT)) is not None:
            try:
                is_taken = await self._wait_for(uuid, descriptor)
            except BaseException:
                os.close(descriptor)
                raise
            if is_taken and is_in_place(descriptor, uuid, self._folder, LENT):
                break
            os.close(descriptor)
            if not is_taken and not put_aside(uuid, self._folder, LENT):
                return None
        if descriptor is None:
            return None
        sign(uuid, self._folder, borrower, LENT)
        self._shared[uuid] = _Shared(descriptor, 0)
        return self._shared[uuid]

    async def _wait_for(self, uuid: str, descriptor: int) -> bool:
        """Return whether the file is locked now; False if its holder doesn't use the GPU."""
        deadline_s = time.monotonic() + TAKE_S
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if not (holder := true_holder(uuid, descriptor)):
                    return False
            else:  # check this last: a gang that comes later waits for the loan
                if not (holder := holder_now(uuid, self._folder)):
                    return True
                fcntl.flock(descriptor, fcntl.LOCK_UN)
            if time.monotonic() >= deadline_s:
                raise DeviceBusyError(f"its GPU is held by {holder}")
            await asyncio.sleep(LOOK_S / 4)
