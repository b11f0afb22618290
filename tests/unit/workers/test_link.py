"""A worker's end of the pipe to its daemon."""

import socket
import threading
from pathlib import Path

import pytest

from jupiterd.errors import StateNotFetchedError
from jupiterd.protocol.frames import (
    CheckpointWritten,
    Frame,
    FrameReader,
    InputArrived,
    OuterStepArrived,
    OuterStepMissing,
    RankStuck,
    RunTask,
    SaveState,
    StateSaved,
    StopTask,
    encode,
)
from jupiterd.protocol.training_values import RoundOrder, TrainingProgress
from jupiterd.workers import link
from jupiterd.workers.link import Task

ORDER = RunTask("train", {}, {}, "/tmp")
STUCK = RankStuck("work-failed", "a peer was lost", "")


def saved(step: int) -> CheckpointWritten:
    return CheckpointWritten("kept", TrainingProgress(step, 100 * step, 4 * step, 2.5))


TIMEOUT_S = 10.0

_open: list[socket.socket] = []
"""Closing one would end this process, as it would a worker."""


def daemon_and_link() -> tuple[socket.socket, socket.socket]:
    ours, theirs = socket.socketpair()
    _open.extend((ours, theirs))
    ours.settimeout(TIMEOUT_S)
    return ours, theirs


def said(daemon: socket.socket, count: int) -> list[Frame]:
    """What a worker says, up to so many frames."""
    reader, frames = FrameReader(), list[Frame]()
    while len(frames) < count:
        frames += reader.feed(daemon.recv(1 << 16))
    return frames


def test_what_comes_together_with_the_task_is_obeyed() -> None:
    daemon, theirs = daemon_and_link()
    daemon.sendall(b"".join(map(encode, (ORDER, SaveState(0), StopTask("no need")))))
    task = Task(theirs)
    assert said(daemon, 1) == [StateSaved()]
    task.wait_for_stop(TIMEOUT_S)
    assert task.stop_requested


def test_an_input_that_comes_later_is_there_once_it_was_handed_in() -> None:
    daemon, theirs = daemon_and_link()
    daemon.sendall(encode(ORDER))
    task = Task(theirs)
    assert task.arrived("checkpoint") is None
    daemon.sendall(encode(InputArrived("checkpoint", "/state")))
    assert task.arrived("checkpoint", TIMEOUT_S) == Path("/state")
    assert task.arrived("other") is None
    daemon.sendall(encode(InputArrived("other", "", "its only holder has gone")))
    with pytest.raises(StateNotFetchedError, match="its only holder has gone"):
        task.arrived("other", TIMEOUT_S)


def test_an_outer_step_is_there_once_it_was_handed_in_for_the_one_before() -> None:
    daemon, theirs = daemon_and_link()
    daemon.sendall(encode(ORDER))
    task = Task(theirs)
    assert task.outer_step("") is None
    first = OuterStepArrived(
        "", RoundOrder("s0", 0, 0, 30, 4, "0-4"), pseudo_gradients=["/way"], tokens=[7]
    )
    daemon.sendall(encode(first))
    assert task.outer_step("", TIMEOUT_S) == first
    assert task.outer_step("s0") is None
    daemon.sendall(encode(OuterStepMissing("s0", "its line counts no more")))
    with pytest.raises(StateNotFetchedError, match="its line counts no more"):
        task.outer_step("s0", TIMEOUT_S)


def test_a_rank_that_can_not_go_on_stays_until_what_it_holds_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(link, "LINGER_S", 0.05)
    daemon, theirs = daemon_and_link()
    daemon.sendall(encode(ORDER))
    task = Task(theirs)
    is_writing, may_end = threading.Event(), threading.Event()

    def save(step: int) -> CheckpointWritten:
        is_writing.set()
        assert may_end.wait(TIMEOUT_S)
        return saved(step)

    task.save_state = save
    daemon.sendall(encode(SaveState(7)))
    assert is_writing.wait(TIMEOUT_S)
    main = threading.Thread(target=task.linger, args=(STUCK,))
    main.start()
    main.join(20 * link.LINGER_S)
    assert main.is_alive()
    may_end.set()
    main.join(TIMEOUT_S)
    assert not main.is_alive()
    assert said(daemon, 2) == [STUCK, StateSaved(saved(7))]


def test_a_rank_that_was_asked_to_stop_stays_too_where_its_last_step_fails() -> None:
    daemon, theirs = daemon_and_link()
    daemon.sendall(encode(ORDER) + encode(StopTask("the gang is formed anew")))
    task = Task(theirs)
    task.wait_for_stop(TIMEOUT_S)
    task.save_state = saved
    main = threading.Thread(target=task.linger, args=(STUCK,))
    main.start()
    assert said(daemon, 1) == [STUCK]
    main.join(0.2)
    assert main.is_alive()
    daemon.sendall(encode(SaveState(7)))
    assert said(daemon, 1) == [StateSaved(saved(7))]
    daemon.sendall(encode(StopTask("its state has been taken")))
    main.join(TIMEOUT_S)
    assert not main.is_alive()


@pytest.mark.parametrize("is_of_gang", [True, False])
def test_a_rank_whose_daemon_is_gone_ends_without_stopping_its_gang(
    monkeypatch: pytest.MonkeyPatch, *, is_of_gang: bool
) -> None:
    statuses: list[int] = []
    has_ended = threading.Event()

    def exit_(status: int) -> None:
        statuses.append(status)
        has_ended.set()

    monkeypatch.setattr(link, "ORPHAN_GRACE_S", 0.05)
    monkeypatch.setattr(link.os, "_exit", exit_)
    daemon, theirs = daemon_and_link()
    daemon.sendall(encode(ORDER))
    task = Task(theirs)
    task.lingers = is_of_gang
    daemon.close()
    assert has_ended.wait(TIMEOUT_S)
    assert statuses == [1]
    assert task.stop_requested is not is_of_gang
    task.send(STUCK)  # who has nobody to tell doesn't fail of it
    assert task.stop_requested is not is_of_gang
