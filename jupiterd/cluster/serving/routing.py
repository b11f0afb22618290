"""Which node answers a request for a model, and where the model is loaded if it is nowhere.

Owns the choice, and what is said where nobody can be chosen. Doesn't know how nodes are asked, or
what time it is: whoever asks says since when a node is away.

The order in which nodes are taken:

1. one that has the model ready, by how long a new request would wait there;
2. one that loads it already;
3. one that has its files, then one that must fetch them; of these one with an accelerator before
   one without, then the one with the least to do.

Never one that is away, closed or drained, and never one whose GPU trains, unless its owner has
pinned the models that it serves.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from jupiterd.cluster.serving.promotion_follow import PROMOTED
from jupiterd.cluster.serving.served_model import ServedModel
from jupiterd.cluster.serving.serving_rows import NOTHING, ModelLoad, NodeServing
from jupiterd.ids import NodeId

TRAINING_RETRY_S: Final = 30.0
"""After so long a GPU that trains may be free: a phase lasts minutes, a pause less."""

CLOSED_RETRY_S: Final = 10.0

USUAL_TOKENS_PER_S: Final = 20.0
"""Of a node that hasn't been measured, where none has."""


@dataclass(frozen=True)
class ServingNode:
    """A member, as far as answering a model goes."""

    node: NodeId
    name: str
    absence: str = ""
    """Why it isn't asked: `sleeps since 21:14`; empty where it answers."""

    is_own: bool = False
    """It is the node that asks."""

    is_drained: bool = False
    """People want it to do nothing."""

    can_compute: bool = True
    """An engine is installed there that can load models."""

    has_accelerator: bool = False
    serving: NodeServing = NOTHING
    holds: bool = False
    """The model's files are in its store."""

    in_flight: int = 0
    """Requests for the model that the asking node has sent there and that aren't over."""

    def load_of(self, model: ServedModel) -> ModelLoad | None:
        """Return its load of a model: of the same artifact before one of the same name."""
        rows = self.serving.models
        return next((row for row in rows if _is_same(row, model)), None) or next(
            (row for row in rows if row.name == model.name and _may_differ(row, model)), None
        )

    @property
    def is_busy_training(self) -> bool:
        """Say whether a training has its accelerator, and keeps it."""
        serving = self.serving
        return serving.trains and self.has_accelerator and not serving.is_pinned

    @property
    def takes(self) -> bool:
        """Say whether it may be given a request."""
        is_here = not self.absence and not self.is_drained and self.serving.is_open
        return is_here and self.can_compute and not self.is_busy_training


@dataclass(frozen=True)
class Route:
    """Who answers."""

    node: NodeId
    why: str
    must_load: bool = False
    must_fetch: bool = False


class Lack(StrEnum):
    """Why nobody answers."""

    UNKNOWN = "unknown"
    """No node has the model."""

    AWAY = "away"
    """Those that have it are away."""

    BUSY = "busy"
    """Those that could don't take a request just now."""

    NO_ENGINE = "no-engine"
    """No node that answers can load models."""


@dataclass(frozen=True)
class NoRoute:
    """Nobody answers: why, and what helps."""

    lack: Lack
    message: str
    hint: str
    retry_after_s: float = 0.0


def route(model: ServedModel, nodes: Iterable[ServingNode]) -> Route | NoRoute:
    """Return who answers a request for a model, the same for the same nodes in any order."""
    known = sorted(nodes, key=lambda each: each.node)
    if model.artifact is None:  # a folder is of this machine alone
        known = [replace(each, holds=True) for each in known if each.is_own]
    able = [each for each in known if each.takes]
    if ready := [each for each in able if (row := each.load_of(model)) and row.is_ready]:
        return _least_waiting(model, ready)
    if loading := [each for each in able if each.load_of(model)]:
        best = min(loading, key=lambda each: (_waiting(each, model), not each.is_own))
        return Route(best.node, f"{best.name} loads it already", must_load=True)
    if chosen := _loader(able, known):
        return chosen
    return _lack(model, known)


def _least_waiting(model: ServedModel, ready: Sequence[ServingNode]) -> Route:
    speeds = _speeds(model, ready)

    def cost(each: ServingNode) -> tuple[bool, float, bool]:
        is_other = not _is_same(each.load_of(model), model)
        return is_other, (_waiting(each, model) + 1) / speeds(each), not each.is_own

    best = min(ready, key=cost)
    return Route(best.node, f"{best.name} has it ready and {_waiting(best, model)} requests")


def _loader(able: Sequence[ServingNode], known: Sequence[ServingNode]) -> Route | None:
    """Return where the model is loaded that nobody serves yet."""
    if not able or not any(each.holds and not each.absence for each in known):
        return None
    best = min(able, key=_loading_cost)
    how = "has its files" if best.holds else "must fetch it"
    what = "an accelerator" if best.has_accelerator else "no accelerator"
    why = f"{best.name} {how} and has {what}"
    return Route(best.node, why, must_load=True, must_fetch=not best.holds)


def _loading_cost(each: ServingNode) -> tuple[bool, bool, bool, int, bool]:
    busy = sum(row.waiting for row in each.serving.models) + len(each.serving.models)
    return not each.holds, not each.has_accelerator, each.serving.trains, busy, not each.is_own


def _lack(model: ServedModel, known: Sequence[ServingNode]) -> NoRoute:
    here = [each for each in known if not each.absence]
    having = [each for each in known if each.holds or each.load_of(model)]
    if not any(not each.absence for each in having):
        return _away(model, having, [each for each in known if each.absence])
    if not any(each.can_compute for each in here):
        return NoRoute(
            Lack.NO_ENGINE,
            f"no machine that answers can load {model.name}: no engine is installed",
            "installers/install.sh --extra cpu (nvidia, mac) on one of them",
        )
    return _busy(model, [each for each in here if each.can_compute])


def _away(
    model: ServedModel, having: Sequence[ServingNode], absent: Sequence[ServingNode]
) -> NoRoute:
    if having:
        who = _list(f"{each.name}, which {each.absence}" for each in having)
        them = "it" if len(having) == 1 else "one of them"
        return NoRoute(Lack.AWAY, f"{model.name} is only on {who}", f"wake {them}")
    if absent:
        who = _list(f"{each.name} {each.absence}" for each in absent)
        return NoRoute(
            Lack.AWAY,
            f"no machine that answers has {model.name}: {who}",
            "wake the machine that made it",
        )
    return NoRoute(
        Lack.UNKNOWN, f"no machine has {model.name}", "jupiterctl model list shows every model"
    )


def _busy(model: ServedModel, able: Sequence[ServingNode]) -> NoRoute:
    training = [each for each in able if each.is_busy_training]
    closed = [each for each in able if each not in training]
    reasons = [f"{each.name} trains" for each in training]
    reasons += [f"{each.name} {_closed_word(each)}" for each in closed]
    message = f"nobody answers as {model.name} now: {_list(reasons)}"
    if training:
        hint = "ask again later, or set serve: {pinned: true} there: it shares its GPU then"
        return NoRoute(Lack.BUSY, message, hint, TRAINING_RETRY_S)
    hint = "jupiterctl node resume NODE lets a drained machine work again"
    return NoRoute(Lack.BUSY, message, hint, CLOSED_RETRY_S)


def _closed_word(each: ServingNode) -> str:
    return "is drained" if each.is_drained else "takes no new requests"


def _speeds(model: ServedModel, ready: Sequence[ServingNode]) -> Callable[[ServingNode], float]:
    """Return how many tokens per second to expect of each.

    An accelerator that nobody has measured counts as the best that was measured, so that it is
    tried; a processor as the slowest.
    """
    measured = [rate for each in ready if (rate := _rate(each, model))]
    best = max([USUAL_TOKENS_PER_S, *measured])
    worst = min([USUAL_TOKENS_PER_S, *measured])

    def speed(each: ServingNode) -> float:
        return _rate(each, model) or (best if each.has_accelerator else worst)

    return speed


def _rate(each: ServingNode, model: ServedModel) -> float:
    row = each.load_of(model)
    return (row.tokens_per_s or 0.0) if row else 0.0


def _waiting(each: ServingNode, model: ServedModel) -> int:
    row = each.load_of(model)
    return max(row.waiting if row else 0, each.in_flight)


def _is_same(row: ModelLoad | None, model: ServedModel) -> bool:
    """Say whether it is the very model, whatever both call it; a folder goes by its name."""
    if row is None or row.artifact != model.artifact:
        return False
    return model.artifact is not None or row.name == model.name


def _may_differ(row: ModelLoad, model: ServedModel) -> bool:
    """Say whether a name may mean another model there: one that follows promotions may lag."""
    return row.artifact is not None and model.name == PROMOTED


def _list(parts: Iterable[str]) -> str:
    return "; ".join(parts)
