"""A nursery that has imported no engine: for what isn't about one."""

import sys

from jupiterd.workers import forkserver
from tests.support.processes import waiting_task

if __name__ == "__main__":
    waiting_task.offer()
    forkserver.PRELOADED = {"torch": ("tests.support.processes.waiting_task",)}
    forkserver.main(sys.argv[1])
