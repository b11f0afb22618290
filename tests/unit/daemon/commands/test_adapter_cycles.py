"""Cycles whose rounds train an adapter: what is recorded, what is shown, and what is refused."""

import json
from dataclasses import replace
from typing import Any

import pytest

from jupiterd.cluster.facts.facts import CheckpointCommitted, CycleStarted
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.values.hardware import Hardware
from jupiterd.cycle.domain.domain import parse_domain
from jupiterd.cycle.runs.recorded_settings import base_of
from jupiterd.cycle.runs.run_settings import RunSettings
from jupiterd.cycle.training.plan import parse_model
from jupiterd.daemon.commands.start_cycle import planned_cycle
from jupiterd.daemon.planning import adapter_support
from jupiterd.daemon.planning.training_spec import _first_weights, training_of
from jupiterd.errors import MissingExtraError, UsageError
from jupiterd.ids import ArtifactId
from jupiterd.protocol.commands.cycle_commands import StartCycle
from tests.support.cluster.building import started
from tests.support.daemon.term_parts import FakeMachines
from tests.unit.daemon.commands.test_start_cycle import (
    BASE,
    CONFIG,
    DOMAIN,
    asking,
    begun_with,
    estimating,
    knowing,
    requested_machines,
)
from tests.unit.daemon.cycles.test_train_phase import packed
from tests.unit.daemon.planning.test_layout_inputs import BOX, MAC, leading_of
from tests.unit.daemon.planning.test_rank_order import A, B

MODEL = {**BASE, "config": json.dumps({**CONFIG, "num_key_value_heads": 1, "head_dim": 64})}
ABLE = replace(MAC, trains_adapters=True)
LORA = {"training": {"lora": "rank=4"}}


def planned(
    monkeypatch: pytest.MonkeyPatch, machine: Hardware | None = ABLE, **said: Any
) -> tuple[CycleStarted, dict[str, Any]]:
    """A cycle that is asked for where one machine is here, a Mac; None: nobody is."""
    leading = leading_of(a=machine or ABLE)
    for module in (requested_machines, asking, estimating):
        monkeypatch.setattr(module, "trainers", lambda *_: {A: machine})
    if machine is None:
        monkeypatch.setattr(asking, "_choice", lambda *_: None)
    return planned_cycle(leading.fleet_view, StartCycle.read({**DOMAIN, **said}))


def test_an_adapter_stands_in_the_record_and_its_size_in_the_plan(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started, forecast = planned(monkeypatch, init=MODEL, **LORA)
    assert (started.settings["lora"], started.settings["start_from"]) == ("rank=4", "a" * 64)
    assert parse_model(started.model_yaml).recipe.options.adapter is None, "students have none"
    adapter = forecast["expected"]["adapter"]
    assert adapter["options"] == "rank=4,alpha=8"
    assert 0 < adapter["parameters"] < forecast["expected"]["parameters"]


def test_rounds_train_the_adapter_and_a_later_one_begins_with_that_of_the_round_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started, _ = planned(monkeypatch, init=MODEL, **LORA)
    state = CycleState()
    state.apply(started, (1, A, "u", 1))
    state.apply(replace(packed(1), cycle=started.cycle), (1, A, "u", 2))
    term = knowing(state, started.cycle).term
    first = training_of(term.state, started.cycle, 1)
    assert first.plan.options.adapter is not None
    assert (first.plan.options.adapter.rank, first.plan.options.adapter.base) == (4, "a" * 64)
    whole, _ = planned(monkeypatch, init=MODEL)
    rate = first.plan.learning_rate
    assert (first.settings.start_from, first.settings.adapter_from) == ("a" * 64, "")
    done = CheckpointCommitted(
        started.cycle, 1, "", ArtifactId("c" * 64), 1, 9, 900, 90, 2.0, is_final=True
    )
    state.apply(done, (1, A, "u", 3))
    state.apply(replace(packed(2), cycle=started.cycle), (1, A, "u", 4))
    second = training_of(term.state, started.cycle, 2)
    assert (second.settings.start_from, second.settings.adapter_from) == ("a" * 64, "c" * 64)
    assert second.plan.options.adapter == first.plan.options.adapter
    assert rate == pytest.approx(10 * _rate_of(whole))


def _rate_of(started: CycleStarted) -> float:
    state = CycleState()
    state.apply(started, (1, A, "u", 1))
    state.apply(replace(packed(1), cycle=started.cycle), (1, A, "u", 2))
    term = knowing(state, started.cycle).term
    return training_of(term.state, started.cycle, 1).plan.learning_rate


def test_one_that_was_given_is_begun_with_beaten_and_gone_on_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = {**MODEL, "adapter": "d" * 64}
    started, forecast = planned(monkeypatch, init=given, **LORA)
    assert (started.settings["adapter_from"], base_of(started.settings)) == ("d" * 64, "d" * 64)
    assert "Starts from the adapter that was given" in forecast["sheet"]
    assert _first_weights(started, "a" * 64) == {"start_from": "a" * 64, "adapter_from": "d" * 64}
    assert _first_weights(started, "c" * 64) == {"start_from": "a" * 64, "adapter_from": "c" * 64}
    without, forecast = planned(monkeypatch, init=MODEL, **LORA)
    assert "adapter_from" not in without.settings
    assert base_of(without.settings) == "a" * 64
    assert "Starts from the adapter that was given" not in forecast["sheet"]


def test_a_domain_says_it_in_the_same_words_and_off_takes_it_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = f"{DOMAIN['domain_yaml'].rstrip()}\ntraining: {{lora: 'rank=2'}}\n"
    assert parse_domain(text, "python.yaml").training.lora == "rank=2"
    started, _ = planned(monkeypatch, domain_yaml=text, init=MODEL)
    assert started.settings["lora"] == "rank=2"
    off = {"training": {"lora": "off"}}
    started, _ = planned(monkeypatch, domain_yaml=text, init=MODEL, **off)
    assert "lora" not in started.settings


@pytest.mark.parametrize(
    ("said", "reason", "hint"),
    [
        (LORA, "this cycle draws its own", "--init FOLDER"),
        ({"init": MODEL, "training": {"lora": "rank=4,targets=w_pack"}}, "w_pack", "q_proj"),
        ({"init": MODEL, "training": {"lora": "width=4"}}, "width=4", "--lora rank=16"),
        (
            {"init": MODEL, "training": {"lora": "rank=4", "optimizer": "muon"}},
            "AdamW's",
            "leave out --optimizer",
        ),
    ],
)
def test_what_cannot_be_is_refused_before_anything_starts(
    monkeypatch: pytest.MonkeyPatch, said: dict[str, Any], reason: str, hint: str
) -> None:
    with pytest.raises(UsageError) as caught:
        planned(monkeypatch, **said)
    assert reason in caught.value.message
    assert hint in (caught.value.hint or "")


def test_members_that_cannot_train_adapters_are_named() -> None:
    machines = FakeMachines({A: ABLE, B: BOX}, {A: "attic", B: "cellar"}, answering=(A, B))
    with pytest.raises(UsageError, match="cellar runs a build of jupiterd that can't") as caught:
        adapter_support.check_all_train_adapters(machines, "rank=4")
    assert "jupiterctl node remove cellar" in (caught.value.hint or "")
    adapter_support.check_all_train_adapters(FakeMachines({A: ABLE}, {}, answering=(A,)), "rank=4")


def test_islands_of_a_later_round_begin_with_the_adapter_before_beside_the_same_base() -> None:
    begun = replace(started(), settings={"start_from": "a" * 64, "lora": "rank=4"})
    first, later = _first_weights(begun, "a" * 64), _first_weights(begun, "c" * 64)
    assert first == {"start_from": "a" * 64, "adapter_from": ""}
    assert later == {"start_from": "a" * 64, "adapter_from": "c" * 64}
    settings = RunSettings.parse({"lora": "rank=4", "recipe": "tuning", **later})
    assert settings.adapter is not None
    assert settings.adapter.base == "a" * 64
    assert _first_weights(replace(begun, settings={}), "c" * 64) == {"start_from": "c" * 64}


def test_a_cycle_is_refused_where_the_only_member_is_too_old(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(DOMAIN, "training", {"lora": "rank=4"})
    with pytest.raises(UsageError, match="can't train adapters") as refused:
        begun_with(monkeypatch, MAC, **BASE)
    assert "upgrade it" in refused.value.hint


QUANTIZED = {"training": {"lora": "rank=4", "quantize": "4bit"}}


def test_a_quantized_base_stands_in_the_record_with_the_engine_of_all_rounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started, forecast = planned(monkeypatch, init=MODEL, **QUANTIZED)
    assert (started.settings["lora"], started.engine) == ("rank=4,quantize=4bit", "mlx")
    whole, needed = planned(monkeypatch, init=MODEL, **LORA)
    assert whole.engine == "auto"
    both = (each["expected"]["memory_bytes_per_device"] for each in (forecast, needed))
    assert next(both) < next(both)


def test_on_torch_it_takes_bitsandbytes_on_the_machine_that_trains(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    box = replace(BOX, trains_adapters=True)
    with pytest.raises(MissingExtraError, match="a lacks bitsandbytes") as caught:
        planned(monkeypatch, box, init=MODEL, **QUANTIZED)
    assert "pip install 'jupiterd[quantized]'" in (caught.value.hint or "")
    able = replace(box, has_bitsandbytes=True)
    assert planned(monkeypatch, able, init=MODEL, **QUANTIZED)[0].engine == "torch"
    assert planned(monkeypatch, box, init=MODEL, **LORA)[0].engine == "auto"


def test_its_engine_has_to_be_said_where_nobody_who_could_train_is_here(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(UsageError, match="engines quantize differently") as caught:
        planned(monkeypatch, None, init=MODEL, **QUANTIZED)
    assert caught.value.hint == "--engine torch or --engine mlx"
    assert planned(monkeypatch, None, init=MODEL, engine="mlx", **QUANTIZED)[0].engine == "mlx"


def test_a_base_is_only_quantized_beside_an_adapter(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="only a model that stays as it is can be quant"):
        planned(monkeypatch, init=MODEL, training={"quantize": "8bit"})
    started, _ = planned(monkeypatch, init=MODEL, training={"quantize": "none"})
    assert "lora" not in started.settings


def test_a_cycle_does_not_begin_with_a_model_that_comes_quantized(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = json.loads(MODEL["config"]) | {"quantization": {"group_size": 64, "bits": 4}}
    with pytest.raises(UsageError, match="are quantized for MLX") as caught:
        planned(monkeypatch, init={**MODEL, "config": json.dumps(config)}, **LORA)
    assert "--lora --quantize 4bit" in (caught.value.hint or "")
