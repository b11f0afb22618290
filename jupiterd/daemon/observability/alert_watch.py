"""Evaluates the cluster's alerts again and again.

Owns when it is looked, and putting together what this node knows: the same on every node, so that
whoever sends next knows as much. Doesn't know what an alert is (`cluster.alerts`), or how one is
sent (`webhook_sender`).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from jupiterd.cluster.facts.dismissal_fact import AlarmDismissed
from jupiterd.cluster.health.alert_news import LedgerNews, ledger_findings, name_of, seen_failures
from jupiterd.cluster.health.alert_senders import HAS_WEBHOOK, SENT, SentAlerts, sender_among
from jupiterd.cluster.health.alerts import Alert, AlertBook, AlertCondition, strain_findings
from jupiterd.cluster.health.dismissible import alarm_key, reports_its_end
from jupiterd.cluster.health.health import HealthWarning, judge
from jupiterd.cluster.health.health_ages import HealthAges
from jupiterd.cluster.health.run_alerts import LiveTraining, RunAlerts
from jupiterd.cluster.ledger.dismissals import DismissalWatch
from jupiterd.cluster.ledger.state import State
from jupiterd.cluster.membership.failure_detector import Liveness
from jupiterd.cluster.text.health_words import NEWS
from jupiterd.cluster.values.severity import Severity
from jupiterd.cycle.base.work_item import Phase
from jupiterd.daemon.cycles.lost_generator import lost_generator_findings
from jupiterd.daemon.ledger.replica import Replica
from jupiterd.daemon.links.peers import Peers
from jupiterd.daemon.links.refused_connections import refused_finding
from jupiterd.daemon.observability.refused_here import REFUSAL_CODES, RefusedHere
from jupiterd.daemon.queries.cycle.heavy_drops import drop_findings
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.daemon.runtime.untrusted_input import sanitized_text
from jupiterd.daemon.view.health_view import HealthView
from jupiterd.daemon.view.local_view import LocalView
from jupiterd.errors import JupiterError
from jupiterd.ids import CycleId, NodeId

log = logging.getLogger(__name__)

LOOK_S: Final = 2.0

LEARN_S: Final = 15.0
"""Who begins to send waits so long for what others know of: after a start nobody is linked yet."""

ALERTS = "alerts"
"""Key of the alerts in a heartbeat's telemetry."""


class AlertWatch:
    """What is raised on this node's view of the cluster, and which of it was sent."""

    def __init__(
        self,
        view: LocalView,
        health: HealthView,
        replica: Replica,
        peers: Peers,
        refused: RefusedHere,
        report_over: Callable[[Sequence[str]], Awaitable[object]],
    ) -> None:
        """`report_over` sends the leader the keys of dismissed alarms that are over."""
        self._view, self._health = view, health
        self._replica, self._peers = replica, peers
        self._refused, self._report_to_leader = refused, report_over
        self._own = view.own
        self._book, self._news, self._runs = AlertBook(), LedgerNews(), RunAlerts()
        self._sent = SentAlerts()
        self._shown: Mapping[str, Alert] = {}
        """What was raised, and not dismissed, when it was looked last; by key."""
        self._dismissals = DismissalWatch()
        self._ended: Sequence[str] = ()
        """Keys of dismissed alarms that are over and whose end this node reports."""
        self.ages = HealthAges()
        """Since when each of status's findings holds."""
        self._offered: set[str] = set()
        """Keys of what waits to be sent, or couldn't be."""
        self._sends_since_s: float | None = None
        self._heard_of: set[NodeId] = set()
        """Whose marks were learned since then."""
        self.offer: Callable[[Alert], None] | None = None
        """Sends an alert; None where this node has no address to send to."""
        self.least = Severity.INFO
        """What is less grave isn't sent."""

    @property
    def raised(self) -> Sequence[Alert]:
        """The raised alerts, the gravest first."""
        return tuple(alert for alert in self._book.raised if not self.is_dismissed(alert))

    @property
    def dismissed(self) -> Sequence[Alert]:
        """What is raised, too, and people have seen it."""
        return tuple(alert for alert in self._book.raised if self.is_dismissed(alert))

    def is_dismissed(self, alarm: Alert | HealthWarning) -> bool:
        """Say whether people have seen it as it stands."""
        is_seen, cause = (alarm.is_seen, alarm.cause) if isinstance(alarm, Alert) else (False, "")
        fact = self._replica.derived(_in_force).get(self.key(alarm))
        return is_seen or (fact is not None and fact.cause == cause)

    def key(self, alarm: Alert | HealthWarning) -> str:
        """Return its key, which is unique in the cluster."""
        return alarm_key(alarm.code, alarm.about, self._own)

    async def run(self) -> None:
        """Evaluate for ever, and report dismissed alarms that are over."""
        reporting: asyncio.Task[None] | None = None
        async with asyncio.TaskGroup() as group:
            while True:
                self.look(now_s())
                if self._ended and (reporting is None or reporting.done()):
                    reporting = group.create_task(self._report_over(self._ended))
                await asyncio.sleep(LOOK_S)

    async def _report_over(self, keys: Sequence[str]) -> None:
        """Report to the leader in a task of its own: the leader may hang."""
        try:
            await self._report_to_leader(keys)
        except JupiterError as error:
            log.debug("end_not_told", extra={"reason": error.message})

    def look(self, at_s: float) -> None:
        """Look once: log what is new and what is over, and send what is due."""
        wrong = judge(self._health.cluster_view())
        self.ages.look(at_s, [alarm.key for alarm in wrong])
        _, over = self._book.look(at_s, list(self._findings(at_s)))
        self._look_at_dismissals(at_s, wrong)
        was, self._shown = self._shown, {alert.key: alert for alert in self.raised}
        for key in self._shown.keys() - was.keys():
            _log_raised(self._shown[key])
        for alert in over:
            if alert.code not in NEWS:
                log.info("alert_over", extra={"code": alert.code, "title": alert.title})
        resolved = {alert.key: alert for alert in over}
        resolved |= {key: was[key] for key in was.keys() - self._shown.keys()}
        self._offered -= resolved.keys()
        self._end(list(resolved.values()))
        self._send(at_s)

    def _look_at_dismissals(self, at_s: float, wrong: Sequence[HealthWarning]) -> None:
        in_force = self._replica.derived(_in_force)
        current = {self.key(alarm) for alarm in (*wrong, *self._book.raised)}
        lasting = {key for key, fact in in_force.items() if not fact.cause}
        over = self._dismissals.look(at_s, lasting, current)
        self._ended = [key for key in over if self._reports_end_of(in_force[key])]

    def _reports_end_of(self, dismissed: AlarmDismissed) -> bool:
        leads, asked_at = self._view.own_term is not None, NodeId(dismissed.node)
        is_member = asked_at in self._replica.state.members
        return reports_its_end(
            dismissed.key, self._own, leads=leads, asked_at=asked_at if is_member else None
        )

    def note_sent(self, alert: Alert) -> None:
        """Take note that somebody has got it; what is over by now is ended at once."""
        if alert.is_over:
            return
        self._offered.discard(alert.key)
        self._sent.note([alert.key])
        if alert.key not in self._shown:
            self._end([alert])

    def telemetry(self) -> dict[str, Any]:
        """Return the alerts' part of this node's telemetry."""
        alerts: dict[str, Any] = {}
        if self.offer is not None:
            alerts[HAS_WEBHOOK] = True
        if marks := self._sent.recent_marks():
            alerts[SENT] = marks
        alerts |= self._refused.telemetry()
        return {ALERTS: alerts} if alerts else {}

    def _end(self, over: Sequence[Alert]) -> None:
        """Send a "resolved" notice for these alerts, if this node sends the cluster's webhooks."""
        if self.offer is not None and self._sender() == self._own:
            for alert in self._sent.ended(over):
                self.offer(alert)
        self._sent.forget(over)

    def _send(self, at_s: float) -> None:
        sender = self._sender()
        if sender != self._own:
            self._sends_since_s = None
            if sender is not None and SENT in (reported := self._reported_by(sender)):
                self._sent.follow(reported[SENT])
            return
        if self._sends_since_s is None:
            self._sends_since_s, self._heard_of = at_s, set()
        if not self._knows_what_was_sent(at_s - self._sends_since_s):
            return
        for alert in self._sent.due(self.raised, self.least):
            if self.offer is not None and alert.key not in self._offered:
                self._offered.add(alert.key)
                self.offer(alert)

    def _knows_what_was_sent(self, elapsed_s: float) -> bool:
        """Learn once from each who is heard soon; say whether somebody was, or nobody will be."""
        if elapsed_s <= LEARN_S:
            for peer in self._peers:
                if peer.telemetry and peer.node not in self._heard_of:
                    self._heard_of.add(peer.node)
                    self._sent.learn(self._reported_by(peer.node).get(SENT))
        is_alone = self._replica.state.members.keys() <= {self._own}
        return is_alone or bool(self._heard_of) or elapsed_s > LEARN_S

    def _sender(self) -> NodeId | None:
        others = self._view.alive() - {self._own}
        able = {node for node in others if self._reported_by(node).get(HAS_WEBHOOK) is True}
        own = {self._own} if self.offer is not None else set[NodeId]()
        return sender_among(self._view.leader, able | own)

    def _reported_by(self, node: NodeId) -> Mapping[str, Any]:
        peer = self._peers.get(node)
        alerts = None if peer is None else peer.telemetry.get(ALERTS)
        return alerts if isinstance(alerts, dict) else {}

    def _findings(self, at_s: float) -> Iterator[AlertCondition]:
        replica, view = self._replica, self._view
        raised = {alert.key for alert in self._book.raised}
        yield from self._runs.look(at_s, list(self._live()))
        own, outage = view.name, view.outage()
        if outage is not None:
            yield AlertCondition("link-out", self._own, own, outage.cause)
        for node, admitted in replica.state.members.items():
            name = sanitized_text(admitted.name)
            if view.liveness(node) is Liveness.GONE:
                if outage is None or node not in outage.cut_off:
                    yield AlertCondition("node-gone", node, name)
            else:
                yield from strain_findings(node, name, view.load_of(node), raised)
                since = self._start_of(node)
                for code in REFUSAL_CODES:
                    reported = self._reported_by(node).get(code)
                    yield from refused_finding(node, name, reported, since, code)
        yield from self._refused.findings(self._own, own, view.run_nonce)
        yield from lost_generator_findings(replica.state.cycles.values())
        drops = replica.derived(drop_findings)
        ended = (*replica.derived(ledger_findings), *replica.derived(seen_failures))
        reported = (*ended, *drops.news)
        yield from self._news.look(at_s, replica.cluster, reported)
        yield from drops.lasting

    def _start_of(self, node: NodeId) -> str:
        peer = self._peers.get(node)
        return "" if peer is None else sanitized_text(peer.run_nonce)

    def _live(self) -> Iterator[LiveTraining]:
        cycles = self._replica.state.cycles
        for row in self._view.running():
            cycle = cycles.get(CycleId(row["cycle"]))
            if row["phase"] == Phase.TRAIN and cycle is not None and cycle.paused is None:
                values = row["values"]
                name, run = sanitized_text(name_of(cycle)), CycleId(row["cycle"])
                risen = int(values.get("best_step", 0)) if values.get("risen") else None
                yield LiveTraining(run, row["round"], name, row["done"], values.get("loss"), risen)


def _in_force(state: State) -> Mapping[str, AlarmDismissed]:
    return state.dismissals.in_force


def _log_raised(alert: Alert) -> None:
    level = logging.INFO if alert.severity is Severity.INFO else logging.WARNING
    log.log(level, "alert", extra={"code": alert.code, "title": alert.title, "hint": alert.hint})
