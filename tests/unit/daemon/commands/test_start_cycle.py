"""What is recorded of a cycle that is asked for, and what it is said to come to."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jupiterd.cluster.facts.facts import CycleStarted, Fact, RoundCommitted
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.ledger.entry import EntryWriter
from jupiterd.cluster.planning.placement import Seat
from jupiterd.cluster.training.named_trainers import most_ranks, named_trainers
from jupiterd.cluster.values.hardware import Hardware
from jupiterd.cycle.domain.domain import parse_domain
from jupiterd.cycle.rounds.round_cost import CycleCost, RoundCost
from jupiterd.cycle.templates.texts import USUAL
from jupiterd.cycle.training.plan import derive, parse_model
from jupiterd.daemon.catalog.generator_state import domain_of
from jupiterd.daemon.catalog.round_history import active_generators_of
from jupiterd.daemon.commands import start_cycle as asking
from jupiterd.daemon.commands.start_cycle import planned_cycle
from jupiterd.daemon.cycles.cycle_driver import CycleDriver
from jupiterd.daemon.gangs.rank_orders import RankOrders
from jupiterd.daemon.leader.term_services import TermServices
from jupiterd.daemon.planning import requested_machines
from jupiterd.daemon.planning import training_estimate as estimating
from jupiterd.daemon.planning.gang_plan import nccl_failure
from jupiterd.daemon.planning.trained_round import TrainedRound
from jupiterd.daemon.planning.training_spec import training_of
from jupiterd.errors import NotFoundError, TooLargeForDeviceError, UsageError
from jupiterd.ids import CycleId, NodeId
from jupiterd.locations import config_folder
from jupiterd.protocol.commands.cycle_commands import StartCycle
from tests.support.cluster.building import founded_ledger, started
from tests.support.daemon.term_parts import FakeTerm, services_of
from tests.unit.daemon.commands.test_train_commands import leads
from tests.unit.daemon.cycles.test_train_phase import packed
from tests.unit.daemon.planning.test_layout_inputs import BOX, MAC, attempt, leading_of
from tests.unit.daemon.planning.test_rank_order import A, B, C
from tests.unit.daemon.planning.test_training_estimate import gpu

DOMAIN: dict[str, Any] = {
    "domain_name": "python",
    "domain_yaml": (config_folder() / "domains" / "python.yaml").read_text(),
}


def asked(
    monkeypatch: pytest.MonkeyPatch, *facts: Fact, nodes: tuple[NodeId, ...] = (A, B), **said: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The settings and what is foretold where A is a Mac, and the others are boxes with torch."""
    leading = leading_of(*facts, a=MAC)
    machines = {node: leading.machines.hardware_of(node) for node in nodes}
    for module in (requested_machines, asking, estimating):
        monkeypatch.setattr(module, "trainers", lambda *_: machines)
    command = StartCycle.read({**DOMAIN, "settings": said})
    started, forecast = planned_cycle(leading.fleet_view, command)
    return dict(started.settings), forecast


def test_islands_that_are_named_are_kept_by_their_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    who = "mlx:a torch:b"
    settings, forecast = asked(monkeypatch, islands=who, sync_every=40, ways="bf16")
    assert settings == {
        "islands": who, "island_nodes": f"mlx:{A} torch:{B}", "sync_every": 40,
        "sync": "overlapped", "outer": "nesterov", "ways": "bf16", "steps_from": "data",
    }  # fmt: skip
    assert forecast["expected"]["ranks"] == 2
    assert forecast["layouts"]["unasked"].startswith("2 islands: ")


def test_islands_that_are_wanted_are_found_anew_for_each_round(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings, forecast = asked(monkeypatch, islands="on", nodes=(A, B, C))
    assert (settings["islands"], settings["island_nodes"]) == ("on", "")
    assert forecast["expected"]["ranks"] == 3
    assert forecast["layouts"]["unasked"].startswith("3 islands: ")


def test_where_islands_are_predicted_to_be_best_that_is_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    measured = [*attempt(1, (A,), 40_000, "mlx"), *attempt(2, (B,), 40_000)]
    settings, forecast = asked(monkeypatch, *measured)
    assert settings["islands"] == "auto"
    layouts = forecast["layouts"]
    assert layouts["unasked"] == layouts["chosen"]["title"]
    assert layouts["chosen"]["layout"] == "islands"
    _, forecast = asked(monkeypatch, *measured, islands="off")
    assert forecast["layouts"]["chosen"]["layout"] != "islands"


def test_islands_that_cannot_be_are_refused_as_of_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="need two machines that could train, and there is 1"):
        asked(monkeypatch, islands="on", nodes=(B,))
    with pytest.raises(NotFoundError):
        asked(monkeypatch, islands="mlx:nobody torch:no-one")
    with pytest.raises(UsageError, match="islands"):
        asked(monkeypatch, islands="some")
    with pytest.raises(UsageError, match="seq-len: that is said of a training run alone"):
        asked(monkeypatch, seq_len=64)


def test_a_cycle_that_is_to_be_encrypted_says_so_and_sums_over_no_nccl(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings, _ = asked(monkeypatch, gang_encryption="on")
    assert settings["gang_encryption"] == "on"
    assert "gang_encryption" not in asked(monkeypatch)[0], "older builds wouldn't know it"
    assert nccl_failure(cycle_with(settings)) == "NCCL goes through no tunnel"
    assert nccl_failure(cycle_with({})) == ""


def test_a_cycle_that_is_to_sum_over_gloo_says_so_and_has_no_nccl(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings, _ = asked(monkeypatch, gang_backend="gloo")
    assert settings["gang_backend"] == "gloo"
    assert "gang_backend" not in asked(monkeypatch)[0], "older builds wouldn't know it"
    assert nccl_failure(cycle_with(settings)) == "it was asked for (--gang-backend gloo)"
    with pytest.raises(UsageError, match=r"gang.backend"):
        asked(monkeypatch, gang_backend="mpi")


def test_what_is_said_of_the_training_is_recorded_with_the_cycle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ledger = founded_ledger(EntryWriter(A, "a"), [B])
    leading = replace(leading_of(a=MAC), term=FakeTerm(A, ledger.state))
    machines = {node: leading.machines.hardware_of(node) for node in (A, B)}

    def named(_: Any, nodes: tuple[NodeId, ...] = ()) -> dict[NodeId, Any]:
        return {node: hardware for node, hardware in machines.items() if node in (nodes or (A, B))}

    for module in (requested_machines, asking, estimating):
        monkeypatch.setattr(module, "trainers", named)
    said = {"training": {"seq_len": 64, "optimizer": "muon", "max_steps": 70}, "nodes": "b"}
    started, forecast = planned_cycle(leading.fleet_view, StartCycle.read({**DOMAIN, **said}))
    assert started.settings["nodes"] == B
    assert started.settings["max_steps"] == forecast["cost"]["first"]["steps"] == 70
    assert parse_domain(started.domain_yaml, "python.yaml").training.seq_len == 64
    assert parse_model(started.model_yaml).recipe.options.optimizer == "muon"
    assert forecast["expected"]["ranks"] == 1
    state = CycleState()
    state.apply(started, (1, A, "u", 1))
    assert (named_trainers(state), most_ranks(state)) == ((B,), 0)
    started, forecast = planned_cycle(leading.fleet_view, StartCycle.read({**DOMAIN, "nodes": "1"}))
    assert (started.settings["max_ranks"], forecast["expected"]["ranks"]) == (1, 1)
    with pytest.raises(NotFoundError):
        planned_cycle(leading.fleet_view, StartCycle.read({**DOMAIN, "nodes": "nobody"}))


async def test_a_cycle_may_be_asked_for_while_nobody_who_trains_is_here(tmp_path: Path) -> None:
    async with leads(tmp_path) as leading:
        leading.machines.hardware_of = lambda _: None
        started, forecast = planned_cycle(leading.fleet_view, StartCycle.read(DOMAIN))
        assert (started.settings["islands"], forecast) == ("auto", {})
        with pytest.raises(UsageError, match="there is 0"):
            planned_cycle(
                leading.fleet_view, StartCycle.read({**DOMAIN, "settings": {"islands": "on"}})
            )


def test_what_each_round_costs_is_foretold_by_its_own_tokens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    leading = leading_of(a=MAC)
    machines = {node: leading.machines.hardware_of(node) for node in (A,)}
    for module in (requested_machines, asking, estimating):
        monkeypatch.setattr(module, "trainers", lambda *_: machines)
    _, forecast = planned_cycle(leading.fleet_view, StartCycle.read({**DOMAIN, "rounds": 3}))
    later = "460 steps, 0.47 million tokens: trunk 0.38, branch 0.09"
    assert forecast["sheet"][-3:] == [
        "Round 1: 780 steps, 0.80 million tokens: trunk 0.64, branch 0.16",
        f"Each later round goes on with the trunk: {later}",
        "Training of all 3 rounds: 1.74 million tokens",
    ]
    cost = forecast["cost"]
    assert cost["tokens"] == (780 + 2 * 460) * 4 * 256
    assert cost["later"]["trunk_tokens"] == 368 * 4 * 256
    assert (cost["eta_s"], cost["goes_on_with_trunk"]) == (None, True)
    _, alone = planned_cycle(leading.fleet_view, StartCycle.read({**DOMAIN, "rounds": 1}))
    assert (alone["cost"]["later"], "Round 1" in str(alone["sheet"])) == (None, False)


def test_a_speed_that_is_known_gives_each_round_its_time() -> None:
    each = RoundCost(460, 368 * 1024, 92 * 1024)
    cost = CycleCost(2, each, each, 1024.0, has_trunk=False)
    assert cost.to_plain()["later"]["eta_s"] == 460.0
    assert cost.lines()[1].startswith("Each later round begins with the last candidate: 460 steps")
    assert "0.47 million tokens, 7 min 40 s: trunk" in cost.lines()[1]


def cycle_with(settings: Mapping[str, Any]) -> CycleState:
    """Return a cycle that was asked for with these settings."""
    state = CycleState()
    state.apply(replace(started(), settings=dict(settings)), (1, A, "u", 1))
    return state


def knowing(state: CycleState, cycle: CycleId) -> TermServices:
    """Return a term whose ledger has this one cycle."""
    term = FakeTerm()
    term.state.cycles[cycle] = state
    return services_of(term)


CONFIG = {
    "model_type": "qwen3", "vocab_size": 3_000, "hidden_size": 64, "num_hidden_layers": 2,
    "num_attention_heads": 1, "intermediate_size": 128, "max_position_embeddings": 4_096,
}  # fmt: skip
BASE = {"model": "base", "config": json.dumps(CONFIG), "weights": "a" * 64}


def begun_with(
    monkeypatch: pytest.MonkeyPatch, machine: Hardware = MAC, **init: Any
) -> CycleStarted:
    leading = leading_of(a=machine)
    leading.machines.alive = lambda: frozenset({A})
    leading.placement.seats = lambda: [Seat(A, "hybrid", True, 0)]
    for module in (requested_machines, asking, estimating):
        monkeypatch.setattr(module, "trainers", lambda *_: {A: leading.machines.hardware_of(A)})
    return planned_cycle(leading.fleet_view, StartCycle.read({**DOMAIN, "init": init}))[0]


def test_a_cycle_may_begin_with_a_model_that_others_made(monkeypatch: pytest.MonkeyPatch) -> None:
    started = begun_with(monkeypatch, **BASE)
    assert (started.size, started.settings["start_from"]) == ("base", "a" * 64)
    assert (started.settings["recipe"], started.settings["least_batch"]) == ("tuning", 4)
    shape = parse_model(started.model_yaml)
    assert (shape.vocab_size, shape.hidden, shape.seq_len) == (3_000, 64, asking.USUAL_SEQ_LEN)
    state = CycleState()
    state.apply(started, (1, A, "u", 1))
    leading = knowing(state, started.cycle)
    view = CycleDriver(leading, started.cycle)._view()
    assert view.first_model == "a" * 64
    state.apply(replace(packed(1), cycle=started.cycle), (1, A, "u", 2))
    first = training_of(leading.term.state, started.cycle, 1)
    assert first.settings.start_from == "a" * 64
    assert (first.plan.weight_decay, first.plan.learning_rate < 1e-4) == (0.0, True)
    trained = TrainedRound(started.cycle, 1, shape, derive(shape, 1))
    orders = RankOrders(leading.term, leading.machines, leading.reach, leading.calls, trained)
    assert orders.asked("start_from") == "a" * 64, "the gang's ranks load it"


def test_what_people_say_of_a_step_s_sequences_counts_more_than_the_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(DOMAIN, "training", {"batch_size": 16})
    assert begun_with(monkeypatch, **BASE).settings["least_batch"] == 16
    said = f"{DOMAIN['domain_yaml']}\ntraining: {{batch_sequences: 3}}\n"
    monkeypatch.setitem(DOMAIN, "domain_yaml", said)
    assert "least_batch" not in begun_with(monkeypatch, **BASE).settings


def test_each_device_that_trains_has_a_sequence_of_a_step_that_follows_from_the_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    six = replace(BOX, gpus=(gpu(),) * 6, devices=tuple(f"cuda:{n}" for n in range(6)))
    assert begun_with(monkeypatch, six, **BASE).settings["least_batch"] == 6


def test_what_a_named_generator_is_asked_stands_in_the_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever resumes a cycle asks what it was started with: nothing, where an older build did."""
    plain = "version: 1\ndomain: python\ntitle: P\nlanguage: en\nholdout: {salt: a}\n"
    sources = "data_sources: [{kind: folder, path: /srv/bread, license: MIT}]\n"
    monkeypatch.setitem(DOMAIN, "domain_yaml", plain + sources)
    server = {"name": "oak", "url": "http://box/v1", "model": "oak"}
    monkeypatch.setitem(DOMAIN, "generator", server)
    started = begun_with(monkeypatch, **BASE)
    before = replace(started, domain_yaml=DOMAIN["domain_yaml"])
    asked: list[tuple[str, ...]] = []
    for each in (started, before):
        state = CycleState()
        state.apply(each, (1, A, "u", 1))
        domain = domain_of(state)
        asked.append(() if domain is None else domain.generation.kinds)
    assert asked == [USUAL, ()]


def test_what_no_cycle_can_begin_with_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="base is no model to begin with"):
        begun_with(monkeypatch, model="base", config=json.dumps(CONFIG))
    sized = DOMAIN["domain_yaml"].rstrip() + "\ntraining: {vocab_size: 512}\n"
    monkeypatch.setitem(DOMAIN, "domain_yaml", sized)
    with pytest.raises(UsageError, match="is that of base"):
        begun_with(monkeypatch, **BASE)


@pytest.mark.parametrize(
    ("in_domain", "asked", "is_advised"),
    [
        ("scratch", {}, True),
        ("org/base", {}, False),
        ("org/base", {"begins_with": "scratch"}, True),
        ("scratch", {"begins_with": "org/base"}, False),
        ("scratch", {"init": BASE}, False),
    ],
)
def test_a_base_is_recommended_to_those_who_have_none(
    monkeypatch: pytest.MonkeyPatch, in_domain: str, asked: dict[str, Any], *, is_advised: bool
) -> None:
    monkeypatch.setattr("jupiterd.cycle.runs.init_advice.LARGE_PARAMETERS", 1)
    monkeypatch.setitem(
        DOMAIN, "domain_yaml", f"{DOMAIN['domain_yaml'].rstrip()}\ninit: {in_domain}\n"
    )
    leading = leading_of(a=MAC)
    for module in (requested_machines, asking, estimating):
        monkeypatch.setattr(module, "trainers", lambda *_: {A: leading.machines.hardware_of(A)})
    _, forecast = planned_cycle(leading.fleet_view, StartCycle.read({**DOMAIN, **asked}))
    assert any("Recommended" in line for line in forecast["sheet"]) == is_advised


def test_text_that_is_known_decides_the_size_and_the_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    leading = leading_of(a=MAC)
    machines = {node: leading.machines.hardware_of(node) for node in (A,)}
    for module in (requested_machines, asking, estimating):
        monkeypatch.setattr(module, "trainers", lambda *_: machines)
    unsized = {name: value for name, value in DOMAIN.items() if name != "size"}
    started, forecast = planned_cycle(
        leading.fleet_view, StartCycle.read({**unsized, "rounds": 2, "tokens": 20_480})
    )
    reason = "20,480 tokens of text; 25m needs 12.5 million"
    assert (started.size, forecast["size"]) == ("1m", {"size": "1m", "reason": reason})
    assert forecast["sheet"][0] == f"Size 1m: {reason}"
    first = forecast["cost"]["first"]
    assert (first["least_steps"], first["steps"]) == (80, 320), "four passes, and sixteen"
    assert "Round 1: 80 steps, while held-out loss falls up to 320 steps" in str(forecast["sheet"])
    large, _ = planned_cycle(leading.fleet_view, StartCycle.read({**unsized, "tokens": 40_000_000}))
    assert large.size == "25m"
    named, told = planned_cycle(
        leading.fleet_view, StartCycle.read({**unsized, "size": "25m", "tokens": 20_480})
    )
    assert (named.size, told["size"]["size"]) == ("25m", "1m"), "what would suit is told"
    assert not told["sheet"][0].startswith("Size")
    assert told["expected"]["guessed_tokens_per_s"] > 0


CHAT = {**BASE, "is_chat": True}
PROSE = (
    "version: 1\ndomain: python\ntitle: P\nlanguage: en\nholdout: {salt: a}\n"
    "data_sources: [{kind: folder, path: /srv/bread, license: MIT}]\n"
)


def begun_by_chat(
    monkeypatch: pytest.MonkeyPatch, more: str = "", generator: Any = None, **training: Any
) -> CycleStarted:
    monkeypatch.setitem(DOMAIN, "domain_yaml", PROSE + more)
    if generator is not None:
        monkeypatch.setitem(DOMAIN, "generator", generator)
    if training:
        monkeypatch.setitem(DOMAIN, "training", training)
    return begun_with(monkeypatch, **CHAT)


def test_a_chat_model_asks_and_answers_questions_where_nobody_else_writes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started = begun_by_chat(monkeypatch)
    assert started.generator == {"name": "base", "artifact": "a" * 64}
    assert started.settings["loss_on"] == "answers"
    assert parse_domain(started.domain_yaml, "d.yaml").generation.kinds == ("question_answer",)
    state = CycleState()
    state.apply(started, (1, A, "u", 1))
    leading = knowing(state, started.cycle)
    assert CycleDriver(leading, started.cycle)._view().loss_on == "answers"
    assert _students_of(state, started) == ("b" * 64,), "the better student writes after it"


def training_of_settings(state: CycleState) -> dict[str, Any]:
    """Return the settings with which a round of the cycle is trained."""
    assert state.started is not None
    state.apply(replace(packed(1), cycle=state.started.cycle), (1, A, "u", 2))
    leading = knowing(state, state.started.cycle)
    return training_of(leading.term.state, state.started.cycle, 1).settings.to_scalars()


def _students_of(state: CycleState, started: CycleStarted) -> tuple[str, ...]:
    """Return who would write after a first round whose student was promoted."""
    domain = parse_domain(started.domain_yaml, "d.yaml")
    over = RoundCommitted(started.cycle, 1, "b" * 64, "PROMOTE", "")
    return active_generators_of(state, domain, [over]).students


def test_what_people_say_of_generating_counts_with_a_chat_model_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    none = begun_by_chat(monkeypatch, "generation: {templates: []}\n")
    assert (none.generator, none.settings["loss_on"]) == ({}, "answers")
    assert begun_by_chat(monkeypatch, "mix_ratio: {synthetic_share: 0}\n").generator == {}
    faq = "generation: {templates: [{kind: faq, samples: 4}]}\n"
    assert begun_by_chat(monkeypatch, faq).generator["name"] == "base"
    summary = "generation: {templates: [{kind: summary}]}\n"
    assert begun_by_chat(monkeypatch, summary).generator == {}, "its student may, once promoted"
    server = {"name": "oak", "url": "http://box/v1", "model": "oak"}
    named = begun_by_chat(monkeypatch, generator=server, loss_on="all")
    assert (named.generator["name"], named.settings["loss_on"]) == ("oak", "all")
    assert parse_domain(named.domain_yaml, "d.yaml").generation.kinds == USUAL
    state = CycleState()
    state.apply(named, (1, A, "u", 1))
    assert _students_of(state, named) == (), "a named generator stays until text is shown to teach"
    itself = {"name": "base", "artifact": "a" * 64}
    named = begun_by_chat(monkeypatch, generator=itself)
    state = CycleState()
    state.apply(named, (1, A, "u", 1))
    assert _students_of(state, named) == (), "and so does one that is the chat model itself"
    assert "generator_is_named" not in training_of_settings(state)


def test_a_generator_that_no_machine_could_write_with_is_refused_by_its_configuration(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    large = CONFIG | {"hidden_size": 8_192, "num_hidden_layers": 90, "intermediate_size": 40_000}
    monkeypatch.setitem(DOMAIN, "generator_config", json.dumps(large))
    with pytest.raises(TooLargeForDeviceError, match=r"oak needs .* GB of memory to write"):
        begun_by_chat(monkeypatch, generator={"name": "oak", "artifact": "b" * 64})
    monkeypatch.setitem(DOMAIN, "generator_config", json.dumps(large | {"more": "x" * 70_000}))
    with pytest.raises(UsageError, match=r"config\.json of oak is larger than 64 KiB"):
        begun_by_chat(monkeypatch, generator={"name": "oak", "artifact": "b" * 64})


def test_cycles_without_a_chat_model_have_no_questions_and_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started = begun_with(monkeypatch, **BASE)
    assert "loss_on" not in started.settings
    monkeypatch.setitem(DOMAIN, "training", {"loss_on": "all"})
    with pytest.raises(UsageError, match="--loss-on is said of questions and answers"):
        begun_with(monkeypatch, **BASE)


def test_the_domains_own_questions_are_in_the_record_and_no_item_of_work_names_their_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asks = str(DOMAIN["domain_yaml"]).replace("evaluation:", "evaluation:\n  questions: own.jsonl")
    monkeypatch.setitem(DOMAIN, "domain_yaml", asks)
    monkeypatch.setitem(DOMAIN, "questions", "e" * 64)
    started = begun_with(monkeypatch, **BASE)
    assert started.settings["questions"] == "e" * 64
    state = CycleState()
    state.apply(started, (1, A, "u", 1))
    leading = knowing(state, started.cycle)
    assert CycleDriver(leading, started.cycle)._view().questions == "e" * 64
    state.apply(replace(packed(1), cycle=started.cycle), (1, A, "u", 2))
    training_of(leading.term.state, started.cycle, 1)  # a round's settings hold no questions
    assert "questions" not in parse_domain(asks, "d.yaml").evaluation.limits()
