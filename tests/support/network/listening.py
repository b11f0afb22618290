"""At which TCP ports processes on the machines of a lab listen to others.

Owns reading that of the kernel. Doesn't know what the processes do.
"""

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.support.network.machines import Machine

Place = tuple[str, int]

LOOPBACK = "0100007F"


def places_of(word: str, machines: Iterable[Machine]) -> set[Place]:
    """Return where processes listen that have this word in their command line."""
    by_network = {_network(machine.pid): machine for machine in machines}
    return {
        (by_network[_network(pid)].host.address, port)
        for pid in _processes(word)
        if _network(pid) in by_network
        for port in ports_of(pid)
    }


def ports_of(pid: int) -> list[int]:
    """Return at which TCP ports a process of any namespace listens to more than its machine."""
    links = [link.readlink().name for link in Path(f"/proc/{pid}/fd").iterdir()]
    rows = [row.split() for row in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]]
    listening = [row for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in links]
    places = [row[1].split(":") for row in listening]
    return [int(port, 16) for host, port in places if host != LOOPBACK]


def _processes(word: str) -> Iterator[int]:
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if folder.name.isdigit() and word.encode() in (folder / "cmdline").read_bytes():
                yield int(folder.name)


def _network(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/ns/net").readlink().name
    return ""
