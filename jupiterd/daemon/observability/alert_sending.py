"""A node's webhook and its alerts, brought together.

Owns what is written of who speaks. Loaded only where there is an address: what speaks HTTP takes
memory. Doesn't know when an alert is sent (`alert_watch`).
"""

from typing import TYPE_CHECKING

from jupiterd.cluster.health.alerts import Alert
from jupiterd.daemon.observability.webhook_forms import Message, Sender, message_of
from jupiterd.daemon.observability.webhook_sender import WebhookSender
from jupiterd.daemon.runtime.clock import wall_iso
from jupiterd.daemon.runtime.untrusted_input import told_text
from jupiterd.daemon.runtime.webhook import WebhookUrl

if TYPE_CHECKING:
    from jupiterd.daemon.app.node import Node


def sender_of(node: "Node", webhook: WebhookUrl) -> WebhookSender:
    """Have a node's alerts sent to an address, once somebody runs what is returned."""
    form = webhook.form(node.settings.alerts_form)

    def write(alert: Alert) -> Message:
        label = told_text(node.journal.state.label)
        own = Sender(node.journal.cluster, label, node.identity.node_id, node.settings.name)
        return message_of(form, alert, own, wall_iso())

    alerts = node.outlook.alerts
    sender = WebhookSender(webhook, write, alerts.note_sent)
    alerts.offer, alerts.least = sender.offer, node.settings.alerts_minimum_severity
    return sender
