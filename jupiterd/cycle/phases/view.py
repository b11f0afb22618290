"""What is known of a round when it is asked what comes next, and the names of its items.

Owns the view and the ids. Doesn't know what any phase does.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from jupiterd.cycle.base.work_item import Phase, WorkResult
from jupiterd.cycle.domain.generator import Generator
from jupiterd.cycle.generation.promotion import ActiveGenerators
from jupiterd.ids import ArtifactId, CycleId, short


@dataclass(frozen=True)
class RoundView:
    """What is known of a round and of those before it."""

    cycle: CycleId
    round: int
    seed: int
    started_at: str
    completed: Mapping[str, WorkResult]
    """Item id -> result, over all rounds of the cycle: ids carry the round."""
    candidate: ArtifactId | None
    """The round's final checkpoint, once training is done."""
    looks: int
    """How often a candidate has been shown the holdout before this round."""
    best_student: str = ""
    """Artifact id of the last student that was shown to be better than the one before; or empty."""
    purged: frozenset[str] = frozenset()
    """Sources of which nothing is used any more, nor anything that was made from it."""
    named_generator: Generator | None = None
    """The generator that people named, or None."""
    rounds: int = 1
    """How many the cycle has."""
    first_model: str = ""
    """Artifact id of the model that round 1 begins with, tokenizer and all; empty: drawn weights.
    """
    base: str = ""
    """That model, where it is to be beaten in every round; empty in cycles of older builds."""
    active_generators: ActiveGenerators = field(default_factory=ActiveGenerators)
    """The students in force as generators."""
    generation_redos: Mapping[int, int] = field(default_factory=dict[int, int])
    """Round -> how often its generating has begun anew, where it has."""
    loss_on: str = ""
    """What the loss counts of generated questions and answers, `answers` or `all`, where the first
    model is talked to; empty: it isn't, and they are text like all other."""
    judge: Generator | None = None
    """The model that may break a tie of the gate's statistics, where the domain names one."""
    questions: str = ""
    """Artifact id of the domain's own questions; empty: there are none."""
    without_verdict: bool = False
    """Whether it goes on where there is too little text for a verdict."""


def item_id(round_number: int, phase: Phase, number: int, model: str = "") -> str:
    """Return the id of the phase's n-th item; what is said of a model carries the model's id."""
    name = f"r{round_number}/{phase}/{number}"
    return f"{name}/{short(model)}" if model else name


def result_of(view: RoundView, phase: Phase, number: int = 0, round_number: int = 0) -> WorkResult:
    """Return what came of an item of this round, or of the one named."""
    return view.completed[item_id(round_number or view.round, phase, number)]
