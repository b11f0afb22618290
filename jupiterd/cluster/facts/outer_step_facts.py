"""The facts of exchanges between islands: the steps of their outer line.

Owns what each says. Doesn't know what it leads to (`outer_branch`), or how islands exchange.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from jupiterd.ids import ArtifactId, CycleId


@dataclass(frozen=True)
class OuterStepTaken:
    """Progress between islands: the pseudo-gradients that were merged, and a round that they train.

    The first of a run merge nothing. Names of islands are the ids of their runs.
    """

    TYPE: ClassVar[str] = "OuterStepTaken"
    VERSION: ClassVar[int] = 1
    WIRE_NAMES: ClassVar[Mapping[str, str]] = {
        "pseudo_gradients": "ways",
        "pseudo_gradient_bytes": "way_bytes",
    }
    LATER: ClassVar[Mapping[str, Any]] = {
        "start": "",
        "elapsed_s": 0.0,
        "trained_s": {},
        "lag": 1,
        "way_bytes": {},
        "predicted_tokens_per_s": 0.0,
        "horizon": {},
        "scored_step": 0,
        "weights": (),
    }
    """Fields that came later than steps that name their parents: see `lww_registers.fact_hash`."""
    cycle: CycleId
    """The run, or the cycle, whose islands they are."""
    number: int
    """Outer steps taken since its round began, this one among them; 0 for the beginning."""
    parent: str
    """Hash of the fact of the step before, or empty."""
    islands: tuple[CycleId, ...]
    """Those whose pseudo-gradients count, in the order in which they are merged."""
    pseudo_gradients: tuple[ArtifactId, ...]
    """One for each of them."""
    tokens: tuple[int, ...]
    """What each of them has trained on: the weight of its pseudo-gradient, unless there are
    `weights`."""
    rate: float
    momentum: float
    total_tokens: int
    """Along the line, with these."""
    first_step: int
    """Inner steps that are done before the round, of all the run's."""
    steps: int
    """Inner steps of the round; 0: all were given out before."""
    batches: Mapping[str, int]
    """Island -> sequences that it takes in each of them."""
    positions: Mapping[str, str]
    """Island -> where these lie in the order of the data, as `cycle.base.positions` writes them."""
    cursor: int
    """Positions below it were given out, or came back."""
    returned: str = ""
    """Those that came back, and weren't given out again."""
    left_out: Mapping[str, str] = field(default_factory=dict[str, str])
    """Island -> why its pseudo-gradient doesn't count."""
    round: int = 1
    """Of a cycle; each begins anew."""
    start: str = ""
    """Artifact id of the checkpoint that a cycle's round begins with, or empty."""
    elapsed_s: float = 0.0
    """Since the step before, exchange and all; 0: no leader has seen both."""
    trained_s: Mapping[str, float] = field(default_factory=dict[str, float])
    """Island -> how long its steps took that are merged, without waiting; 0: nobody knows."""
    lag: int = 1
    """The round of the merged pseudo-gradients was ordered so many steps before this one: 1, or 2
    where islands train on in the meantime."""
    pseudo_gradient_bytes: Mapping[str, int] = field(default_factory=dict[str, int])
    """Island -> how large its pseudo-gradient is; left out where nobody knows."""
    predicted_tokens_per_s: float = 0.0
    """Of all who have a part in the round, with their exchanges, when these began to train
    together; 0: nobody could know."""
    horizon: Mapping[str, float] = field(default_factory=dict[str, float])
    """What losses on held-out text had decided by then, see `cycle.training.horizon`."""
    scored_step: int = 0
    """Inner steps that the merged weights contain, where each island scores them on held-out text;
    0: they aren't scored."""
    weights: tuple[int, ...] = ()
    """Of each of them the tokens that its loss counts, where it doesn't count all."""


@dataclass(frozen=True)
class OuterStepAbandoned:
    """No line of outer steps leads through this one any more: nobody in reach could go on from it.

    It is never taken up again, since the data of its round were given out anew.
    """

    TYPE: ClassVar[str] = "OuterStepParked"
    VERSION: ClassVar[int] = 1
    cycle: CycleId
    """The run, or the cycle."""
    step: str
    """Hash of the fact of the step."""
