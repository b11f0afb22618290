"""GGUF files of models that llama.cpp answers with, kept in the state folder.

Owns the files: one for each model, written by a child process, as many as are allowed; the one
used longest ago goes first. Doesn't know the format or the engine.
"""

import asyncio
import contextlib
import hashlib
import os
import shutil
import sys
from collections.abc import Container
from pathlib import Path
from typing import Final

from jupiterd.adapter_folder import base_beside
from jupiterd.daemon.serving.engines.engine_process import child_environment
from jupiterd.errors import DiskFullError, WorkFailedError
from jupiterd.formats import printable

MOST_FILES: Final = 4
WRITER: Final = "jupiterd.workers.serving.write_gguf"
WRITING_S: Final = 1800.0

_SUFFIX = ".gguf"
_ROOM = 1.1


class GgufCache:
    """The files below one folder."""

    def __init__(self, folder: Path, most_files: int = MOST_FILES) -> None:
        self._folder = folder
        self._most_files = most_files
        self._writing = asyncio.Lock()

    async def file(self, key: str, model: Path, in_use: Container[str] = ()) -> Path:
        """Return the file of a model's folder, written first where it is missing.

        Args:
            key: names the model's exact weights.
            model: its folder.
            in_use: paths of files that must stay.

        Raises:
            WorkFailedError: it can't be written; the message says why.
            DiskFullError: there is no room for it.
        """
        path = self._folder / f"{key}{_SUFFIX}"
        async with self._writing:
            if not await asyncio.to_thread(path.is_file):
                await asyncio.to_thread(self._make_room, model, in_use)
                await _write(model, path)
            await asyncio.to_thread(os.utime, path)
        return path

    def _make_room(self, model: Path, in_use: Container[str]) -> None:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for left in self._folder.glob("*.tmp"):  # of writers that were killed
            shutil.rmtree(left, ignore_errors=True)
            left.unlink(missing_ok=True)
        kept = sorted(self._folder.glob(f"*{_SUFFIX}"), key=lambda path: path.stat().st_mtime)
        for path in kept[: max(0, len(kept) - self._most_files + 1)]:
            if str(path) not in in_use:
                path.unlink()
        files = 1 if base_beside(model) is None else 2  # an adapter is merged into its base first
        needed = files * weight_bytes(model) * _ROOM
        if shutil.disk_usage(self._folder).free < needed:
            raise DiskFullError(f"a GGUF file of {needed / 1e9:.1f} GB has no room on the disk")


def key_of_folder(folder: Path) -> str:
    """Return a key for a folder as it is now: other files have another one."""
    seen = hashlib.sha256(str(folder.resolve()).encode())
    for path in sorted(folder.iterdir()):
        status = path.stat()
        seen.update(f"{path.name} {status.st_size} {status.st_mtime_ns}\n".encode())
    return f"folder-{seen.hexdigest()[:24]}"


def weight_bytes(folder: Path) -> int:
    """Return how many bytes the weights of a model's folder have."""
    frozen = base_beside(folder) or folder
    return sum(path.stat().st_size for path in frozen.glob("*.safetensors"))


async def _write(model: Path, path: Path) -> None:
    draft = path.with_suffix(".tmp")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", WRITER, str(model), str(draft),
        env=child_environment("gguf", 1),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip
    try:
        async with asyncio.timeout(WRITING_S):
            _, said = await process.communicate()
    except BaseException as error:
        with contextlib.suppress(ProcessLookupError):  # it has just ended
            process.kill()
        await process.wait()
        if isinstance(error, TimeoutError):
            words = f"no GGUF file of it: not written within {WRITING_S:.0f} s"
            raise WorkFailedError(words) from error
        raise
    if process.returncode:
        lines = said.decode("utf-8", "replace").strip().splitlines() or ["it says nothing"]
        raise WorkFailedError(f"no GGUF file of it: {printable(lines[-1])[:300]}")
    await asyncio.to_thread(draft.replace, path)
