"""Training without the cycle: the commands that start, stop and resume a run.

Owns their checks and what they record; they run at the leader. Doesn't know how a run is conducted.
"""

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from jupiterd.cluster.facts.facts import CycleStateSet, DataRequested, Fact, TrainingStarted
from jupiterd.cluster.ledger.cycle_state import RUNNING, STOPPED, CycleState
from jupiterd.cluster.ledger.island_runs import is_whole, revived_with, with_islands
from jupiterd.cluster.ledger.state import State
from jupiterd.cluster.planning.engines import AUTO, EngineChoice, check_wanted, choose_engine
from jupiterd.cluster.training.asked_backend import nccl_refusal
from jupiterd.cluster.values.bounds import edit_after
from jupiterd.cluster.values.run_names import Named, meant
from jupiterd.daemon.artifacts.artifact_cache import ArtifactCache
from jupiterd.daemon.catalog.dataset_catalog import find_data, title
from jupiterd.daemon.catalog.model_specs import model_text, text_of_config, with_own_tokens
from jupiterd.daemon.catalog.tokenizer_match import (
    check_has_tokenizer,
    check_same_tokenizer,
    cut_for_weights,
)
from jupiterd.daemon.commands.data_commands import requested_data
from jupiterd.daemon.islands.island_plan import islands_of_settings, with_gang
from jupiterd.daemon.leader.fleet_view import FleetView
from jupiterd.daemon.leader.placement import Placement
from jupiterd.daemon.leader.term import Term
from jupiterd.daemon.planning.adapter_support import check_all_train_adapters, is_quantized
from jupiterd.daemon.planning.gang_plan import trainers
from jupiterd.daemon.planning.partition_request import (
    check_gang,
    checked_islands_of,
    checked_settings,
    in_one_gang,
    with_partition,
)
from jupiterd.daemon.planning.requested_machines import (
    EVERYBODY,
    Exchanges,
    RequestedMachines,
    named_nodes,
)
from jupiterd.daemon.planning.training_estimate import TrainingEstimate, estimate
from jupiterd.daemon.runtime.clock import wall_iso
from jupiterd.errors import (
    ConflictError,
    MissingExtraError,
    NotFoundError,
    PeerUnreachableError,
    UsageError,
)
from jupiterd.ids import CycleId, NodeId, short
from jupiterd.protocol.commands.command import PlainMap
from jupiterd.protocol.commands.data_commands import PrepareData
from jupiterd.protocol.commands.train_commands import (
    REFUSED_NOW,
    ResumeTraining,
    StartTraining,
    StopTraining,
)

if TYPE_CHECKING:
    from jupiterd.cycle.runs.run_settings import RunSettings
    from jupiterd.cycle.training.plan import ModelShape, TrainPlan

BEGIN_ANEW = "jupiterctl train start --data FOLDER begins a new one"


async def start_training(
    term: Term, fleet: FleetView, artifacts: ArtifactCache, command: StartTraining
) -> dict[str, Any]:
    """Record a training run, and its data set where that is made on the way.

    Raises:
        ConflictError: something is training already.
        JupiterError: it can't be planned, or its data was cut by another tokenizer.
    """
    _check_that_nothing_trains(fleet.state)
    facts, document = await _checked_training(fleet, artifacts, command)
    await term.record(*facts)
    return document


async def predicted_training(
    fleet: FleetView, artifacts: ArtifactCache, command: StartTraining
) -> dict[str, Any]:
    """Return what is to be expected of a run before it is ordered; raises what the order would.

    What trains just now hinders the order, and hides no mistake in what is asked for: it is in the
    answer.
    """
    _, document = await _checked_training(fleet, artifacts, command)
    try:
        _check_that_nothing_trains(fleet.state)
    except ConflictError as error:
        document[REFUSED_NOW] = {"message": error.message, "hint": error.hint}
    return document


async def _checked_training(
    fleet: FleetView, artifacts: ArtifactCache, command: StartTraining
) -> tuple[Sequence[Fact], dict[str, Any]]:
    facts, document = planned_training(fleet, command)
    if untold := await check_same_tokenizer(fleet.state, artifacts, command.to_plain()):
        document["sheet"].append(untold)
    return facts, document


def planned_training(
    fleet: FleetView, command: StartTraining
) -> tuple[Sequence[Fact], dict[str, Any]]:
    """Return what is recorded of a training run that is asked for, and what comes of it.

    Raises:
        ConflictError: the data set isn't ready.
        NotFoundError: no such model, data set or node.
        EmptySourceError: the data set isn't enough for one sequence.
        MissingExtraError: nobody has the engine.
        TooLargeForDeviceError: the model fits no machine's memory.
        UsageError: something that can't be.
    """
    from jupiterd.cycle.runs.fitted_plan import first_plan_of_run, plan_of_run
    from jupiterd.cycle.runs.run_plan import fitted, fitting_settings, sequences_in
    from jupiterd.cycle.training.adapters.adapter import parse_adapter
    from jupiterd.cycle.training.adapters.given_quantized import check_adapter_beside
    from jupiterd.cycle.training.architectures import engine_for  # with the models it takes 8 MB
    from jupiterd.cycle.training.plan import parse_model
    from jupiterd.cycle.training.tuning import usual_adapter_lines

    wanted = check_wanted(AUTO if command.engine is None else command.engine)
    nodes, most = named_nodes(
        fleet.state, fleet.machines, EVERYBODY if command.nodes is None else command.nodes
    )
    settings = _checked_settings(fleet, command, most)
    model, text = _model(command, settings.seq_len)
    preset = parse_model(text)
    quantize = parse_adapter(settings.lora).quantize if settings.lora else "none"
    check_adapter_beside(model, preset.config, is_adapter=bool(settings.lora), quantize=quantize)
    engine = engine_for(wanted, fitted(preset, settings.seq_len, preset.vocab_size))
    choice = _gang(fleet.placement, engine, nodes, most, nccl_refusal(settings.to_scalars()))
    if is_quantized(settings.lora):  # it can't go on beside another engine's bits
        engine = choice.engine
    run = CycleId(secrets.token_hex(8))
    data = _data_of_run(fleet.state, command, run, preset.vocab_size)
    _check_vocabulary(model, preset.vocab_size, data.vocab_size, settings)
    shape = fitted(preset, settings.seq_len, data.vocab_size)
    gang = settings.model_copy(update={"ranks": len(choice.gang)})
    sequences = sequences_in(data.tokens, settings.seq_len) if data.is_ready else 0
    plan = first_plan_of_run(preset, gang.model_copy(update={"max_steps": None}), sequences)
    asked = RequestedMachines(engine, nodes, most, settings.islands, Exchanges.of(settings))
    asked, settings = _decided_gang(fleet, asked, choice, shape, plan, settings)
    plan = (
        plan_of_run(preset, settings, sequences)
        if sequences
        else first_plan_of_run(preset, settings)
    )
    islands = checked_islands_of(fleet.machines, islands_of_settings(settings), settings)
    least = 0 if sequences else settings.least_batch
    decided, is_open = replace(asked, chosen=tuple(islands)), 0 < least < plan.batch_sequences
    expected = estimate(fleet, choice, shape, plan, asked=decided, is_open=is_open)
    settings = fitting_settings(settings, expected.fit, is_cut=expected.is_cut)
    started = TrainingStarted(
        cycle=run,
        name=data.request.name,
        data=data.request.cycle,
        model=model,
        model_yaml=text,
        engine=engine,
        nodes=nodes,
        settings=settings.to_scalars(),
        started_at=wall_iso(),
    )
    sheet = [
        *expected.lines,
        *_step(command, settings, plan),
        *_many_passes(plan, sequences),
        *_first_weights(model, shape, plan, settings, is_known=sequences > 0),
        *usual_adapter_lines(command.usual_adapter_of),
    ]
    document = _training_document(started, settings, plan, expected, sheet, least_batch=least)
    return [started] if data.is_ready else [data.request, started], document


@dataclass(frozen=True)
class _RunData:
    """The data set that a run trains on."""

    request: DataRequested
    vocab_size: int
    tokens: int = 0
    """0 as long as the data set isn't made."""
    is_ready: bool = False
    """False: the run's own command requests it, so it isn't made yet."""


def _data_of_run(state: State, command: StartTraining, run: CycleId, vocab_size: int) -> _RunData:
    """Return the data set that the command names, or one to be made from the source it names."""
    if command.source is not None:
        check_has_tokenizer(command.to_plain(), vocab_size)
        text = _data_on_the_way(command, command.source)
        request = requested_data(state, run, text, vocab_size)
        return _RunData(cut_for_weights(command.to_plain(), request), vocab_size)
    request, made = find_data(state, command.data or "")
    vocab_size, tokens = int(made.counts["vocab_size"]), int(made.counts["tokens"])
    return _RunData(request, vocab_size, tokens, is_ready=True)


def _training_document(
    started: TrainingStarted,
    settings: "RunSettings",
    plan: "TrainPlan",
    expected: TrainingEstimate,
    sheet: list[str],
    *,
    least_batch: int,
) -> dict[str, Any]:
    """Return the answer to the command: the run's settings, and what to expect of it."""
    return {
        "train": started.cycle,
        "name": started.name,
        "model": started.model,
        "parameters": expected.values["parameters"],
        "ranks": settings.ranks,
        "islands": len(islands_of_settings(settings)),
        "batch_size": settings.batch_size,
        "gradient_accumulation_steps": settings.gradient_accumulation_steps,
        "batch_sequences": plan.batch_sequences,
        "least_batch_sequences": least_batch,
        "seq_len": settings.seq_len,
        "sheet": sheet,
        "expected": {**expected.values, "learning_rate": plan.learning_rate},
        "layouts": expected.layouts,
    }


async def stop_training(term: Term, command: StopTraining) -> dict[str, Any]:
    """Stop a run; it can be resumed.

    Raises:
        NotFoundError: none is running, or not that one.
    """
    running = [pair for pair in _runs(term.state) if not pair[0].has_nothing_to_do]
    if not running:
        stopped = next((pair for pair in _runs(term.state) if not _what_hinders(pair[0])), None)
        raise NotFoundError("no training is running", _goes_on(stopped) or BEGIN_ANEW)
    run, started = _named(running, command.train)
    edit = edit_after(run.wanted_edit)
    stopped = CycleStateSet(started.cycle, STOPPED, "stopped by a person", edit)
    await term.record(*with_islands(term.state.cycles, stopped))
    return {"train": started.cycle, "name": started.name}


async def resume_training(term: Term, command: ResumeTraining) -> dict[str, Any]:
    """Go on with the run whose name or id is given, or with the newest that isn't finished.

    One that failed goes on from what it has: why it failed counts no more, nor why its islands did
    with it.

    Raises:
        ConflictError: something is training, or that run has nothing left to do.
        NotFoundError: no such run was stopped, or failed.
    """
    _check_that_nothing_trains(term.state)
    wanted = command.train
    runs = list(_runs(term.state))
    stopped = [pair for pair in runs if not _what_hinders(pair[0])]
    if not runs or not (wanted or stopped):
        raise NotFoundError("there is no training run to resume", BEGIN_ANEW)
    run, started = _named(runs if wanted else stopped, wanted)
    if why := _what_hinders(run):
        name = title(started.cycle, started.name)
        raise ConflictError(f"training {name} can't go on: {why}", BEGIN_ANEW)
    revived = revived_with(term.state.cycles, started.cycle)
    edit = edit_after(run.wanted_edit)
    going_on = CycleStateSet(started.cycle, RUNNING, "resumed by a person", edit)
    await term.record(*revived, *with_islands(term.state.cycles, going_on))
    return {"train": started.cycle, "name": started.name}


def check_that_no_training_runs(state: State) -> None:
    """Raise ConflictError where one does: machines train one thing at a time."""
    for run, started in _runs(state):
        if not run.has_nothing_to_do:
            raise ConflictError(
                f"training {title(started.cycle, started.name)} is running already",
                "jupiterctl train status shows it; jupiterctl train stop ends it",
            )


def _check_that_nothing_trains(state: State) -> None:
    check_that_no_training_runs(state)
    for cycle in state.cycles.values():
        if cycle.started is not None and not cycle.has_nothing_to_do:
            raise ConflictError(
                f"cycle {short(cycle.started.cycle)} on {cycle.started.domain} is running",
                "jupiterctl cycle watch follows it; jupiterctl cycle stop ends it",
            )


def _runs(state: State) -> Iterator[tuple[CycleState, TrainingStarted]]:
    """Yield every training run, the newest first; those of islands are parts of theirs."""
    cycles = state.cycles.values()
    for run in sorted(cycles, key=lambda run: run.start_order, reverse=True):
        if run.training is not None and is_whole(run):
            yield run, run.training


def _named(
    runs: list[tuple[CycleState, TrainingStarted]], wanted: str
) -> tuple[CycleState, TrainingStarted]:
    """Return the newest of these that is called so, or whose id begins so; of all where empty."""
    known = [Named((run, started), started.name, [started.cycle]) for run, started in runs]
    if found := meant(known, wanted) if wanted else runs:
        return found[0]
    raise NotFoundError(f"no training run is called {wanted}", "jupiterctl train status")


def _goes_on(stopped: tuple[CycleState, TrainingStarted] | None) -> str:
    """Return how the run that was stopped last goes on; empty where there is none."""
    if stopped is None:
        return ""
    started = stopped[1]
    called = title(started.cycle, started.name)
    return f"jupiterctl train start --resume {short(started.cycle)} goes on with {called}"


def _what_hinders(run: CycleState) -> str:
    """Return why a run has nothing left to do; empty where it was stopped, or failed, before."""
    return "it is finished" if run.rounds_committed else ""


def _gang(
    placement: Placement, engine: str, nodes: tuple[NodeId, ...], most: int, without_nccl: str
) -> EngineChoice:
    """Return who would train just now: the batch is theirs together, ever after."""
    machines = trainers(placement, nodes)
    if not machines:
        placement.check_not_drained("can train", nodes)
        members = placement.machines
        found = [members.hardware_of(node) for node in nodes or members.alive()]
        if all(hardware is not None and not hardware.engines for hardware in found):
            raise MissingExtraError("no node that could train has a machine learning library")
        raise PeerUnreachableError("no node that could train is here")
    choice = choose_engine(engine, machines, nccl_failure=without_nccl)
    return replace(choice, gang=choice.gang[: most or None])


def _decided_gang(
    fleet: FleetView,
    asked: RequestedMachines,
    choice: EngineChoice,
    shape: "ModelShape",
    plan: "TrainPlan",
    settings: "RunSettings",
) -> tuple[RequestedMachines, "RunSettings"]:
    """Return who is to train, and the settings with how: islands, or a gang that may cut the model.

    Raises:
        UsageError: something was asked for that these machines can't do.
    """
    check_gang(fleet.machines, choice, settings)
    asked = with_partition(asked, settings)
    settings = in_one_gang(fleet, asked, choice, shape, plan, settings)
    asked = with_partition(asked, settings)
    return asked, with_gang(fleet, asked, choice, shape, plan, settings)


def _checked_settings(fleet: FleetView, command: StartTraining, most_ranks: int) -> "RunSettings":
    """Return what was asked for; raises UsageError where the members can't do it."""
    settings = _settings(command, most_ranks)
    if settings.lora:
        check_all_train_adapters(fleet.machines, settings.lora)
    return checked_settings(fleet.machines, settings)


def _settings(command: StartTraining, most_ranks: int) -> "RunSettings":
    """Return what was asked for, and what follows from it: steps, and a recipe."""
    from jupiterd.cycle.runs.recorded_settings import OF_TUNING
    from jupiterd.cycle.runs.run_settings import FROM_DATA, OF_A_STEP, RunSettings
    from jupiterd.cycle.training.tuning_batch import LEAST_SEQUENCES

    given = {
        "max_ranks": most_ranks,
        "start_from": command.weights or "",
        "adapter_from": command.adapter or "",
    }
    settings = RunSettings.parse({**command.settings, **given})
    if settings.max_steps is None and settings.epochs is None:
        settings = settings.model_copy(update={"steps_from": FROM_DATA})
    if settings.start_from:
        is_said = not OF_A_STEP.isdisjoint(command.settings)
        least = 0 if is_said else LEAST_SEQUENCES
        settings = settings.model_copy(update={"recipe": OF_TUNING, "least_batch": least})
    return settings


def _data_on_the_way(command: StartTraining, source: PlainMap) -> PrepareData:
    """Return how the text of a run is made into a data set; raises UsageError without a name."""
    return PrepareData(
        source=source,
        name=command.lacks("name") if command.name is None else command.name,
        node=command.node or "",
        tokenizer=command.tokenizer,
        asked_at=command.asked_at,
    )


def _model(command: StartTraining, seq_len: int) -> tuple[str, str]:
    """Return what people call the model, and its text."""
    name = command.model
    if (config := command.config) is None:
        try:
            return name, model_text(name)
        except NotFoundError as error:
            neither = "it is no size, and no folder of this machine"
            raise NotFoundError(f"there is no model {name}: {neither}", error.hint) from error
    if not command.weights:
        config = with_own_tokens(config)
    return name, text_of_config(name, config, seq_len)


def _check_vocabulary(model: str, has: int, needs: int, settings: "RunSettings") -> None:
    """Refuse data with more kinds of tokens than the weights to begin with know."""
    if settings.start_from and needs > has:
        raise UsageError(
            f"the data set has {needs:,} kinds of tokens, and the weights of {model} know {has:,}",
            "prepare the data with that model's tokenizer: jupiterctl data prepare --tokenizer",
        )


def _step(command: StartTraining, settings: "RunSettings", plan: "TrainPlan") -> list[str]:
    from jupiterd.cycle.training.tuning_batch import step_lines

    factors = settings.batch_size, settings.gradient_accumulation_steps
    return step_lines(command.settings.keys(), *factors, plan.batch_sequences, settings.seq_len)


def _many_passes(plan: "TrainPlan", sequences: int) -> list[str]:
    """Return what is said of too many passes over a data set; nothing where it isn't made yet."""
    from jupiterd.cycle.training.step_budget import many_passes_line, passes_over

    line = many_passes_line(passes_over(plan.steps, plan.batch_sequences, sequences))
    return [line] if line else []


def _first_weights(
    model: str, shape: "ModelShape", plan: "TrainPlan", settings: "RunSettings", *, is_known: bool
) -> list[str]:
    """Return what is said of the weights to begin with, and of how they are tuned.

    is_known: it is known how much data there is
    """
    from jupiterd.cycle.training.tuning import tuning_lines
    from jupiterd.cycle.training.tuning_batch import batch_lines

    if not settings.start_from:
        return []
    document = batch_lines(plan.batch_sequences, settings.least_batch, is_known=is_known)
    first = "the adapter that was given, beside " if settings.adapter_from else ""
    return [f"Starts from {first}the weights of {model}", *document, *tuning_lines(shape, plan)]
