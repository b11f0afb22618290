"""A cycle as people ask for it: its checks, what is recorded of it, and what is to be expected.

Owns that, for `cycle start` and `cycle plan` alike: what is shown is what is done. Doesn't know how
a cycle is conducted, or when.
"""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from jupiterd.cluster.facts.facts import CycleStarted
from jupiterd.cluster.planning.asking_node import ASKED_AT
from jupiterd.cluster.planning.engines import AUTO, EngineChoice, check_wanted, choose_engine
from jupiterd.cluster.training.asked_backend import GANG_BACKEND, nccl_refusal
from jupiterd.cluster.training.asked_partition import MEMORY, SHARD
from jupiterd.cluster.training.named_trainers import MAX_RANKS, NODES
from jupiterd.cluster.training.tunnel_plan import GANG_ENCRYPTION, ON
from jupiterd.daemon.catalog.model_specs import model_text, text_of_config
from jupiterd.daemon.commands.cycle_sheet import (
    Text,
    guessed_tokens_per_s,
    least_batch,
    sheet,
    size_reason,
)
from jupiterd.daemon.commands.domain_questions import recorded_questions
from jupiterd.daemon.cycles.generator_capacity import check_writers
from jupiterd.daemon.executor.named_paths import paths_of
from jupiterd.daemon.islands.island_plan import (
    checked_islands,
    islands_of_first_round,
    ranks_in,
    wanted_of_round,
)
from jupiterd.daemon.leader.fleet_view import FleetView
from jupiterd.daemon.leader.placement import Placement
from jupiterd.daemon.planning.adapter_support import check_all_train_adapters, is_quantized
from jupiterd.daemon.planning.gang_plan import trainers
from jupiterd.daemon.planning.generation_speed import written_before
from jupiterd.daemon.planning.partition_request import (
    check_gang,
    checked_settings,
    in_one_gang,
    with_partition,
)
from jupiterd.daemon.planning.requested_machines import EVERYBODY, RequestedMachines, named_nodes
from jupiterd.daemon.planning.training_estimate import estimate
from jupiterd.daemon.runtime.clock import wall_iso
from jupiterd.errors import MissingExtraError, UsageError
from jupiterd.ids import CycleId, NodeId
from jupiterd.protocol.commands.command import PlainMap
from jupiterd.protocol.commands.cycle_commands import DescribedCycle
from jupiterd.protocol.frames import Scalar

if TYPE_CHECKING:
    from jupiterd.cycle.domain.domain import Domain
    from jupiterd.cycle.runs.cycle_options import CycleOptions
    from jupiterd.cycle.runs.run_settings import RunSettings
    from jupiterd.cycle.runs.size_choice import SizeChoice
    from jupiterd.cycle.training.plan import TrainPlan

MAX_ROUNDS = 1000

SCRATCH = "scratch"
"""In the domain's `init`: training begins with drawn weights."""
USUAL_SEQ_LEN = 1024
"""Of a model that people bring, where the domain doesn't say."""


def planned_cycle(fleet: FleetView, command: DescribedCycle) -> tuple[CycleStarted, dict[str, Any]]:
    """Return the cycle that is asked for, and what is to be expected of its first round.

    Raises:
        InvalidDomainError: the domain file has mistakes.
        MissingExtraError: nobody has the engine.
        NotFoundError: no such size, or a node of its islands isn't known.
        TooLargeForDeviceError: the model fits no machine's memory.
        UsageError: something that can't be.
    """
    from jupiterd.cycle.runs.cycle_options import CycleOptions

    options = CycleOptions.parse(command.training or {})
    described = _described(fleet.placement, command, options)
    if not 1 <= command.rounds <= MAX_ROUNDS:
        raise UsageError(f"rounds must be from 1 to {MAX_ROUNDS}, not {command.rounds}")
    nodes, most = named_nodes(
        fleet.state, fleet.machines, EVERYBODY if command.nodes is None else command.nodes
    )
    suiting = _suiting_size(fleet.placement, command, nodes)
    size = command.size or suiting.size
    started = _begun(command, described, options, size)
    settings = _settings(command, described.domain, options).model_copy(update={MAX_RANKS: most})
    if settings.lora:
        check_all_train_adapters(fleet.machines, settings.lora)
        started = _with_engine(fleet.placement, started, settings, nodes)
    settings = checked_settings(fleet.machines, settings)
    wanted = with_partition(wanted_of_round(started.engine, settings, nodes), settings)
    has_base = _has_base(command, described.domain)
    text = Text(
        _tokens(command),
        has_base=has_base,
        has_adapter=_has_adapter(command),
        usual_adapter_of=command.usual_adapter_of or "",
    )
    model, settings, forecast = _with_forecast(fleet, started, wanted, settings, text)
    if written := written_before(fleet.state, fleet.placement, command.writer or ""):
        forecast["writing"] = written
    forecast |= size_reason(suiting, size, forecast.get("sheet", ()))
    recorded = _recorded(settings, nodes) | _loss_on(command, options.loss_on)
    recorded |= _recorded_sources(command, described, settings)
    return replace(started, model_yaml=model, settings=recorded), forecast


@dataclass(frozen=True)
class _Described:
    """A cycle's domain, as it is recorded, and the model that writes its text."""

    text: str
    """The domain's file."""
    domain: "Domain"
    generator: Mapping[str, Scalar]
    """Empty: nobody, before a student of the cycle is promoted."""
    by_base: bool
    """The generator is the chat model that round 1 begins with; nobody has named one."""


def _described(
    placement: Placement, command: DescribedCycle, options: "CycleOptions"
) -> _Described:
    from jupiterd.cycle.domain.domain import parse_domain  # its models take 8 MB, idle or not
    from jupiterd.cycle.generation.usual_templates import recorded

    text = command.domain_yaml
    text, domain = options.in_domain(text, parse_domain(text, f"{command.domain_name}.yaml"))
    named = _generator(domain, command)
    check_writers(placement, command.to_plain(), ("generator", "judge"))
    base = {} if named else _base_that_writes(domain, command)
    text, domain = recorded(text, domain, named or base, by_base=bool(base))
    return _Described(text, domain, named or base, bool(base))


def _begun(
    command: DescribedCycle, described: _Described, options: "CycleOptions", size: str
) -> CycleStarted:
    """Return the cycle with its model and its engine, without the settings of its rounds."""
    from jupiterd.cycle.training.architectures import engine_for
    from jupiterd.cycle.training.plan import parse_model

    started = CycleStarted(
        cycle=CycleId(secrets.token_hex(8)),
        domain=described.domain.domain,
        domain_yaml=described.text,
        rounds=command.rounds,
        size=str(_init(command).get("model") or "") or size,
        seed=1 if command.seed is None else command.seed,
        started_at=wall_iso(),
        engine=_engine(command),
        generator=described.generator,
        judge=_judge(described.domain, command),
        interactive=command.interactive,
        without_verdict=command.without_verdict,
    )
    model = options.in_model(_model(described.domain, command, size))
    engine = engine_for(started.engine, parse_model(model))
    return replace(started, model_yaml=model, engine=engine)


def _has_base(command: DescribedCycle, domain: "Domain") -> bool:
    begins_with = domain.init if command.begins_with is None else command.begins_with
    return bool(_init(command)) or begins_with != SCRATCH


def _has_adapter(command: DescribedCycle) -> bool:
    return any(_init(command).get(name) for name in ("adapter", "adapter_folder"))


def _recorded_sources(
    command: DescribedCycle, described: _Described, settings: "RunSettings"
) -> dict[str, Scalar]:
    """Return what is recorded of a generator that people named, and of who named local paths."""
    from jupiterd.cycle.runs.recorded_settings import NAMED_GENERATOR, OF_TUNING

    found: dict[str, Scalar] = {}
    is_named = bool(described.generator) and not described.by_base
    if is_named and settings.recipe == OF_TUNING:
        found[NAMED_GENERATOR] = True
    if command.asked_at and paths_of(described.domain.data_sources):
        found[ASKED_AT] = command.asked_at
    return found | recorded_questions(described.domain, command)


def _generator(domain: "Domain", command: DescribedCycle) -> dict[str, Scalar]:
    """Return the generator that is named, checked."""
    from jupiterd.cycle.generation.usual_templates import check_is_used

    found = _named_model(
        "generator",
        domain.generation.generator,
        command.generator,
        is_on_its_way=command.generator_folder is not None,
    )
    check_is_used(domain, found)
    return found


def _base_that_writes(domain: "Domain", command: DescribedCycle) -> dict[str, Scalar]:
    """Return the chat model that round 1 begins with as a generator, where it is to write.

    Before its weights are in the cluster it has a name alone.
    """
    from jupiterd.cycle.domain.generator import Generator
    from jupiterd.cycle.generation.chat_models import is_to_write

    init = _init(command)
    if not init.get("is_chat") or not is_to_write(domain):
        return {}
    artifact = init.get("adapter") or init.get("weights") or ""
    return Generator(str(init["model"]), str(artifact)).to_plain()


def _loss_on(command: DescribedCycle, asked: str | None) -> dict[str, Scalar]:
    """Return what is recorded of the loss on questions and answers; nothing: there are none.

    Raises:
        UsageError: somebody says it of a cycle without a chat model.
    """
    from jupiterd.cycle.runs.recorded_settings import LOSS_ON

    if _init(command).get("is_chat"):
        return {LOSS_ON: asked or "answers"}
    if asked:
        raise UsageError(
            "--loss-on is said of questions and answers, which a cycle without a chat model "
            "doesn't have",
            "begin with one: --init FOLDER, whose tokenizer has a chat template",
        )
    return {}


def _judge(domain: "Domain", command: DescribedCycle) -> dict[str, Scalar]:
    """Return the judge that the domain names, checked."""
    return _named_model(
        "judge", domain.gate.judge, command.judge, is_on_its_way=command.judge_folder is not None
    )


def _named_model(
    role: str, in_domain: str, said: PlainMap | None, *, is_on_its_way: bool
) -> dict[str, Scalar]:
    """Return a model that others made; a plan needs none to be here.

    Args:
        role: `generator` or `judge`.
        in_domain: what the domain's file names.
        said: what the command says of it; None: nothing.
        is_on_its_way: its folder is yet to be copied.
    """
    from jupiterd.cycle.domain.generator import generator_from

    if said is None and in_domain:
        raise UsageError(
            f"the {role} {in_domain} wasn't looked for",
            "start the cycle with jupiterctl of this version",
        )
    found = None if is_on_its_way else generator_from(dict(said or {}))
    return {} if found is None else found.to_plain()


def _init(command: DescribedCycle) -> PlainMap:
    """Return the model that round 1 begins with, as people gave it; empty: drawn weights."""
    return command.init or {}


def _tokens(command: DescribedCycle) -> int:
    return max(0, command.tokens or 0)


def _engine(command: DescribedCycle) -> str:
    return check_wanted(AUTO if command.engine is None else command.engine)


def _suiting_size(
    placement: Placement, command: DescribedCycle, nodes: Sequence[NodeId]
) -> "SizeChoice":
    """Return the size for the text and the machines, and why; no reason: nobody has looked."""
    from jupiterd.cycle.runs.size_choice import SizeChoice
    from jupiterd.daemon.commands.model_size_choice import size_for_data

    tokens = _tokens(command)
    if not tokens or _init(command):
        return SizeChoice("1m", "")
    engine = _engine(command)
    machines = trainers(placement, nodes)
    if not machines:
        return size_for_data(tokens, engine, [])
    choice = choose_engine(engine, machines)
    return size_for_data(tokens, choice.engine, [machines[node] for node in choice.gang])


def _model(domain: "Domain", command: DescribedCycle, size: str) -> str:
    """Return the model's text: a preset's, or that of the model to begin with.

    Raises:
        NotFoundError: no such size.
        UsageError: the model to begin with can't be trained, or has no weights.
    """
    if not (init := _init(command)):
        return model_text(size)
    from jupiterd.cycle.runs.run_plan import fitted
    from jupiterd.cycle.training.adapters.given_quantized import check_whole
    from jupiterd.cycle.training.plan import parse_model

    name = str(init.get("model", ""))
    if "config" not in init or not (init.get("weights") or init.get("weights_folder")):
        raise UsageError(
            f"{name} is no model to begin with", "name a Hugging Face folder that holds weights"
        )
    if domain.training.vocab_size is not None:
        raise UsageError(
            f"training.vocab_size is that of {name}", "leave it out of the domain's file"
        )
    seq_len = domain.training.seq_len or USUAL_SEQ_LEN
    shape = parse_model(text_of_config(name, str(init["config"]), seq_len))
    check_whole(name, shape.config)
    return fitted(shape, seq_len, 0).to_text()


def _settings(command: DescribedCycle, domain: "Domain", options: "CycleOptions") -> "RunSettings":
    """Return what is said of islands, of steps, and of the weights to begin with."""
    from jupiterd.cycle.runs.recorded_settings import OF_TUNING
    from jupiterd.cycle.runs.run_settings import FROM_DATA, OF_ISLANDS, RunSettings
    from jupiterd.cycle.training.tuning_batch import LEAST_SEQUENCES

    given = dict(command.settings or {})
    if strange := sorted(given.keys() - {*OF_ISLANDS, GANG_ENCRYPTION, GANG_BACKEND}):
        raise UsageError(f"{strange[0].replace('_', '-')}: that is said of a training run alone")
    init = _init(command)
    how: dict[str, Any] = {
        "max_steps": options.max_steps,
        "lora": _adapter(command, domain, options),
        "shard": options.shard or str(domain.training.shard or ""),
        "memory": options.memory or "",
    }
    if domain.training.steps is None:
        how["steps_from"] = FROM_DATA
    if init:
        how |= {"start_from": str(init.get("weights") or ""), "recipe": OF_TUNING}
        how |= {"adapter_from": str(init.get("adapter") or "")}
    if init and domain.training.batch_sequences is None:
        how["least_batch"] = max(LEAST_SEQUENCES, options.batch_size or 0)
    return RunSettings.parse(given | how)


def _adapter(command: DescribedCycle, domain: "Domain", options: "CycleOptions") -> str:
    """Return the adapter that is trained; empty: all weights are.

    Raises:
        UsageError: there are no weights beside which it could be trained, or other options forbid.
    """
    lora = domain.training.lora or ""
    if lora and not _has_base(command, domain):
        raise UsageError(
            "an adapter is trained beside weights that are there, and this cycle draws its own",
            "name a model to begin with: --init FOLDER, or ORG/NAME on the hub",
        )
    if lora and options.optimizer == "muon":
        raise UsageError("an adapter's numbers are AdamW's", "leave out --optimizer")
    return lora if _init(command) else ""  # a plan may be made while its model is out of reach


def _recorded(settings: "RunSettings", nodes: Sequence[NodeId]) -> dict[str, Scalar]:
    """Return what is recorded of a cycle's settings; what nobody has said is left out."""
    from jupiterd.cycle.runs.recorded_settings import OF_THE_SIZE
    from jupiterd.cycle.runs.run_settings import OF_ISLANDS

    more = {"start_from", "recipe", MAX_RANKS, "steps_from", "max_steps", "least_batch"}
    names = {*OF_ISLANDS, *more, GANG_BACKEND, "lora", "adapter_from", SHARD, MEMORY}
    told = {name: value for name, value in settings.to_scalars().items() if name in names}
    told[NODES] = ",".join(nodes)
    often_silent = ("start_from", MAX_RANKS, NODES, "max_steps", "least_batch")
    silent = {name for name in often_silent if not told[name]}
    told |= {GANG_ENCRYPTION: ON} if settings.gang_encryption == ON else {}
    silent |= {"recipe"} if settings.recipe == OF_THE_SIZE else set()
    return {name: value for name, value in told.items() if name not in silent}


def _with_forecast(
    fleet: FleetView,
    started: CycleStarted,
    wanted: RequestedMachines,
    settings: "RunSettings",
    told: "Text",
) -> tuple[str, "RunSettings", dict[str, Any]]:
    """Return the model's text as it fits the machines, the settings, and the forecast of round 1.

    The forecast is empty if no node here can train now.

    Raises:
        UsageError: the model has no matrices that the adapter is asked for, or as above.
    """
    from jupiterd.cycle.domain.domain import parse_domain
    from jupiterd.cycle.rounds.round_cost import CycleCost, RoundCost
    from jupiterd.cycle.runs.fitted_plan import planned_rounds
    from jupiterd.cycle.runs.recorded_settings import OF_TUNING
    from jupiterd.cycle.training.adapters.adapter_size import adapter_parameters
    from jupiterd.cycle.training.plan import parse_model

    text, domain = started.model_yaml, parse_domain(started.domain_yaml, f"{started.domain}.yaml")
    overrides = domain.training.overrides()
    preset, shape = parse_model(text), parse_model(text, overrides)
    sequences = told.tokens // shape.seq_len

    def plans(of: "RunSettings") -> "tuple[TrainPlan, TrainPlan]":
        return planned_rounds(shape, of, overrides, started.seed, sequences)

    plan, _ = plans(settings)
    if (adapter := plan.options.adapter) is not None:
        adapter_parameters(shape, adapter)
    choice = _choice(fleet.placement, wanted, nccl_refusal(settings.to_scalars()))
    if choice is not None:
        check_gang(fleet.machines, choice, settings)
        settings = in_one_gang(fleet, wanted, choice, shape, plan, settings)
        wanted = with_partition(wanted, settings)
    settings = checked_islands(fleet, wanted, shape, plan, settings)
    if choice is None:
        return text, settings, {}
    settings = settings.shared_by(len(choice.gang))
    plan, _ = plans(settings)
    islands = islands_of_first_round(fleet, wanted, shape, plan, settings)
    settings = settings.shared_by(ranks_in(fleet.machines, islands))
    plan, later = plans(settings)
    gang = replace(choice, gang=choice.gang[: plan.batch_sequences])
    decided = replace(wanted, chosen=tuple(islands))
    is_open = 0 < least_batch(settings, told, shape) < plan.batch_sequences
    expected = estimate(fleet, gang, shape, plan, asked=decided, is_open=is_open)
    cost = CycleCost(
        started.rounds,
        RoundCost.of(shape, plan),
        RoundCost.of(shape, later),
        float(expected.values["tokens_per_s"] or 0.0),
        has_trunk=not islands,
    )
    if expected.is_cut and not settings.shard:
        settings = settings.model_copy(update={SHARD: AUTO})
    if (fit := expected.fit).changes:
        twice = "on" if fit.gradient_checkpointing else plan.options.gradient_checkpointing
        text = preset.with_recipe(fit.plan, twice).to_text()
    if adapter := expected.values.get("adapter"):
        adapter |= {"is_given": told.has_adapter, "usual_of": told.usual_adapter_of or None}
    document = {
        "sheet": sheet(told, shape, plan, settings, expected, cost),
        "expected": {
            **expected.values,
            "learning_rate": plan.learning_rate,
            "is_tuning": settings.recipe == OF_TUNING,
            "least_batch_sequences": least_batch(settings, told, shape),
            "guessed_tokens_per_s": guessed_tokens_per_s(fleet.machines, gang, shape),
        },
        "cost": cost.to_plain(),
        "layouts": expected.layouts,
    }
    return text, settings, document


def _with_engine(
    placement: Placement,
    started: CycleStarted,
    settings: "RunSettings",
    nodes: tuple[NodeId, ...],
) -> CycleStarted:
    """Return a cycle with the engine of all its rounds, where its base's bits are that engine's.

    Raises:
        UsageError: nobody has said which, and no node that could train is here.
    """
    if started.engine != AUTO or not is_quantized(settings.lora):
        return started
    wanted = wanted_of_round(started.engine, settings, nodes)
    if choice := _choice(placement, wanted, nccl_refusal(settings.to_scalars())):
        return replace(started, engine=choice.engine)
    raise UsageError(
        "--quantize: engines quantize differently, and no node that could train is here to choose",
        "--engine torch or --engine mlx",
    )


def _choice(
    placement: Placement, wanted: RequestedMachines, without_nccl: str
) -> EngineChoice | None:
    """Return who would train; raises MissingExtraError where no machine that is here could."""
    if machines := trainers(placement, wanted.nodes):
        choice = choose_engine(wanted.engine, machines, nccl_failure=without_nccl)
        return replace(choice, gang=choice.gang[: wanted.most or None])
    members = placement.machines
    found = [members.hardware_of(node) for node in members.alive()]
    if all(hardware is not None and not hardware.engines for hardware in found):
        raise MissingExtraError("no node that is alive has a machine learning library installed")
    return None
