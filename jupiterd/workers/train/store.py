"""The task `store`: the place where the ranks of one epoch find each other.

Owns a torch TCPStore in a process of its own, so that it outlives any rank. Doesn't know the ranks.
It listens on a socket that the daemon bound and left open, so the address is the one that was
proven, and the port is known before anything starts.

params: listen_fd
"""

import socket

from torch.distributed import TCPStore  # pyright: ignore[reportPrivateImportUsage]

from jupiterd.frames import TaskFinished
from jupiterd.workers.link import Task


def run(task: Task) -> TaskFinished:
    """Do the task that a daemon gave: serve until told to stop."""
    descriptor = int(task.params["listen_fd"])
    with socket.socket(fileno=descriptor) as listener:
        name = listener.getsockname()
        listener.detach()  # the store closes it
    link = f"%{name[3]}" if len(name) > 2 and name[3] else ""  # it calls itself there
    store = TCPStore(
        f"{name[0]}{link}",
        int(name[1]),
        is_master=True,
        wait_for_workers=False,
        master_listen_fd=descriptor,
    )
    task.store_opened(store.port)
    task.wait_for_stop()
    return TaskFinished({})
