import asyncio
import gc
import sys
import time
from collections.abc import AsyncIterator
from itertools import permutations

import pytest

from jupiterd.net.announcement_times import AnnouncementTimes
from jupiterd.net.combined_discovery import merge
from jupiterd.net.mdns import MdnsDiscovery
from jupiterd.net.static_discovery import StaticDiscovery, _resolved
from jupiterd.ports import Address

ONE, TWO = Address("192.0.2.1", 1), Address("192.0.2.2", 2)

NEIGHBOUR = """
import asyncio, sys
from jupiterd.net.mdns import MdnsDiscovery

async def main():
    discovery = MdnsDiscovery(loopback_only=True)
    await discovery.start(int(sys.argv[1]))
    print("up", flush=True)
    async for address in discovery.sightings():
        if address.port == int(sys.argv[2]):
            print(address, flush=True)
            break
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await discovery.close()

asyncio.run(main())
"""


async def first(sightings: AsyncIterator[Address], port: int) -> Address:
    async for address in sightings:
        if address.port == port:
            return address
    raise AssertionError("the sightings ended")


def _raise(error: Exception) -> None:
    raise error


@pytest.mark.net
async def test_two_processes_find_each_other_on_loopback_within_seconds() -> None:
    neighbour = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        NEIGHBOUR,
        "40002",
        "40001",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert neighbour.stdin
    assert neighbour.stdout
    assert await neighbour.stdout.readline() == b"up\n"  # a process may start slowly
    discovery = MdnsDiscovery(loopback_only=True)
    began = time.monotonic()
    await discovery.start(40001)
    async with asyncio.timeout(10):
        seen = await first(discovery.sightings(), 40002)
        assert await neighbour.stdout.readline() == b"127.0.0.1:40001\n"
    took_s = time.monotonic() - began
    neighbour.stdin.close()
    await discovery.close()
    assert await neighbour.wait() == 0
    assert seen == Address("127.0.0.1", 40002)
    assert took_s < 5


@pytest.mark.net
async def test_a_daemon_does_not_see_itself() -> None:
    discovery, other = MdnsDiscovery(loopback_only=True), MdnsDiscovery(loopback_only=True)
    await discovery.start(40003)
    await other.start(40004)
    sightings = discovery.sightings()
    async with asyncio.timeout(10):
        assert await first(sightings, 40004)
    await other.close()
    await discovery.close()
    assert all([address.port != 40003 async for address in sightings])


@pytest.mark.net
async def test_the_announcement_tells_nothing_about_the_machine() -> None:
    announcement = MdnsDiscovery(loopback_only=True)._announcement()
    properties = announcement.decoded_properties
    assert set(properties) == {"v", "t"}
    assert properties["v"] == "1"
    assert len(properties["t"] or "") == 16
    label = announcement.name.partition(".")[0]
    assert len(label) == 8
    assert announcement.server == f"{label}.local."


@pytest.mark.net
async def test_only_daemons_of_the_same_scope_are_seen() -> None:
    scopes = {
        40011: "attic",
        40012: "attic",
        40013: "cellar",
        40014: "cellar",
        40015: "",
        40016: "",
    }
    daemons = {port: MdnsDiscovery(loopback_only=True, scope=s) for port, s in scopes.items()}
    for port, discovery in daemons.items():
        await discovery.start(port)
    # Friends first: once each is seen by its own, whoever doesn't see it chose not to.
    pairs = sorted(permutations(daemons, 2), key=lambda pair: scopes[pair[0]] != scopes[pair[1]])
    async with asyncio.timeout(20):
        for one, other in pairs:
            if scopes[one] == scopes[other]:
                while not await daemons[one]._resolve(daemons[other]._instance):
                    pass
            else:
                assert await daemons[one]._resolve(daemons[other]._instance) == [], (one, other)
    for discovery in daemons.values():
        await discovery.close()


@pytest.mark.net
async def test_an_announcement_shows_its_scope_only_as_a_hash() -> None:
    properties = MdnsDiscovery(loopback_only=True, scope="attic")._announcement().decoded_properties
    assert set(properties) == {"v", "t", "s"}
    assert "attic" not in str(properties)
    assert len(properties["s"] or "") == 16


@pytest.mark.net
async def test_after_a_change_of_addresses_everybody_is_seen_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other, discovery = MdnsDiscovery(loopback_only=True), MdnsDiscovery()
    changes = iter([True])
    monkeypatch.setattr(discovery, "_choice", lambda: ["127.0.0.1"])
    monkeypatch.setattr(discovery, "_local_addresses", lambda: ["127.0.0.1"])
    monkeypatch.setattr(discovery._watch, "has_changed", lambda: next(changes, False))
    await other.start(40007)
    await discovery.start(40008)
    seen_by_other = asyncio.ensure_future(first(other.sightings(), 40008))
    sightings = discovery.sightings()
    async with asyncio.timeout(10):
        assert await first(sightings, 40007)
        assert await first(sightings, 40007), "once more, after the change"
        assert await seen_by_other
    assert next(changes, None) is None
    await other.close()
    await discovery.close()


@pytest.mark.net
async def test_a_machine_that_gets_multicast_later_is_heard_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other, discovery = MdnsDiscovery(loopback_only=True), MdnsDiscovery()
    with monkeypatch.context() as without:
        without.setattr(discovery, "_choice", lambda: _raise(RuntimeError("no interfaces")))
        await discovery.start(40010)
    monkeypatch.setattr(discovery, "_choice", lambda: ["127.0.0.1"])
    monkeypatch.setattr(discovery, "_local_addresses", lambda: ["127.0.0.1"])
    changes = iter([True])  # it gets multicast once; asking anew each second would hear nobody
    monkeypatch.setattr(discovery._watch, "has_changed", lambda: next(changes, False))
    await other.start(40009)
    async with asyncio.timeout(10):
        assert await first(discovery.sightings(), 40009)
    await other.close()
    await discovery.close()


@pytest.mark.net
# zeroconf forgets one of its sockets when it gives up; let that come out here, not in the next test
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_a_machine_without_multicast_goes_on_with_one_line_in_the_log(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    discovery = MdnsDiscovery(loopback_only=True)
    monkeypatch.setattr(discovery, "_choice", lambda: ["203.0.113.7"])  # no address of ours
    await discovery.start(40006)
    assert ["mdns unavailable" in record.message for record in caplog.records].count(True) == 1
    await discovery.close()
    assert [address async for address in discovery.sightings()] == []
    caplog.clear()
    gc.collect()


@pytest.mark.net
async def test_closing_twice_or_without_a_start_is_harmless() -> None:
    discovery = MdnsDiscovery(loopback_only=True)
    await discovery.close()
    await discovery.close()


async def test_named_addresses_are_repeated_until_closed() -> None:
    discovery = StaticDiscovery([ONE, TWO], interval_s=0.001)
    await discovery.start(1)
    sightings = discovery.sightings()
    assert [await anext(sightings) for _ in range(5)] == [ONE, TWO, ONE, TWO, ONE]
    await discovery.close()
    assert [address async for address in sightings] == [TWO]


async def test_merged_discoveries_yield_what_any_of_them_sees() -> None:
    quiet, busy = StaticDiscovery([]), StaticDiscovery([ONE], interval_s=0.001)
    slow = StaticDiscovery([TWO], interval_s=3600)
    merged = merge(quiet, busy, slow)
    await merged.start(1)
    sightings = merged.sightings()
    seen = [await anext(sightings) for _ in range(6)]
    assert sorted(set(seen), key=str) == [ONE, TWO]
    assert seen.count(TWO) == 1
    await merged.close()
    async with asyncio.timeout(5):
        assert TWO not in [address async for address in sightings]


async def test_merging_one_discovery_is_that_discovery() -> None:
    alone = StaticDiscovery([ONE])
    assert merge(alone) is alone


async def test_a_name_that_cannot_be_one_is_no_address() -> None:
    assert await _resolved(Address(f"{'a' * 64}.example", 1)) == []
    assert await _resolved(Address("a..b", 1)) == []


async def test_a_name_that_nobody_knows_is_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    discovery = StaticDiscovery([Address("a..b", 3), ONE], interval_s=0.001)
    sightings = discovery.sightings()
    assert [await anext(sightings) for _ in range(3)] == [ONE] * 3
    await discovery.close()
    told = [record.__dict__["peer"] for record in caplog.records]
    assert told == ["a..b:3"]


@pytest.mark.net
async def test_whoever_cannot_be_reached_is_asked_for_anew_and_heard_again() -> None:
    """The library asks no more for what it holds."""
    clock = iter(range(1000))
    announced = AnnouncementTimes(lambda: float(next(clock)))
    discovery = MdnsDiscovery(loopback_only=True, announced=announced)
    other = MdnsDiscovery(loopback_only=True)
    await discovery.start(40021)
    await other.start(40022)
    async with asyncio.timeout(10):
        seen = await first(discovery.sightings(), 40022)
        zeroconf = discovery._zeroconf
        assert zeroconf is not None
        record = zeroconf.zeroconf.cache.get_by_details(other._instance, 33, 1)
        assert record is not None
        heard_ms = record.created
        announced.doubted = frozenset({seen})
        while record.created <= heard_ms + 1000:
            discovery._query_again()
            await asyncio.sleep(0.05)  # answers to the same question are a second apart
            record = zeroconf.zeroconf.cache.get_by_details(other._instance, 33, 1)
            assert record is not None
    await other.close()
    await discovery.close()
