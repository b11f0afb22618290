"""The folder of the curves that a rank writes: its run's, and in that its island's.

Owns its name, and that nothing else is ever named: orders come from another machine. Doesn't know
what is written there (`workers.train.report.metrics`), or when it goes (`curve_retention`).
"""

from pathlib import Path

from jupiterd.daemon.executor.outer_step_inputs import PARAM
from jupiterd.daemon.runtime.work_events import WorkOrder
from jupiterd.errors import RefusedError
from jupiterd.ids import is_hex, short

NUMBER = "number"
"""Key of an island's curve among its ranks' parameters."""


def curves_folder(curves: Path, order: WorkOrder) -> Path:
    """Return where the ranks of an order write, below the folder of all curves.

    Those of an island's write into that of the run which people know.

    Raises:
        RefusedError: what names the run is no id.
    """
    island = order.params.get(PARAM)
    run = order.cycle if island is None else island.get("run")
    if not is_hex(run):
        raise RefusedError(f"an order names a run that can't be one: {str(run)[:40]!r}")
    folder = curves / short(run)
    return folder if island is None else folder / f"island-{int(island.get(NUMBER, 0))}"
