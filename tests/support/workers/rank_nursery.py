"""Forks ranks from a process that has imported their engine: `... rank_nursery ENGINE`.

Owns the imports, once for all ranks of a test run. A line of standard input lists the SPEC.json of
each rank of a gang; once all of them have ended, a line of their exit statuses comes back. What a
rank prints goes to `log` beside its file. Doesn't know what a rank does.
"""

import json
import os
import sys
import traceback
from pathlib import Path

from jupiterd.gc_pause import collector_paused
from jupiterd.workers.forkserver import PRELOADED, preload
from tests.support.workers.uneven_rank import run


def forked(spec: Path) -> int:
    """Return the pid of a process that trains the rank."""
    if pid := os.fork():
        return pid
    status = 1
    try:
        log = os.open(spec.with_name("log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for standard in (1, 2):
            os.dup2(log, standard)
        run(json.loads(spec.read_text()))
        status = 0
    except BaseException:  # noqa: BLE001 - it mustn't go on as the process it was forked from
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)  # as a worker does


def main(engine: str) -> None:
    """Import, then serve one gang after the other until nobody wants any more."""
    with collector_paused():
        for name in PRELOADED[engine]:
            preload(name)
    for line in sys.stdin:
        pids = [forked(Path(spec)) for spec in json.loads(line)]
        ended = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
        print(json.dumps(ended), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
