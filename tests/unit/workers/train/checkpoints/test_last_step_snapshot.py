"""The state of the last finished step: whole, or nothing."""

import threading
from contextlib import suppress

from jupiterd.protocol.frames import CheckpointWritten
from jupiterd.protocol.training_values import TrainingProgress
from jupiterd.workers.train.checkpoints.last_step_snapshot import LastStepSnapshot


def write(step: int) -> CheckpointWritten:
    return CheckpointWritten(f"kept-{step}", TrainingProgress(step, 0, 0, 0.0))


def saved_step(keeper: LastStepSnapshot, after_step: int) -> int:
    saved = keeper.save(after_step)
    assert saved is not None
    return saved.progress.step


def test_what_is_kept_contains_the_steps_that_were_finished() -> None:
    keeper = LastStepSnapshot(10, write)
    for _ in range(3):
        with keeper.updating():
            pass
    assert saved_step(keeper, 0) == 13
    assert saved_step(keeper, 12) == 13


def test_nothing_is_kept_that_others_have_already() -> None:
    keeper = LastStepSnapshot(10, write)
    assert keeper.save(0) is None, "the attempt began there"
    with keeper.updating():
        pass
    assert keeper.save(11) is None


def test_what_replaces_the_weights_is_kept_whole_under_its_own_step() -> None:
    keeper = LastStepSnapshot(10, write)
    with keeper.jumping(40):
        pass
    assert saved_step(keeper, 12) == 40
    with suppress(MemoryError), keeper.jumping(80):
        raise MemoryError
    assert keeper.save(12) is None


def test_an_update_that_failed_half_way_leaves_nothing_to_keep() -> None:
    keeper = LastStepSnapshot(0, write)
    with keeper.updating():
        pass
    with suppress(MemoryError), keeper.updating():
        raise MemoryError
    assert keeper.save(0) is None


def test_who_keeps_waits_for_the_update_that_is_under_way() -> None:
    keeper, kept = LastStepSnapshot(0, write), list[CheckpointWritten | None]()
    asker = threading.Thread(target=lambda: kept.append(keeper.save(0)))
    with keeper.updating():
        asker.start()
        asker.join(0.05)
        assert kept == []
    asker.join(5)
    assert kept == [write(1)]
