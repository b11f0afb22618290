"""Keeps the model loaded here that a name means, such as `promoted`.

Owns the loop that looks at the ledger and the engines, does what `promotion_follow` says, and tells
a request which model takes it. Doesn't decide the steps, or run an engine.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias, TypeVar

from jupiterd.cluster.ledger.state import State
from jupiterd.cluster.serving.promotion_follow import (
    PROMOTED,
    Deed,
    Engines,
    Following,
    Load,
    Notice,
    Unload,
    step,
    stopped,
)
from jupiterd.cluster.serving.served_model import ServedModel
from jupiterd.daemon.catalog.model_catalog import models_of
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.daemon.serving.local_engines import HoldsEngines
from jupiterd.daemon.serving.named_models import promoted_now
from jupiterd.errors import (
    BusyError,
    CorruptArtifactError,
    JupiterError,
    MissingExtraError,
    ModelNotServedError,
    WorkFailedError,
    from_wire,
)
from jupiterd.ids import ArtifactId, short

log = logging.getLogger(__name__)

LOOK_S: Final = 0.2
"""Between two looks while a model is loaded, or answers end on one that goes."""

IDLE_LOOK_S: Final = 2.0
"""The same at other times: an engine may have died."""

READY_WITHIN_S: Final = 300.0
"""So long a request waits for the first model to be loaded."""


Found = TypeVar("Found")
Meaning: TypeAlias = Callable[[State], ArtifactId | None]


class KnowsPromotions(Protocol):
    """The ledger, as far as promotions go; `Replica` is it."""

    version: int

    def derived(self, work_out: Callable[[State], Found]) -> Found:
        """Return what is worked out of what is agreed on."""
        ...

    async def changed_since(self, version: int) -> int:
        """Return the version once it is another one."""
        ...


def promoted_in(state: State) -> ArtifactId | None:
    """Return the artifact that `promoted` means; None: nothing was promoted yet."""
    found = promoted_now(state, models_of(state))
    return None if found is None else found.artifact


@dataclass(frozen=True)
class FollowedName:
    """A name that clients use."""

    name: str
    meaning: Meaning
    """What it means, by what is agreed on; None: nothing yet."""


class PromotionFollower:
    """What a name means on this node, while that is served."""

    def __init__(
        self,
        ledger: KnowsPromotions,
        engines: HoldsEngines,
        running: Callable[[ServedModel], int],
        bring: Callable[[ArtifactId], Awaitable[object]],
        group: asyncio.TaskGroup,
        followed: FollowedName | None = None,
    ) -> None:
        """Take the ledger, the engines, the answers that a model has here, and the store."""
        self._group = group
        followed = followed or FollowedName(PROMOTED, promoted_in)
        self._name, self._meaning = followed.name, followed.meaning
        self._ledger, self._engines = ledger, engines
        self._running, self._bring = running, bring
        self._now = Following()
        self._is_wanted = False
        self._woken = asyncio.Event()
        self._stepped = asyncio.Condition()
        self._loads: dict[ArtifactId, asyncio.Task[None]] = {}
        self._failed: dict[ArtifactId, str] = {}
        self._errors: dict[ArtifactId, JupiterError] = {}

    @property
    def is_serving(self) -> bool:
        """Say whether this node serves the name."""
        return self._is_wanted

    @property
    def standing(self) -> Following:
        """Where this node stands."""
        return self._now

    @property
    def trouble(self) -> str:
        """Why the promoted model isn't the one that answers; empty where it is, or is loaded."""
        return self._now.trouble(self._ledger.derived(self._meaning)) if self._is_wanted else ""

    def serve(self, *, is_wanted: bool) -> None:
        """Serve the name from now on, or not any more."""
        self._is_wanted = is_wanted
        self._woken.set()

    async def meant(self, model: ServedModel) -> ServedModel:
        """Return the model that a new request goes to.

        Raises:
            BusyError: the first one isn't loaded in time.
            ModelNotServedError: nothing was ever promoted.
            JupiterError: it can't be loaded.
        """
        if model.name != self._name or not self._is_wanted:
            return model
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(READY_WITHIN_S), self._stepped:
                await self._stepped.wait_for(lambda: self._now.serving or self._cannot())
        if serving := self._now.serving:
            return self._model(serving)
        self._refuse()
        raise BusyError(f"the {self._name} model is still being loaded", retry_after_s=10.0)

    async def run(self) -> None:
        """Follow promotions for ever; nothing is done as long as the name isn't served."""
        try:
            while True:
                if self._is_wanted or self._now.held:
                    await self._look()
                await self._wait()
        finally:
            for task in self._loads.values():
                task.cancel()

    async def _look(self) -> None:
        self._now, deeds = self._next()
        for deed in deeds:
            await self._do(deed)
        async with self._stepped:
            self._stepped.notify_all()

    def _next(self) -> tuple[Following, tuple[Deed, ...]]:
        if not self._is_wanted:
            return stopped(self._now)
        failed, self._failed = self._failed, {}
        ready = {model.artifact for model in self._engines.ready() if model.name == self._name}
        loaded = frozenset(each for each in ready if each is not None and each not in self._loads)
        running = {each: self._running(self._model(each)) for each in self._now.held}
        engines = Engines(loaded, failed, running)
        return step(self._now, now_s(), self._ledger.derived(self._meaning), engines)

    async def _do(self, deed: Deed) -> None:
        match deed:
            case Load(artifact):
                self._loads[artifact] = self._begin(artifact)
            case Unload(artifact):
                if task := self._loads.pop(artifact, None):
                    task.cancel()
                    await asyncio.gather(task, return_exceptions=True)
                await self._engines.unload(self._model(artifact))
            case Notice(event, artifact, reason):
                level = logging.WARNING if event.endswith("failed") else logging.INFO
                log.log(level, event, extra={"artifact": short(artifact), "reason": reason})

    def _begin(self, artifact: ArtifactId) -> "asyncio.Task[None]":
        return self._group.create_task(self._load(artifact), name=f"load {short(artifact)}")

    async def _load(self, artifact: ArtifactId) -> None:
        try:
            await self._bring(artifact)
            await self._engines.load(self._model(artifact))
            self._errors.clear()
        except JupiterError as error:
            self._failed[artifact] = str(error)
            self._errors = {artifact: error}
        except Exception as error:  # whatever a stranger's files lead to: the daemon goes on
            log.exception("model_not_loaded", extra={"artifact": short(artifact)})
            self._failed[artifact] = repr(error)
        finally:
            self._loads.pop(artifact, None)
            self._woken.set()

    async def _wait(self) -> None:
        """Return once there is reason to look again."""
        is_moving = bool(self._now.loading or self._now.ending)
        wait_s = (LOOK_S if is_moving else IDLE_LOOK_S) if self._is_wanted else None
        changed = asyncio.ensure_future(self._ledger.changed_since(self._ledger.version))
        woken = asyncio.ensure_future(self._woken.wait())
        waiting = {changed, woken} if self._is_wanted else {woken}
        try:
            await asyncio.wait(waiting, timeout=wait_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            changed.cancel()
            woken.cancel()
            self._woken.clear()

    def _model(self, artifact: ArtifactId) -> ServedModel:
        return model_of(artifact, self._name)

    def _cannot(self) -> bool:
        """Say whether no model is to come soon."""
        wanted = self._ledger.derived(self._meaning)
        return not self._is_wanted or wanted is None or bool(self._now.trouble(wanted))

    def _refuse(self) -> None:
        wanted = self._ledger.derived(self._meaning)
        if wanted is None:
            raise ModelNotServedError(
                "no model is promoted" if self._name == PROMOTED else f"no model is {self._name}"
            )
        if reason := self._now.trouble(wanted):
            if (error := self._errors.get(wanted)) is not None and _lasts(error):
                raise from_wire(error.code, error.message, error.hint)
            raise BusyError(f"the {self._name} model can't be loaded: {reason}", retry_after_s=15.0)


def _lasts(error: JupiterError) -> bool:
    """Say whether waiting won't mend it that a model can't be loaded."""
    is_of_files = isinstance(error, CorruptArtifactError | MissingExtraError)
    return is_of_files or type(error) is WorkFailedError  # not its kin, such as lack of memory


def model_of(artifact: ArtifactId, name: str = PROMOTED) -> ServedModel:
    """Return a model that a name means, as engines know it."""
    return ServedModel(name, artifact)
