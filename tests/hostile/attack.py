"""Attacks on one daemon on loopback, each run as a program inside the daemons' network.

Owns what a stranger can do with a key of its own. Prints one JSON document of what came of it.

    python -m tests.hostile.attack ATTACK PORT FOLDER [AMOUNT [SECONDS]]
"""

import asyncio
import contextlib
import json
import socket
import struct
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import grpc.aio

from jupiterd.net.channels import PeerChannels
from jupiterd.net.credentials import peek_certificate
from jupiterd.net.identity import Identity
from jupiterd.ports import Address
from jupiterd.protocol.call_errors import CODE_KEY
from jupiterd.rpc import peer_pb2
from tests.hostile.raw_http2 import RawConnection

TIMEOUT_S = 10.0
ELSEWHERE = "127.0.0.9"
"""An address of the attacker's own; all of 127.0.0.0/8 is."""

HELLO = "/jupiter.v1.Peer/Hello"
MDNS = ("224.0.0.251", 5353)

Result = dict[str, Any]


class Stranger:
    """A key of its own and a connection that pins the daemon's."""

    def __init__(self, identity: Identity, channels: PeerChannels) -> None:
        self.identity = identity
        self.channels = channels

    @classmethod
    async def at(cls, port: int, folder: Path, name: str = "stranger") -> "Stranger":
        """Make a key (or take that of an earlier attack) and look at the daemon's."""
        (folder / name).mkdir(parents=True, exist_ok=True)
        identity = Identity.load_or_create(folder / name / "key.pem")
        address = Address("127.0.0.1", port)
        certificate = await peek_certificate(address, TIMEOUT_S)
        return cls(identity, PeerChannels(identity, address, certificate))


async def silent(port: int, folder: Path, amount: int, seconds: float) -> Result:
    """Connect so often and say nothing; count how many are hung up on, and when."""
    del folder
    began_s = time.monotonic()
    ended_s: list[float] = []

    async def one() -> None:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            async with asyncio.timeout(seconds):
                await reader.read(-1)
            writer.transport.abort()
        except TimeoutError:
            writer.transport.abort()
            return
        except OSError:
            pass
        ended_s.append(time.monotonic() - began_s)

    await asyncio.gather(*(one() for _ in range(amount)))
    return {"ended": len(ended_s), "last_s": max(ended_s, default=None)}


async def streams(port: int, folder: Path, amount: int, seconds: float) -> Result:
    """Open so many streams on one connection and finish none."""
    stranger = await Stranger.at(port, folder)
    connection = await RawConnection.open(port, stranger.identity)
    await connection.listen(0.3)
    for _ in range(amount):
        connection.begin(HELLO)
    is_ended = await connection.listen(seconds)
    connection.close()
    return {"came": dict(connection.came), "ended": is_ended}


async def holding(port: int, folder: Path, amount: int, seconds: float) -> Result:
    """Hold so many connections, each with 100 messages that are never finished."""
    stranger = await Stranger.at(port, folder)
    held: list[RawConnection] = []
    failed = 0
    for _ in range(amount):
        try:
            held.append(await RawConnection.open(port, stranger.identity))
        except OSError:
            failed += 1
    for connection in held:
        for _ in range(100):
            stream = connection.begin(HELLO)
            connection.message(stream, bytes(600), claimed_bytes=60_000)
    ended = await asyncio.gather(*(connection.listen(seconds) for connection in held))
    for connection in held:
        connection.close()
    return {"held": len(held), "refused": failed, "ended": sum(ended)}


async def idle(port: int, folder: Path, amount: int, seconds: float) -> Result:
    """Shake hands so often, and say nothing more."""
    stranger = await Stranger.at(port, folder)
    held: list[RawConnection] = []
    failed = 0
    for _ in range(amount):
        try:
            held.append(await RawConnection.open(port, stranger.identity))
        except OSError:
            failed += 1
    ended = await asyncio.gather(*(connection.listen(seconds) for connection in held))
    for connection in held:
        connection.close()
    return {"held": len(held), "refused": failed, "ended": sum(ended)}


async def crowd(port: int, folder: Path, amount: int, seconds: float) -> Result:
    """Hold as many idle connections as possible, of an address where no member is.

    Whichever is hung up on is made anew: 20 times a second all are looked at. Says on a line of its
    own how many it holds at first.
    """
    stranger = await Stranger.at(port, folder)
    held: list[RawConnection] = []
    most, refused, is_told = 0, 0, False
    until_s = time.monotonic() + seconds
    while time.monotonic() < until_s:
        held = [each for each in held if not each.has_ended]
        try:
            while len(held) < amount:
                async with asyncio.timeout(TIMEOUT_S):
                    held.append(await RawConnection.open(port, stranger.identity, ELSEWHERE))
        except (OSError, TimeoutError):
            refused += 1
        most = max(most, len(held))
        if not is_told:
            is_told = not print(json.dumps({"holds": len(held)}), flush=True)
        await asyncio.sleep(0.05)
    for each in held:
        each.close()
    return {"most": most, "refused": refused}


async def joins(port: int, folder: Path, amount: int, seconds: float) -> Result:
    """Ask to be let in so often a second, with 32 keys in turn."""
    strangers = [await Stranger.at(port, folder, f"key{number}") for number in range(32)]
    answers: Counter[str] = Counter()

    async def ask(stranger: Stranger, number: int) -> None:
        request = peer_pb2.JoinRequest(
            name=f"stranger {number}\x1b[31m", port=9, token_id="0" * 16, proof=bytes(32),
            certificate_pem=stranger.identity.certificate_pem,
        )  # fmt: skip
        try:
            reply = await stranger.channels.control.Join(request, timeout=TIMEOUT_S)
            answers[peer_pb2.JoinReply.Decision.Name(reply.decision)] += 1
        except grpc.aio.AioRpcError as error:
            answers[code_of(error)] += 1

    began_s = time.monotonic()
    total = int(amount * seconds)
    async with asyncio.TaskGroup() as group:
        for number in range(total):
            group.create_task(ask(strangers[number % 32], number))
            await asyncio.sleep(began_s + number / amount - time.monotonic())
    return {"answers": dict(answers), "took_s": time.monotonic() - began_s}


async def names(port: int, folder: Path, amount: int, seconds: float) -> Result:
    """Announce so many services by multicast, each with a name of its own and none of them there.

    They lead to ports that answer nothing, to ports where nobody listens, and to the daemon itself.
    """
    del folder
    with contextlib.ExitStack() as ends:
        traps = [ends.enter_context(_trap()) for _ in range(200)]
        sender = ends.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
        sender.bind(("127.0.0.1", 0))
        began_s = time.monotonic()
        for number in range(amount):
            kinds = (traps[number % 200].getsockname()[1], 20_000 + number % 10_000, port)
            sender.sendto(announcement(number, kinds[number % 3]), MDNS)
            if number % 10 == 9:
                await asyncio.sleep(began_s + seconds * number / amount - time.monotonic())
        return {"sent": amount, "took_s": time.monotonic() - began_s}


def _trap() -> socket.socket:
    """Listen, and never say anything."""
    trap = socket.socket()
    trap.bind(("127.0.0.1", 0))
    trap.listen(64)
    return trap


def announcement(number: int, port: int) -> bytes:
    """Return one packet: the pointer to a service's name, its place, and its host's address."""
    instance = f"{number:08x}"
    kind = _name("_jupiter", "_tcp", "local")
    full = _name(instance, "_jupiter", "_tcp", "local")
    host = _name(instance, "local")
    place = struct.pack(">HHH", 0, 0, port) + host
    return (
        struct.pack(">HHHHHH", 0, 0x8400, 0, 3, 0, 0)
        + _record(kind, 12, 4500, full, klass=1)
        + _record(full, 33, 120, place)
        + _record(host, 1, 120, bytes((127, 0, 0, 1)))
    )


def _name(*labels: str) -> bytes:
    return b"".join(bytes((len(label),)) + label.encode() for label in labels) + b"\0"


def _record(name: bytes, kind: int, ttl_s: int, data: bytes, klass: int = 0x8001) -> bytes:
    return name + struct.pack(">HHIH", kind, klass, ttl_s, len(data)) + data


def code_of(error: grpc.aio.AioRpcError) -> str:
    """Return what a refusal is called: our own code where there is one."""
    code = dict(error.trailing_metadata() or ()).get(CODE_KEY)
    return str(code) if code else error.code().name


ATTACKS: dict[str, Callable[[int, Path, int, float], Awaitable[Result]]] = {
    attack.__name__: attack for attack in (silent, streams, holding, idle, crowd, joins, names)
}


def main() -> None:
    """Carry out one attack."""
    attack, port, folder, *rest = sys.argv[1:]
    amount, seconds = (*map(float, rest), 0.0, 0.0)[:2]
    result = asyncio.run(ATTACKS[attack](int(port), Path(folder), int(amount), seconds))
    print(json.dumps(result))


if __name__ == "__main__":
    main()
