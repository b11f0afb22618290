"""Which size a cycle has where nobody named one: by its text, and by who would train.

Owns what the machines of the cluster can do, as far as their names tell. Doesn't know how a size is
chosen (`cycle.runs.size_choice`), or how text is counted: whoever asks has looked.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from jupiterd.cluster.values.hardware import Hardware
from jupiterd.daemon.catalog.model_specs import presets
from jupiterd.daemon.planning.device_speed import guessed_flops_per_s
from jupiterd.daemon.planning.machine_devices import device_of

if TYPE_CHECKING:
    from jupiterd.cycle.runs.size_choice import SizeChoice, TrainingPower


def size_for_data(tokens: int, engine: str, machines: Sequence[Hardware]) -> "SizeChoice":
    """Return the size for so many tokens of text, on the machines that would train it."""
    from jupiterd.cycle.runs.size_choice import proposed_size

    return proposed_size(tokens, presets(), power_of(engine, machines))


def power_of(engine: str, machines: Sequence[Hardware]) -> "TrainingPower":
    """Return what machines can do together; nothing is known of none."""
    from jupiterd.cycle.runs.size_choice import TrainingPower

    devices = [device_of(engine, machine) for machine in machines]
    known = [device for device in devices if device.memory_bytes]
    if not known:
        return TrainingPower()
    smallest = min(known, key=lambda device: device.memory_bytes)
    flops_per_s = sum(guessed_flops_per_s(engine, machine) for machine in machines)
    return TrainingPower(smallest, flops_per_s)
