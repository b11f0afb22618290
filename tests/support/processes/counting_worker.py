"""A worker that computes with torch, and says with how many threads, until it is asked to end.

Owns saying so. Doesn't know the daemon, or who else computes.
"""

import sys

from jupiterd.protocol.frames import Progressed, TaskFinished
from jupiterd.workers import thread_share
from jupiterd.workers.link import open_task

BATCH_S = 0.02


def main() -> None:
    """Say the number whenever a batch begins with another one."""
    import torch

    task = open_task()
    thread_share.begin(task.threads)
    said = 0
    while not task.stop_requested:
        thread_share.take()
        if (threads := torch.get_num_threads()) != said:
            said = threads
            task.send(Progressed(threads, 0, "threads", {}))
        task.wait_for_stop(BATCH_S)
    task.send(TaskFinished({}))


if __name__ == "__main__":
    main()
    sys.exit(0)
