"""Sockets of the processes below this one, fetched for a moment from the kernel.

Owns pidfd_getfd, Linux's alone. It needs no root: a process may trace what it has started, where
neither a security module nor a container's filter of system calls refuses it. Doesn't know what is
done with a socket. Each is closed at once: as long as two processes have it, its port stays taken
when its owner has closed it.

A process id may go to another process between two looks. So a process is held (pidfd), then seen to
be below this one, and what is fetched comes from the one that was held: the socket that was meant,
or none.
"""

import ctypes
import errno
import os
import socket
from collections.abc import Collection, Generator, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from jupiterd.source_filter.process_tree import PROC, descendants, parent

_PIDFD_GETFD: Final = 438
"""The number of the system call, on every architecture that Jupiter runs on."""

_PREFIX: Final = "socket:["


def fetched(inodes: Collection[int]) -> Iterator[tuple[int, socket.socket]]:
    """Yield inode and duplicate of those of these sockets that processes below this one have.

    Each is closed as the next one is asked for.

    Raises:
        OSError: we may not look into a process of ours, or this kernel can't.
    """
    left = set(inodes)
    for pid in descendants(os.getpid()):
        if not left:
            return
        with suppress(ProcessLookupError), _held(pid) as pidfd:  # it has ended meanwhile
            for inode, descriptor in _sockets(pid, left):
                if (found := _duplicate(pidfd, descriptor, inode)) is not None:
                    left.discard(inode)
                    with found:
                        yield inode, found


@contextmanager
def _held(pid: int) -> Generator[int]:
    """Hold a process below this one; raises ProcessLookupError where it isn't that any more."""
    pidfd = os.pidfd_open(pid)
    try:
        above = pid
        while above != os.getpid():
            above = parent(above)
        yield pidfd
    finally:
        os.close(pidfd)


def _sockets(pid: int, inodes: Collection[int]) -> Iterator[tuple[int, int]]:
    """Yield inode and descriptor of those of these sockets that a process has."""
    with suppress(OSError):  # it has ended, or isn't ours to look at
        for link in (PROC / str(pid) / "fd").iterdir():
            with suppress(OSError):
                name = link.readlink().name
                inode = int(name[len(_PREFIX) : -1]) if name.startswith(_PREFIX) else 0
                if inode in inodes:
                    yield inode, int(link.name)


def _duplicate(pidfd: int, descriptor: int, inode: int) -> socket.socket | None:
    """Return a socket of another process; None where it is gone."""
    try:
        number = _called(_PIDFD_GETFD, pidfd, descriptor, 0)
    except OSError as error:
        if error.errno == errno.EBADF:
            return None
        raise
    if os.fstat(number).st_ino == inode:
        return socket.socket(fileno=number)
    os.close(number)
    return None


def _called(number: int, *arguments: int) -> int:
    """Make a system call that Python has no function for; raises OSError."""
    found = int(ctypes.CDLL(None, use_errno=True).syscall(number, *arguments))
    if found < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return found
