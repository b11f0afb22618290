"""From a model's folder to an engine that has answered once.

Owns the way: which engines can, in which order they are tried, what each is started with, and when
it is ready. Doesn't know how many engines there are, or who asks them. An engine is ready when it
has written a token: some listen long before they have read the weights.
"""

import asyncio
import logging
import secrets
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Container
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from jupiterd.adapter_folder import base_beside
from jupiterd.cluster.serving.engine_choice import (
    CPU,
    CUDA,
    LLAMA,
    MLX,
    EngineChoice,
    choose_engines,
    none_loads,
)
from jupiterd.cluster.serving.engine_command import (
    EngineCommand,
    EngineOrder,
    engine_command,
)
from jupiterd.cluster.serving.engine_errors import told_error
from jupiterd.cluster.serving.engine_memory import CachePlan, needed_bytes, plan_cache
from jupiterd.daemon.serving.engines.engine_devices import DeviceUse
from jupiterd.daemon.serving.engines.engine_hindrances import hindrances
from jupiterd.daemon.serving.engines.engine_process import (
    EngineProcess,
    child_environment,
    started_engine,
)
from jupiterd.daemon.serving.engines.gguf_cache import GgufCache, weight_bytes
from jupiterd.daemon.serving.engines.installed_engines import LLAMA_PACKAGE, llama_program
from jupiterd.daemon.serving.engines.model_files import ModelFiles, check_shapes
from jupiterd.errors import (
    DiskFullError,
    EngineLostError,
    JupiterError,
    WorkFailedError,
)
from jupiterd.hardware.cuda import VISIBLE
from jupiterd.hardware.probe import installed
from jupiterd.protocol.engine_key import KEY_VARIABLE
from jupiterd.weights_header import read_weights

if TYPE_CHECKING:
    from jupiterd.daemon.serving.engines.engine_client import EngineClient

log = logging.getLogger(__name__)

LOADING_S: Final = 900.0
FIRST_LOOK_S: Final = 0.05
LAST_LOOK_S: Final = 1.0
_LATER: Final = 1.2
"""How much longer each wait for an engine is than the one before."""
_BYTES_OF = {LLAMA: 2, MLX: 4}
"""Of a parameter where it isn't as in the file: MLX's on a processor (`workers.serving`)."""

_KEY_VARIABLES = (KEY_VARIABLE, "LLAMA_API_KEY", "VLLM_API_KEY")
"""Of our launchers, and of the programs of others."""

Reserve = Callable[[int], Awaitable[None]]
"""Sees that so many bytes are free; raises BusyError where they can't be."""


@dataclass(frozen=True)
class RunningEngine:
    """An engine that answers."""

    engine: str
    process: EngineProcess
    client: "EngineClient"
    model_field: str
    context_tokens: int
    words: str
    """Which engine it is, and why not the others."""
    file: str
    """What it has loaded."""


@dataclass(frozen=True)
class Room:
    """What an engine is given of the machine."""

    use: DeviceUse
    threads: int
    free_bytes: int
    reserve: Reserve
    files_in_use: Container[str] = ()


class EngineLoading:
    """Loads models on this machine."""

    def __init__(self, cache: GgufCache, logs: Path, wanted: Callable[[], str]) -> None:
        """wanted: returns the engine that the owner forces, or `auto`."""
        self._cache, self._logs, self._wanted = cache, logs, wanted

    async def choice(self, model: ModelFiles, device: str) -> EngineChoice:
        """Return which engines can answer; raises MissingExtraError where none can."""
        has_adapter = base_beside(model.folder) is not None
        found = await asyncio.to_thread(hindrances, model.config, device, has_adapter=has_adapter)
        return choose_engines(device, found, self._wanted())

    @asynccontextmanager
    async def loaded(self, model: ModelFiles, room: Room) -> AsyncGenerator[RunningEngine]:
        """Start the first engine that comes to answer; leaving the context ends it.

        Raises:
            MissingExtraError: none is there that could; the message has each one's reason.
            WorkFailedError: none comes to answer; likewise.
            CorruptWeightsError: the model's weights contradict its configuration.
            BusyError: there is no room for it now.
        """
        choice = await self.choice(model, room.use.kind)
        passed = list(choice.passed_over)
        async with AsyncExitStack() as stack:
            for engine in choice.engines:
                starting = self._started(engine, model, room, passed)
                try:
                    running = await stack.enter_async_context(starting)
                except (WorkFailedError, DiskFullError, EngineLostError) as error:
                    extra = {"model": model.name, "engine": engine, "reason": error.message}
                    log.warning("engine_not_loaded", extra=extra)
                    passed.append((engine, error.message))
                    await asyncio.to_thread(check_shapes, model)  # the others would fail as well
                    continue
                yield running
                return
        raise none_loads(model.name, tuple(passed), _log_name(model))

    @asynccontextmanager
    async def _started(
        self, engine: str, model: ModelFiles, room: Room, passed: list[tuple[str, str]]
    ) -> AsyncGenerator[RunningEngine]:
        size_bytes = await asyncio.to_thread(_loaded_bytes, engine, model.folder, room.use.kind)
        plan = plan_cache(model.config, size_bytes, room.free_bytes)
        await room.reserve(needed_bytes(engine, size_bytes, plan))
        order = await self._order(engine, model, room, plan)
        command = engine_command(order, sys.executable)
        descriptors = () if room.use.descriptor is None else (room.use.descriptor,)
        log_path = self._logs / _log_name(model)
        key = secrets.token_urlsafe()
        environment = _environment(engine, room, key)
        async with started_engine(command, environment, log_path, descriptors) as process:
            client = await _ready(process, command, key)
            try:
                words = EngineChoice((engine,), tuple(passed)).words
                yield RunningEngine(
                    engine, process, client, command.model_field,
                    plan.context_tokens, words, order.model,
                )  # fmt: skip
            finally:
                await client.close()

    async def _order(
        self, engine: str, model: ModelFiles, room: Room, plan: CachePlan
    ) -> EngineOrder:
        path = model.folder
        if engine == LLAMA:
            path = await self._cache.file(model.key, model.folder, room.files_in_use)
        package = engine == LLAMA and bool(installed((LLAMA_PACKAGE,)))
        return EngineOrder(
            engine=engine,
            model=str(path),
            context_tokens=plan.context_tokens,
            answers=plan.answers,
            threads=room.threads,
            device=room.use.kind,
            cache_bytes=plan.size_bytes,
            program="" if package or engine != LLAMA else llama_program(),
        )


def _log_name(model: ModelFiles) -> str:
    return f"engine-{model.key[:16]}.log"


def _loaded_bytes(engine: str, folder: Path, device: str) -> int:
    """Return what the weights take once they are loaded."""
    each = _BYTES_OF.get(engine) if engine != MLX or device == CPU else None
    return each * read_weights(folder).parameters if each else weight_bytes(folder)


def _environment(engine: str, room: Room, key: str) -> dict[str, str]:
    environment = child_environment(engine, room.threads) | dict.fromkeys(_KEY_VARIABLES, key)
    if room.use.kind == CUDA and room.use.uuid:
        environment[VISIBLE] = room.use.uuid
    return environment


async def _ready(process: EngineProcess, command: EngineCommand, key: str) -> "EngineClient":
    """Return the connections to an engine once it has written a token.

    Raises:
        WorkFailedError: it ended, or takes too long; the message has its last words.
    """
    try:
        async with asyncio.timeout(LOADING_S):
            client = await _client(process, key)
            try:
                await _warm_up(process, client, command)
            except BaseException:
                await client.close()
                raise
            return client
    except TimeoutError as error:
        raise WorkFailedError(f"it wasn't ready within {LOADING_S:.0f} s") from error


async def _client(process: EngineProcess, key: str) -> "EngineClient":
    from jupiterd.daemon.serving.engines.engine_client import EngineClient

    wait_s = FIRST_LOOK_S
    while not process.ended.done():
        for port in await process.ports():
            client, is_healthy = EngineClient(port, key), False
            try:
                is_healthy = await client.is_healthy()
            finally:
                if not is_healthy:
                    await client.close()
            if is_healthy:
                return client
        await asyncio.wait({process.ended}, timeout=wait_s)
        wait_s = min(LAST_LOOK_S, wait_s * _LATER)
    raise WorkFailedError(process.ended.result())


async def _warm_up(process: EngineProcess, client: "EngineClient", command: EngineCommand) -> None:
    body = {"model": command.model_field, "prompt": "a", "max_tokens": 1, "stream": False}
    try:
        async with client.asked("/v1/completions", body) as reply:
            said = b"".join([chunk async for chunk in reply.chunks])
    except EngineLostError as error:
        await asyncio.wait({process.ended}, timeout=1.0)
        why = process.ended.result() if process.ended.done() else error.message
        raise WorkFailedError(why) from error
    if reply.status != 200:
        failure: JupiterError = told_error("it", reply.status, said)
        raise WorkFailedError(failure.message)
