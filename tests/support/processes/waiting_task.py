"""A worker's task that names the port of a listener it was given, and waits until it is stopped."""

import socket
import sys

from jupiterd.protocol.frames import TaskFinished
from jupiterd.workers import __main__ as entry
from jupiterd.workers.link import Task

NAME = "waiting"


def offer() -> None:
    """Let workers of this process know the task."""
    entry.TASKS[NAME] = "tests.support.processes.waiting_task"


def run(task: Task) -> TaskFinished:
    with socket.socket(fileno=int(task.params["fd"])) as listener:
        task.listens(listener.getsockname()[1])
        task.wait_for_stop()
    return TaskFinished({})


if __name__ == "__main__":
    offer()
    sys.exit(entry.main())
