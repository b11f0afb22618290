"""A node's webhook and its alerts, brought together.

Owns what is written of who speaks. Loaded only where there is an address: what speaks HTTP takes
memory. Doesn't know when an alert is sent (`alert_watch`).
"""

from typing import TYPE_CHECKING

from jupiterd.cluster.alerts import Alert
from jupiterd.daemon.clock import wall_iso
from jupiterd.daemon.told import told_text
from jupiterd.daemon.webhook import WebhookUrl
from jupiterd.daemon.webhook_forms import Message, Sender, message_of
from jupiterd.daemon.webhook_sender import WebhookSender

if TYPE_CHECKING:
    from jupiterd.daemon.node import Node


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
