"""A worker that does what its parameters say, however odd: real, but for the work."""

import os
import signal
import subprocess
import sys

from jupiterd.protocol.frames import Progressed, TaskFinished
from jupiterd.workers.link import Task, open_task


def echo(task: Task) -> None:
    """Answer with what the worker sees of its surroundings."""
    task.progress(1, 2, "words", loss=0.5)
    task.progress(2, 0, "words of nobody knows how many")  # too soon to be sent
    summary = {name: os.environ.get(name) for name in task.params["variables"]}
    task.send(TaskFinished({}, {"pid": os.getpid(), "group": os.getpgid(0)}, summary))


def die(task: Task) -> None:
    """End without a last word."""
    print(task.params["words"], flush=True)
    if number := task.params.get("signal"):
        os.kill(os.getpid(), number)
    os._exit(task.params["status"])


def linger(task: Task) -> None:
    """Ignore every polite request, and start a child that does so too; never come back."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    deaf = "from signal import *; signal(SIGTERM, SIG_IGN); print(flush=True); pause()"
    child = subprocess.Popen([sys.executable, "-c", deaf], stdout=subprocess.PIPE)
    child.stdout.readline()
    task.send(Progressed(child.pid, 0, "pid"))
    while True:
        signal.pause()


def obey(task: Task) -> None:
    """Wait to be stopped, and say so."""
    task.send(Progressed(0, 0, "ready"))
    task.wait_for_stop()
    task.send(TaskFinished({}, {}, {"stopped": True}))


def shout(task: Task) -> None:
    """Print a great deal."""
    for number in range(task.params["lines"]):
        print(f"line {number} " + "x" * 90)
    task.send(TaskFinished({}))


if __name__ == "__main__":
    the_task = open_task()
    globals()[the_task.name](the_task)
