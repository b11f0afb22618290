import asyncio
from contextlib import aclosing, asynccontextmanager

from jupiterd.client import daemon_process
from jupiterd.client.channel import ControlChannel
from jupiterd.client.watch import (
    Delta,
    Heartbeat,
    Link,
    LinkChanged,
    Snapshot,
    folded,
    watch,
)
from jupiterd.rpc import control_pb2
from tests.support.client.control_server import ScriptedControl, delta, serving, snapshot
from tests.unit.client.test_reachability import WAITING, waiting


@asynccontextmanager
async def watching(control, state_dir, **options):
    async with (
        serving(control, state_dir / "control.sock"),
        ControlChannel(state_dir) as channel,
        aclosing(watch(channel, "status", **options)) as messages,
    ):
        yield messages


async def _take(messages, count):
    return [await anext(messages) for _ in range(count)]


async def _until(messages, link):
    async for message in messages:
        if isinstance(message, LinkChanged) and message.link is link:
            return message
    raise AssertionError("the stream ended")


async def test_snapshot_changes_and_heartbeats_arrive_in_order(short_dir):
    control = ScriptedControl()
    for event in (snapshot(a=1, b=2), control_pb2.WatchEvent(heartbeat=1), delta(b=3)):
        control.events.put_nowait(event)
    async with watching(control, short_dir) as messages:
        assert await _take(messages, 5) == [
            LinkChanged(Link.CONNECTING),
            LinkChanged(Link.LIVE),
            Snapshot({"a": 1, "b": 2}),
            Heartbeat(1),
            Delta({"b": 3}),
        ]


async def test_a_daemon_that_comes_back_is_watched_again(short_dir):
    control, again = ScriptedControl(), ScriptedControl()
    control.events.put_nowait(snapshot(run=1))
    again.events.put_nowait(snapshot(run=2))
    async with (
        ControlChannel(short_dir) as channel,
        aclosing(watch(channel, "status")) as messages,
    ):
        async with serving(control, short_dir / "control.sock"):
            assert (await _take(messages, 3))[2] == Snapshot({"run": 1})
        lost = await _until(messages, Link.LOST)
        assert str(short_dir) in lost.reason
        assert lost.hint == f"start it with: jupiterd --state-dir {short_dir}"
        assert lost.retry_in_s > 0
        async with serving(again, short_dir / "control.sock"):
            await _until(messages, Link.LIVE)
            assert await anext(messages) == Snapshot({"run": 2})


async def test_an_ended_stream_is_opened_again(short_dir):
    control = ScriptedControl()
    for event in (snapshot(run=1), None, snapshot(run=2)):
        control.events.put_nowait(event)
    async with watching(control, short_dir) as messages:
        assert (await _take(messages, 4))[3].link is Link.LOST
        assert await _take(messages, 2) == [LinkChanged(Link.LIVE), Snapshot({"run": 2})]


async def test_silence_is_reported_and_a_word_ends_it(short_dir):
    control = ScriptedControl()
    control.events.put_nowait(snapshot(run=1))
    async with watching(control, short_dir, stale_after_s=0.5) as messages:
        await _take(messages, 3)
        assert (await anext(messages)).link is Link.STALE
        control.events.put_nowait(control_pb2.WatchEvent(heartbeat=7))
        assert await _take(messages, 2) == [LinkChanged(Link.LIVE), Heartbeat(7)]


async def test_a_stream_that_stays_silent_is_given_up(short_dir):
    control = ScriptedControl()
    control.events.put_nowait(snapshot(run=1))
    async with watching(control, short_dir, stale_after_s=0.05) as messages, asyncio.timeout(10):
        assert await _until(messages, Link.LOST)


async def test_a_daemon_that_never_says_a_word_is_lost_and_its_process_is_named(
    short_dir, monkeypatch
):
    monkeypatch.setattr(daemon_process, "STARTING_S", 0.0)
    with waiting("-c", WAITING, "jupiterd") as process:
        (short_dir / "lock").write_text(str(process.pid))
        async with watching(ScriptedControl(), short_dir, stale_after_s=0.05) as messages:
            connecting, lost = await _take(messages, 2)
    assert (connecting.link, lost.link) == (Link.CONNECTING, Link.LOST)
    assert lost.reason.endswith(f"but doesn't answer; its process {process.pid} runs")
    assert f"kill {process.pid}" in lost.hint


def test_a_change_replaces_whole_keys_and_a_snapshot_everything():
    document = folded({}, Snapshot({"cycle": {"id": "c", "step": 1}, "node": {}}))
    document = folded(document, Delta({"cycle": {"id": "c"}}))
    assert document == {"cycle": {"id": "c"}, "node": {}}
    assert folded(document, Heartbeat(3)) == document
    assert folded(document, LinkChanged(Link.LOST)) == document
    assert folded(document, Snapshot({"cycle": None})) == {"cycle": None}
