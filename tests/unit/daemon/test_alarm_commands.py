"""Ending an alarm about what failed: people have seen it."""

from pathlib import Path

import pytest

from jupiterd.cluster.facts import CycleFailed
from jupiterd.cluster.lifecycle_facts import FailureDismissed
from jupiterd.cluster.planning.asking_node import ASKED_AT
from jupiterd.daemon.alarm_commands import dismiss
from jupiterd.daemon.clock import now_s
from jupiterd.daemon.node import Node
from jupiterd.errors import NotFoundError
from tests.unit.cluster.building import CYCLE, started
from tests.unit.daemon.two_nodes import found, lead, serving

FAILED = CycleFailed(CYCLE, "empty-source", "nothing there", "")


def alarms(node: Node) -> list[str]:
    node.outlook.alerts.look(now_s())
    return [alert.code for alert in node.outlook.alerts.raised]


async def test_an_alarm_ends_where_somebody_has_seen_it(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await found(one, facts=(started(),))
        assert alarms(one) == []
        await one.journal.append(1, [FAILED])
        assert alarms(one) == ["run-failed"]
        done = await dismiss(one._begin_reign(1), {"cycle": "python"})
        assert done == {"dismissed": [{"id": CYCLE, "name": "python"}]}
        assert alarms(one) == []
        assert one.journal.state.cycles[CYCLE].failed == FAILED


async def test_who_has_seen_it_is_recorded_as_the_leader_knows_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(tmp_path, "one") as one:
        await lead(one)
        assert one.leading is not None
        await one.leading.record(started(), FAILED)
        own = one.identity.node_id
        with caplog.at_level("INFO"):
            await one.commands.execute("cycle.dismiss", {"node": "another", ASKED_AT: "another"})
        facts = [fact for entry in one.journal.ledger.entries() for fact in entry.facts]
        assert [fact.node for fact in facts if isinstance(fact, FailureDismissed)] == [own]
        (told,) = (each for each in caplog.records if each.message == "alarm_dismissed")
        assert vars(told)["by"] == "one"


async def test_where_there_is_no_alarm_it_is_said(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await found(one, facts=(started(),))
        leading = one._begin_reign(1)
        with pytest.raises(NotFoundError, match="no alarm about anything"):
            await dismiss(leading, {})
        await one.journal.append(1, [FAILED])
        with pytest.raises(NotFoundError, match="nothing that failed is called cooking"):
            await dismiss(leading, {"cycle": "cooking"})
        await dismiss(leading, {})
        with pytest.raises(NotFoundError, match="no alarm about anything"):
            await dismiss(leading, {})
