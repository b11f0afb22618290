"""How the leader closes a round."""

from dataclasses import replace
from typing import cast

import pytest

from jupiterd.cluster.facts.facts import (
    BranchPinned,
    BranchSuspended,
    CycleStateSet,
    RoundCommitted,
    VerdictReached,
    WorkCompleted,
)
from jupiterd.cluster.facts.phase_facts import PhaseApproved, PhaseRedone, SettingChanged
from jupiterd.cycle.base.work_item import Phase, WorkItem, WorkResult
from jupiterd.cycle.domain.domain import parse_domain
from jupiterd.cycle.phases.steps import CloseRound, RunItems
from jupiterd.cycle.phases.table import next_step
from jupiterd.daemon.cycles.cycle_driver import CycleDriver
from jupiterd.daemon.leader.work_item import ItemRunner
from jupiterd.errors import BranchChangedError, OutOfMemoryError
from jupiterd.ids import ArtifactId
from jupiterd.locations import config_folder
from tests.support.cluster.building import NODES, started
from tests.support.daemon.one_rank import CYCLE
from tests.support.daemon.recording_term import Recording, checkpoint

JUDGED = WorkResult(
    {"verdict": ArtifactId("4" * 64)},
    {},
    {"verdict": "PROMOTE", "reason": "better", "val_bpb": 2.5},
)


def a_trained_round() -> tuple[Recording, CycleDriver]:
    folder = config_folder()
    start = replace(
        started(),
        cycle=CYCLE,
        domain_yaml=(folder / "domains" / "python.yaml").read_text(),
        model_yaml=(folder / "models" / "1m.yaml").read_text(),
    )
    term = Recording(start, replace(checkpoint("k1", step=100), is_final=True))
    return term, CycleDriver(term.services, CYCLE)


async def test_a_round_is_closed_on_the_line_that_counts() -> None:
    term, driver = a_trained_round()
    await driver._close(driver._view(), JUDGED)
    assert [type(fact) for fact in term.recorded] == [VerdictReached, RoundCommitted]
    assert term.state.generator == "k1"


async def test_a_round_whose_line_counts_no_more_is_not_closed() -> None:
    term, driver = a_trained_round()
    view = driver._view()
    await term.record(checkpoint("x1", step=5), BranchPinned(CYCLE, "x1", 1))
    with pytest.raises(BranchChangedError, match="round 1 is no longer the end"):
        await driver._close(view, JUDGED)
    assert not any(isinstance(fact, RoundCommitted) for fact in term.recorded)
    assert driver._view().candidate is None


async def test_what_waits_for_a_checkpoint_is_given_up_once_another_line_counts() -> None:
    term, driver = a_trained_round()
    view = driver._view()
    driver._check_line(view)
    await term.record(BranchSuspended(CYCLE, "k1", is_suspended=True, edit=1))
    with pytest.raises(BranchChangedError, match="another line than that of round 1"):
        driver._check_line(view)


def a_collected_round(*, interactive: bool) -> tuple[Recording, CycleDriver]:
    folder = config_folder()
    text = (folder / "domains" / "python.yaml").read_text()
    start = replace(
        started(),
        cycle=CYCLE,
        domain_yaml=text,
        model_yaml=(folder / "models" / "1m.yaml").read_text(),
        interactive=interactive,
    )
    outputs = {"train": ArtifactId("1" * 64), "holdout": ArtifactId("2" * 64)}
    collected = [
        WorkCompleted(CYCLE, 1, "collect", f"r1/collect/{number}", NODES[0], outputs)
        for number in range(len(parse_domain(text, "python.yaml").data_sources))
    ]
    term = Recording(start, *collected)
    return term, CycleDriver(term.services, CYCLE)


async def test_an_interactive_cycle_waits_once_behind_a_phase() -> None:
    term, driver = a_collected_round(interactive=True)
    await driver._step()
    (asked,) = term.recorded
    assert isinstance(asked, CycleStateSet)
    assert (asked.wanted, asked.node) == ("paused", term.self_id)
    assert asked.reason == "waiting for your answer after collect of round 1"
    assert term.state.has_nothing_to_do
    going_on = CycleStateSet(CYCLE, "running", "resumed by a person", asked.edit + 1)
    await term.record(PhaseApproved(CYCLE, 1, "collect", 0), going_on)
    filtering = RunItems(Phase.FILTER, (), 1)
    assert not await driver._waits_before(driver._view(), filtering)
    await term.record(PhaseRedone(CYCLE, 1, "collect", tuple(map(str, Phase)), 1))
    step, _ = next_step(driver._view(), driver._domain, driver._shape)
    assert isinstance(step, RunItems)
    assert step.phase is Phase.COLLECT


async def test_an_interactive_cycle_shows_what_the_gate_said_before_it_closes_the_round() -> None:
    term, driver = a_collected_round(interactive=True)
    trained = replace(checkpoint("k1", step=100), is_final=True)
    gate = WorkCompleted(CYCLE, 1, "gate", "r1/gate/0/k1", NODES[0], {})
    await term.record(trained, gate)
    closing = CloseRound(JUDGED)
    assert await driver._waits_before(driver._view(), closing)
    asked = term.recorded[-1]
    assert isinstance(asked, CycleStateSet)
    assert asked.reason == "waiting for your answer after gate of round 1"
    await term.record(PhaseApproved(CYCLE, 1, "gate", 0))
    assert not await driver._waits_before(driver._view(), closing)


async def test_a_cycle_that_runs_through_waits_nowhere() -> None:
    term, driver = a_collected_round(interactive=False)
    assert not await driver._waits_before(driver._view(), RunItems(Phase.FILTER, (), 1))
    assert term.recorded == []


async def test_a_round_goes_by_what_people_have_changed_for_it() -> None:
    term, driver = a_collected_round(interactive=True)
    await term.record(SettingChanged(CYCLE, "mix_ratio.synthetic_share", "0.2", 2, 1))
    shares = [driver._domain_of(number).mix_ratio.synthetic_share for number in (1, 2, 3)]
    assert shares[1:] == [0.2, 0.2]
    assert shares[0] != 0.2


class _NoRoom:
    async def run(self, *_: object, **__: object) -> WorkCompleted:
        raise OutOfMemoryError("the device runs out of memory with a single sequence at a time")


async def test_a_small_student_that_fits_no_device_does_not_end_the_cycle() -> None:
    term, driver = a_trained_round()
    driver._runner = cast("ItemRunner", _NoRoom())
    view = driver._view()
    student = WorkItem("r1/gate/proxies/real-7001/k1", Phase.GATE, "train_proxy")
    await driver._run_item(view, student)
    (done,) = term.recorded
    assert isinstance(done, WorkCompleted)
    assert (done.item, done.outputs) == (student.id, {})
    assert str(done.summary["without"]).startswith("the device runs out of memory")
    with pytest.raises(OutOfMemoryError):
        await driver._run_item(view, replace(student, task="gate"))
