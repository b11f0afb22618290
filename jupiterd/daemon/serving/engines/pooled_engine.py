"""One model's engine in the pool, from the first request to its end.

Owns its state: where it is in its life, who holds it, and who waits for it to be ready. Doesn't
know how it is started or ended (`engine_pool`).
"""

import asyncio
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from jupiterd.cluster.serving.engine_choice import CPU
from jupiterd.cluster.serving.engine_life import EngineLife, Phase, begins
from jupiterd.cluster.serving.served_model import ServedModel
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.daemon.serving.engines.engine_loading import RunningEngine
from jupiterd.daemon.serving.engines.model_files import ModelFiles
from jupiterd.daemon.serving.engines.prompt_counter import PromptCounter
from jupiterd.errors import EngineLostError, JupiterError
from jupiterd.processes.thread_shares import ThreadShares


@dataclass(eq=False)
class PooledEngine:
    """An engine that is loaded, or being loaded."""

    model: ModelFiles
    threads: ThreadShares
    life: EngineLife = field(default_factory=lambda: begins(now_s()))
    names: set[ServedModel] = field(default_factory=set[ServedModel])
    """By which it was asked for."""
    held: set[ServedModel] = field(default_factory=set[ServedModel])
    """By which it is kept, whether anybody asks or not."""
    device: str = CPU
    needed_bytes: int = 0
    """That it takes, or is about to."""
    ready_s: float | None = None
    """When it was ready."""
    over: asyncio.Event = field(default_factory=asyncio.Event)
    """It is to end."""
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    """Nothing of it is left."""
    running: RunningEngine | None = None

    def __post_init__(self) -> None:
        """Begin without a process; whoever asks waits for it."""
        self.counter = PromptCounter(self.model.folder)
        self._ready: asyncio.Future[RunningEngine] = asyncio.get_running_loop().create_future()
        self._ready.add_done_callback(_looked_at)
        self._seat = ExitStack()
        self._written = 0

    @property
    def is_usable(self) -> bool:
        """Say whether a request may go to it: its process hasn't ended, and it isn't to end."""
        has_ended = self.running is not None and self.running.process.ended.done()
        return self.life.takes_requests and not has_ended and not self.over.is_set()

    @property
    def is_idle(self) -> bool:
        """Say whether it may be ended for the sake of another."""
        return self.life.phase is Phase.READY and not self.life.answers and not self.held

    async def ready(self) -> RunningEngine:
        """Return the running engine, once it is; raises JupiterError if it comes to nothing."""
        return await asyncio.shield(self._ready)

    def loaded(self, running: RunningEngine) -> None:
        """Take note that it can answer."""
        self.running, self.ready_s = running, now_s()
        self.life = self.life.loaded(self.ready_s)
        self._ready.set_result(running)

    def ended(self, reason: str, error: JupiterError | None = None) -> None:
        """Take note that it has ended; reason: empty where it was told to."""
        self.life = self.life.died(now_s(), reason)
        if not self._ready.done():
            told = error or EngineLostError(f"{self.model.name} was unloaded before it was ready")
            self._ready.set_exception(told)

    def end(self) -> None:
        """Have it end: at once without answers, else as they are cut."""
        self.over.set()

    @contextmanager
    def answer(self) -> Generator[None]:
        """Count one answer, whether it is written or waits for the engine to be ready."""
        self.life = self.life.begun()
        try:
            yield
        finally:
            self.life = self.life.finished(now_s())
            if self.life.phase is Phase.ENDED:
                self.end()

    @contextmanager
    def computing(self) -> Generator[None]:
        """Have a share of the cores as long as anything is written on them.

        Not before the engine is ready: it is started with the share that it has while it loads, and
        an answer that waits for it must not halve that.
        """
        if self.device == CPU and not self._written:
            self._seat.enter_context(self.threads.seat())
        self._written += 1
        try:
            yield
        finally:
            self._written -= 1
            if not self._written:
                self._seat.close()


def _looked_at(ready: "asyncio.Future[RunningEngine]") -> None:
    """Ask for the error, so that Python doesn't print it where nobody waits any more."""
    if not ready.cancelled():
        ready.exception()
