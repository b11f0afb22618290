"""The state of the last finished step: whole, or nothing."""

import threading
from contextlib import suppress

from jupiterd.protocol.frames import StateKept
from jupiterd.workers.train.checkpoints.last_step_snapshot import LastStepSnapshot


def write(step: int) -> StateKept:
    return StateKept(f"kept-{step}", step)


def test_what_is_kept_contains_the_steps_that_were_finished() -> None:
    keeper = LastStepSnapshot(10, write)
    for _ in range(3):
        with keeper.updating():
            pass
    assert keeper.keep(0).step == 13
    assert keeper.keep(12).step == 13


def test_nothing_is_kept_that_others_have_already() -> None:
    keeper = LastStepSnapshot(10, write)
    assert keeper.keep(0) == StateKept(), "the epoch began there"
    with keeper.updating():
        pass
    assert keeper.keep(11) == StateKept()


def test_what_replaces_the_weights_is_kept_whole_under_its_own_step() -> None:
    keeper = LastStepSnapshot(10, write)
    with keeper.jumping(40):
        pass
    assert keeper.keep(12).step == 40
    with suppress(MemoryError), keeper.jumping(80):
        raise MemoryError
    assert keeper.keep(12) == StateKept()


def test_an_update_that_failed_half_way_leaves_nothing_to_keep() -> None:
    keeper = LastStepSnapshot(0, write)
    with keeper.updating():
        pass
    with suppress(MemoryError), keeper.updating():
        raise MemoryError
    assert keeper.keep(0) == StateKept()


def test_who_keeps_waits_for_the_update_that_is_under_way() -> None:
    keeper, kept = LastStepSnapshot(0, write), list[StateKept]()
    asker = threading.Thread(target=lambda: kept.append(keeper.keep(0)))
    with keeper.updating():
        asker.start()
        asker.join(0.05)
        assert kept == []
    asker.join(5)
    assert [state.step for state in kept] == [1]
