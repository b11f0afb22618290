"""An engine's life: no order of events leads to a state that means nothing."""

from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cluster.serving.engine_life import (
    FIRST_PAUSE_S,
    IDLE_S,
    LONGEST_PAUSE_S,
    STEADY_S,
    EngineLife,
    Phase,
    Restarts,
    begins,
)

EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["loaded", "begun", "finished", "ended", "died"]),
        st.floats(0.0, 1000.0, allow_nan=False),
    ),
    max_size=30,
)


def after(life: EngineLife, event: str, now_s: float) -> EngineLife:
    if event == "begun":
        return life.begun() if life.takes_requests else life
    if event == "finished":
        return life.finished(now_s) if life.answers else life
    if event == "loaded":
        return life.loaded(now_s)
    return life.died(now_s, "killed" if event == "died" else "")


@given(EVENTS)
def test_a_life_goes_only_forward_and_ends_without_answers(events: list[tuple[str, float]]):
    order = list(Phase)
    life, now_s = begins(0.0), 0.0
    for event, waited_s in events:
        now_s += waited_s
        following = after(life, event, now_s)
        assert order.index(following.phase) >= order.index(life.phase)
        assert following.answers >= 0
        if following.phase is Phase.ENDED:
            assert not following.answers
        if (at_s := following.unload_at_s()) is not None:
            assert following.phase is Phase.READY
            assert at_s <= now_s + IDLE_S
        if life.phase is Phase.ENDED:
            assert following.reason == life.reason
        life = following


def test_an_idle_engine_is_unloaded_after_ten_minutes_from_its_last_answer():
    assert begins(0.0).unload_at_s() is None
    life = begins(0.0).loaded(1.0)
    assert life.unload_at_s() == 601.0
    assert life.begun().unload_at_s() is None
    assert life.begun().finished(50.0).unload_at_s() == 650.0


def test_the_first_failure_lets_another_begin_at_once():
    life = begins(0.0).loaded(1.0).died(2.0, "killed by SIGKILL")
    assert Restarts().after(life, 1.0).not_before_s == 0.0


@given(st.integers(2, 40))
def test_failures_in_a_row_pause_longer_and_longer_up_to_a_minute(failures: int):
    restarts = Restarts()
    for number in range(failures):
        restarts = restarts.after(begins(0.0).died(float(number), "no such model"), None)
    pause_s = restarts.not_before_s - restarts.failed_s
    assert FIRST_PAUSE_S <= pause_s <= LONGEST_PAUSE_S
    assert pause_s == min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** (failures - 2))


def test_an_engine_that_ran_well_for_a_while_begins_anew_at_once():
    restarts = Restarts(failures=7, failed_s=0.0, reason="no room")
    life = begins(100.0).loaded(101.0).died(101.0 + STEADY_S, "killed by SIGKILL")
    assert restarts.after(life, 101.0) == Restarts(1, 101.0 + STEADY_S, "killed by SIGKILL")


def test_one_that_was_told_to_end_has_not_failed():
    life = begins(0.0).loaded(1.0).died(2.0, "")
    assert Restarts(3, 0.0, "no room").after(life, 1.0) == Restarts()
