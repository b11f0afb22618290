"""A round's steps follow what was packed, and are the same whoever reads the ledger."""

from dataclasses import replace

import pytest

from jupiterd.cluster.facts.facts import CheckpointCommitted, ManifestFrozen, WorkCompleted
from jupiterd.cluster.ledger.cycle_state import CycleFact
from jupiterd.cluster.ledger.state import State
from jupiterd.cluster.planning.engines import TORCH, EngineChoice
from jupiterd.cycle.training.horizon import Horizon
from jupiterd.cycle.training.plan import TrainPlan, parse_model
from jupiterd.daemon.gangs.checkpoint_lineage import CheckpointLineage
from jupiterd.daemon.gangs.rank_orders import RankOrders
from jupiterd.daemon.gangs.rendezvous import Rendezvous
from jupiterd.daemon.planning.gang_plan import GangPlan
from jupiterd.daemon.planning.trained_round import TrainedRound
from jupiterd.daemon.planning.training_spec import training_of
from jupiterd.daemon.runtime.work_events import (
    CheckpointStored,
)
from jupiterd.ids import ArtifactId
from jupiterd.locations import config_folder
from jupiterd.protocol.training_values import TrainingProgress
from tests.support.cluster.building import CYCLE, NODES, round_over, started
from tests.support.daemon.term_parts import FakeCalls, FakeMachines, FakeReach, FakeTerm
from tests.unit.daemon.queries.cycle.test_cycle_document import folded

CONFIG = config_folder()
DOMAIN = (CONFIG / "domains" / "python.yaml").read_text()
BEGUN = replace(
    started(rounds=3),
    domain_yaml=DOMAIN,
    model_yaml=(CONFIG / "models" / "1m.yaml").read_text(),
    settings={"steps_from": "data"},
)
TRAINED = ArtifactId("a" * 64)


def packed(number: int, sequences: int) -> list[CycleFact]:
    outputs = {"tokenizer": ArtifactId("7" * 64), "shards": ArtifactId(f"{number}" * 64)}
    work = WorkCompleted(CYCLE, number, "pack", f"r{number}/pack/0", NODES[0], outputs)
    frozen = ManifestFrozen(
        cycle=CYCLE,
        round=number,
        parent="",
        tokenizer=outputs["tokenizer"],
        shards=(outputs["shards"],),
        sequences=sequences,
        tokens=sequences * 256,
    )
    return [work, frozen]


def trained(steps: int) -> CheckpointCommitted:
    """The end of round 1, from where its trunk is gone on with."""
    tokens = steps * 4 * 256
    return CheckpointCommitted(
        CYCLE, 1, "", TRAINED, 1, steps, tokens, steps * 4, 3.0, is_final=True, on_trunk=True
    )


def state_of(*facts: CycleFact) -> State:
    state = State()
    state.cycles[CYCLE] = folded(*facts)
    return state


def plan_of(number: int, *facts: CycleFact, by_islands: bool = False, ranks: int = 0) -> TrainPlan:
    return training_of(state_of(*facts), CYCLE, number, by_islands=by_islands, ranks=ranks).plan


def test_a_first_round_on_little_text_may_grow_from_four_passes_to_sixteen() -> None:
    plan = plan_of(1, BEGUN, *packed(1, 80))
    assert (plan.least_steps, plan.steps) == (80, 320)
    assert plan.keeps_trunk


def test_a_cycle_of_an_older_build_keeps_the_steps_of_its_size() -> None:
    old = replace(BEGUN, settings={})
    assert plan_of(1, old, *packed(1, 80)).steps == 780


def test_steps_in_the_domains_file_count() -> None:
    said = replace(BEGUN, domain_yaml=f"{DOMAIN}\ntraining: {{steps: 30}}\n", settings={})
    assert plan_of(1, said, *packed(1, 80)).steps == 30


def test_no_round_takes_more_steps_than_people_asked_for() -> None:
    said = replace(BEGUN, settings={"steps_from": "data", "max_steps": 60})
    facts = [said, *packed(1, 80), trained(60), round_over(TRAINED), *packed(2, 80)]
    assert [plan_of(number, *facts).steps for number in (1, 2)] == [60, 60]
    assert [plan_of(number, *facts).least_steps for number in (1, 2)] == [0, 40]
    assert plan_of(1, *facts, by_islands=True).steps == 60
    assert plan_of(1, replace(said, settings={"max_steps": 60}), *packed(1, 80)).steps == 60


@pytest.mark.parametrize(("before", "most"), [(80, 240), (320, 40)])
def test_a_later_round_has_what_is_left_of_sixteen_passes(before: int, most: int) -> None:
    facts = [BEGUN, *packed(1, 80), trained(before), round_over(TRAINED), *packed(2, 80)]
    plan = plan_of(2, *facts)
    assert (plan.steps, plan.warmup_steps) == (most, 0)


def test_islands_grow_as_a_gang_does_and_keep_no_trunk() -> None:
    plan = plan_of(1, BEGUN, *packed(1, 80), by_islands=True)
    assert (plan.steps, plan.extends_by_steps, plan.keeps_trunk) == (320, 40, False)


def test_what_is_asked_before_the_round_is_packed_has_the_steps_of_the_size() -> None:
    (work, _) = packed(1, 80)
    assert plan_of(1, BEGUN, work).steps == 780


def test_a_round_that_tunes_takes_small_steps_of_little_text_unless_an_older_build_began() -> None:
    brought = replace(BEGUN, model_yaml=(CONFIG / "models" / "25m.yaml").read_text())
    old = {"steps_from": "data", "recipe": "tuning"}
    for settings, batch, least in ((old, 64, 16), ({**old, "least_batch": 4}, 10, 100)):
        plan = plan_of(1, replace(brought, settings=settings), *packed(1, 1_000))
        assert (plan.batch_sequences, plan.least_steps) == (batch, least)


@pytest.mark.parametrize(("ranks", "batch", "as_before"), [(0, 10, 64), (12, 12, 64), (70, 64, 64)])
def test_each_rank_of_a_rounds_islands_has_a_sequence_of_a_small_step(
    ranks: int, batch: int, as_before: int
) -> None:
    brought = replace(BEGUN, model_yaml=(CONFIG / "models" / "25m.yaml").read_text())
    old = {"steps_from": "data", "recipe": "tuning"}
    for settings, sequences in ((old, as_before), ({**old, "least_batch": 4}, batch)):
        begun = replace(brought, settings=settings)
        plan = plan_of(1, begun, *packed(1, 1_000), by_islands=True, ranks=ranks)
        assert plan.batch_sequences == sequences


def launched(attempt: int, from_checkpoint: str = "", from_step: int = 0) -> GangPlan:
    choice = EngineChoice(TORCH, (NODES[0],), "", "gloo")
    return GangPlan(attempt, choice, from_checkpoint, from_step, 0.0, micro_batches=(4,))


def recorded(step: int, horizon: Horizon) -> CheckpointCommitted:
    """What a leader records of a checkpoint of round 1."""
    facts = [BEGUN, *packed(1, 80)]
    term = FakeTerm(state=state_of(*facts))
    gang_plan = launched(attempt=1)
    made = CheckpointStored(
        TRAINED, TrainingProgress(step, step * 1024, step * 4, 3.0, horizon.to_plain())
    )
    (fact,) = CheckpointLineage(term, FakeReach(term), CYCLE, 1).facts_of(
        made, gang_plan, plan_of(1, *facts)
    )
    return fact


def test_what_was_decided_is_recorded_and_says_which_checkpoint_is_the_last() -> None:
    falls = Horizon(step=104, loss=3.0, best_step=104, best_loss=3.0, decay_from=104)
    for step, is_final, on_trunk in ((104, False, True), (105, False, False), (130, True, False)):
        fact = recorded(step, falls)
        assert (fact.is_final, fact.on_trunk) == (is_final, on_trunk), step
        assert Horizon.of(fact.horizon) == falls
    early = Horizon(step=90, loss=4.0, best_step=30, best_loss=3.0, decay_from=80, ended=90)
    assert recorded(90, early).is_final
    undecided = recorded(200, Horizon(step=200, loss=3.0, best_step=200, best_loss=3.0))
    assert (undecided.is_final, undecided.on_trunk) == (False, True)


def test_ranks_hear_of_what_was_decided_in_this_round_alone() -> None:
    known = recorded(104, Horizon(step=104, loss=3.0, best_step=104, best_loss=3.0, decay_from=104))
    shape = parse_model(BEGUN.model_yaml)
    term, machines = FakeTerm(state=state_of(BEGUN, *packed(1, 80), known)), FakeMachines()
    gang_plan = launched(attempt=2, from_checkpoint=TRAINED, from_step=104)
    for number, told in ((1, known.horizon), (2, {})):
        trained = TrainedRound(CYCLE, number, shape, plan_of(1, BEGUN, *packed(1, 80)))
        orders = RankOrders(term, machines, FakeReach(term), FakeCalls(), trained)
        assert orders.params(gang_plan, Rendezvous(), 0)["horizon"] == told
