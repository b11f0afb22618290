"""Members that train no adapters: their builds are older, and refuse settings that name one.

Owns who they are, and saying so. Doesn't know what an adapter is, or who trains.
"""

from collections.abc import Mapping
from shlex import quote

from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.values.hardware import Hardware
from jupiterd.daemon.leader.machines import Machines
from jupiterd.errors import PeerUnreachableError, UsageError
from jupiterd.ids import NodeId
from jupiterd.versions import UPGRADE


def check_all_train_adapters(machines: Machines) -> None:
    """Raise UsageError where a member that is alive doesn't: it may come to lead, too."""
    known = ((node, machines.hardware_of(node)) for node in sorted(machines.alive()))
    lacking = [node for node, found in known if found is not None and not found.trains_adapters]
    if lacking:
        names = ", ".join(sorted(map(machines.name_of, lacking)))
        are = "runs a build" if len(lacking) == 1 else "run builds"
        raise UsageError(
            f"--lora: {names} {are} of jupiterd that can't train adapters",
            f"upgrade it: {UPGRADE}, or jupiterctl node remove {quote(names.partition(',')[0])}",
        )


def that_train_it(
    machines: Mapping[NodeId, Hardware], run: CycleState
) -> Mapping[NodeId, Hardware]:
    """Return those of some machines that can train a run or cycle: one with an adapter not all can.

    Raises:
        PeerUnreachableError: none of them can.
    """
    asked = run.training or run.started
    if asked is None or not asked.settings.get("lora") or not machines:
        return machines
    if found := {node: each for node, each in machines.items() if each.trains_adapters}:
        return found
    raise PeerUnreachableError("no node that is here can train adapters", f"upgrade one: {UPGRADE}")
