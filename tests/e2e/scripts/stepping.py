"""A script for torchrun whose two ranks wait for each other; it imports nothing that takes long.

What its ranks do is `ddp_gpt.py`'s without the model: each step needs both, so whoever is left
behind fails as well, as it does where gradients are added up.
"""

import argparse
import os
import signal
import socket
import sys
import time

STEPS = 5
MEETS_WITHIN_S = 60.0
NOTICED_AFTER_S = 5.0
"""Whoever is left behind fails later, or it would overtake the first failure."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--die-at", type=int, default=-1, help="rank 1 ends with status 7 there")
    parser.add_argument("--kill-at", type=int, default=-1, help="rank 1 kills itself there")
    told = parser.parse_args()
    rank = int(os.environ["RANK"])
    other = met(rank, f"\0ranks-{os.environ['MASTER_PORT']}")
    for step in range(STEPS):
        if rank == 1 and step == told.die_at:
            print("rank 1 has found something wrong", file=sys.stderr, flush=True)
            os._exit(7)
        if rank == 1 and step == told.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        if not is_heard(other):
            time.sleep(NOTICED_AFTER_S)
            sys.exit(f"rank {rank} hears nothing of the other one any more")
    print(f"rank {rank} has done {STEPS} steps")


def is_heard(other: socket.socket) -> bool:
    """Tell the other rank that we are there, and wait for its word."""
    try:
        other.sendall(b".")
        return bool(other.recv(1))
    except ConnectionError:
        return False


def met(rank: int, place: str) -> socket.socket:
    """Return a connection of the two ranks."""
    if rank == 0:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.settimeout(MEETS_WITHIN_S)
            listener.bind(place)
            listener.listen()
            return listener.accept()[0]
    deadline_s = time.monotonic() + MEETS_WITHIN_S
    while True:
        other = socket.socket(socket.AF_UNIX)
        try:
            other.connect(place)
        except ConnectionError:  # it isn't there yet
            other.close()
            if time.monotonic() > deadline_s:
                raise
            time.sleep(0.02)
        else:
            return other


if __name__ == "__main__":
    main()
