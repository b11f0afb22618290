"""A limit of memory that the system enforces: a process that would pass it gets no more.

Owns setting it for this process (RLIMIT_DATA, which counts private memory that can be written to,
touched or not). What the process has by then is its own and comes on top: Python, and libraries.
Threads that come later have small stacks, since these count whole. Doesn't know what fills the
rest.
"""

import ctypes
import resource
from pathlib import Path

_STATUS = Path("/proc/self/status")
_DATA = "VmData:"
"""What the limit is held against, in kB."""

_STACK_BYTES = 1 << 20
_ATTRIBUTES_BYTES = 64
"""At least as large as glibc's pthread_attr_t."""


def limit_memory(room_bytes: int) -> None:
    """Let this process take so many bytes more than it has now, and none beyond."""
    library, attributes = ctypes.CDLL(None), ctypes.create_string_buffer(_ATTRIBUTES_BYTES)
    library.pthread_attr_init(attributes)
    library.pthread_attr_setstacksize(attributes, ctypes.c_size_t(_STACK_BYTES))
    library.pthread_setattr_default_np(attributes)
    most = data_bytes() + room_bytes
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def data_bytes() -> int:
    """Return how much private memory this process has."""
    lines = _STATUS.read_text(encoding="ascii").splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(_DATA))
