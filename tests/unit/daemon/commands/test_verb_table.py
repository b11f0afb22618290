"""The table of verbs holds every command that can travel, and says who carries it out."""

from pathlib import Path

import pytest

from jupiterd.cluster.membership.call_rights import OF_TRUSTED_MEMBERS
from jupiterd.daemon.app.verb_wiring import table_of
from jupiterd.daemon.commands.verb import Where, at_leader, local
from jupiterd.protocol.commands.check_commands import CheckLinks, TryCommand
from jupiterd.protocol.commands.cycle_commands import StopCycle
from tests.support.daemon.two_nodes import serving
from tests.unit.protocol.commands.test_command import COMMANDS

LOCAL = {
    "check.links", "cluster.leave", "hub.fetch", "script.knocked", "script.prepare", "script.ship",
}  # fmt: skip
LONG = {"check.sync", "cluster.hand_over", "generator.try"}
FORETOLD = {"cycle.extend", "train.start"}
PREPARED = {
    "alarm.dismiss", "cycle.pause", "cycle.plan", "cycle.start", "data.prepare", "train.start",
}  # fmt: skip


async def test_each_command_has_its_row(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        table = table_of(one)
        assert {row.request for row in table.values()} == {*COMMANDS} - {TryCommand}
        assert all(name == row.name == row.request.VERB for name, row in table.items())
        assert one.commands.verbs == {*table, TryCommand.VERB}


async def test_what_only_trusted_members_may_is_in_the_table(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        assert {*table_of(one)} >= {*OF_TRUSTED_MEMBERS}


async def test_the_table_says_where_and_how_each_is_carried_out(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        rows = table_of(one).values()
        assert {row.name for row in rows if row.where is Where.LOCAL} == LOCAL
        assert {row.name for row in rows if row.is_long} == LONG
        assert {row.name for row in rows if row.forecast is not None} == FORETOLD
        assert {row.name for row in rows if row.preparation is not None} == PREPARED


async def test_a_row_takes_its_own_command_alone(tmp_path: Path) -> None:
    async def measure(command: CheckLinks) -> dict[str, object]:
        return {"node": command.node}

    async def stop(_term: object, _command: StopCycle) -> dict[str, object]:
        raise AssertionError("it isn't to be reached")

    here, there = local(CheckLinks, measure), at_leader(StopCycle, stop)
    assert await here.carry_out(None, CheckLinks(node="a")) == {"node": "a"}
    with pytest.raises(TypeError, match=r"cycle\.stop isn't check\.links"):
        await here.carry_out(None, StopCycle())
    with pytest.raises(TypeError, match=r"cycle\.stop needs a term"):
        await there.carry_out(None, StopCycle())
    async with serving(tmp_path, "one") as one:
        with pytest.raises(TypeError, match=r"check\.links isn't cycle\.stop"):
            await there.carry_out(one._begin_term(1), CheckLinks(node="a"))
