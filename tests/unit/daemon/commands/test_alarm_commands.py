"""Ending an alarm about what failed: people have seen it."""

from pathlib import Path

import pytest

from jupiterd.cluster.facts.facts import WALKED_IN, CycleFailed, NodeAdmitted
from jupiterd.cluster.facts.lifecycle_facts import FailureDismissed
from jupiterd.cluster.health.alerts import TABLE
from jupiterd.cluster.ledger.chain import Tip
from jupiterd.cluster.ledger.dismissals import GRACE_S, SETTLE_S
from jupiterd.cluster.links.unreached import Reached, Unreached
from jupiterd.cluster.membership.failure_detector import Liveness
from jupiterd.cluster.planning.asking_node import ASKED_AT
from jupiterd.cluster.planning.cluster_file_policy import MachineEntry
from jupiterd.ctl.diagnose.status import ailments
from jupiterd.daemon.app.node import Node
from jupiterd.daemon.app.verb_wiring import alarms_of
from jupiterd.daemon.commands.alarm_commands import MAX_CHARACTERS, dismiss, with_alarms
from jupiterd.daemon.leader.machines import Machines
from jupiterd.daemon.leader.term import Term
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.errors import NotFoundError, UsageError
from jupiterd.ids import NodeId
from jupiterd.protocol.commands.alarm_commands import DismissAlarms, DismissFailure
from jupiterd.protocol.frames import ConnectionsRefused
from tests.support.cluster.building import CYCLE, started
from tests.support.daemon.shown import status_of
from tests.support.daemon.two_nodes import found, lead, link, serving, whole_ledger
from tests.unit.daemon.commands.test_cluster_file_policy import write
from tests.unit.daemon.observability.test_alert_watch import tell

FAILED = CycleFailed(CYCLE, "empty-source", "nothing there", "")
GUEST = NodeAdmitted(NodeId("b" * 32), "guest", b"certificate", WALKED_IN)


def alarms(node: Node) -> list[str]:
    node.observers.alerts.look(now_s())
    return [alert.code for alert in node.observers.alerts.raised]


def parts_of(node: Node) -> tuple[Term, Machines]:
    services = node._begin_term(1)
    return services.term, services.machines


async def test_an_alarm_ends_where_somebody_has_seen_it(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await found(one, facts=(started(),))
        assert alarms(one) == []
        await one.replica.append(1, [FAILED])
        assert alarms(one) == ["run-failed"]
        done = await dismiss(*parts_of(one), DismissFailure.read({"cycle": "python"}))
        assert done == {"dismissed": [{"id": CYCLE, "name": "python"}]}
        assert alarms(one) == []
        assert one.replica.state.cycles[CYCLE].failed == FAILED


async def test_who_has_seen_it_is_recorded_as_the_leader_knows_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(tmp_path, "one") as one:
        await lead(one)
        assert one.leading is not None
        await one.leading.term.record(started(), FAILED)
        own = one.identity.node_id
        with caplog.at_level("INFO"):
            await one.commands.execute("cycle.dismiss", {"node": "another", ASKED_AT: "another"})
        facts = [fact for entry in one.replica.ledger.entries() for fact in entry.facts]
        assert [fact.node for fact in facts if isinstance(fact, FailureDismissed)] == [own]
        (told,) = (each for each in caplog.records if each.message == "alarm_dismissed")
        assert vars(told)["by"] == "one"


async def test_where_there_is_no_alarm_it_is_said(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await found(one, facts=(started(),))
        with pytest.raises(NotFoundError, match="no alarm about anything"):
            await dismiss(*parts_of(one), DismissFailure())
        await one.replica.append(1, [FAILED])
        with pytest.raises(NotFoundError, match="nothing that failed is called cooking"):
            await dismiss(*parts_of(one), DismissFailure.read({"cycle": "cooking"}))
        await dismiss(*parts_of(one), DismissFailure())
        with pytest.raises(NotFoundError, match="no alarm about anything"):
            await dismiss(*parts_of(one), DismissFailure())


def health(node: Node) -> list[str]:
    return [line["code"] for line in status_of(node)["health"]]


def dismissed(node: Node) -> list[str]:
    return [line["code"] for line in status_of(node)["dismissed"]]


def events(node: Node, code: str) -> list[str]:
    told = [row for row in node.observers.events.document()["events"] if row["code"] == code]
    return [row["text"].partition(":")[0] for row in told]


async def test_a_knock_that_people_have_seen_comes_back_with_the_next_one(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await lead(one)
        one.worker_runner.refused_connections.note(ConnectionsRefused(1), "run/0")
        one.observers.events.look()
        assert "gang-knocked" in alarms(one)
        one.observers.events.look()
        done = await one.commands.execute("alarm.dismiss", {"names": []})
        assert [row["code"] for row in done["dismissed"]] == ["gang-knocked"]
        assert (alarms(one), dismissed(one)) == ([], ["gang-knocked"])
        one.observers.events.look()
        with pytest.raises(NotFoundError, match="no alarm about anything that happened"):
            await one.commands.execute("alarm.dismiss", {"names": []})
        one.worker_runner.refused_connections.note(ConnectionsRefused(1), "run/0")
        assert alarms(one) == ["gang-knocked"]
        assert dismissed(one) == []
        one.observers.events.look()
        assert events(one, "gang-knocked") == ["alert", "dismissed", "alert"]


async def test_who_leads_next_takes_it_for_seen_and_so_does_who_was_started_anew(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "two") as two:
        await found(one, two)
        await lead(one)
        one.worker_runner.refused_connections.note(ConnectionsRefused(1), "run/0")
        assert alarms(one) == ["gang-knocked"]
        await one.commands.execute("alarm.dismiss", {"names": ["one"]})
        await two.replica.move_to(whole_ledger(one.replica))
        await link(two, one)
        two.peers.require(one.identity.node_id).run_nonce = one.local_view.run_nonce
        two.heartbeats.roster_changed()
        tell(one, two)
        two.leadership.on_lead(2)
        assert (alarms(two), dismissed(two)) == ([], ["gang-knocked"])
        one.worker_runner.refused_connections.note(ConnectionsRefused(1), "run/0")
        tell(one, two)
        assert (alarms(two), dismissed(two)) == (["gang-knocked"], [])
    async with serving(tmp_path, "one") as again:
        assert len(again.replica.state.dismissals.in_force) == 1


async def test_what_failed_is_dismissed_by_the_same_word(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await lead(one)
        alarms(one)
        assert one.leading is not None
        await one.leading.term.record(started(), FAILED)
        assert alarms(one) == ["run-failed"]
        await one.commands.execute("alarm.dismiss", {"names": ["python"]})
        assert alarms(one) == []
        assert "run-failed" not in health(one)
        assert "run-failed" in dismissed(one)
        facts = [fact for entry in one.replica.ledger.entries() for fact in entry.facts]
        assert sum(isinstance(fact, FailureDismissed) for fact in facts) == 1


async def test_a_machine_that_is_gone_is_silent_until_it_was_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "two") as two:
        await found(one, two)
        await lead(one)
        state = {two.identity.node_id: Liveness.GONE}
        monkeypatch.setattr(
            one.local_view, "liveness", lambda node: state.get(node, Liveness.ALIVE)
        )
        at_s = now_s()
        look = one.observers.alerts.look
        look(at_s)
        look(at_s + TABLE["node-gone"].hold_s)
        with pytest.raises(NotFoundError, match="anything that happened") as refused:
            await one.commands.execute("alarm.dismiss", {"names": []})
        assert "node-gone" in refused.value.hint
        await one.commands.execute("alarm.dismiss", {"names": ["two"]})
        look(at_s + 62)
        assert (one.observers.alerts.raised, dismissed(one)) == ((), ["node-gone"])
        wrong = ailments(status_of(one))
        assert "node-gone" not in [line["code"] for line in wrong], "status --check passes"
        state.clear()
        look(at_s + 64)
        look(at_s + 66 + GRACE_S)
        assert one.observers.alerts._ended == [f"node-gone:{two.identity.node_id}"]
        await one.commands.execute("alarm.over", {"keys": one.observers.alerts._ended})
        state[two.identity.node_id] = Liveness.GONE
        assert "node-gone" in health(one)


async def test_what_was_dismissed_of_a_file_that_was_mended_while_the_daemon_stood_is_over(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, "one") as one:
        await lead(one)
        write(one, MachineEntry(name="one", memory_gb=900_000, lines={"memory_gb": 3}))
        alarms(one)
        await one.commands.execute("alarm.dismiss", {"names": ["contradiction"]})
        (key,) = one.replica.state.dismissals.in_force
    async with serving(tmp_path, "one") as again:
        at_s, look = now_s(), again.observers.alerts.look
        look(at_s)
        assert again.observers.alerts._ended == []
        look(at_s + SETTLE_S)
        assert again.observers.alerts._ended == [key]


async def test_what_the_leader_does_not_see_is_over_where_it_was_dismissed(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "two") as two:
        await found(one, two, facts=(GUEST,))
        await two.replica.move_to(whole_ledger(one.replica))
        await lead(one)
        refused = {GUEST.node: {"writer": Tip(7, 1, "f" * 64)}}
        two.replica._refused |= refused
        named = with_alarms(alarms_of(two), DismissAlarms(names=("behind",))).to_plain()
        assert "behind" not in health(one)
        await one.commands.execute_here("alarm.dismiss", named, two.identity.node_id)
        await two.replica.move_to(whole_ledger(one.replica))
        two.replica._refused |= refused
        at_s, watches = now_s(), (one.observers.alerts, two.observers.alerts)
        for later_s in (0.0, SETTLE_S, SETTLE_S + GRACE_S):
            for watch in watches:
                watch.look(at_s + later_s)
                assert watch._ended == [], "it holds still"
        assert "behind" not in health(two)
        two.replica._refused.clear()
        for watch in watches:
            watch.look(at_s + SETTLE_S + 2 * GRACE_S)
        assert [watch._ended for watch in watches] == [[], [f"behind:{GUEST.node}"]]


async def test_a_title_that_a_member_made_long_stands_in_nobodys_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path, "one") as one:
        await lead(one)
        told = [Unreached(f"{each}" * 64, Reached.NOTHING, True, "n" * 64) for each in range(3)]
        monkeypatch.setattr(
            one.observers.health, "_unreached_by", lambda: ((GUEST.node, tuple(told)),)
        )
        (line,) = (each for each in status_of(one)["health"] if each["code"] == "tcp-blocked")
        assert len(line["title"]) > MAX_CHARACTERS
        done = await one.commands.execute("alarm.dismiss", {"names": ["tcp-blocked"]})
        assert [row["code"] for row in done["dismissed"]] == ["tcp-blocked"]
        assert "tcp-blocked" not in health(one)


async def test_what_ended_since_a_program_saw_it_keeps_nothing_else_from_being_dismissed(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, "one") as one:
        await lead(one)
        one.worker_runner.refused_connections.note(ConnectionsRefused(1), "run/0")
        assert alarms(one) == ["gang-knocked"]
        (key,) = one.observers.alerts._shown
        gone = f"node-gone:{GUEST.node}"
        with pytest.raises(NotFoundError, match="no alarm is called node-gone"):
            await one.commands.execute("alarm.dismiss", {"names": [gone]})
        with pytest.raises(NotFoundError, match="no alarm is called atic"):
            await one.commands.execute("alarm.dismiss", {"names": ["atic", key]})
        done = await one.commands.execute("alarm.dismiss", {"names": [gone, key]})
        assert [row["code"] for row in done["dismissed"]] == ["gang-knocked"]


async def test_what_nobody_can_dismiss_is_refused_in_words(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await lead(one)
        with pytest.raises(NotFoundError, match="no alarm is called cooking"):
            await one.commands.execute("alarm.dismiss", {"names": ["cooking"]})
        with pytest.raises(UsageError, match="can't be dismissed"):
            await one.commands.execute_here("alarm.dismiss", {"alarms": [{"key": "no-leader:x"}]})
        with pytest.raises(UsageError, match="expected 1 to"):
            await one.commands.execute_here("alarm.dismiss", {"alarms": []})
        with pytest.raises(UsageError, match="at most 400"):
            await one.commands.execute_here("alarm.dismiss", {"alarms": [{"key": "x" * 401}]})
