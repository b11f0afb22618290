"""How the name `promoted` follows promotions and rollbacks on one node that serves it.

Owns the steps from one model to the next: the new one is loaded beside the old, takes new requests
once it is ready, and the old one is unloaded when its last answer is over; one that can't be loaded
leaves all as it was, and is tried again later. Pure: whoever steps it says the time and what has
become of the engines. Doesn't know how a model is promoted, or what loads one.

    serving   takes new requests
    loading   is to take them next
    ending    writes the answers that were begun on it
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from jupiterd.ids import ArtifactId, short

PROMOTED: Final = "promoted"
"""The name that clients call the promoted model of the newest cycle by."""

FIRST_RETRY_S: Final = 15.0
LAST_RETRY_S: Final = 600.0
"""How long after a failed load the next try comes: doubled each time, up to this."""


@dataclass(frozen=True)
class Load:
    """Have an engine load a model beside those that it has."""

    artifact: ArtifactId


@dataclass(frozen=True)
class Unload:
    """Give a model up, or end its loading."""

    artifact: ArtifactId


@dataclass(frozen=True)
class Notice:
    """Something that people want to know."""

    event: str
    """Of the log."""

    artifact: ArtifactId
    reason: str = ""


Deed: TypeAlias = Load | Unload | Notice


@dataclass(frozen=True)
class Failure:
    """A model that couldn't be loaded."""

    reason: str
    times: int
    retry_at_s: float


@dataclass(frozen=True)
class Engines:
    """What has become of the engines, as whoever steps it sees them."""

    ready: AbstractSet[ArtifactId] = frozenset()
    """Models that can answer."""

    failed: Mapping[ArtifactId, str] = field(default_factory=dict[ArtifactId, str])
    """Loads that came to nothing since the last step, with the reason."""

    running: Mapping[ArtifactId, int] = field(default_factory=dict[ArtifactId, int])
    """Answers that were begun under this name and aren't over, by the model that writes them."""


@dataclass(frozen=True)
class Following:
    """Where one node stands."""

    serving: ArtifactId | None = None
    loading: ArtifactId | None = None
    ending: frozenset[ArtifactId] = frozenset()
    failures: Mapping[ArtifactId, Failure] = field(default_factory=dict[ArtifactId, Failure])

    @property
    def held(self) -> frozenset[ArtifactId]:
        """Return every model whose engine is wanted."""
        named = {each for each in (self.serving, self.loading) if each is not None}
        return self.ending | named

    def trouble(self, wanted: ArtifactId | None) -> str:
        """Return why the wanted model isn't the one that answers; empty where nothing failed."""
        failure = self.failures.get(wanted) if wanted is not None else None
        return "" if failure is None or wanted == self.serving else failure.reason


Step: TypeAlias = tuple[Following, tuple[Deed, ...]]


def step(now: Following, at_s: float, wanted: ArtifactId | None, engines: Engines) -> Step:
    """Return where a node stands after a look at its engines, and what is to be done.

    Args:
        now: where it stood.
        at_s: the time, on a clock that only grows.
        wanted: the model that `promoted` means by now; None: none does, or none does any more.
        engines: what has become of those that were asked for.
    """
    deeds: list[Deed] = []
    after = _noted_failures(now, at_s, engines, deeds)
    if wanted is None:
        after = _withdrawn(after, deeds)
    else:
        after = _aimed(after, at_s, wanted, engines, deeds)
    after = _switched(after, engines, deeds)
    return _let_go(after, engines, deeds), tuple(deeds)


def stopped(now: Following) -> Step:
    """Return what is to be done where the name isn't served any more: all is given up."""
    return Following(), tuple(Unload(each) for each in sorted(now.held))


def _noted_failures(now: Following, at_s: float, engines: Engines, deeds: list[Deed]) -> Following:
    """Take back a load that came to nothing; the old model goes on answering."""
    loading = now.loading
    if loading is None or loading not in engines.failed or loading in engines.ready:
        return now
    before = now.failures.get(loading)
    times = 1 if before is None else before.times + 1
    wait_s = min(LAST_RETRY_S, FIRST_RETRY_S * 2 ** min(times - 1, 10))
    failure = Failure(engines.failed[loading], times, at_s + wait_s)
    deeds += [Unload(loading), Notice("promoted_model_failed", loading, failure.reason)]
    return replace(now, loading=None, failures={**now.failures, loading: failure})


def _aimed(
    now: Following, at_s: float, wanted: ArtifactId, engines: Engines, deeds: list[Deed]
) -> Following:
    """See that the wanted model is the one that serves, or is loaded.

    While that can't be, the one before it is what is wanted: it is loaded again if its engine died.
    """
    is_possible = wanted in engines.ready or _may_try(now, at_s, wanted)
    aim = wanted if is_possible else now.serving
    if aim is None or aim == now.loading:
        return now
    if aim not in engines.ready and not _may_try(now, at_s, aim):
        return now
    after = _without_loading(now, deeds)
    if aim == now.serving and aim in engines.ready:
        return after
    if aim not in now.ending or aim not in engines.ready:  # else its last answers are being written
        deeds.append(Load(aim))
    return replace(after, loading=aim, ending=after.ending - {aim})


def _withdrawn(now: Following, deeds: list[Deed]) -> Following:
    """Let a model that was rolled back, without another in its place, end its answers."""
    after = _without_loading(now, deeds)
    if after.serving is None:
        return after
    return replace(after, serving=None, ending=after.ending | {after.serving})


def _may_try(now: Following, at_s: float, model: ArtifactId) -> bool:
    failure = now.failures.get(model)
    return failure is None or at_s >= failure.retry_at_s


def _without_loading(now: Following, deeds: list[Deed]) -> Following:
    if now.loading is None:
        return now
    if now.loading != now.serving:
        deeds.append(Unload(now.loading))
    return replace(now, loading=None)


def _switched(now: Following, engines: Engines, deeds: list[Deed]) -> Following:
    """Let a model take new requests once it is ready; the one before it ends its answers."""
    loading = now.loading
    if loading is None or loading not in engines.ready:
        return now
    old = now.serving
    ending = now.ending | {old} if old is not None and old != loading else now.ending
    if old != loading:
        reason = "" if old is None else f"in place of {short(old)}"
        deeds.append(Notice("promoted_model_serves", loading, reason))
    failures = {each: failure for each, failure in now.failures.items() if each != loading}
    return Following(loading, None, ending - {loading}, failures)


def _let_go(now: Following, engines: Engines, deeds: list[Deed]) -> Following:
    """Unload what writes no answer any more."""
    over = frozenset(each for each in now.ending if not engines.running.get(each, 0))
    deeds += [Unload(each) for each in sorted(over)]
    return replace(now, ending=now.ending - over)
