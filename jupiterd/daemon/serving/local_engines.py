"""Answers of this node's own engines, counted.

Owns what runs and waits here for each model, how fast it is written, that a model's files are
fetched before an engine loads it, and that the name `promoted` means the model that takes new
requests. Doesn't know how an engine is run (`HoldsEngines`), or which node is asked (`router`).
"""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Protocol

from jupiterd.cluster.serving.answer_request import AnswerRequest
from jupiterd.cluster.serving.served_model import ServedModel
from jupiterd.cluster.serving.serving_rows import ModelLoad
from jupiterd.cluster.serving.token_meter import TokenMeter, tokens_in
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.daemon.serving.answering import Answer, AnswersRequests
from jupiterd.errors import BusyError, EngineLostError
from jupiterd.ids import ArtifactId


class HoldsEngines(AnswersRequests, Protocol):
    """Loads models into engines, on demand as well; `EnginePool` is it in a daemon."""

    async def load(self, model: ServedModel) -> None:
        """Have an engine load a model whose files are here, and return once it can answer.

        It stays until `unload`. Raises JupiterError where that can't be.
        """
        ...

    async def unload(self, model: ServedModel) -> None:
        """Give a model up; what it is writing ends. Nothing happens where it isn't loaded."""
        ...

    def ready(self) -> Sequence[ServedModel]:
        """Return the models that can answer at once."""
        ...

    def loading(self) -> Sequence[ServedModel]:
        """Return the models that engines load now."""
        ...


class FollowsPromotions(Protocol):
    """Says what `promoted` means here."""

    async def meant(self, model: ServedModel) -> ServedModel:
        """Return the model that a new request goes to; raises JupiterError where there is none."""
        ...


@dataclass
class Use:
    """What one model does here."""

    queued: int = 0
    running: int = 0
    meter: TokenMeter = field(default_factory=TokenMeter)


@dataclass
class Totals:
    """Since this daemon began."""

    answers: int = 0
    """That came to their end, whole or cut by whoever asked."""
    refused: int = 0
    """Requests that no engine took."""
    lost: int = 0
    """Of them those whose engine died."""
    tokens: int = 0

    def by_outcome(self) -> dict[str, int]:
        """Return how many requests ended in each way."""
        return {"answered": self.answers - self.lost, "lost": self.lost, "refused": self.refused}


class AnswerCounts:
    """What each model does here."""

    def __init__(self) -> None:
        self._uses: dict[ServedModel, Use] = {}
        self.totals = Totals()

    def use(self, model: ServedModel) -> Use:
        """Return what is counted of a model, from now on if it wasn't."""
        return self._uses.setdefault(model, Use())

    def seen(self, model: ServedModel) -> Use:
        """Return what was counted of a model so far."""
        return self._uses.get(model, Use())

    def waiting(self, model: ServedModel) -> int:
        """Return how many requests a model has, those that are being answered among them."""
        use = self.seen(model)
        return use.running + use.queued

    def busy(self) -> set[ServedModel]:
        """Return the models that have requests."""
        return {model for model in self._uses if self.waiting(model)}

    def forget(self, model: ServedModel) -> None:
        """Forget how fast a model was that isn't loaded any more."""
        if not self.waiting(model):
            self._uses.pop(model, None)


class LocalEngines:
    """This node's engines, as the router and other nodes ask them."""

    def __init__(
        self,
        engines: HoldsEngines,
        follower: FollowsPromotions,
        bring: Callable[[ArtifactId], Awaitable[object]],
        counts: AnswerCounts,
    ) -> None:
        """`bring` fetches an artifact into this node's store, as far as it isn't there."""
        self._engines, self._follower, self._bring = engines, follower, bring
        self.counts = counts
        self.is_open = True
        """New requests are taken."""

    def close(self) -> None:
        """Take no new request any more."""
        self.is_open = False

    @asynccontextmanager
    async def answering(self, model: ServedModel, request: AnswerRequest) -> AsyncGenerator[Answer]:
        """Begin an answer here; see `AnswersRequests`."""
        if not self.is_open:
            raise BusyError("this machine takes no new requests", retry_after_s=1.0)
        meant = await self._follower.meant(model)
        use = self.counts.use(meant)  # counted before anything else can happen
        use.queued += 1
        is_begun = False
        try:
            if meant.artifact is not None:
                await self._bring(meant.artifact)
            async with self._engines.answering(meant, request) as answer:
                use.queued -= 1
                use.running += 1
                is_begun = True
                counted = self._counted(answer.chunks, use, is_streamed=request.is_streamed)
                yield replace(answer, chunks=counted)
        except EngineLostError:
            self.counts.totals.lost += is_begun
            raise
        finally:
            self._end(meant, use, is_begun=is_begun)

    def loads(self) -> list[ModelLoad]:
        """Return what each model that is loaded, or asked for, does here."""
        ready, loading = set(self._engines.ready()), set(self._engines.loading())
        asked = ready | loading | self.counts.busy()
        known = sorted(asked, key=lambda each: (each.name, each.artifact or ""))
        return [self._load(model, is_ready=model in ready) for model in known]

    def _load(self, model: ServedModel, *, is_ready: bool) -> ModelLoad:
        use = self.counts.seen(model)
        rate = use.meter.rate(now_s())
        return ModelLoad(
            name=model.name,
            artifact=model.artifact,
            is_ready=is_ready,
            running=use.running,
            queued=use.queued,
            tokens_per_s=None if rate is None else round(rate, 1),
        )

    async def _counted(
        self, chunks: AsyncIterator[bytes], use: Use, *, is_streamed: bool
    ) -> AsyncGenerator[bytes]:
        async for chunk in chunks:
            tokens = tokens_in(chunk, is_streamed=is_streamed)
            use.meter.note(now_s(), tokens)
            self.counts.totals.tokens += tokens
            yield chunk

    def _end(self, model: ServedModel, use: Use, *, is_begun: bool) -> None:
        if is_begun:
            use.running -= 1
            self.counts.totals.answers += 1
        else:
            use.queued -= 1
            self.counts.totals.refused += 1
        if model not in (*self._engines.ready(), *self._engines.loading()):
            self.counts.forget(model)
