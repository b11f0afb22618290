"""The launch question that jupiterctl sends its daemon, and the daemon each machine.

Owns both forms and the answer's. Doesn't know who is asked, or what a machine answers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jupiterd.ids import NodeId
from jupiterd.processes.scripts.by_machine import Devices, PerNode
from jupiterd.processes.scripts.folder_map import FolderMap
from jupiterd.protocol.commands.script_commands import PrepareLaunch
from jupiterd.rpc.script_pb2 import PrepareScriptReply, PrepareScriptRequest


@dataclass(frozen=True)
class LaunchQuestion:
    """One question of jupiterctl's."""

    nodes: str
    per_node: PerNode
    devices: Devices
    engine: str
    program: str
    """Empty: each machine's own Python."""
    folder: str
    """Empty: it travels."""
    script: str
    files: tuple[str, ...] = ()
    folder_map: FolderMap = field(default_factory=FolderMap)
    environment: Mapping[str, str] | None = None
    """What of the shell's the ranks on this machine find."""

    @classmethod
    def of(cls, command: PrepareLaunch) -> "LaunchQuestion":
        """Read a command; raises UsageError."""
        environment = command.environment
        return cls(
            nodes=command.nodes,
            per_node=PerNode.parse(command.per_node),
            devices=Devices.parse(command.devices),
            engine=command.engine,
            program=command.program,
            folder=command.folder,
            script=command.script,
            files=command.files,
            folder_map=FolderMap.parse(command.folder_map),
            environment=None
            if environment is None
            else {k: str(each) for k, each in environment.items()},
        )

    def requests(
        self, chosen: Sequence[NodeId], names: Mapping[NodeId, str], own: NodeId
    ) -> dict[NodeId, PrepareScriptRequest]:
        """Return the request of each machine, without the host.

        Raises:
            UsageError: what is said of single machines fits none of these.
            NotFoundError: there is no such machine.
        """
        counts, devices = self.per_node.of(chosen, names), self.devices.of(chosen, names)
        folders = self.folder_map.of(chosen, names, own)
        return {
            node: PrepareScriptRequest(
                program=folders[node].mapped(self.program or "python"),
                own_python=not self.program,
                folder=folders[node].mapped(self.folder),
                script=folders[node].mapped(self.script),
                engine=self.engine,
                per_node=counts[node],
                files=self.files,
                devices=devices[node],
            )
            for node in chosen
        }


def place_of(reply: PrepareScriptReply) -> dict[str, Any]:
    """Return what a machine has answered, for jupiterctl."""
    return {
        "processes": reply.processes,
        "cores": reply.cores,
        "ports": list(reply.ports),
        "script_hash": reply.script_hash.hex(),
        "program": reply.program,
        "python_version": reply.python_version,
        "packages": dict(reply.packages),
        "variables": dict(reply.variables),
        "file_hashes": [digest.hex() for digest in reply.file_hashes],
        "gpus": list(reply.gpus),
        "visible_devices": reply.visible_devices if reply.hides_devices else None,
        "threads": reply.threads,
        "keeps_parts": reply.keeps_parts,
    }
