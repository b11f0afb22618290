"""The process that supervises one machine's part of a script.

Owns what it needs to know of this machine: whose locks of GPUs count, as the driver sees it.
Doesn't know how a part is supervised (`processes.scripts`).

Usage: python -m jupiterd.daemon.scripts.supervisor_process FOLDER, with the order as JSON on
standard input.
"""

import sys
from pathlib import Path

from jupiterd.hardware.nvidia import computing_pids
from jupiterd.processes.device_locks import judge_by
from jupiterd.processes.scripts import script_supervisor


def main(folder: Path) -> None:
    """Keep the part of a folder; locks of GPUs count here as they do in a daemon."""
    judge_by(computing_pids)
    script_supervisor.main(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
