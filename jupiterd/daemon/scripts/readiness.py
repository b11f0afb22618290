"""What this machine can do for a launch: is all there, which Python, which devices, which ports.

Owns the answer to that question. Starts nothing of the script; only a Python is asked its version.
Doesn't know who may ask (`script_service`).
"""

import asyncio
import errno
import os
import pwd
import sys
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from jupiterd.cluster.values.hardware import Hardware
from jupiterd.daemon.runtime.settings import Settings
from jupiterd.errors import DeviceBusyError, JupiterError, MalformedError, NotFoundError
from jupiterd.hardware.script_devices import ScriptDevices, script_devices
from jupiterd.processes.device_locks import holder_of
from jupiterd.processes.environment import PASSED_ON
from jupiterd.processes.script import free_ports, program
from jupiterd.processes.script_messages import MAX_HASHED_BYTES
from jupiterd.processes.script_plan import MAX_PER_NODE, MLX, ring_ports
from jupiterd.processes.scripts.python_probe import PythonVersion, is_python, python_version
from jupiterd.processes.scripts.variables import telling
from jupiterd.processor_limits import usable_cores
from jupiterd.rpc import script_pb2

MAX_PATH_CHARACTERS: Final = 4096
MAX_FILES: Final = 2000
MAX_PATHS_CHARACTERS: Final = 1 << 20
"""Of all files that are compared together."""

Request = script_pb2.PrepareScriptRequest


class Readiness:
    """What one machine answers."""

    def __init__(self, settings: Settings, hardware: Hardware) -> None:
        self._settings, self._hardware = settings, hardware
        self.system = hardware.system
        """`Linux` or `Darwin`."""

    async def prepared(
        self, request: Request, environment: Mapping[str, str] | None = None
    ) -> script_pb2.PrepareScriptReply:
        """Return what this machine can do for a launch.

        environment: of the shell that the ranks are started from; None: they are this daemon's

        Raises:
            NotFoundError: the script, its folder or its program isn't here.
            BadRouteError: the address is none of this machine's.
            RefusedError: its owner doesn't offer those devices.
            DeviceBusyError: a gang trains on one of them.
        """
        name = self._settings.name
        environment = host_environment() if environment is None else environment
        _check_size(request)
        found = await asyncio.to_thread(_program, name, request, environment.get("PATH"))
        digest, hashes = await asyncio.to_thread(_hashes, request)
        is_python_named = is_python(found)
        python = (
            await asyncio.to_thread(python_version, found) if is_python_named else PythonVersion("")
        )
        devices = self._devices(request, environment)
        processes = request.per_node or _default_processes(request.engine, devices)
        gpus = devices.used_by(processes)
        await _check_free(name, gpus)
        return script_pb2.PrepareScriptReply(
            processes=processes,
            cores=usable_cores(),
            ports=free_ports(request.host, 1 + ring_ports(request.engine, processes)),
            script_hash=digest,
            program=found,
            python_version=python.version,
            packages=python.packages,
            variables=telling(environment),
            file_hashes=hashes,
            gpus=gpus,
            visible_devices=devices.visible or "",
            hides_devices=devices.visible is not None,
            threads=self._settings.threads,
            keeps_parts=True,
        )

    def _devices(self, request: Request, environment: Mapping[str, str]) -> ScriptDevices:
        offered, name = self._settings.devices, self._settings.name
        gpus = self._hardware.gpus
        try:
            return script_devices(request.devices, gpus, request.engine, offered, environment)
        except JupiterError as error:
            raise type(error)(f"{name}: {error.message}", error.hint) from error


def host_environment() -> dict[str, str]:
    """Return what a script of another machine gets of this daemon's environment.

    `python` means the one that runs us, as it does at the machine that launches.
    """
    found = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    own = str(Path(sys.executable).parent)
    return {**found, "PATH": os.pathsep.join([own, found.get("PATH", os.defpath)])}


def file_hashes(folder: Path, files: tuple[str, ...]) -> list[bytes]:
    """Return the hash of each file, empty for one that can't be read."""
    return [_hash(folder / name) for name in files]


def _check_size(request: Request) -> None:
    texts = (request.program, request.script, request.folder, request.devices)
    if request.per_node > MAX_PER_NODE or max(map(len, texts)) > MAX_PATH_CHARACTERS:
        raise MalformedError("a launch asks for more than it can use")
    names = [PurePosixPath(name) for name in request.files]
    if len(names) > MAX_FILES or sum(map(len, request.files)) > MAX_PATHS_CHARACTERS:
        raise MalformedError("a launch has more files compared than any program has")
    if any(name.is_absolute() or ".." in name.parts for name in names):
        raise MalformedError("a file to compare lies outside the folder")
    if any("\0" in text for text in (*texts, *request.files)):
        raise MalformedError("a path holds a zero byte")


def _program(name: str, request: Request, path: str | None) -> str:
    """Return what is run, in full."""
    try:
        _check_there(name, request)
    except PermissionError as error:
        user = pwd.getpwuid(os.geteuid()).pw_name
        raise NotFoundError(
            f"{error.filename} on {name} can't be read by {user}, who runs jupiterd there",
            "let that user read it, or bring the folder along with --ship",
        ) from error
    if request.own_python:
        return sys.executable
    if not request.folder and "/" in request.program and not request.program.startswith("/"):
        return request.program  # it lies in the folder that travels
    found = program([request.program], request.folder, path)
    if found is not None:
        return found if "/" not in request.program else request.program
    if is_python(request.program):
        raise NotFoundError(
            f"there is no {request.program} on {name}",
            f"make that environment on {name} too, name another with --python PATH, or take "
            "the one that runs Jupiter on each machine: --python jupiter",
        )
    raise NotFoundError(
        f"script missing on {name}: there is no program {request.program}",
        "name one that is installed there too",
    )


def _check_there(name: str, request: Request) -> None:
    """Raise NotFoundError where the folder or the script isn't, PermissionError where it's shut."""
    hint = "bring it along with --ship, or say where it lies there: --workdir-map HERE=THERE"
    if request.folder and not Path(request.folder).is_dir():
        raise NotFoundError(f"script missing on {name}: there is no folder {request.folder}", hint)
    if request.folder and not os.access(request.folder, os.X_OK):
        raise PermissionError(errno.EACCES, "no entry", request.folder)
    if request.script and not Path(request.script).is_file():
        raise NotFoundError(f"script missing on {name}: there is no {request.script}", hint)


def _hashes(request: Request) -> tuple[bytes, list[bytes]]:
    """Return the script's hash, or nothing where none was named, and those of the files."""
    digest = _hash(Path(request.script)) if request.script else b""
    return digest, file_hashes(Path(request.folder), tuple(request.files))


def _hash(path: Path) -> bytes:
    from blake3 import blake3

    try:
        with path.open("rb") as file:
            return blake3(file.read(MAX_HASHED_BYTES)).digest()
    except OSError:
        return b""


async def _check_free(name: str, gpus: tuple[str, ...]) -> None:
    for uuid in gpus:
        if holder := await holder_of(uuid):
            raise DeviceBusyError(
                f"a GPU of {name} is held by {holder}",
                "wait until that has ended, or name others: --devices 1, --devices cpu",
            )


def _default_processes(engine: str, devices: ScriptDevices) -> int:
    """Return one process for each GPU that torch may use, and one where there is none."""
    return 1 if engine == MLX else max(1, len(devices.usable))
