"""What a run trains, and on what: the same whoever leads, and for all of its islands.

Owns reading that from the ledger. Doesn't know how it is trained.
"""

from dataclasses import dataclass

from jupiterd.cluster.cycle_state import CycleState
from jupiterd.cluster.facts import TrainingStarted, WorkCompleted
from jupiterd.cycle.phases import TrainRound
from jupiterd.cycle.plan import ModelShape, TrainPlan, parse_model
from jupiterd.cycle.run_phases import trained_on
from jupiterd.cycle.run_plan import derive_run, fitted, total_steps
from jupiterd.cycle.run_settings import RunSettings
from jupiterd.cycle.work import WorkResult
from jupiterd.daemon.leading import Leading
from jupiterd.errors import Bug, NotFoundError
from jupiterd.ids import CycleId

ROUND = 1
"""A run has one round, in the words of the ledger."""


@dataclass(frozen=True)
class RunTraining:
    """A run's training."""

    started: TrainingStarted
    settings: RunSettings
    shape: ModelShape
    plan: TrainPlan
    data: TrainRound


def training_of(leading: Leading, run: CycleId) -> RunTraining:
    """Return what a run trains whose data set is frozen.

    Raises:
        NotFoundError: the data set isn't known here.
    """
    state = leading.cycle(run)
    started, data = state.training, data_of(leading, run)
    if started is None or data is None or ROUND not in state.manifests:
        raise Bug("a run is trained before its data set is there")
    settings = RunSettings.parse(dict(started.settings))
    preset = parse_model(started.model_yaml)
    shape = fitted(preset, settings.seq_len, int(data.counts["vocab_size"]))
    steps = total_steps(settings, state.manifests[ROUND].sequences)
    plan = derive_run(preset.recipe, preset.seq_len, settings, steps)
    return RunTraining(started, settings, shape, plan, trained_on(data))


def data_of(leading: Leading, run: CycleId) -> WorkResult | None:
    """Return the data set that a run trains on, its own or another run's; None: not made yet.

    Raises:
        NotFoundError: it isn't known here.
    """
    state = leading.cycle(run)
    maker: CycleState | None = state
    if state.training is not None:
        maker = leading.journal.state.cycles.get(state.training.data)
    made = None if maker is None else maker.prepared
    if made is None and state.requested is None:
        raise NotFoundError("the data set of this run isn't known here")
    return None if made is None else result_of(made)


def result_of(fact: WorkCompleted) -> WorkResult:
    """Return what came of an item."""
    return WorkResult(fact.outputs, fact.counts, fact.summary)
