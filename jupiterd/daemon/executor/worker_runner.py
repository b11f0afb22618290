"""Doing one piece of work on this node: fetch its inputs, run the worker, keep its outputs.

Owns turning an order into a process and its frames into events. Doesn't know why the work is
wanted.
"""

import asyncio
import logging
import re
import secrets
import shutil
from collections.abc import AsyncGenerator, Coroutine, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from jupiterd.cluster.planning.asking_node import ASKED_AT
from jupiterd.cluster.values.hardware import Hardware
from jupiterd.cycle.base.work_item import WorkResult
from jupiterd.daemon.artifacts.artifact_cache import ArtifactCache
from jupiterd.daemon.artifacts.checkpoint_integrity import whole_start
from jupiterd.daemon.artifacts.scratch_dirs import remove_scratch, scratch_of
from jupiterd.daemon.executor import (
    deferred_inputs,
    device_capacity,
    gang_stores,
    ring_socket,
    state_snapshots,
)
from jupiterd.daemon.executor.compile_times import CompileTimes
from jupiterd.daemon.executor.curve_paths import curves_folder
from jupiterd.daemon.executor.deferred_inputs import without_lost
from jupiterd.daemon.executor.device_allocation import (
    RANKS,
    DeviceAllocation,
    chosen_engine,
    computes,
)
from jupiterd.daemon.executor.gang_stores import GangStores
from jupiterd.daemon.executor.gang_tunnels import GangTunnels, RankTunnels, on_loopback
from jupiterd.daemon.executor.offered_paths import OfferedPaths, requester
from jupiterd.daemon.executor.old_parts import OldParts
from jupiterd.daemon.executor.outer_step_inputs import OuterStepInputs
from jupiterd.daemon.executor.state_snapshots import (
    StateSnapshots,
    snapshots_of,
    write_folder,
)
from jupiterd.daemon.executor.store_calls import StoreCalls
from jupiterd.daemon.ledger.replica import Replica
from jupiterd.daemon.links.refused_connections import RefusedConnections
from jupiterd.daemon.runtime.settings import Settings
from jupiterd.daemon.runtime.state_dir import StateDir
from jupiterd.daemon.runtime.work_events import (
    BEGINS,
    BUSY,
    CheckpointStored,
    Finished,
    LocalWorkEvent,
    PseudoGradientStored,
    Started,
    StateStored,
    WorkOrder,
)
from jupiterd.errors import (
    Bug,
    DeviceBusyError,
    DiskFullError,
    JupiterError,
    WorkFailedError,
    from_wire,
)
from jupiterd.ids import ArtifactId
from jupiterd.processes.device_loans import DeviceLoans
from jupiterd.processes.environment import GRAPH_CACHE, worker_environment
from jupiterd.processes.process import Spawn, Worker, never_warm, start_worker
from jupiterd.processes.thread_shares import Seat, ThreadShares
from jupiterd.processes.warm_pool import WarmPool
from jupiterd.protocol.frames import (
    CheckpointUnsaved,
    CheckpointWritten,
    ConnectionsRefused,
    Frame,
    GangJoined,
    OuterStepWanted,
    Preparing,
    Progressed,
    PseudoGradientWritten,
    RankBusy,
    RankListening,
    RankStuck,
    RunTask,
    StateSaved,
    StoreAsked,
    TaskFailed,
    TaskFinished,
)
from jupiterd.rpc import peer_pb2
from jupiterd.store.disk import NO_ROOM, is_no_room, written

log = logging.getLogger(__name__)


NURSERY_OF_TASK = {
    "train": "torch",
    "train_mlx": "mlx",
    "evaluate": "torch",
    "generate": "torch",
    "train_proxy": "torch",
}
"""Task -> the nursery (a process that has loaded the engine) that its workers are forked from."""

REPEATED = frozenset({"evaluate", "train_proxy"})
"""Tasks that are done many times in a round: the first one on torch begins their nursery."""


MICRO_BATCH_FILE = "micro_batch_file"
"""Where a rank keeps the micro batches that it has found."""

OF_THIS_NODE = frozenset(
    {"log_dir", MICRO_BATCH_FILE, ASKED_AT, gang_stores.PARAM, state_snapshots.PARAM}
)
"""Parameters that no worker gets as an order has them: a path of this node, and what its daemon
alone needs."""

WARM_WITHIN_S = 1.5
"""Less than what the leader waits for an answer."""

LOADING = "its workers still load their libraries"


class WorkerRunner:
    """Runs worker processes for orders of the leader."""

    def __init__(
        self,
        state_dir: StateDir,
        artifact_cache: ArtifactCache,
        replica: Replica,
        group: asyncio.TaskGroup,
        settings: Settings,
        machine: Hardware,
    ) -> None:
        self.warm_pool = WarmPool(state_dir.logs, group)
        self.stores = GangStores(artifact_cache.peers.own)
        self.store_calls = StoreCalls(artifact_cache.peers, self.stores)
        self._tunnels = GangTunnels(replica)
        self._group = group
        self._state_dir = state_dir
        self._artifact_cache = artifact_cache
        self._outer = OuterStepInputs(replica, artifact_cache)
        self._machine = machine
        self._compile_times = CompileTimes(state_dir.compile_times, machine.versions)
        self.loans = DeviceLoans()
        self._devices = DeviceAllocation(machine, settings.name, self.loans)
        self.thread_shares = ThreadShares()
        """Of this machine's cores, for all that computes here beside ranks."""
        self._own = {
            "threads": settings.threads,
            "node_name": settings.name,
            "checkpoint_every_s": settings.checkpoint_every_s,
        }
        """Parameters of this machine for every worker, unless the order has its own."""
        self._key_hosts = settings.api_keys
        self._rank_variables = settings.env
        self.offered = OfferedPaths(state_dir.requested_paths, settings.readable_folders)
        self.refused_connections = RefusedConnections()
        self._members = replica
        self.old_parts = OldParts(artifact_cache.store, lambda: replica.state)
        self.running: dict[str, WorkOrder] = {}
        self._workers: dict[str, Worker] = {}

    async def prepare(self, request: peer_pb2.PrepareRanksRequest) -> peer_pb2.PrepareRanksReply:
        """Say whether a gang's ranks may run here just now.

        A gang that trains (it asks about no number of ranks) needn't stop for one that would have
        to load its libraries first.
        """
        if not request.ranks and not await self.warm_pool.is_warm(request.engine, WARM_WITHIN_S):
            failure = peer_pb2.Failure(code=DeviceBusyError.code, message=LOADING)
            return peer_pb2.PrepareRanksReply(failure=failure)
        return await device_capacity.answer(self._machine, request, self._state_dir.store)

    async def run(self, order: WorkOrder) -> AsyncGenerator[LocalWorkEvent]:
        """Do the work and yield its events, `Finished` last; closing the iterator ends the process.

        Raises:
            NotOfferedError: it would read what this machine doesn't offer.
            JupiterError: the worker failed, or an input can't be had.
        """
        requested_by = requester(order, self._members.state.members)
        own = str(self._own["node_name"])
        await asyncio.to_thread(self.offered.check, order.task, order.params, requested_by, own)
        order = await without_lost(self._artifact_cache, order)
        at_once = deferred_inputs.without(order)
        # Ranks train beside a base, and are told which.
        with_bases = order.task not in RANKS
        inputs = await self._artifact_cache.ensure_all(at_once, with_bases=with_bases)
        inputs |= await whole_start(self._artifact_cache, at_once)
        spool = self._state_dir.spool / secrets.token_hex(8)
        with written():
            spool.mkdir(mode=0o700)
        self.running[spool.name] = order
        try:
            with self.stores.opened(order.params):
                async with aclosing(self._run_worker(order, inputs, spool)) as events:
                    async for event in events:
                        yield event
            await asyncio.to_thread(remove_scratch, self._state_dir.scratch, order)
        except OSError as error:  # a worker's log and pid may find no room either
            if is_no_room(error):
                raise DiskFullError(NO_ROOM) from error
            raise WorkFailedError(f"the {order.task} worker couldn't be run: {error}") from error
        finally:
            del self.running[spool.name]
            await asyncio.to_thread(shutil.rmtree, spool, ignore_errors=True)

    def save_state(self, order_id: str, after_step: int) -> bool:
        """Ask the worker of an order for its last finished step; say whether there is one to ask.

        The answer comes with the events of the work, as `StateStored`.
        """
        worker = self._workers.get(order_id)
        if worker is not None:
            worker.save_state(after_step)
        return worker is not None

    def ask_to_stop(self, order_id: str, reason: str) -> bool:
        """Ask the worker of an order to stop after its running step; say whether there is one."""
        worker = self._workers.get(order_id)
        if worker is not None:
            worker.ask_to_stop(reason)
        return worker is not None

    async def _run_worker(
        self, order: WorkOrder, inputs: Mapping[str, str], spool: Path
    ) -> AsyncGenerator[LocalWorkEvent]:
        worker_params = {
            name: value for name, value in order.params.items() if name not in OF_THIS_NODE
        }
        params: dict[str, Any] = {**self._own, **worker_params}
        params |= chosen_engine(order.task, params, self._machine)
        if order.attempt:  # no path comes from outside
            params["log_dir"] = str(curves_folder(self._state_dir.curves, order))
        if order.task in RANKS:
            params[MICRO_BATCH_FILE] = str(self._state_dir.micro_batches)
        async with self._tunnels.of(params) as tunnels:
            with snapshots_of(order, spool) as snapshots:
                params |= snapshots.params
                work = self._run_process(
                    order, params, inputs, spool, tunnels, snapshots.descriptors
                )
                saved_step = -1
                try:
                    async with aclosing(work) as events:
                        async for event in events:
                            if isinstance(event, CheckpointStored):
                                saved_step = event.progress.step
                                await self.old_parts.stored(order, event)
                            yield event
                except JupiterError as error:
                    if not error.is_permanent:  # a loss that is no number would be none again
                        async for event in self._recovered(snapshots, saved_step, spool, inputs):
                            yield event
                    raise

    async def _recovered(
        self,
        snapshots: StateSnapshots,
        saved_step: int,
        spool: Path,
        inputs: Mapping[str, str],
    ) -> AsyncGenerator[LocalWorkEvent]:
        """Yield the checkpoint of what a rank has left in its memory, if none is as late.

        Whatever goes wrong here is told in the log alone: the error that ended the rank counts.
        """
        try:
            found = await asyncio.to_thread(snapshots.newest)  # it reads gigabytes
            if found is None or (step := found.description.progress.step) <= saved_step:
                return
            yield _busy(RankBusy(step))  # a large one takes longer than a step
            written = partial(write_folder, found, spool, Path(inputs["tokenizer"]))
            stored = await self._stored_checkpoint(await asyncio.to_thread(written), spool)
        except (OSError, ValueError, JupiterError) as lost:
            log.warning("snapshot_lost", extra={"reason": str(lost)})
            return
        log.info("snapshot_recovered", extra={"step": step, "artifact": stored.artifact})
        yield stored

    async def _run_process(
        self,
        order: WorkOrder,
        params: Mapping[str, Any],
        inputs: Mapping[str, str],
        spool: Path,
        tunnels: RankTunnels | None,
        descriptors: Sequence[int] = (),
    ) -> AsyncGenerator[LocalWorkEvent]:
        fetching: set[asyncio.Task[None]] = set()
        try:
            scratch = str(scratch_of(self._state_dir.scratch, order))
            environment = worker_environment(
                order.task,
                params,
                key_hosts=self._key_hosts,
                rank_variables=self._rank_variables,
            )
            environment[GRAPH_CACHE] = str(self._state_dir.graphs)
            if tunnels is not None:
                environment = on_loopback(environment)
            async with (
                self._thread_seat(order.task, params) as seat,
                self._devices.used_by(order, params) as device,
                start_worker(
                    RunTask(order.task, params, inputs, str(spool), scratch, seat.threads),
                    environment,
                    self._log_path(order),
                    pass_fds=(
                        *(() if device.descriptor is None else (device.descriptor,)),
                        *descriptors,
                    ),
                    warm=self._warm(order.task, params),
                ) as worker,
            ):
                self._workers[order.id] = worker
                seat.hears_by(worker.share_threads)
                self._begin(fetching, device.watch(worker.end), f"devices of {order.id}")
                late = deferred_inputs.bring(self._artifact_cache, order, worker.hand_in)
                self._begin(fetching, late, f"late inputs of {order.id}")
                yield Started(worker.pid, str(params.get("device", "cpu")))
                compiling = self._compile_times.watch(order.task, params)
                async for frame in device.guarded(worker.frames(ends_stopped=order.attempt > 0)):
                    if isinstance(frame, TaskFailed):
                        raise from_wire(frame.code, frame.message, frame.hint)
                    if isinstance(frame, OuterStepWanted):
                        step = self._outer.bring(order.params, frame.after, worker.hand_in)
                        self._begin(fetching, step, f"step of {order.id}")
                    elif isinstance(frame, StoreAsked):
                        answer = self.store_calls.serve(
                            order.params, frame, worker.hand_in, tunnels
                        )
                        self._begin(fetching, answer, f"store of {order.id}")
                    elif isinstance(frame, RankListening):
                        await ring_socket.wait_for(worker.pid, frame)
                        yield frame
                    elif isinstance(frame, ConnectionsRefused):
                        self.refused_connections.note(frame, order.id)
                    else:
                        yield await self._event(await compiling.take(frame), spool)
        finally:
            self._workers.pop(order.id, None)
            for fetch in tuple(fetching):
                fetch.cancel()

    def _begin(
        self, under_way: set[asyncio.Task[None]], work: Coroutine[Any, Any, None], name: str
    ) -> None:
        """Run a task concurrently with reading a worker's frames; it ends with the worker."""
        task = self._group.create_task(work, name=name)
        under_way.add(task)
        task.add_done_callback(under_way.discard)

    @asynccontextmanager
    async def _thread_seat(self, task: str, params: Mapping[str, Any]) -> AsyncGenerator[Seat]:
        """Give the worker its share of the cores: none where threads are given, or few needed."""
        if params.get("threads") or not computes(task, params, self._machine):
            yield Seat(can_change=False)
            return
        with self.thread_shares.seat(can_change=task not in RANKS) as seat:
            yield seat

    def _warm(self, task: str, params: Mapping[str, Any]) -> Spawn:
        if task not in NURSERY_OF_TASK:
            return never_warm
        begins = task in REPEATED and params.get("engine") == NURSERY_OF_TASK[task]
        return partial(self.warm_pool.spawn, NURSERY_OF_TASK[task], begins=begins)

    async def _event(self, frame: Frame, spool: Path) -> LocalWorkEvent:
        event: LocalWorkEvent
        match frame:
            case Progressed() | CheckpointUnsaved() | GangJoined() | RankStuck():
                event = frame
            case Preparing():
                event = frame
            case RankBusy():
                event = _busy(frame)
            case CheckpointWritten():
                event = await self._stored_or_unsaved(frame, spool)
            case StateSaved(None):
                event = StateStored(None)
            case StateSaved(CheckpointWritten() as checkpoint):
                event = StateStored(await self._stored_checkpoint(checkpoint, spool))
            case PseudoGradientWritten():
                event = await self._stored_pseudo_gradient(frame, spool)
            case TaskFinished(outputs, counts, summary):
                stored = {name: await self._ingest(spool, path) for name, path in outputs.items()}
                event = Finished(WorkResult(stored, counts, summary))
            case _:
                raise Bug(f"a worker sent {type(frame).__name__}")
        return event

    async def _stored_or_unsaved(
        self, frame: CheckpointWritten, spool: Path
    ) -> CheckpointStored | CheckpointUnsaved:
        """Take in a checkpoint; without room it is thrown away, and the work goes on."""
        try:
            return await self._stored_checkpoint(frame, spool)
        except DiskFullError as error:
            await asyncio.to_thread(shutil.rmtree, _inside(spool, frame.path), ignore_errors=True)
            return CheckpointUnsaved(frame.progress.step, error.message)

    async def _stored_checkpoint(self, frame: CheckpointWritten, spool: Path) -> CheckpointStored:
        return CheckpointStored(await self._ingest(spool, frame.path), frame.progress)

    async def _stored_pseudo_gradient(
        self, frame: PseudoGradientWritten, spool: Path
    ) -> PseudoGradientStored:
        artifact = await self._ingest(spool, frame.path)
        size_bytes = self._artifact_cache.store.manifest(artifact).size_bytes
        return PseudoGradientStored(artifact, replace(frame.pseudo_gradient, size_bytes=size_bytes))

    async def _ingest(self, spool: Path, relative: str) -> ArtifactId:
        artifact = await asyncio.to_thread(
            self._artifact_cache.store.ingest, _inside(spool, relative)
        )
        self._artifact_cache.known_whole.add(artifact)
        return artifact

    def _log_path(self, order: WorkOrder) -> Path:
        name = re.sub(r"[^A-Za-z0-9.-]+", "-", f"{order.id}-{order.task}")
        return self._state_dir.logs / f"{name}.log"


def _inside(spool: Path, relative: str) -> Path:
    """Return the path of an output; raises Bug where it would lie outside the worker's folder."""
    source = (spool / relative).resolve()
    if not source.is_relative_to(spool.resolve()) or source == spool.resolve():
        raise Bug(f"a worker named an output outside its folder: {relative}")
    return source


def _busy(frame: RankBusy) -> Progressed:
    begins = {BEGINS: 1.0} if frame.begins else {}
    return Progressed(frame.step, 0, "steps", {BUSY: 1.0, **begins})
