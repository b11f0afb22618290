"""How busy this machine is, looked at by jupiterctl itself, for when no daemon answers.

Owns asking the probes of `hardware`. Doesn't know what is shown of it.
"""

from typing import Any

from jupiterd.ctl.output.load_blocks import local_row

COUNTING_S = 0.5
"""The processor's share is counted over this before the first reading."""


class ThisMachine:
    """This machine alone; its accelerators are found once."""

    def __init__(self) -> None:
        import platform
        from threading import Event

        from jupiterd.hardware.machine_load import GpuLoads, start_counting
        from jupiterd.hardware.probe import probe

        self._name = platform.node()
        self._hardware = probe()
        self._gpus = GpuLoads(self._hardware.gpus)
        start_counting()
        Event().wait(COUNTING_S)

    def row(self) -> dict[str, Any]:
        """Return one reading; no daemon means no memory of one."""
        from jupiterd.hardware.machine_load import processor_and_memory

        loads = [load.to_plain() for load in self._gpus.read()]
        return local_row(self._name, self._hardware.to_plain(), processor_and_memory(), loads, None)
