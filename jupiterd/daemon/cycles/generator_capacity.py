"""Whether the machines of a cluster could write with a model that isn't here yet.

Owns finding their devices. Doesn't know what a model needs (`generation.writer_needs`).
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from jupiterd.daemon.catalog.model_specs import parsed_config, presets
from jupiterd.daemon.leader.placement import Placement
from jupiterd.daemon.planning.machine_devices import device_of

if TYPE_CHECKING:
    from jupiterd.cycle.training.engine_options import DeviceAbilities

CONFIG = "_config"
"""After `generator` or `judge`: the text of that model's config.json."""


def check_writers(placement: Placement, arguments: Mapping[str, Any], roles: Iterable[str]) -> None:
    """Refuse a generator or a judge that no machine could write with, by its configuration.

    Raises:
        TooLargeForDeviceError: it fits no machine's memory.
        UsageError: it can't write, or its configuration can't be read.
    """
    from jupiterd.cycle.generation.writer_needs import check_writer

    for role in roles:
        if text := str(arguments.get(f"{role}{CONFIG}") or ""):
            name = str((arguments.get(role) or {}).get("name", role))
            check_writer(name, parsed_config(text, name), presets()[0].recipe, _devices(placement))


def _devices(placement: Placement) -> "list[DeviceAbilities]":
    machines = (
        placement.machines.hardware_of(seat.node) for seat in placement.seats() if seat.has_engine
    )
    return [
        device_of(engine, machine)
        for machine in machines
        if machine is not None
        for engine in machine.engines
    ]
