"""A node's webhook and its alerts, brought together.

Owns what is written of who speaks. Loaded only where there is an address: what speaks HTTP takes
memory. Doesn't know when an alert is sent (`alert_watch`).
"""

from jupiterd.cluster.health.alerts import Alert
from jupiterd.daemon.ledger.replica import Replica
from jupiterd.daemon.observability.alert_watch import AlertWatch
from jupiterd.daemon.observability.webhook_forms import Message, Sender, message_of
from jupiterd.daemon.observability.webhook_sender import WebhookSender
from jupiterd.daemon.runtime.clock import wall_iso
from jupiterd.daemon.runtime.settings import Settings
from jupiterd.daemon.runtime.untrusted_input import sanitized_text
from jupiterd.daemon.runtime.webhook import WebhookUrl


def sender_of(
    settings: Settings, replica: Replica, alerts: AlertWatch, webhook: WebhookUrl
) -> WebhookSender:
    """Have a node's alerts sent to an address, once somebody runs what is returned."""
    form = webhook.form(settings.alerts_form)

    def write(alert: Alert) -> Message:
        label = sanitized_text(replica.state.label)
        own = Sender(replica.cluster, label, replica.node, settings.name)
        return message_of(form, alert, own, wall_iso())

    sender = WebhookSender(webhook, write, alerts.note_sent)
    alerts.offer, alerts.least = sender.offer, settings.alerts_minimum_severity
    return sender
