"""The engines of this machine: which models are loaded, and answers from them.

Owns the engines' lives: one is loaded with the first request or by `load`, answers many requests at
a time, is unloaded when nobody has asked for ten minutes, gives way to a training on the same GPU,
and is begun anew after it died. Doesn't know names of models or other nodes (`router`), nor how an
engine is started (`engines.engine_loading`).
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from jupiterd import memory_limits
from jupiterd.adapter_folder import base_beside
from jupiterd.cluster.serving.answer_request import AnswerRequest
from jupiterd.cluster.serving.engine_choice import AUTO, CUDA
from jupiterd.cluster.serving.engine_life import IDLE_S, Phase, Restarts
from jupiterd.cluster.serving.engine_memory import has_room
from jupiterd.cluster.serving.served_model import ServedModel
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.daemon.runtime.state_dir import StateDir
from jupiterd.daemon.serving.answering import Answer
from jupiterd.daemon.serving.engines.engine_answer import answered, fitted_to_template
from jupiterd.daemon.serving.engines.engine_devices import DeviceUse, EngineDevices
from jupiterd.daemon.serving.engines.engine_loading import (
    EngineLoading,
    Room,
    RunningEngine,
)
from jupiterd.daemon.serving.engines.gguf_cache import GgufCache, key_of_folder
from jupiterd.daemon.serving.engines.load_failures import LoadFailures
from jupiterd.daemon.serving.engines.model_files import ModelFiles, check_files, model_files
from jupiterd.daemon.serving.engines.pooled_engine import PooledEngine
from jupiterd.errors import (
    BusyError,
    JupiterError,
    MissingExtraError,
    ModelNotServedError,
    WorkFailedError,
)
from jupiterd.hardware import nvidia
from jupiterd.ids import short
from jupiterd.model_folder import check_links
from jupiterd.processes.thread_shares import ThreadShares
from jupiterd.store.artifacts import ArtifactStore

log = logging.getLogger(__name__)

FULL_RETRY_S: Final = 10.0


@dataclass(frozen=True)
class PoolOptions:
    """What the owner of a machine says of its engines."""

    wanted: Callable[[], str] = lambda: AUTO
    """Returns the engine that is forced, asked whenever a model is loaded; `auto`: none."""
    idle_s: float = IDLE_S
    """An engine that nobody has asked for so long is unloaded."""


USUAL: Final = PoolOptions()


class EnginePool:
    """Answers with the models whose files are on this machine."""

    def __init__(
        self,
        state: StateDir,
        store: ArtifactStore,
        devices: EngineDevices,
        threads: ThreadShares,
        group: asyncio.TaskGroup,
        options: PoolOptions = USUAL,
    ) -> None:
        """Begin without engines; threads: those of all workers of this daemon."""
        self._store, self._devices, self._threads = store, devices, threads
        self._group, self._idle_s = group, options.idle_s
        self._scratch = state.scratch
        cache = GgufCache(state.engines)
        self._loading = EngineLoading(cache, state.logs, options.wanted)
        self._engines: dict[str, PooledEngine] = {}
        self._restarts: dict[str, Restarts] = {}
        self._failures = LoadFailures()
        self._making_room = asyncio.Lock()

    @asynccontextmanager
    async def answering(self, model: ServedModel, request: AnswerRequest) -> AsyncGenerator[Answer]:
        """Begin an answer, see `AnswersRequests`; the model is loaded first where it isn't."""
        engine = await self._engine(model)
        fitted = fitted_to_template(engine.model, request)
        left_out = "" if fitted is request else "tools"
        with engine.answer():
            running = await engine.ready()
            with engine.computing():
                async with answered(running, engine.counter, fitted) as answer:
                    yield replace(answer, left_out=left_out)

    async def load(self, model: ServedModel) -> None:
        """Load a model and keep it until `unload`; return once it can answer.

        One that couldn't be loaded just now is tried again.

        Raises:
            JupiterError: it can't be loaded.
        """
        engine = await self._engine(model, is_tried_again=True)
        engine.held.add(model)
        try:
            await engine.ready()
        except BaseException:
            engine.held.discard(model)
            raise

    async def unload(self, model: ServedModel) -> None:
        """Give a model up; what it is writing ends, unless it is kept by another name."""
        for engine in list(self._engines.values()):
            if model in engine.names:
                engine.held.discard(model)
                engine.names.discard(model)
                if not engine.names:
                    engine.end()
                    await engine.gone.wait()

    def ready(self) -> tuple[ServedModel, ...]:
        """Return the models that can answer at once."""
        return self._in(Phase.READY)

    def loading(self) -> tuple[ServedModel, ...]:
        """Return the models that are being loaded."""
        return self._in(Phase.LOADING)

    def running(self, model: ServedModel) -> RunningEngine | None:
        """Return a model's engine, if it can answer; for figures, and for tests."""
        found = (each for each in self._engines.values() if model in each.names)
        return next((each.running for each in found if each.is_usable), None)

    async def close(self) -> None:
        """End all engines; return when nothing of them is left."""
        engines = list(self._engines.values())
        for engine in engines:
            engine.end()
        for engine in engines:
            await engine.gone.wait()

    def _in(self, phase: Phase) -> tuple[ServedModel, ...]:
        chosen = (each for each in self._engines.values() if each.life.phase is phase)
        return tuple(name for each in chosen if each.is_usable for name in each.names)

    async def _engine(self, model: ServedModel, *, is_tried_again: bool = False) -> PooledEngine:
        """Return a model's engine, a new one where there is none that takes requests."""
        files = await asyncio.to_thread(self._files, model)
        if is_tried_again:
            self._failures.forget(files.key)
        if self._usable(files) is None:
            self._failures.check(files.key)
            await self._check(files)
        engine = self._usable(files) or self._begin(files)  # another may have begun it meanwhile
        engine.names.add(model)
        return engine

    def _usable(self, files: ModelFiles) -> PooledEngine | None:
        engine = self._engines.get(files.key)
        return engine if engine is not None and engine.is_usable else None

    async def _check(self, files: ModelFiles) -> None:
        """Raise CorruptWeightsError, and keep it in mind, where no engine could load a model."""
        try:
            await asyncio.to_thread(check_files, files)
        except JupiterError as error:
            self._failures.note(files, error)
            raise

    def _files(self, model: ServedModel) -> ModelFiles:
        if model.artifact is None:
            folder = Path(model.folder or "")
            if not model.folder or not folder.is_dir():
                raise ModelNotServedError(f"there is no folder {model.folder}")
            try:
                if not self._was_joined_here(folder):
                    check_links(folder)
                return model_files(key_of_folder(folder), model.name, folder)
            except OSError as error:
                raise ModelNotServedError(f"{folder} can't be read: {error.strerror}") from error
        if not self._store.holds(model.artifact):
            raise ModelNotServedError(
                f"{model.name} ({short(model.artifact)}) isn't on this machine",
                "it is fetched from a machine that has it as soon as one can be reached",
            )
        return model_files(model.artifact, model.name, self._store.model_path(model.artifact))

    def _was_joined_here(self, folder: Path) -> bool:
        """Say whether jupiterctl has made it of an adapter and its base, both of which it checks.

        A stranger who packs such a folder can't put it there.
        """
        is_here = folder.resolve().is_relative_to(self._scratch.resolve())
        return is_here and base_beside(folder) is not None

    def _begin(self, files: ModelFiles) -> PooledEngine:
        restarts = self._restarts.get(files.key, Restarts())
        wait_s = restarts.not_before_s - now_s()
        if wait_s > 0:
            raise BusyError(
                f"{files.name} can't be loaded: {restarts.reason}",
                "it is tried again by itself; logs/ of the state folder has its output",
                wait_s,
            )
        engine = PooledEngine(files, self._threads)
        before = self._engines.get(files.key)
        if before is not None:
            engine.names |= before.held
            engine.held |= before.held
        self._engines[files.key] = engine
        self._group.create_task(self._live(engine), name=f"engine {files.key[:16]}")
        return engine

    async def _live(self, engine: PooledEngine) -> None:
        """Load an engine, keep it as long as it is wanted, and clear up after it."""
        reason, error = "", None
        try:
            async with AsyncExitStack() as stack:
                use = await stack.enter_async_context(self._devices.used(engine.model.name))
                running = await self._loaded(engine, use, stack)
                if running is not None:
                    reason = await self._until_over(engine, running, use)
        except BusyError as failure:
            error = failure
        except Exception as failure:  # noqa: BLE001 - whatever a stranger's files lead to
            error = _told(failure, engine.model.name)
            reason = error.message
        finally:
            engine.ended(reason, error)
            await engine.counter.close()
            self._forget(engine, reason, error)
            engine.gone.set()

    async def _loaded(
        self, engine: PooledEngine, use: DeviceUse, stack: AsyncExitStack
    ) -> RunningEngine | None:
        """Return the loaded engine; None where it isn't wanted any more."""
        engine.device = use.kind
        with self._threads.seat() as seat:
            room = Room(
                use=use,
                threads=seat.threads,
                free_bytes=_free_bytes(use),
                reserve=lambda size_bytes: self._reserve(engine, use, size_bytes),
                files_in_use=self._files_in_use(),
            )
            loading = asyncio.ensure_future(
                stack.enter_async_context(self._loading.loaded(engine.model, room))
            )
            over = asyncio.ensure_future(engine.over.wait())
            try:
                await asyncio.wait({loading, over}, return_when=asyncio.FIRST_COMPLETED)
                if not loading.done():
                    return None
                engine.loaded(running := loading.result())
            finally:
                over.cancel()
                loading.cancel()
                await asyncio.wait({loading, over})
        extra = {"model": engine.model.name, "engine": running.words}
        log.info("engine_ready", extra=extra)
        return running

    async def _until_over(
        self, engine: PooledEngine, running: RunningEngine, use: DeviceUse
    ) -> str:
        """Wait until an engine is to end, or has ended; return why, empty where it was told to."""
        over = asyncio.ensure_future(engine.over.wait())
        waits: set[asyncio.Future[object]] = {over}  # pyright: ignore[reportAssignmentType]
        recalled = asyncio.ensure_future(_recalled(use))
        waits.add(recalled)  # pyright: ignore[reportArgumentType]
        try:
            while True:
                everything = {*waits, running.process.ended}
                wait_s = self._idle_left_s(engine)
                done, _ = await asyncio.wait(
                    everything, timeout=wait_s, return_when=asyncio.FIRST_COMPLETED
                )
                if running.process.ended in done:
                    return running.process.ended.result()
                if recalled in done:
                    running.process.end_words = f"its GPU is wanted by {recalled.result()}"
                elif over in done:  # whoever reads an answer hears this, and no signal's name
                    running.process.end_words = "its model was unloaded"
                if done or self._is_idle(engine):
                    return ""
        finally:
            for wait in waits:
                wait.cancel()

    def _idle_left_s(self, engine: PooledEngine) -> float:
        """Return after how long to look again whether an engine is idle."""
        at_s = engine.life.unload_at_s(self._idle_s)
        return self._idle_s if at_s is None or engine.held else max(0.0, at_s - now_s())

    def _is_idle(self, engine: PooledEngine) -> bool:
        at_s = engine.life.unload_at_s(self._idle_s)
        return at_s is not None and not engine.held and now_s() >= at_s

    def _forget(self, engine: PooledEngine, reason: str, error: JupiterError | None) -> None:
        key = engine.model.key
        if self._engines.get(key) is engine:
            del self._engines[key]
        if engine.ready_s is None:
            if error is not None and not isinstance(error, BusyError | MissingExtraError):
                self._failures.note(engine.model, error)
            return
        before = self._restarts.pop(key, Restarts())
        after = before.after(engine.life, engine.ready_s)
        if after.failures:
            self._restarts[key] = after
            extra = {"model": engine.model.name, "reason": reason}
            log.warning("engine_lost", extra=extra)

    async def _reserve(self, engine: PooledEngine, use: DeviceUse, size_bytes: int) -> None:
        """See that an engine has room, and end idle ones for it.

        Raises:
            BusyError: there is none, and those that have it are answering.
        """
        async with self._making_room:
            engine.needed_bytes = size_bytes
            while not has_room(size_bytes, _free_bytes(use), self._promised_bytes(engine)):
                idle = [each for each in self._engines.values() if each.is_idle]
                if not idle:
                    free = _free_bytes(use)
                    raise BusyError(
                        f"{engine.model.name} needs {_gib(size_bytes)} of memory, and "
                        f"{_gib(free)} is free",
                        "end what else uses it, or let another machine serve the model",
                        FULL_RETRY_S,
                    )
                oldest = min(idle, key=lambda each: each.life.used_s)
                oldest.end()
                await oldest.gone.wait()

    def _promised_bytes(self, engine: PooledEngine) -> int:
        """Return what the other engines that load will take."""
        return sum(
            each.needed_bytes
            for each in self._engines.values()
            if each is not engine and each.life.phase is Phase.LOADING
        )

    def _files_in_use(self) -> frozenset[str]:
        found = (each.running for each in self._engines.values())
        return frozenset(running.file for running in found if running is not None)


async def _recalled(use: DeviceUse) -> str:
    """Return who wants an engine's GPU, as soon as anybody does."""
    if use.loan is None:
        await asyncio.Event().wait()  # nobody can
        return ""
    return await use.loan.recalled()


def _free_bytes(use: DeviceUse) -> int:
    """Return how much memory nobody uses where an engine computes."""
    if use.kind == CUDA and (free := nvidia.free_bytes(use.uuid)):
        return free
    return memory_limits.free_memory_bytes()


def _told(failure: Exception, name: str) -> JupiterError:
    """Return the error for people; one that nobody foresaw is written to the log."""
    if isinstance(failure, JupiterError):
        return failure
    if not isinstance(failure, OSError):
        log.error("engine_failed", exc_info=failure, extra={"model": name})
    return WorkFailedError(f"{name} can't be loaded: {failure!r}")


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / (1 << 30):.1f} GiB"
