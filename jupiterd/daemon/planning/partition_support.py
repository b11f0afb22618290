"""Members that train no part of a model: their builds are older, and refuse settings about it.

Owns who they are, and saying so. Doesn't know how a model is cut, or who trains. Cutting the frozen
model beside an adapter is asked of them apart: builds that do it came later.
"""

from shlex import quote
from typing import Final

from jupiterd.cluster.planning.engines import EngineChoice
from jupiterd.cluster.values.hardware import Hardware
from jupiterd.daemon.leader.machines import Machines
from jupiterd.errors import UsageError
from jupiterd.ids import NodeId
from jupiterd.versions import UPGRADE

_WHAT: Final = {False: "train a part of a model", True: "hold a part of an adapter's base"}


def check_all_know_partitions(machines: Machines, option: str, *, of_base: bool = False) -> None:
    """Raise UsageError where a member that is alive doesn't: it may come to lead, too."""
    if lacking := _lacking(machines, of_base=of_base):
        names = ", ".join(sorted(map(machines.name_of, lacking)))
        are = "runs a build" if len(lacking) == 1 else "run builds"
        raise UsageError(
            f"{option}: {names} {are} of jupiterd that can't {_WHAT[of_base]}",
            f"upgrade it: {UPGRADE}, or jupiterctl node remove {quote(names.partition(',')[0])}",
        )


def check_can_cut(
    machines: Machines, choice: EngineChoice, option: str, *, of_base: bool = False
) -> None:
    """Raise UsageError where a member of a gang can't train a part of a model on its engine."""
    lacking = _lacking_in(machines, choice, of_base=of_base)
    if lacking:
        names = ", ".join(sorted(map(machines.name_of, lacking)))
        known = [found for node in lacking if (found := machines.hardware_of(node)) is not None]
        can = [set(_on(found, of_base)) for found in known] or [set[str]()]
        others = sorted(set.intersection(*can))
        engine = f"train on {others[0]}: --engine {others[0]}" if others else ""
        raise UsageError(
            f"{option}: {names} can't {_WHAT[of_base]} on {choice.engine} yet",
            f"{engine or f'upgrade it: {UPGRADE}'}, or leave out {option.partition(' ')[0]}",
        )


def can_all_cut(machines: Machines, choice: EngineChoice, *, of_base: bool = False) -> bool:
    """Say whether a gang can train a model that is cut, and everybody can come to lead it.

    of_base: what is cut is the frozen model beside an adapter
    """
    lacking = _lacking_in(machines, choice, of_base=of_base)
    return not (lacking or _lacking(machines, of_base=of_base))


def lacking_names(machines: Machines, choice: EngineChoice, *, of_base: bool = False) -> str:
    """Return who keeps a gang from cutting a model, by name."""
    lacking = _lacking_in(machines, choice, of_base=of_base)
    lacking += _lacking(machines, of_base=of_base)
    return ", ".join(sorted({machines.name_of(node) for node in lacking}))


def _lacking_in(machines: Machines, choice: EngineChoice, *, of_base: bool) -> list[NodeId]:
    """Return the members of a gang that can't cut it on their engine, as far as is known."""
    known = ((node, machines.hardware_of(node)) for node in dict.fromkeys(choice.gang))
    return [n for n, found in known if found is None or choice.engine not in _on(found, of_base)]


def _lacking(machines: Machines, *, of_base: bool) -> list[NodeId]:
    """Return the members that are alive and can't cut it on any engine."""
    known = ((node, machines.hardware_of(node)) for node in sorted(machines.alive()))
    return [node for node, found in known if found is not None and not _on(found, of_base)]


def _on(machine: Hardware, of_base: bool) -> tuple[str, ...]:  # noqa: FBT001 - as it is asked
    return machine.cut_base_engines if of_base else machine.cut_engines
