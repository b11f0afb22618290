"""What a leader answers to a command, or doesn't: who asked goes on."""

import asyncio
from pathlib import Path

import pytest

from jupiterd.daemon.commands.commands import _result
from jupiterd.daemon.observability import alert_watch
from jupiterd.errors import MalformedError
from tests.support.daemon.two_nodes import serving, unite, until


@pytest.mark.parametrize("told", ["", "{", "null", "[]", "[" * 100_000])
def test_an_answer_that_is_no_map_is_refused(told: str) -> None:
    with pytest.raises(MalformedError, match="the leader one can't be read"):
        _result(told, "one")


@pytest.mark.net
async def test_so_it_is_where_it_comes_from_another_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def say(*_: object) -> object:
        return ["no map"]

    async with serving(tmp_path, "one") as one, serving(tmp_path, "two") as two:
        await unite(one, two)
        two.heartbeats.election._leader = one.identity.node_id
        monkeypatch.setattr(one.commands, "execute_here", say)
        with pytest.raises(MalformedError, match="the leader one can't be read"):
            await two.commands.execute("alarm.over", {"keys": []})


@pytest.mark.net
async def test_alarms_are_looked_for_while_the_leader_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    looks: list[float] = []

    async def hang(verb: str, _arguments: object) -> None:
        asked.append(verb)
        await asyncio.Event().wait()

    def look(at_s: float) -> None:
        looks.append(at_s)
        watch._ended = ["disk:self"]

    async with serving(tmp_path, "one") as one:
        watch = one.observers.alerts
        monkeypatch.setattr(one.commands, "execute", hang)
        monkeypatch.setattr(watch, "look", look)
        monkeypatch.setattr(alert_watch, "LOOK_S", 0.001)
        running = asyncio.ensure_future(watch.run())
        await until(lambda: len(looks) > 3)
        assert asked == ["alarm.over"]
        running.cancel()
        await asyncio.wait([running])
