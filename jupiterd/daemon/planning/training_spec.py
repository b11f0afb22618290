"""What a run or a cycle's round trains, and on what: the same for all islands, whoever leads.

Owns reading that from the ledger. Doesn't know how it is trained.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from jupiterd.cluster.facts.facts import CycleStarted, TrainingStarted, WorkCompleted
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.ledger.state import State
from jupiterd.cluster.ledger.trunk import trunk_of
from jupiterd.cluster.planning.asking_node import ASKED_AT
from jupiterd.cluster.training.named_trainers import NODES, named_trainers
from jupiterd.cycle.base.work_item import WorkResult
from jupiterd.cycle.domain.domain import parse_domain
from jupiterd.cycle.phases.pack import trained_in
from jupiterd.cycle.phases.steps import TrainRound
from jupiterd.cycle.questions.question_file import QUESTIONS
from jupiterd.cycle.runs.fitted_plan import (
    PriorTraining,
    bounded,
    plan_of_round,
    plan_of_run,
    trained_shape,
    with_batch,
)
from jupiterd.cycle.runs.recorded_settings import LOSS_ON, NAMED_GENERATOR, OF_TUNING
from jupiterd.cycle.runs.run_phases import trained_on
from jupiterd.cycle.runs.run_plan import fitted
from jupiterd.cycle.runs.run_settings import FROM_DATA, RunSettings
from jupiterd.cycle.training.plan import ModelShape, TrainPlan, derive, parse_model
from jupiterd.cycle.training.tuning import shortly_warmed
from jupiterd.errors import Bug, NotFoundError
from jupiterd.ids import CycleId
from jupiterd.protocol.frames import Scalar

_OF_CYCLES = frozenset({NODES, LOSS_ON, NAMED_GENERATOR, ASKED_AT, QUESTIONS})
"""Settings of a cycle that a run has elsewhere, or doesn't have."""

ROUND = 1
"""A run has one round, in the words of the ledger."""


@dataclass(frozen=True)
class TrainingSpec:
    """The training of a run, or of a cycle's round."""

    started: TrainingStarted
    """How it was asked for; of a round, as if it were a run."""
    settings: RunSettings
    shape: ModelShape
    plan: TrainPlan
    data: TrainRound
    round: int = ROUND
    start: str = ""
    """The last checkpoint before a cycle's round, which its islands begin with; empty in the first.
    """
    tokens: int = 0
    """Trained on along the cycle's line by then."""
    sequences: int = 0
    """Of the data; 0: nobody knows."""


def training_of(
    ledger: State,
    run: CycleId,
    round_number: int = ROUND,
    *,
    by_islands: bool = False,
    ranks: int = 0,
) -> TrainingSpec:
    """Return what a run trains whose data set is frozen, or a cycle's round that is packed.

    by_islands: islands train the round, which don't go on with the trunk
    ranks: of the islands, which share a step; recorded with them, as `least_batch_of` reads it.
        Those of one gang are recorded with the round's data.

    Raises:
        NotFoundError: the data set isn't known here.
    """
    state = ledger.cycles[run]
    if state.started is not None:
        begun = state.started
        return _of_a_round(state, begun, round_number, by_islands=by_islands, ranks=ranks)
    started, data = state.training, data_of(ledger, run)
    if started is None or data is None or ROUND not in state.manifests:
        raise Bug("a run is trained before its data set is there")
    settings = RunSettings.parse(dict(started.settings))
    preset = parse_model(started.model_yaml)
    shape = fitted(preset, settings.seq_len, int(data.counts["vocab_size"]))
    sequences = state.manifests[ROUND].sequences
    plan = plan_of_run(preset, settings, sequences)
    return TrainingSpec(started, settings, shape, plan, trained_on(data), sequences=sequences)


def _of_a_round(
    state: CycleState, begun: CycleStarted, round_number: int, *, by_islands: bool, ranks: int
) -> TrainingSpec:
    domain = parse_domain(begun.domain_yaml, f"{begun.domain}.yaml")
    overrides = domain.training.overrides()
    shape = parse_model(begun.model_yaml, overrides)
    before = state.last_checkpoint(round_number - 1)
    start = state.start_of(round_number)
    first = start or (begun.settings.get("start_from", "") if round_number == 1 else "")
    asked = {"seq_len": shape.seq_len, "seed": begun.seed, **_first_weights(begun, str(first))}
    packed = state.manifests.get(round_number)
    ranks = max(ranks, 0 if packed is None else packed.ranks)
    settings = RunSettings.parse({**_of_a_run(begun), **asked}).shared_by(ranks)
    started = TrainingStarted(
        cycle=begun.cycle,
        name=begun.domain,
        data=begun.cycle,
        model=begun.size,
        model_yaml=begun.model_yaml,
        engine=begun.engine,
        nodes=named_trainers(state),
        settings=settings.to_scalars(),
        started_at=begun.started_at,
        parent_round=round_number,
    )
    goes_on = not by_islands and bool(trunk_of(state, round_number))
    is_tuning = settings.recipe == OF_TUNING
    trained_as = trained_shape(shape, settings)
    plan = derive(trained_as, round_number, overrides, begun.seed, goes_on=goes_on)
    tokens = 0 if before is None else before.tokens
    plan = plan if packed is None else with_batch(plan, settings, packed.sequences)
    if settings.steps_from == FROM_DATA and packed is not None:
        trained = PriorTraining(tokens, bool(first) and round_number == 1, is_tuning)
        plan = plan_of_round(plan, shape, packed.sequences, trained)
    plan = bounded(plan, trained_as.recipe, settings.max_steps)
    plan = shortly_warmed(plan) if is_tuning else plan
    return TrainingSpec(
        started,
        settings,
        shape,
        plan=plan.model_copy(update={"keeps_trunk": not by_islands}),
        data=trained_in(round_number, {f.item: result_of(f) for f in state.completed.values()}),
        round=round_number,
        start=start,
        tokens=tokens,
        sequences=0 if packed is None else packed.sequences,
    )


def _first_weights(begun: CycleStarted, first: str) -> Mapping[str, str]:
    """Return what a round begins with: an adapter and the model beside it, or a model."""
    base = str(begun.settings.get("start_from", ""))
    if not begun.settings.get("lora"):
        return {"start_from": first}
    given = str(begun.settings.get("adapter_from", ""))
    return {"start_from": base, "adapter_from": given if first == base else first}


def _of_a_run(begun: CycleStarted) -> dict[str, Scalar]:
    """Return a cycle's settings without those that a run has elsewhere."""
    return {name: value for name, value in begun.settings.items() if name not in _OF_CYCLES}


def data_of(ledger: State, run: CycleId) -> WorkResult | None:
    """Return the data set that a run trains on, its own or another run's; None: not made yet.

    Raises:
        NotFoundError: it isn't known here.
    """
    state = ledger.cycles[run]
    maker: CycleState | None = state
    if state.training is not None:
        maker = ledger.cycles.get(state.training.data)
    made = None if maker is None else maker.prepared
    if made is None and state.requested is None:
        raise NotFoundError("the data set of this run isn't known here")
    return None if made is None else result_of(made)


def result_of(fact: WorkCompleted) -> WorkResult:
    """Return what came of an item."""
    return WorkResult(fact.outputs, fact.counts, fact.summary)
