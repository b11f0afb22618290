"""A stranger in the network: scans all ports, holds idle connections, floods the ports it is told.

Runs as a program on a machine of the lab: `... stranger ADDRESS PORT [ADDRESS ...]`, the addresses
of machines and the open port of the daemon there. A line ADDRESS PORT on standard input is one more
place to flood. Once that is closed, it prints what it got as JSON.
"""

import errno
import json
import random
import selectors
import socket
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Iterator

FIRST_PORT, LAST_PORT = 1024, 65535
AT_ONCE = 64
LAST_S = 0.05
"""For the answers to the connections that are on their way."""
PAUSE_S = 0.02
"""After so many: one core is to be left for those who train."""
IDLE = 300
"""Connections that say nothing, to each daemon."""

Place = tuple[str, int]


class Stranger:
    """What it does, and what came of it."""

    def __init__(self, daemons: Iterable[Place]) -> None:
        self.daemons = list(daemons)
        self.flooded: list[Place] = []
        self.tried: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.scanned: set[int] = set()
        self.is_over = threading.Event()

    def scan(self) -> None:
        """Try every port of every machine, again and again."""
        while not self.is_over.is_set():
            ports = random.sample(range(FIRST_PORT, LAST_PORT + 1), LAST_PORT + 1 - FIRST_PORT)
            for some in _bunches(ports):
                for host, _ in self.daemons:
                    self.knock("scan", [(host, port) for port in some])
                if self.is_over.wait(PAUSE_S):
                    return

    def flood(self) -> None:
        """Make short connections to the places that were named."""
        while not self.is_over.wait(PAUSE_S):
            for place in list(self.flooded):
                self.knock(f"flood {place[0]}", [place] * AT_ONCE)

    def hold(self) -> None:
        """Hold idle connections to the daemons, and make up for those that were hung up."""
        held: list[socket.socket] = []
        while not self.is_over.wait(1.0):
            for each in held[:]:
                if _has_ended(each):
                    each.close()
                    held.remove(each)
            for place in self.daemons:
                for _ in range(IDLE - sum(each.getpeername()[0] == place[0] for each in held)):
                    made = _begun(place)
                    self.tried["idle"] += 1
                    if _is_up(made, 0.2):
                        self.answered["idle"] += 1
                        held.append(made)
                    else:
                        made.close()
                        break

    def knock(self, what: str, places: Iterable[Place]) -> None:
        """Begin connections, look which of them are taken soon, and drop all of them."""
        with selectors.DefaultSelector() as waiting:
            begun = [_begun(place) for place in places]
            for made in begun:
                waiting.register(made, selectors.EVENT_WRITE)
            self.tried[what] += len(begun)
            while ready := waiting.select(LAST_S):
                for key, _ in ready:
                    made = key.fileobj
                    waiting.unregister(made)
                    assert isinstance(made, socket.socket)
                    self.answered[what] += not made.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            for made in begun:
                made.close()


def _bunches(ports: list[int]) -> Iterator[list[int]]:
    for first in range(0, len(ports), AT_ONCE):
        yield ports[first : first + AT_ONCE]


def _begun(place: Place) -> socket.socket:
    made = socket.socket()
    made.setblocking(False)
    result = made.connect_ex(place)
    assert result in (0, errno.EINPROGRESS, errno.ECONNREFUSED), result
    return made


def _is_up(made: socket.socket, within_s: float) -> bool:
    made.settimeout(within_s)
    with selectors.DefaultSelector() as waiting:
        waiting.register(made, selectors.EVENT_WRITE)
        is_ready = bool(waiting.select(within_s))
    return is_ready and not made.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)


def _has_ended(made: socket.socket) -> bool:
    made.setblocking(False)
    try:
        return not made.recv(1 << 16)
    except BlockingIOError:
        return False
    except OSError:
        return True


def main() -> None:
    """Trouble everybody until the standard input ends."""
    given = sys.argv[1:]
    places = [(host, int(port)) for host, port in zip(given[::2], given[1::2], strict=True)]
    stranger = Stranger(places)
    works = (stranger.scan, stranger.flood, stranger.hold)
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for line in sys.stdin:
        host, port = line.split()
        stranger.flooded.append((host, int(port)))
    stranger.is_over.set()
    for thread in threads:
        thread.join()
    print(json.dumps({"tried": stranger.tried, "answered": stranger.answered}))


if __name__ == "__main__":
    main()
