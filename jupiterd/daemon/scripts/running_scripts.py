"""The parts of launched scripts that run on this machine for other members, each with its keeper.

Owns how many there may be, starting their keepers, and that none outlives the membership of those
it belongs to, or its owner's consent, whichever daemon started it. Doesn't know how ranks are kept
(`processes.supervised_child`), or how what they print crosses the wire.
"""

import asyncio
import logging
import sys
from collections.abc import AsyncGenerator, Coroutine, Mapping
from pathlib import Path
from typing import Any, Final

from jupiterd.daemon.ledger.replica import Replica
from jupiterd.daemon.links.peers import Peers
from jupiterd.daemon.links.refused_connections import RefusedConnections
from jupiterd.daemon.runtime.clock import wall_s
from jupiterd.daemon.runtime.settings import Settings
from jupiterd.errors import ConflictError, JupiterError, NotFoundError
from jupiterd.ids import NodeId, short
from jupiterd.processes import umask
from jupiterd.processes.script_plan import ScriptOrder
from jupiterd.processes.scripts.event_log import EventReader
from jupiterd.processes.scripts.events import Over, ScriptEvent
from jupiterd.processes.scripts.machine_share import (
    KEEPER_LOG,
    PARTS,
    MachineShare,
    ShareDescription,
    forget_old,
    parts_in,
)
from jupiterd.processes.scripts.script_supervisor import CANT_START_HINT, order_to_json
from jupiterd.protocol.frames import ConnectionsRefused
from jupiterd.store.disk import written

log = logging.getLogger(__name__)

SUPERVISOR: Final = "jupiterd.daemon.scripts.supervisor_process"
MAX_RUNNING: Final = 8
LOOK_S: Final = 0.05
LONGEST_LOOK_S: Final = 0.25
"""How often it is looked for what ranks print: more seldom where they print nothing."""

BEAT_S: Final = 2.0
"""How often followers get a sign of life."""


class RunningScripts:
    """All parts in a daemon's state folder."""

    def __init__(
        self,
        settings: Settings,
        root: Path,
        replica: Replica,
        peers: Peers,
        refused_connections: RefusedConnections,
    ) -> None:
        """`root`: the state folder; `refused_connections`: takes in those at the ports of ranks."""
        self._settings, self._root = settings, root
        self._replica, self._peers, self._refused_connections = replica, peers, refused_connections
        self._tasks: set[asyncio.Task[Any]] = set()

    def running(self) -> list[MachineShare]:
        """Return those whose keepers live."""
        return [part for part in parts_in(self._root) if part.is_alive]

    async def start(
        self, who: NodeId, order: ScriptOrder, environment: Mapping[str, str]
    ) -> MachineShare:
        """Start a part's supervisor, unless it runs: the caller may have missed the answer.

        Raises:
            ConflictError: there are too many, or no keeper can be started.
            NotFoundError: it is somebody else's.
            DiskFullError, StateDirError: its folder can't be made.
        """
        part = MachineShare(self._root / PARTS / order.id)
        if part.folder.exists():
            return self.of(who, order.id)
        if len(self.running()) >= MAX_RUNNING:
            name = self._settings.name
            raise ConflictError(f"{name} runs {MAX_RUNNING} scripts already")
        forget_old(parts_in(self._root), wall_s())
        try:
            with written():
                part.make(self._description(who, order))
            await self._start_supervisor(part, order, environment)
        except JupiterError:
            part.remove()
            raise
        self._log("script_started", part)
        return part

    def of(self, who: NodeId, id_: str) -> MachineShare:
        """Return a part that this node ordered.

        Raises:
            NotFoundError: there is none, or it belongs to another.
        """
        part = MachineShare(self._root / PARTS / id_)
        described = part.describe()
        if described is None or described.owner != who:
            raise NotFoundError(f"{self._settings.name} runs no such part of a script")
        return part

    async def events(
        self, part: MachineShare, offset: int
    ) -> AsyncGenerator[tuple[ScriptEvent | None, int]]:
        """Yield what is heard of a part from an offset on, and where to go on after it.

        None says every few seconds that there is nothing new.

        Raises:
            NotFoundError: its keeper was killed, or this machine was started again.
        """
        reader, pause_s, beat_s = EventReader(part.folder, offset), LOOK_S, 0.0
        yield None, offset
        while True:
            was_alive = part.is_alive
            before = reader.offset
            for event in reader.read():
                if isinstance(event, ConnectionsRefused):
                    self._refused_connections.note(event, part.id)
                    yield None, reader.offset
                else:
                    yield event, reader.offset
                if isinstance(event, Over):
                    self._log("script_ended", part, reason=event.reason)
                    return
            if reader.offset != before:
                pause_s, beat_s = LOOK_S, 0.0
                continue
            if not was_alive:
                raise NotFoundError(
                    f"what kept the ranks on {self._settings.name} was killed",
                    "the machine was started again, or ran out of memory; launch it again",
                )
            await asyncio.sleep(pause_s)
            beat_s += pause_s
            pause_s = min(2 * pause_s, LONGEST_LOOK_S)
            if beat_s >= BEAT_S:
                beat_s = 0.0
                yield None, reader.offset

    async def watch(self) -> None:
        """End parts that nobody may have here any more, now and at every change of the cluster."""
        replica = self._replica
        while True:
            version = replica.version
            for part in self.running():
                if reason := self._refused(part):
                    self._log("script_refused", part, reason=reason)
                    part.send("end", reason)
            await replica.changed_since(version)

    def later(self, doing: Coroutine[Any, Any, Any]) -> None:
        """Let something be done that nobody waits for."""
        task = asyncio.get_running_loop().create_task(doing)
        self._tasks.add(task)  # the loop alone would let it go
        task.add_done_callback(self._tasks.discard)

    def _refused(self, part: MachineShare) -> str:
        """Return why a part may run here no more; empty where it may."""
        members = self._replica.state.members
        described = part.describe()
        if described is None or described.owner not in members:
            return "whoever launched it is no member any more"
        if self._replica.node not in members:
            return "this machine is no member any more"
        if not self._settings.allow_scripts:
            return "this machine doesn't run scripts of others any more"
        return ""

    async def _start_supervisor(
        self, part: MachineShare, order: ScriptOrder, environment: Mapping[str, str]
    ) -> None:
        failed = f"no keeper can be started on {self._settings.name}"
        try:
            with (part.folder / KEEPER_LOG).open("ab") as complaints:
                supervisor = await asyncio.create_subprocess_exec(
                    sys.executable, "-I", "-m", SUPERVISOR, str(part.folder),
                    env=environment,
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.DEVNULL,
                    stderr=complaints,
                    umask=umask.usual(),
                    start_new_session=True,
                )  # fmt: skip
                await supervisor.communicate(order_to_json(order))
        except OSError as error:
            raise ConflictError(f"{failed}: {error}", CANT_START_HINT) from error
        if supervisor.returncode:
            raise ConflictError(failed)

    def _description(self, who: NodeId, order: ScriptOrder) -> ShareDescription:
        peer = self._peers.get(who)
        name = peer.name if peer is not None else short(who)
        ranks = tuple(rank.rank for rank in order.ranks)
        return ShareDescription(who, name, order.argv, order.folder, ranks, wall_s())

    def _log(self, event: str, part: MachineShare, **more: str) -> None:
        described = part.describe()
        owner = short(NodeId(described.owner)) if described is not None else ""
        argv = list(described.argv) if described is not None else []
        log.info(event, extra={"id": part.id, "node": owner, "argv": argv, **more})
