"""Members that can't train an adapter: their builds are older, or they lack what quantizes.

Owns who they are, and saying so. Doesn't know what an adapter is, or who trains.
"""

from collections.abc import Collection, Mapping, Sequence
from shlex import quote
from typing import Final

from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.planning.engines import TORCH, EngineChoice
from jupiterd.cluster.values.hardware import Hardware
from jupiterd.daemon.leader.machines import Machines
from jupiterd.errors import PeerUnreachableError, UsageError
from jupiterd.ids import NodeId
from jupiterd.versions import INSTALL_QUANTIZED, UPGRADE

QUANTIZED: Final = ("quantize=4bit", "quantize=8bit")
"""Of an adapter's text, where its base is quantized."""


TRAINS_NONE: Final = "its build of jupiterd can't train adapters"
LACKS_BITSANDBYTES: Final = "it lacks bitsandbytes, by which torch quantizes"


def check_all_train_adapters(machines: Machines, lora: str) -> None:
    """Raise UsageError where a member that is alive doesn't: it may come to lead, too.

    lora: the adapter's text
    """
    known = ((node, machines.hardware_of(node)) for node in sorted(machines.alive()))
    lacking = [node for node, found in known if found is not None and not _trains(found, lora)]
    if lacking:
        names = ", ".join(sorted(map(machines.name_of, lacking)))
        are = "runs a build" if len(lacking) == 1 else "run builds"
        raise UsageError(
            f"--lora: {names} {are} of jupiterd that can't train adapters{_part(lora)}",
            f"upgrade it: {UPGRADE}, or jupiterctl node remove {quote(names.partition(',')[0])}",
        )


def that_train_it(
    machines: Mapping[NodeId, Hardware], run: CycleState
) -> Mapping[NodeId, Hardware]:
    """Return those of some machines that can train a run or cycle: one with an adapter not all can.

    Raises:
        PeerUnreachableError: none of them can.
    """
    if not (lora := _asked(run)) or not machines:
        return machines
    found = {node: each for node, each in machines.items() if _trains(each, lora)}
    if not found:
        raise PeerUnreachableError(
            f"no node that is here can train adapters{_part(lora)}", f"upgrade one: {UPGRADE}"
        )
    if run.wanted_engine != TORCH or not is_quantized(lora):
        return found
    if able := {node: each for node, each in found.items() if each.has_bitsandbytes}:
        return able
    raise PeerUnreachableError(
        "no node that is here has bitsandbytes, by which torch quantizes",
        f"on one: {INSTALL_QUANTIZED}",
    )


def left_out(machines: Mapping[NodeId, Hardware], run: CycleState) -> Mapping[NodeId, str]:
    """Return which of some machines a run goes on without because of its adapter, and why."""
    try:
        able = that_train_it(machines, run)
    except PeerUnreachableError:  # it doesn't go on, and that is said
        return {}
    lora = _asked(run)
    return {
        node: LACKS_BITSANDBYTES if _trains(each, lora) else f"{TRAINS_NONE}{_part(lora)}"
        for node, each in machines.items()
        if node not in able
    }


def _asked(run: CycleState) -> str:
    asked = run.training or run.started
    return "" if asked is None else str(asked.settings.get("lora") or "")


def _trains(hardware: Hardware, lora: str) -> bool:
    """Say whether a member's build can train an adapter of that text."""
    return hardware.trains_adapters and (hardware.trains_dropout or not has_newer_part(lora))


def _part(lora: str) -> str:
    """Return what of an adapter some older builds lack, as more words for a refusal."""
    return " with dropout or DoRA" if has_newer_part(lora) else ""


def has_newer_part(lora: str) -> bool:
    """Say whether an adapter, by its text, has dropout, or is DoRA: later builds train such."""
    parts = [part.strip().partition("=") for part in lora.split(",")]
    said = {name.strip(): value.strip() for name, _, value in parts}
    has_dropout = bool(said.get("dropout", "").strip("0."))
    return has_dropout or said.get("dora", "false") not in ("false", "False", "0")


def is_quantized(lora: str) -> bool:
    """Say whether an adapter, by its text, is trained beside quantized weights."""
    return any(part.strip() in QUANTIZED for part in lora.split(","))


def without_bitsandbytes(machines: Machines, gangs: Collection[EngineChoice]) -> Sequence[str]:
    """Return the names of those that are to train on torch and couldn't quantize."""
    nodes = {node for gang in gangs if gang.engine == TORCH for node in gang.gang}
    known = ((node, machines.hardware_of(node)) for node in nodes)
    lacking = [n for n, found in known if found is not None and not found.has_bitsandbytes]
    return sorted(map(machines.name_of, lacking))
