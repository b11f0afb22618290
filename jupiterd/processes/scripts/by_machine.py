"""Options of a launch that hold for all machines alike, or for each by its name.

Owns the forms `2`, `2,1,1` and `a=2,b=1` for processes, and `0,1` and `a=0,1` for devices. Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from jupiterd.cluster.values.node_names import find_node
from jupiterd.errors import UsageError
from jupiterd.formats import counted
from jupiterd.ids import NodeId
from jupiterd.processes.script_plan import MAX_PER_NODE

CPU: Final = "cpu"

Value = TypeVar("Value")

_HINT: Final = "such as --per-node 2, --per-node 2,1,1 or --per-node attic=2,cellar=1"
_DEVICES_HINT: Final = "such as --devices 0,1, --devices cpu or --devices attic=0,1"


@dataclass(frozen=True)
class PerNode:
    """How many processes each machine runs."""

    numbers: tuple[int, ...] = ()
    """One number for all machines, or one for each in order; empty: one process for each GPU, or
    one."""
    by_name: Mapping[str, int] = field(default_factory=dict[str, int])

    @classmethod
    def parse(cls, text: str) -> "PerNode":
        """Parse the option's text; raises UsageError."""
        parts = [part.strip() for part in text.split(",") if part.strip()]
        if "=" in text:
            pairs = [part.rpartition("=") for part in parts]
            return cls(by_name={name.strip(): _count(number, text) for name, _, number in pairs})
        return cls(tuple(_count(part, text) for part in parts))

    def of(self, nodes: Sequence[NodeId], names: Mapping[NodeId, str]) -> dict[NodeId, int]:
        """Return the number for each of these machines; 0: one for each of its GPUs, or one.

        Raises:
            UsageError: the count of numbers differs from that of machines, or a named machine takes
                no part.
        """
        if len(self.numbers) > 1 and len(self.numbers) != len(nodes):
            shown = ", ".join(names[node] for node in nodes)
            raise UsageError(
                f"--per-node has {counted(len(self.numbers), 'number')} for "
                f"{counted(len(nodes), 'machine')}: {shown}",
                _HINT,
            )
        if len(self.numbers) > 1:
            return dict(zip(nodes, self.numbers, strict=True))
        default = self.numbers[0] if self.numbers else 0
        return {**dict.fromkeys(nodes, default), **_by_node(self.by_name, nodes, names)}


@dataclass(frozen=True)
class Devices:
    """Which CUDA devices each machine's processes may use."""

    everywhere: str = ""
    """`0,1`, or `cpu`; empty: all devices that the machine offers."""
    by_name: Mapping[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def parse(cls, texts: Sequence[str]) -> "Devices":
        """Parse the option's texts; raises UsageError."""
        everywhere, by_name = "", dict[str, str]()
        for text in texts:
            name, sign, value = text.rpartition("=")
            wanted = value.replace(" ", "")
            numbers = wanted.split(",")
            is_list = all(part.isascii() and part.isdecimal() for part in numbers)
            if wanted != CPU and not (is_list and len(set(numbers)) == len(numbers)):
                raise UsageError(f"--devices {text} names no devices", _DEVICES_HINT)
            if sign:
                by_name[name.strip()] = wanted
            else:
                everywhere = wanted
        return cls(everywhere, by_name)

    def of(self, nodes: Sequence[NodeId], names: Mapping[NodeId, str]) -> dict[NodeId, str]:
        """Return the devices for each of these machines; empty: all that it offers.

        Raises:
            UsageError: a named machine takes no part.
        """
        found = dict.fromkeys(nodes, self.everywhere)
        return {**found, **_by_node(self.by_name, nodes, names)}


def _by_node(
    by_name: Mapping[str, Value], nodes: Sequence[NodeId], names: Mapping[NodeId, str]
) -> dict[NodeId, Value]:
    found = {find_node(names, name): value for name, value in by_name.items()}
    if others := [names[node] for node in found if node not in nodes]:
        raise UsageError(
            f"{others[0]} takes no part in this launch", "name it with --nodes, or leave it away"
        )
    return found


def _count(text: str, whole: str) -> int:
    number = text.strip()
    if number.isascii() and number.isdecimal() and 1 <= int(number[:9]) <= MAX_PER_NODE:
        return int(number)
    raise UsageError(
        f"--per-node {whole}: {number or 'nothing'} is no number from 1 to {MAX_PER_NODE}", _HINT
    )
