"""Alarms about runs, cycles and what they need: each is raised, and its cause ended."""

from collections.abc import Iterator
from dataclasses import replace

from jupiterd.cluster.facts.facts import CycleFailed, WorkCompleted
from jupiterd.cluster.facts.lifecycle_facts import CycleRevived
from jupiterd.cycle.base.work_item import Phase
from jupiterd.cycle.generation.generation_options import WITHOUT
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.ids import CycleId
from jupiterd.protocol.frames import ConnectionsRefused, Progressed
from tests.support.cluster.building import (
    CYCLE,
    checkpoint,
    commanded,
    judged,
    round_over,
    started,
    work_done,
)
from tests.support.daemon.alarm_desk import GIB, HOUR_S, OTHER, Desk, Ending


async def loss_nan(desk: Desk) -> Ending:
    await desk.lead(started())
    await desk.node.replica.append(1, [CycleFailed(CYCLE, "loss-diverged", "it is nan", "")])
    yield
    await desk.node.replica.append(1, [CycleRevived(CYCLE)])


async def run_failed(desk: Desk) -> Ending:
    await desk.lead(started())
    await desk.node.replica.append(1, [CycleFailed(CYCLE, "empty-source", "nothing", "")])
    yield
    later = replace(started(), cycle=CycleId("e" * 16), started_at="2026-02-01T00:00:00Z")
    await desk.node.replica.append(1, [later])


class Training:
    """A round that trains, as its leader tells of it."""

    def __init__(self, desk: Desk) -> None:
        self._desk, self._step = desk, 0
        assert desk.node.leading is not None
        self.board = desk.node.leading.board
        self.board.begin(CYCLE, 1, Phase.TRAIN, now_s())

    def steps(self, losses: Iterator[float] | list[float], **more: float) -> None:
        for loss in losses:
            self._step += 1
            self._desk.pass_s(1.0)
            event = Progressed(self._step, 900, "steps", {"loss": loss, **more})
            self.board.advance(CYCLE, "train", event, now_s())
            self._desk.codes()


async def stalled_step(desk: Desk) -> Ending:
    await desk.lead(started())
    training = Training(desk)
    training.steps([3.0] * 3)
    desk.pass_s(300.0)
    yield
    training.steps([3.0])


async def loss_spike(desk: Desk) -> Ending:
    await desk.lead(started())
    training = Training(desk)
    training.steps([3.0] * 30 + [6.0] * 3)
    yield
    training.steps([3.0])


async def loss_high(desk: Desk) -> Ending:
    await desk.lead(started())
    training = Training(desk)
    training.steps([3.0] * 3 + [4.0] * 20)
    yield
    training.steps([3.0] * 10)


async def held_out_risen(desk: Desk) -> Ending:
    await desk.lead(started())
    training = Training(desk)
    training.steps([3.0], risen=1.0, best_step=40.0)
    yield
    training.board.end(CYCLE)


async def generator_lost(desk: Desk) -> Ending:
    done = WorkCompleted(
        CYCLE, 1, "generate", "r1/generate/0", OTHER, {}, {"kept": 0.0},
        summary={WITHOUT: "nobody answers"},
    )  # fmt: skip
    await desk.lead(started(), done)
    yield
    await desk.node.replica.append(1, [commanded("stopped", 1)])


async def not_offered(desk: Desk) -> Ending:
    await desk.lead()
    desk.node.worker_runner.offered._note("/home/ada/diary", "other")
    yield
    desk.pass_s(HOUR_S)


async def gang_knocked(desk: Desk) -> Ending:
    await desk.lead()
    desk.node.worker_runner.refused_connections.note(ConnectionsRefused(3), "run/0")
    yield
    desk.pass_s(HOUR_S)


async def port_crowded(desk: Desk) -> Ending:
    await desk.lead()
    desk.node.listening.crowding.note(ConnectionsRefused(1, ["10.9.9.9"]))
    yield
    desk.pass_s(HOUR_S)


def burden(desk: Desk, **load: float) -> None:
    desk.node.local_view.load_watch._closer = load
    desk.node.local_view.load_watch._due_s = 0.0


async def disk_low(desk: Desk) -> Ending:
    await desk.lead()
    burden(desk, disk_free_bytes=GIB, disk_bytes=100 * GIB)
    yield
    burden(desk, disk_free_bytes=90 * GIB, disk_bytes=100 * GIB)


async def throttling(desk: Desk) -> Ending:
    await desk.lead()
    burden(desk, throttled_gpus=1)
    yield
    burden(desk, throttled_gpus=0)


async def mostly_dropped(desk: Desk) -> Ending:
    counts = {"kept": 12.0, "dropped": 188.0, "dropped.few-letters": 188.0}
    await desk.lead(started(), replace(work_done("r1/filter/0"), counts=counts))
    yield
    await desk.node.replica.append(1, [commanded("stopped", 1)])
    desk.codes()
    desk.pass_s(HOUR_S)


async def verdict(desk: Desk) -> Ending:
    await desk.lead(started())
    await desk.node.replica.append(
        1, [checkpoint("k2", is_final=True), judged("HOLD", "k2"), round_over("k2")]
    )
    yield
    desk.pass_s(HOUR_S)
