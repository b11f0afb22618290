"""A nursery that has imported no engine: for what isn't about one."""

import sys

from jupiterd.workers import nursery
from tests.unit.gang import waiting_task

if __name__ == "__main__":
    waiting_task.offer()
    nursery.PRELOADED = {"torch": ("tests.unit.gang.waiting_task",)}
    nursery.main(sys.argv[1])
