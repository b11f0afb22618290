"""Following the ranks of one attempt: what each event means for clocks, board and checkpoints.

Owns the meaning of a rank's events, and giving up on a ring that isn't formed in time. Doesn't know
how an attempt begins or ends (`gang_supervisor`), or how a checkpoint is recorded.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

from jupiterd.cluster.planning.backends import NCCL
from jupiterd.cluster.training.gang_watchdog import GangWatchdog
from jupiterd.daemon.gangs.attempt_retries import may_be_consequence
from jupiterd.daemon.gangs.checkpoint_commits import CheckpointCommits
from jupiterd.daemon.gangs.gang_progress import GangProgress
from jupiterd.daemon.gangs.island_reseed import IslandReseed
from jupiterd.daemon.gangs.rendezvous import RingListeners
from jupiterd.daemon.gangs.straggler_watch import StragglerWatch
from jupiterd.daemon.gangs.transition_timing import TransitionTiming
from jupiterd.daemon.leader.checkpoint_alarm import CheckpointAlarm
from jupiterd.daemon.leader.checkpoint_parts import CheckpointParts
from jupiterd.daemon.leader.pseudo_gradients import PseudoGradients, ReportedPseudoGradient
from jupiterd.daemon.planning.gang_plan import GangPlan
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.daemon.runtime.work_events import (
    BEGINS,
    BUSY,
    CheckpointStored,
    PseudoGradientStored,
    Started,
    WorkEvent,
)
from jupiterd.errors import (
    NcclFailedError,
    TimedOutError,
    WorkerCrashedError,
    WorkerKilledError,
    WorkFailedError,
)
from jupiterd.ids import CycleId, NodeId
from jupiterd.protocol.frames import (
    CheckpointUnsaved,
    GangJoined,
    Preparing,
    Progressed,
    RankListening,
)

log = logging.getLogger(__name__)

CAUSE_WITHIN_S = 0.3
"""How long a rank's broken work waits for another rank's death, which would explain it: a survivor
may find its socket closed before the daemon beside the dead one has read how that ended."""

RING_TIMEOUT_S = 35.0
"""How long an MLX ring may take to form: its ranks dial for 31 s, and one may listen for ever."""


@dataclass(frozen=True, kw_only=True)
class RankEvents:
    """Takes in what the ranks of one attempt report."""

    gang_plan: GangPlan
    cycle: CycleId
    watchdog: GangWatchdog
    progress: GangProgress
    commits: CheckpointCommits
    parts: CheckpointParts | None
    """What ranks write, where each holds a part of the model; None: checkpoints."""
    alarm: CheckpointAlarm
    transition_timing: TransitionTiming
    listeners: RingListeners
    pseudo_gradients: PseudoGradients
    stragglers: StragglerWatch
    reseed: IslandReseed | None
    """Of a gang that is an island; None for any other."""

    def take_in(self, rank: int, node: NodeId, event: WorkEvent) -> None:
        """Take in one event of a rank.

        Raises:
            JupiterError: the rank's island has to begin again from other weights.
        """
        if self.reseed and not rank:
            self.reseed.check()
        reset_clocks(self.watchdog, rank, event, now_s())
        match event:
            case Started() | RankListening() | GangJoined():
                self._take_in_start(rank, event)
            case Progressed(values=values) if not values.get(BUSY):
                self._take_in_step(rank, event)
            case Preparing():
                self.progress.prepares(rank, event)
            case CheckpointStored():
                if self.parts is None:
                    self.commits.add(node, event)
                else:
                    self.parts.add(rank, node, event)
            case PseudoGradientStored():
                self.watchdog.waits()
                report = ReportedPseudoGradient(event, node, now_s())
                self.pseudo_gradients.report(self.cycle, report)
            case CheckpointUnsaved(step, message):
                self.alarm.ring(step, message, node)
            case _:
                pass

    def _take_in_start(self, rank: int, event: Started | RankListening | GangJoined) -> None:
        match event:
            case Started(pid, device, _):
                self.transition_timing.mark("spawned")
                self.progress.workers({rank: {"pid": pid, "device": device}})
            case RankListening():
                self.listeners.add()
            case GangJoined(device, note):
                self.transition_timing.mark("joined")
                self._begin_island_training()
                self.progress.workers({rank: {"device": device}})
                if note:
                    log.info("rank_joined", extra={"rank": rank, "device": device, "note": note})
                    self.progress.explain(note)

    def _begin_island_training(self) -> None:
        """Let other islands see that this one trains; its first steps may wait for theirs."""
        if self.reseed:
            self.watchdog.waits()
            self.pseudo_gradients.set_training(self.cycle, is_training=True)

    def _take_in_step(self, rank: int, event: Progressed) -> None:
        self.progress.stepped(rank, event)
        self.stragglers.stepped(rank, event)
        if rank == 0:
            self.transition_timing.finish(self.gang_plan.attempt)
            self.progress.advance(event)


def reset_clocks(watchdog: GangWatchdog, rank: int, event: WorkEvent, at_s: float) -> None:
    """Let the clocks of a gang's watchdog run on from a rank's event.

    at_s: seconds of the clock that the watchdog is looked at with
    """
    match event:
        case GangJoined():
            watchdog.joined(rank, at_s)
        case Progressed(values=values) if values.get("waiting"):
            watchdog.heard(rank, at_s)
            watchdog.waits()
        case Progressed(done, values=values) if values.get(BEGINS):
            watchdog.begins(rank, done, at_s)
        case Progressed(done, values=values) if values.get(BUSY):
            watchdog.busy(rank, done, at_s)
        case Progressed(done):
            watchdog.stepped(rank, done, at_s)
        case _:
            watchdog.heard(rank, at_s)


async def follow(
    rank: int, node: NodeId, work: AsyncGenerator[WorkEvent], events: RankEvents
) -> None:
    """Follow one rank to its end.

    Raises:
        NcclFailedError: its worker crashed before it had summed over NCCL.
        TimedOutError: its ring wasn't formed in time.
        JupiterError: another reason that its work ended without a result.
    """
    forming, has_met = asyncio.timeout(None), False
    events.watchdog.heard(rank, now_s())
    try:
        async with forming, aclosing(work) as reported:
            async for event in reported:
                has_met = has_met or isinstance(event, GangJoined)
                _time_forming(forming, event, is_ring=events.gang_plan.is_ring)
                events.take_in(rank, node, event)
        events.watchdog.ended(rank)
    except WorkerKilledError as error:
        raise WorkerKilledError(f"rank {rank}, {error.message}", error.hint) from error
    except WorkerCrashedError as error:
        if has_met or events.gang_plan.choice.backend != NCCL:
            raise
        message = f"{error.message}; it hadn't summed over NCCL yet"
        raise NcclFailedError(message, error.hint) from error
    except WorkFailedError as error:
        if len(events.gang_plan.gang) > 1 and may_be_consequence(error):
            await asyncio.sleep(CAUSE_WITHIN_S)
        raise
    except TimeoutError as error:
        if not forming.expired():
            raise
        raise _ring_not_formed(rank) from error


def _time_forming(forming: asyncio.Timeout, event: WorkEvent, *, is_ring: bool) -> None:
    """Begin the time that a ring has to form when a rank starts; end it when the rank has met."""
    if isinstance(event, Started) and is_ring:
        forming.reschedule(asyncio.get_running_loop().time() + RING_TIMEOUT_S)
    elif isinstance(event, GangJoined):
        forming.reschedule(None)


def _ring_not_formed(rank: int) -> TimedOutError:
    return TimedOutError(
        f"the MLX ring wasn't formed within {RING_TIMEOUT_S:g} s, says rank {rank}",
        "they try again by themselves; a firewall between them may stand in the way",
    )
