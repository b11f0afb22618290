"""How fast artifacts travel, each beside what the wire or a bare stream gives in the same run.

Owns the trials. What is written lies in memory (`--folder`, /dev/shm): one machine's disk isn't
that of five.
"""

import asyncio
import sys
import time
from asyncio.subprocess import PIPE
from dataclasses import dataclass

from tests.bench.artifacts.rivals import told_of_rivals
from tests.bench.artifacts.stations import Remote, introduce, on_links, on_loopback
from tests.bench.figure import Figure, Goal
from tests.support.network.lab import Host

RECEIVERS = 4
INTERRUPTED_AT = 0.9


@dataclass(frozen=True)
class Scale:
    """How large everything is in this run."""

    size_bytes: int
    bits_per_s: int
    folder: str

    @property
    def limit_s(self) -> float:
        """How long one link needs for the artifact's bytes and nothing else."""
        return self.size_bytes * 8 / self.bits_per_s


async def to_four(scale: Scale) -> float:
    """Return the time to give one artifact to four nodes, in times of one link's limit."""
    async with on_links(1 + RECEIVERS, scale.bits_per_s, scale.folder) as (remotes, hosts):
        seed, *others = remotes
        artifact = (await seed.ask("make", size_bytes=scale.size_bytes))["artifact"]
        began_s = time.monotonic()
        told = await asyncio.gather(
            *(each.ask("fetch", artifact=artifact, source=seed.node) for each in others)
        )
        took_s = time.monotonic() - began_s
        from_seed = sum(each["came_bytes"][seed.node] for each in told) / scale.size_bytes
        sockets_s = [await plain_socket_s(hosts[0], host, scale) for host in hosts[1:]]
        print(
            f"  {took_s:.2f} s to {RECEIVERS} nodes, the seed sent {from_seed:.2f} times its size; "
            f"one link's limit {scale.limit_s:.2f} s; plain sockets to one after another "
            f"{sum(sockets_s):.2f} s ({sum(sockets_s) / scale.limit_s:.2f}x); "
            f"{await told_of_rivals(hosts, scale.size_bytes, scale.limit_s, scale.folder)}"
        )
        return took_s / scale.limit_s


async def to_one(scale: Scale) -> float:
    """Return how fast one node gets an artifact, against a plain socket on the same link."""
    async with on_links(2, scale.bits_per_s, scale.folder) as (remotes, hosts):
        socket_s = await plain_socket_s(*hosts, scale)
        took_s = await fetched_s(*remotes, scale)
        socket_s = min(socket_s, await plain_socket_s(*hosts, scale))
        print(f"  {took_s:.2f} s; a plain socket {socket_s:.2f} s")
        return 100 * socket_s / took_s


async def over_loopback(scale: Scale) -> float:
    """Return how fast one node gets an artifact, against a bare mutual-TLS gRPC stream."""
    async with on_loopback(2, scale.folder) as (seed, other):
        bare = [await bare_s(seed, other, scale)]
        took_s = await fetched_s(seed, other, scale)
        bare.append(await bare_s(seed, other, scale))
        mib = scale.size_bytes / 2**20
        rates = ", ".join(f"{mib / each:.0f}" for each in bare)
        print(f"  {mib / took_s:.0f} MiB/s hashed and written; bare stream before, after: {rates}")
        return 100 * (sum(bare) / 2) / took_s


async def interrupted(scale: Scale) -> float:
    """Return how much is sent again of what had come before a kill -9 of the receiver, in %."""
    async with on_links(2, scale.bits_per_s, scale.folder) as (remotes, _):
        seed, other = remotes
        artifact = (await seed.ask("make", size_bytes=scale.size_bytes))["artifact"]
        fetching = asyncio.ensure_future(other.ask("fetch", artifact=artifact, source=seed.node))
        while (share := (await other.ask("here", artifact=artifact))["share"]) < INTERRUPTED_AT:
            assert not fetching.done(), "it was over before it could be interrupted"
            await asyncio.sleep(0.01)
        await other.kill()
        fetching.cancel()
        again = Remote(other.folder, other.host, other.prefix)
        await again.start()
        try:
            await introduce([seed, again])
            told = await again.ask("fetch", artifact=artifact, source=seed.node)
        finally:
            await again.kill()
        came = told["came_bytes"][seed.node] / scale.size_bytes
        print(f"  killed at {share:.1%}; {came:.1%} of the artifact came afterwards")
        return 100 * (came - (1 - share))


async def fetched_s(seed: Remote, other: Remote, scale: Scale) -> float:
    """Return how long a node takes to get an artifact from another."""
    artifact = (await seed.ask("make", size_bytes=scale.size_bytes))["artifact"]
    return (await other.ask("fetch", artifact=artifact, source=seed.node))["took_s"]


async def bare_s(seed: Remote, other: Remote, scale: Scale) -> float:
    """Return how long as many bytes take over the bare stream."""
    told = await other.ask("bare", source=seed.node, size_bytes=scale.size_bytes)
    return told["took_s"]


async def plain_socket_s(sender: Host, taker: Host, scale: Scale) -> float:
    """Return how long as many bytes take over a plain socket."""
    program = (sys.executable, "-m", "tests.bench.artifacts.plain_socket")
    send = (*sender.inside.prefix, *program, "send", sender.address, str(scale.size_bytes))
    sending = await asyncio.create_subprocess_exec(*send, stdout=PIPE)
    assert sending.stdout is not None
    port = (await sending.stdout.readline()).decode().strip()
    take = (*taker.inside.prefix, *program, "take", sender.address, port)
    taking = await asyncio.create_subprocess_exec(*take, stdout=PIPE)
    told, _ = await taking.communicate()
    await sending.wait()
    seconds, came_bytes = told.split()
    assert int(came_bytes) == scale.size_bytes
    return float(seconds)


def figures(scale: Scale) -> tuple[Figure, ...]:
    """Return every figure at one scale."""
    mib, rate = scale.size_bytes >> 20, f"{scale.bits_per_s / 1e6:g} Mbit/s"
    return (
        Figure(
            f"to four: {mib} MiB from one node to four over {rate}",
            "times one link's limit",
            (Goal(0.5, 1.25),),
            lambda: to_four(scale),
            trials=3,
        ),
        Figure(
            f"to one: {mib} MiB over {rate}",
            "% of a plain socket",
            (Goal(0.5, 98.0, at_least=True),),
            lambda: to_one(scale),
            trials=3,
        ),
        Figure(
            f"loopback: {mib} MiB, hashed and written",
            "% of a bare mutual-TLS gRPC stream",
            (Goal(0.5, 70.0, at_least=True),),
            lambda: over_loopback(scale),
            trials=5,
        ),
        Figure(
            f"interrupted: {mib} MiB over {rate}, kill -9 of the receiver at 90 %",
            "% sent again",
            (Goal(0.5, 10.0),),
            lambda: interrupted(scale),
            trials=3,
        ),
    )
