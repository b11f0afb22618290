"""What is said of a model that fits no device: what it needs, what is kept free, what would fit.

Pure. Owns these words. Doesn't know how memory is counted (`cycle.training.memory`): it is told.
"""

import math
from dataclasses import dataclass
from typing import Final, Protocol

from jupiterd.cycle.training.engine_options import DeviceAbilities
from jupiterd.cycle.training.rank_memory import RESERVED_SHARE
from jupiterd.errors import TooLargeForDeviceError


class Needed(Protocol):
    """Bytes of the smallest plan."""

    @property
    def on_device(self) -> int: ...  # noqa: D102 - as MemoryNeed says
    @property
    def total(self) -> int: ...  # noqa: D102


_WHOLE_GB: Final = 10
"""From so many gigabytes on a hint has no decimals."""


@dataclass(frozen=True)
class RefusedSize:
    """A model, and what is known of other ways."""

    name: str
    need: Needed
    nearest: str = ""
    """The largest size that fits; empty: none does."""
    seq_len: int = 0
    """Sequences of so many tokens would fit; 0: they wouldn't."""
    smaller_adapter: str = ""
    """What an adapter that would fit does otherwise, as an option."""
    without_wishes: bool = False
    """It would fit with precision and gradient checkpointing left open."""
    is_whole: bool = False
    """It can't be cut over several machines."""


def size_refusal(refused: RefusedSize, device: DeviceAbilities) -> TooLargeForDeviceError:
    """Return the refusal for the smallest device of those that would train."""
    need, has, what = _tight(refused.need, device)
    message = (
        f"{refused.name} needs {need / 1e9:.1f} GB {what} at the least, and the smallest device "
        f"has {has / 1e9:.1f} GB, of which {RESERVED_SHARE * has / 1e9:.1f} GB are kept in reserve"
    )
    return TooLargeForDeviceError(message, "; or ".join(_remedies(refused, need)))


def _tight(need: Needed, device: DeviceAbilities) -> tuple[int, int, str]:
    """Return what there is too little of: needed bytes, those that there are, and its name."""
    if not device.ram_bytes:
        return need.total, device.memory_bytes, "of a device's memory"
    if need.on_device > (1 - RESERVED_SHARE) * device.memory_bytes:
        return need.on_device, device.memory_bytes, "of what macOS lets a GPU use"
    return need.total, device.ram_bytes, "of the machine's memory"


def _enough(gigabytes: float) -> str:
    """Return a number of gigabytes in two digits or more, rounded up: so much is enough."""
    if gigabytes < _WHOLE_GB:
        return f"{math.ceil(gigabytes * 10) / 10:.1f}"
    return f"{math.ceil(gigabytes)}"


def _remedies(refused: RefusedSize, need: int) -> list[str]:
    """Return what would fit, the least change first."""
    found: list[str] = []
    if refused.without_wishes:
        found.append("leave --precision and --gradient-checkpointing open")
    if refused.smaller_adapter:
        found.append(refused.smaller_adapter)
    if refused.seq_len:
        found.append(f"--seq-len {refused.seq_len}")
    if refused.nearest:
        found.append(f"the nearest size that fits is {refused.nearest}")
    least = _enough(need / (1 - RESERVED_SHARE) / 1e9)
    why = ": every one holds the model" if refused.is_whole else ""
    found.append(f"train on machines with {least} GB or more each{why}")
    return found
