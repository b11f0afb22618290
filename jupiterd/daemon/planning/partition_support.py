"""Members that train no part of a model: their builds are older, and refuse settings about it.

Owns who they are, and saying so. Doesn't know how a model is cut, or who trains.
"""

from shlex import quote

from jupiterd.cluster.planning.engines import EngineChoice
from jupiterd.daemon.leader.machines import Machines
from jupiterd.errors import UsageError
from jupiterd.ids import NodeId
from jupiterd.versions import UPGRADE


def check_all_know_partitions(machines: Machines, option: str) -> None:
    """Raise UsageError where a member that is alive doesn't: it may come to lead, too."""
    if lacking := _lacking(machines):
        names = ", ".join(sorted(map(machines.name_of, lacking)))
        are = "runs a build" if len(lacking) == 1 else "run builds"
        raise UsageError(
            f"{option}: {names} {are} of jupiterd that can't train a part of a model",
            f"upgrade it: {UPGRADE}, or jupiterctl node remove {quote(names.partition(',')[0])}",
        )


def check_can_cut(machines: Machines, choice: EngineChoice, option: str) -> None:
    """Raise UsageError where a member of a gang can't train a part of a model on its engine."""
    lacking = [node for node in dict.fromkeys(choice.gang) if not _can(machines, node, choice)]
    if lacking:
        names = ", ".join(sorted(map(machines.name_of, lacking)))
        raise UsageError(
            f"{option}: {names} can't train a part of a model on {choice.engine} yet",
            f"upgrade it: {UPGRADE}, or leave out {option.partition(' ')[0]}",
        )


def can_all_cut(machines: Machines, choice: EngineChoice) -> bool:
    """Say whether a gang can train a model that is cut, and everybody can come to lead it."""
    return all(_can(machines, node, choice) for node in choice.gang) and not _lacking(machines)


def lacking_names(machines: Machines, choice: EngineChoice) -> str:
    """Return who keeps a gang from cutting a model, by name."""
    members = [node for node in dict.fromkeys(choice.gang) if not _can(machines, node, choice)]
    return ", ".join(sorted({machines.name_of(node) for node in [*members, *_lacking(machines)]}))


def _can(machines: Machines, node: NodeId, choice: EngineChoice) -> bool:
    found = machines.hardware_of(node)
    return found is not None and choice.engine in found.cut_engines


def _lacking(machines: Machines) -> list[NodeId]:
    known = ((node, machines.hardware_of(node)) for node in sorted(machines.alive()))
    return [node for node, found in known if found is not None and not found.cut_engines]
