"""One plain TCP connection that carries so many bytes: what a link gives to anybody.

python -m tests.bench.artifacts.plain_socket send HOST SIZE_BYTES   prints its port, serves once
python -m tests.bench.artifacts.plain_socket take HOST PORT         prints seconds and bytes
"""

import os
import socket
import sys
import time

PART_BYTES = 1 << 20


def send(host: str, size_bytes: int) -> None:
    """Serve one caller from memory."""
    data = memoryview(os.urandom(PART_BYTES))
    with socket.create_server((host, 0)) as server:
        print(server.getsockname()[1], flush=True)
        caller, _ = server.accept()
        with caller:
            for start in range(0, size_bytes, PART_BYTES):
                caller.sendall(data[: min(PART_BYTES, size_bytes - start)])


def take(host: str, port: int) -> None:
    """Take all that comes and drop it."""
    room = bytearray(PART_BYTES)
    began_s, came_bytes = time.monotonic(), 0
    with socket.create_connection((host, port)) as link:
        while count := link.recv_into(room):
            came_bytes += count
    print(time.monotonic() - began_s, came_bytes, flush=True)


if __name__ == "__main__":
    {"send": send, "take": take}[sys.argv[1]](sys.argv[2], int(sys.argv[3]))
