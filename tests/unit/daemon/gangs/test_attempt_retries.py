"""Whether and when another attempt is tried, and which error explains the others."""

import asyncio

import pytest

from jupiterd.daemon.gangs import attempt_retries
from jupiterd.daemon.gangs.attempt_retries import (
    MAX_ATTEMPTS_WITHOUT_CHECKPOINT,
    AttemptRetries,
    root_cause,
)
from jupiterd.errors import (
    JupiterError,
    LossDivergedError,
    NcclFailedError,
    OutOfMemoryError,
    PeerUnreachableError,
    WorkerKilledError,
    WorkFailedError,
    WorkStoppedError,
)

CRASH = WorkFailedError("the train worker ended with status 1")


def fail(
    retries: AttemptRetries,
    error: JupiterError = CRASH,
    *,
    is_set_aside: bool = False,
    has_advanced: bool = False,
    is_regrouped: bool = False,
) -> bool:
    return retries.failed(
        error, has_other_start=is_set_aside, has_advanced=has_advanced, is_regrouped=is_regrouped
    )


def test_attempts_that_add_nothing_are_given_up_after_a_few() -> None:
    retries = AttemptRetries()
    tried = [fail(retries) for _ in range(MAX_ATTEMPTS_WITHOUT_CHECKPOINT)]
    assert tried == [True] * (MAX_ATTEMPTS_WITHOUT_CHECKPOINT - 1) + [False]


def test_a_checkpoint_on_the_way_begins_the_count_again() -> None:
    retries = AttemptRetries()
    for _ in range(MAX_ATTEMPTS_WITHOUT_CHECKPOINT - 1):
        fail(retries)
    assert fail(retries, has_advanced=True)
    assert fail(retries)


def test_what_ran_out_of_memory_is_tried_with_less_as_often_as_it_takes() -> None:
    retries = AttemptRetries()
    assert all(fail(retries, OutOfMemoryError("too small")) for _ in range(20))


def test_an_error_that_no_attempt_can_mend_is_not_tried_again() -> None:
    class GoneForGoodError(WorkFailedError):
        is_permanent = True

    assert not fail(AttemptRetries(), GoneForGoodError("gone"))


@pytest.mark.parametrize(
    ("is_set_aside", "has_advanced", "is_regrouped", "waits"),
    [
        (False, False, False, [1.0, 2.0, 4.0, 5.0, 5.0]),
        (True, False, False, [0.0, 1.0, 2.0, 4.0, 5.0]),
        (False, True, False, [0.0, 1.0, 2.0, 4.0, 5.0]),
        (False, False, True, [0.0, 1.0, 2.0, 4.0, 5.0]),
    ],
)
async def test_each_pause_is_twice_as_long_and_there_is_none_where_something_has_changed(
    is_set_aside: bool,
    has_advanced: bool,
    is_regrouped: bool,
    waits: list[float],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waited: list[float] = []

    async def sleep(delay_s: float) -> None:
        waited.append(delay_s)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    monkeypatch.setattr(attempt_retries, "MAX_RETRY_S", 5.0)
    retries = AttemptRetries()
    fail(retries, is_set_aside=is_set_aside, has_advanced=has_advanced, is_regrouped=is_regrouped)
    for _ in waits:
        await retries.pause()
    assert waited == waits


@pytest.mark.parametrize("cause", [PeerUnreachableError("beta has gone"), NcclFailedError("nccl")])
def test_a_lost_node_or_nccl_explains_what_workers_said(cause: JupiterError) -> None:
    inner = ExceptionGroup("", [CRASH, cause])
    assert root_cause(ExceptionGroup("", [CRASH, inner])) is cause
    assert root_cause(ExceptionGroup("", [CRASH])) is CRASH


@pytest.mark.parametrize(
    "cause", [WorkerKilledError("rank 1"), LossDivergedError("nan"), OutOfMemoryError("too small")]
)
def test_whatever_says_why_a_worker_ended_explains_sockets_that_broke(cause: JupiterError) -> None:
    closed = WorkFailedError("alpha: the train worker ended with status 1: Connection closed")
    told = WorkStoppedError("gamma: the train worker was told to stop")
    assert root_cause(ExceptionGroup("", [closed, told, cause])) is cause
    lost = PeerUnreachableError("beta has gone")
    assert root_cause(ExceptionGroup("", [closed, cause, lost])) is lost
