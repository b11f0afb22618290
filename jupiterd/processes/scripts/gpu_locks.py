"""The GPUs of a launched script: no gang trains on one, and no other script, while its ranks live.

Owns taking the locks of all of them and what a rank is given of them: a lock goes with the
processes that hold it, whoever started them. Doesn't know the locks' files (`device_locks`).
"""

import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from jupiterd.processes.device_locks import FOLDER, held


@asynccontextmanager
async def gpus_held(
    uuids: Sequence[str], run: str, folder: Path = FOLDER
) -> AsyncGenerator[tuple[int, ...]]:
    """Hold GPUs that nobody uses, and yield the descriptors to hand on to each rank.

    Raises:
        DeviceBusyError: somebody holds one, or doesn't give it back.
    """
    async with AsyncExitStack() as stack:
        holder = f"a script, {run or 'launched'} (process {os.getpid()})"
        taken = [
            await stack.enter_async_context(held(uuid, holder, folder)) for uuid in sorted(uuids)
        ]
        yield tuple(descriptor for descriptor in taken if descriptor is not None)
