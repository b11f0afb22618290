"""Whether islands train a run, and which: decided when it is asked for."""

from dataclasses import replace
from typing import Any, cast

import pytest

from jupiterd.cluster.facts.facts import Fact
from jupiterd.cluster.planning.engines import choose_engine
from jupiterd.cluster.planning.layouts import Island
from jupiterd.cluster.values.hardware import Hardware
from jupiterd.cluster.values.interface_kind import InterfaceKind
from jupiterd.cluster.values.link_quality import LinkQuality
from jupiterd.cycle.runs.run_settings import RunSettings
from jupiterd.cycle.training.plan import derive
from jupiterd.daemon.islands.island_plan import (
    islands_of_round,
    islands_of_settings,
    ranks_in,
    wanted_of_round,
    with_gang,
)
from jupiterd.daemon.planning import requested_machines
from jupiterd.daemon.planning.requested_machines import RequestedMachines
from jupiterd.errors import UsageError
from jupiterd.ids import NodeId
from tests.unit.daemon.planning.test_layout_inputs import MAC, attempt, leading_of, shape
from tests.unit.daemon.planning.test_rank_order import A, B, C

WITH_BOTH = replace(MAC, engines=("mlx", "torch"))
GIGABIT = LinkQuality(InterfaceKind.ETHERNET, 0.001, 1e9)
WIFI = LinkQuality(InterfaceKind.WIFI, 0.01, 2e7)


def decided(
    monkeypatch: pytest.MonkeyPatch,
    islands: str,
    *facts: Fact,
    nodes: tuple[NodeId, ...] = (A, B),
    mac: Hardware = MAC,
    link: LinkQuality = GIGABIT,
    batch: int = 4,
    least_batch: int = 0,
) -> RunSettings:
    """What is made of `--islands` where A is a Mac, and the others are boxes with torch."""
    leading = leading_of(*facts, a=mac, link=link)
    machines = {node: leading.machines.hardware_of(node) for node in nodes}
    monkeypatch.setattr(requested_machines, "trainers", lambda *_: machines)
    settings = RunSettings(islands=cast("Any", islands), ranks=7, least_batch=least_batch)
    choice = choose_engine("auto", machines)
    plan = derive(shape(), 1).model_copy(update={"batch_sequences": batch})
    asked = RequestedMachines(islands=islands)
    return with_gang(leading.fleet_view, asked, choice, shape(), plan, settings)


def test_islands_that_are_asked_for_have_an_engine_each(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = decided(monkeypatch, "on", nodes=(A, B, C))
    assert islands_of_settings(settings) == (
        Island("mlx", (A,)), Island("torch", (B,)), Island("torch", (C,)),
    )  # fmt: skip
    assert settings.ranks == 3


@pytest.mark.parametrize(("islands", "nodes"), [("auto", (B, C)), ("off", (A, B))])
def test_what_nobody_has_measured_is_left_to_one_gang(
    monkeypatch: pytest.MonkeyPatch, islands: str, nodes: tuple[NodeId, ...]
) -> None:
    settings = decided(monkeypatch, islands, nodes=nodes)
    assert islands_of_settings(settings) == ()
    assert settings.ranks == sum(node != A for node in nodes)


MIXED = (Island("mlx", (A,)), Island("torch", (B,)))


@pytest.mark.parametrize("mac", [MAC, WITH_BOTH], ids=["mlx", "mlx and torch"])
@pytest.mark.parametrize("islands", ["auto", "on"])
@pytest.mark.parametrize("measured", [(), attempt(1, (A, B), 400_000)], ids=["never", "as a gang"])
def test_a_mac_beside_a_box_trains_on_mlx_though_nobody_has_measured_that(
    monkeypatch: pytest.MonkeyPatch, islands: str, mac: Hardware, measured: list[Fact]
) -> None:
    assert islands_of_settings(decided(monkeypatch, islands, *measured, mac=mac)) == MIXED


@pytest.mark.parametrize(("mac_tokens", "are_best"), [(400, False), (40_000, True)])
def test_a_mac_that_was_measured_is_an_island_only_where_that_is_best(
    monkeypatch: pytest.MonkeyPatch, mac_tokens: int, are_best: bool
) -> None:
    measured = [*attempt(1, (A,), mac_tokens, "mlx"), *attempt(2, (B,), 40_000)]
    found = islands_of_settings(decided(monkeypatch, "auto", *measured, mac=WITH_BOTH))
    assert found == (MIXED if are_best else ())


def test_a_mac_known_to_be_far_too_slow_is_no_island_though_its_wire_is_slow_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    measured = [*attempt(1, (A,), 400, "mlx"), *attempt(2, (B,), 40_000)]
    settings = decided(monkeypatch, "auto", *measured, mac=WITH_BOTH, link=WIFI)
    assert islands_of_settings(settings) == ()


def test_boxes_on_a_slow_wire_are_islands_though_nobody_has_measured_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    apart = (Island("torch", (B,)), Island("torch", (C,)))
    settings = decided(monkeypatch, "auto", nodes=(B, C), link=WIFI)
    assert islands_of_settings(settings) == apart
    assert not islands_of_settings(decided(monkeypatch, "off", nodes=(B, C), link=WIFI))


def test_where_islands_are_predicted_to_be_best_they_train(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = [*attempt(1, (A,), 40_000, "mlx"), *attempt(2, (B,), 40_000)]
    settings = decided(monkeypatch, "auto", *measured)
    assert islands_of_settings(settings) == (Island("mlx", (A,)), Island("torch", (B,)))
    assert settings.batch_sequences == 32, "as one gang would have had it"
    assert not islands_of_settings(decided(monkeypatch, "off", *measured))


@pytest.mark.parametrize(("least_batch", "have_room"), [(0, False), (1, True)])
def test_a_step_that_the_text_made_small_has_room_for_all_islands(
    monkeypatch: pytest.MonkeyPatch, least_batch: int, have_room: bool
) -> None:
    small = decided(monkeypatch, "auto", batch=1, least_batch=least_batch)
    assert islands_of_settings(small) == (MIXED if have_room else ())
    leading = leading_of(a=MAC)
    machines = {node: leading.machines.hardware_of(node) for node in (A, B, C)}
    monkeypatch.setattr(requested_machines, "trainers", lambda *_: machines)
    settings = RunSettings(islands="on", least_batch=least_batch)
    plan = derive(shape(), 1).model_copy(update={"batch_sequences": 2})
    asked = wanted_of_round("auto", settings)
    found = islands_of_round(leading.fleet_view, asked, shape(), plan, settings)
    assert ranks_in(leading.machines, found) == (3 if have_room else 0)


def test_one_machine_makes_no_islands(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="need two machines that could train, and there is 1"):
        decided(monkeypatch, "on", nodes=(B,))


def test_a_file_that_wants_islands_begins_with_one_machine_and_takes_two_for_islands(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    alone = decided(monkeypatch, "preferred", nodes=(B,))
    assert islands_of_settings(alone) == ()
    assert alone.ranks == 1
    both = decided(monkeypatch, "preferred")
    assert islands_of_settings(both) == (Island("mlx", (A,)), Island("torch", (B,)))
