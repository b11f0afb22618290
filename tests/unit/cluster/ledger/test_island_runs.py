"""What is recorded of a run's islands where people stop it or let it go on."""

from dataclasses import replace

from jupiterd.cluster.facts.facts import CycleStateSet
from jupiterd.cluster.ledger.cycle_state import RUNNING, STOPPED
from jupiterd.cluster.ledger.island_runs import TOO_SLOW, with_islands
from jupiterd.cluster.ledger.state import State
from jupiterd.ids import CycleId
from tests.support.cluster.building import CYCLE, training

ONE, SLOW = CycleId("1" * 16), CycleId("2" * 16)


def test_an_island_that_was_let_go_stays_away_when_its_run_goes_on() -> None:
    state = State()
    islands = [replace(training(), cycle=each, parent=CYCLE) for each in (ONE, SLOW)]
    stopped = [
        CycleStateSet(SLOW, STOPPED, TOO_SLOW, 1),
        *(CycleStateSet(each, STOPPED, "a person paused it", 1) for each in (CYCLE, ONE)),
    ]
    for index, fact in enumerate([training(), *islands, *stopped]):
        state.apply(fact, (1, index, "0" * 64))
    goes_on = CycleStateSet(CYCLE, RUNNING, "a person resumed it", 2)
    told = with_islands(state.cycles, goes_on)
    assert [each.cycle for each in told] == [CYCLE, ONE]
