"""What the cluster file of this machine means for the members that are known just now.

Owns what is made of it: roles where this node leads, the engine of runs that are asked for here,
and what people are told of contradictions. Doesn't know the file's form, or what differs.
"""

import asyncio
import logging
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from jupiterd.cluster.planning.cluster_file_conflicts import contradictions
from jupiterd.cluster.planning.cluster_file_policy import (
    KnownMachine,
    MachineEntry,
    entries_by_node,
)
from jupiterd.cluster.planning.engines import AUTO
from jupiterd.cluster.training.tunnel_plan import GANG_ENCRYPTION, ON
from jupiterd.cluster.values.hardware import Hardware
from jupiterd.cluster.values.interface_kind import InterfaceKind
from jupiterd.daemon.ledger.replica import Replica
from jupiterd.daemon.links.peers import Peer, Peers
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.daemon.runtime.settings import Settings
from jupiterd.daemon.runtime.untrusted_input import sanitized_text
from jupiterd.ids import NodeId
from jupiterd.net.interface_kinds import kind_of
from jupiterd.net.interfaces import LOOPBACK, interface_of
from jupiterd.net.scopes import without_scope_in
from jupiterd.net.static_discovery import StaticDiscovery
from jupiterd.ports import Address
from jupiterd.protocol.commands.command import PlainMap
from jupiterd.protocol.commands.cycle_commands import DescribedCycle
from jupiterd.protocol.commands.train_commands import StartTraining

log = logging.getLogger(__name__)

LOOK_S: Final = 2.0
"""Members, addresses and links change, but nobody waits for what follows from the file."""

D = TypeVar("D", bound=DescribedCycle)


@dataclass(frozen=True)
class OwnMachine:
    """What this machine knows of itself."""

    node: NodeId
    hardware: Callable[[], Hardware]
    named: StaticDiscovery
    """Who is looked for by name."""
    port: Callable[[], int]
    """Where its Peer service answers, once it does."""
    addresses: Callable[[], Sequence[str]]


class ClusterFilePolicy:
    """The file's word, beside what is."""

    def __init__(self, settings: Settings, own: OwnMachine, replica: Replica, peers: Peers) -> None:
        self._settings, self._own = settings, own
        self._replica, self._peers = replica, peers
        self._written = settings.cluster
        self._due_s = float("-inf")
        self._entries: dict[NodeId, MachineEntry] = {}
        self._contradictions: dict[NodeId, tuple[str, ...]] = {}
        self._logged: set[str] = set()

    def roles(self) -> dict[NodeId, str]:
        """Return the roles that are written down for members."""
        self._look()
        return {node: entry.role for node, entry in self._entries.items() if entry.role}

    def says_yes_to(self, node: NodeId) -> bool:
        """Say whether a member answers where the file says; its name alone anybody could take."""
        self._look()
        entry, members = self._entries.get(node), self._replica.state.members
        if entry is None or node not in members:
            return False
        meant = {entry.address} | self._meanings().get(entry.address, frozenset())
        return bool(self._machine(node).addresses & meant)

    def contradictions(self, node: NodeId) -> tuple[str, ...]:
        """Return what is written of a member and isn't so."""
        self._look()
        return self._contradictions.get(node, ())

    def all_contradictions(self) -> tuple[str, ...]:
        """Return the same of everybody."""
        self._look()
        return tuple(
            line for node in sorted(self._contradictions) for line in self.contradictions(node)
        )

    def notes(self) -> tuple[str, ...]:
        """Return what in the file has no effect, and why."""
        return tuple(self._written.notes())

    def added_to_training(self, command: StartTraining) -> StartTraining:
        """Return a command with what the file decides, where it says nothing of it.

        Whether this machine's owner wants gangs encrypted, or adapters trained, its own settings
        say.
        """
        engine = self._engine_for(command.engine)
        asked, usual = self._adapted(command)
        settings = self._settings_for(self._quantized(asked))
        return replace(command, engine=engine, settings=settings, usual_adapter_of=usual)

    def added_to_cycle(self, command: D) -> D:
        """Return the same of a cycle."""
        engine = self._engine_for(command.engine)
        settings = self._settings_for(command.settings or {})
        asked, usual = self._adapted_cycle(command)
        training = self._quantized(asked)
        return replace(
            command,
            engine=engine,
            settings=settings or command.settings,
            training=training or command.training,
            usual_adapter_of=usual,
        )

    def _adapted(self, command: StartTraining) -> tuple[PlainMap, str | None]:
        """Return a run's settings with the adapter that is usual here, and who says so.

        Nobody: the command says what is trained, or it begins with no weights.
        """
        lora, has_weights = self._settings.lora, bool(command.weights or command.weights_folder)
        if not lora or not has_weights or "lora" in command.settings:
            return command.settings, None
        return {**command.settings, "lora": lora}, self._settings.name

    def _adapted_cycle(self, command: DescribedCycle) -> tuple[PlainMap, str | None]:
        """Return the same of a cycle, whose domain may say it, too."""
        asked = command.training or {}
        if not self._settings.lora or not command.init or _says_what_is_trained(command):
            return asked, None
        return {**asked, "lora": self._settings.lora}, self._settings.name

    def _quantized(self, asked: PlainMap) -> PlainMap:
        """Return what is asked of an adapter, and what this machine's own settings add to it."""
        lora, quantize = str(asked.get("lora") or ""), self._settings.quantize
        is_silent = "quantize" not in asked and "quantize=" not in lora
        if quantize == "none" or lora in ("", "off") or not is_silent:
            return asked
        return {**asked, "lora": f"{lora},quantize={quantize}"}

    def _engine_for(self, asked: str | None) -> str | None:
        engine = self._written.engine()
        if asked or engine == AUTO:
            return asked
        log.info("engine_from_file", extra={"engine": engine, "file": self._written.file})
        return engine

    def _settings_for(self, asked: PlainMap) -> PlainMap:
        """Return settings, and whether islands train, and how often they exchange."""
        if self._settings.gang_encryption:
            asked = {GANG_ENCRYPTION: ON, **asked}
        added = {k: value for k, value in self._written.settings().items() if k not in asked}
        if not added:
            return asked
        log.info("settings_from_file", extra={"file": self._written.file, **added})
        return {**added, **asked}

    async def run(self) -> None:
        """Log what the file is, and each contradiction once."""
        if not self._written.file:
            return
        entries = len(self._written.entries)
        log.info("cluster_file", extra={"file": self._written.file, "nodes": entries})
        for note in self.notes():
            log.info("no_effect", extra={"what": note})
        while True:
            for line in self.all_contradictions():
                if line not in self._logged:
                    self._logged.add(line)
                    log.warning("contradiction", extra={"what": line})
            await asyncio.sleep(LOOK_S)

    def _look(self) -> None:
        """Find out anew who is meant and what differs, unless that was done just now."""
        if not self._written.entries or now_s() < self._due_s:
            return
        self._due_s = now_s() + LOOK_S
        machines = {node: self._machine(node) for node in self._replica.state.members}
        found = entries_by_node(self._written, tuple(machines.values()), self._meanings())
        self._entries = found
        self._contradictions = {
            node: tuple(contradictions(self._written, entry, machines[node]))
            for node, entry in found.items()
        }

    def _machine(self, node: NodeId) -> KnownMachine:
        if node == self._own.node:
            return self._own_machine()
        peer, admitted = self._peers.get(node), self._replica.state.members[node]
        if peer is None:
            return KnownMachine(node, sanitized_text(admitted.name), frozenset())
        ways = frozenset(without_scope_in(str(way)) for way in peer.paths())
        name = sanitized_text(peer.name or admitted.name)
        return KnownMachine(node, name, ways, peer.hardware, frozenset(_kinds_there(peer)))

    def _own_machine(self) -> KnownMachine:
        name, hardware = self._settings.name, self._own.hardware()
        sources = {peer.source for peer in self._peers if peer.source}
        kinds = frozenset(kind_of(interface_of(source)) for source in sources)
        return KnownMachine(self._own.node, name, self._own_addresses(), hardware, kinds)

    def _own_addresses(self) -> frozenset[str]:
        """Return every way to write where this node answers, its host name's among them."""
        host, port = platform.node().lower(), self._own.port()
        bare = host.partition(".")[0]
        hosts = (LOOPBACK, "::1", "localhost", host, bare, f"{bare}.local")
        named = {str(Address(host, port)) for host in hosts}
        return frozenset({*map(without_scope_in, self._own.addresses()), *named})

    def _meanings(self) -> dict[str, frozenset[str]]:
        meanings = self._own.named.meanings
        return {
            str(told): frozenset(without_scope_in(str(address)) for address in found)
            for told, found in meanings.items()
        }


def _says_what_is_trained(command: DescribedCycle) -> bool:
    """Say whether a cycle's command or its domain decides on an adapter."""
    from jupiterd.cycle.domain.domain import parse_domain  # its models take 8 MB, idle or not

    if "lora" in (command.training or {}):
        return True
    domain = parse_domain(command.domain_yaml, f"{command.domain_name}.yaml")
    return domain.training.lora is not None


def _kinds_there(peer: Peer) -> list[InterfaceKind]:
    """Return the kind of a peer's end of the link in use, as it measured that; none on loopback."""
    number = peer.address_kinds.get(without_scope_in(str(peer.address)))
    return [] if number is None or not peer.source else [InterfaceKind.numbered(number)]
