"""The address of a webhook is a secret, and each receiver gets what it understands."""

import dataclasses
import json
from pathlib import Path

import pytest

from jupiterd.cluster.health.alerts import Alert
from jupiterd.cluster.values.severity import Severity
from jupiterd.daemon.observability.webhook_forms import MAX_CHARACTERS, Sender, message_of
from jupiterd.daemon.runtime.settings import Settings, load_settings
from jupiterd.daemon.runtime.webhook import Form, WebhookUrl
from jupiterd.errors import InvalidSettingError

SECRET = "T0P-S3CRET"
URL = f"https://hooks.slack.com/services/{SECRET}"
GONE = Alert("node-gone:a", "node-gone", Severity.WARNING, "attic is gone", "wake it", 0.0)
HOME = Sender("c" * 32, "home", "a" * 32, "node-1")
AT = "2026-01-02T03:04:05+00:00"


def test_an_address_is_shown_nowhere() -> None:
    settings = Settings(alerts_webhook=WebhookUrl(URL))
    assert str(settings.alerts_webhook) == "https://hooks.slack.com/…"
    for told in (repr(settings), str(dataclasses.asdict(settings)), f"{settings.alerts_webhook}"):
        assert SECRET not in told
    assert settings.alerts_webhook is not None
    assert settings.alerts_webhook.reveal() == URL


@pytest.mark.parametrize(
    "wrong",
    [
        f"ftp://host/{SECRET}",
        f"file:///{SECRET}",
        f"//host/{SECRET}",
        SECRET,
        f"https:///{SECRET}",
        f"https://host:port/{SECRET}",
        f"https://host:70000/{SECRET}",
        f"https://host/{SECRET}\r\nX: y",
        f"https://host/ {SECRET}",
        f"https://[::1/{SECRET}",
        f"https://host/{SECRET * 999}",
    ],
)
def test_what_is_wrong_with_an_address_is_said_without_it(tmp_path: Path, wrong: str) -> None:
    file = tmp_path / "jupiter.yaml"
    file.write_text(f"alerts:\n  webhook: {json.dumps(wrong)}\n")
    for source in (
        lambda: load_settings({}, {"JUPITER_ALERTS_WEBHOOK": wrong}, None),
        lambda: load_settings({}, {}, file),
    ):
        with pytest.raises(InvalidSettingError, match="webhook") as error:
            source()
        assert SECRET not in str(error.value)


def test_an_address_in_the_wrong_place_isnt_shown_either(tmp_path: Path) -> None:
    file = tmp_path / "jupiter.yaml"
    file.write_text(f"alerts: {URL}\n")
    with pytest.raises(InvalidSettingError, match="alerts: expected keys and values") as error:
        load_settings({}, {}, file)
    assert SECRET not in str(error.value)


def test_alerts_have_a_group_of_their_own_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "jupiter.yaml"
    file.write_text(f"port: 1\nalerts:\n  webhook: {URL}\n  minimum_severity: warning\n")
    settings, sources = load_settings({}, {"JUPITER_ALERTS_FORM": "json"}, file)
    assert settings.alerts_webhook == WebhookUrl(URL)
    assert settings.alerts_minimum_severity is Severity.WARNING
    assert settings.alerts_form is Form.JSON
    assert (sources["alerts_webhook"], sources["alerts_form"]) == (str(file), "environment")
    file.write_text("alerts:\n  colour: red\n")
    with pytest.raises(InvalidSettingError, match=r":2: alerts.colour: expected one of the keys"):
        load_settings({}, {}, file)
    file.write_text("alerts:\n  minimum_severity: loud\n")
    with pytest.raises(InvalidSettingError, match="expected one of info, warning, error"):
        load_settings({}, {}, file)


@pytest.mark.parametrize(
    ("url", "form"),
    [
        ("https://ntfy.sh/topic", Form.NTFY),
        ("http://ntfy.home.lan:8080/topic", Form.NTFY),
        ("https://hooks.slack.com/services/x", Form.SLACK),
        ("https://discord.com/api/webhooks/1/x", Form.DISCORD),
        ("https://discord.com/other", Form.JSON),
        ("https://hooks.slack.com.evil.example/x", Form.JSON),
        ("http://192.168.1.2/x", Form.JSON),
    ],
)
def test_the_form_goes_by_the_host_unless_it_is_named(url: str, form: Form) -> None:
    assert WebhookUrl(url).form() is form
    assert WebhookUrl(url).form(Form.SLACK) is Form.SLACK


def test_programs_get_json_with_a_schema() -> None:
    message = message_of(Form.JSON, GONE, HOME, AT)
    assert message.headers["Content-Type"] == "application/json"
    assert json.loads(message.body) == {
        "schema": "jupiter/v1",
        "alert": {
            "key": "node-gone:a",
            "state": "raised",
            "code": "node-gone",
            "severity": "warning",
            "title": "attic is gone",
            "hint": "wake it",
            "at": AT,
        },
        "cluster": {"id": "c" * 32, "name": "home"},
        "node": {"id": "a" * 32, "name": "node-1"},
    }


def test_ntfy_gets_text_and_headers_in_ascii() -> None:
    alert = dataclasses.replace(GONE, title="Büro is gone", severity=Severity.ERROR)
    message = message_of(Form.NTFY, alert, HOME, AT)
    assert message.body.decode() == "error: Büro is gone\nhint: wake it\nJupiter, cluster home"
    assert message.headers["Priority"] == "5"
    assert all(value.isascii() for value in message.headers.values())


def test_the_end_of_an_alert_has_its_key_and_is_no_alarm() -> None:
    over = dataclasses.replace(GONE, is_over=True)
    raised, ended = (
        json.loads(message_of(Form.JSON, alert, HOME, AT).body)["alert"] for alert in (GONE, over)
    )
    assert ended == raised | {"state": "over"}
    ntfy = message_of(Form.NTFY, over, HOME, AT)
    assert ntfy.body.decode() == "over: attic is gone\nJupiter, cluster home"
    assert ntfy.headers["Title"] == "Jupiter: node-gone is over"
    assert (ntfy.headers["Priority"], ntfy.headers["Tags"]) == ("3", "white_check_mark")
    slack = json.loads(message_of(Form.SLACK, over, HOME, AT).body)
    assert slack["text"] == "over: attic is gone\nJupiter, cluster home"
    discord = json.loads(message_of(Form.DISCORD, over, HOME, AT).body)
    assert discord["content"] == "over: attic is gone\nJupiter, cluster home"


def test_no_name_of_a_machine_calls_everybody() -> None:
    alert = dataclasses.replace(GONE, title="<!channel> @everyone & co is gone")
    slack = json.loads(message_of(Form.SLACK, alert, HOME, AT).body)
    assert "&lt;!channel&gt; @everyone &amp; co" in slack["text"]
    discord = json.loads(message_of(Form.DISCORD, alert, HOME, AT).body)
    assert discord["allowed_mentions"] == {"parse": []}


def test_no_name_of_a_machine_is_a_link_or_has_a_form() -> None:
    alert = dataclasses.replace(GONE, title="[safe](https://evil.sh) **attic** is gone")
    discord = json.loads(message_of(Form.DISCORD, alert, HOME, AT).body)
    assert r"\[safe\]\(https\://evil.sh\) \*\*attic\*\* is gone" in discord["content"]
    assert discord["flags"] == 4
    slack = json.loads(message_of(Form.SLACK, alert, HOME, AT).body)
    assert (slack["parse"], slack["mrkdwn"]) == ("none", False)
    assert (slack["unfurl_links"], slack["unfurl_media"]) == (False, False)


def test_what_had_to_be_marked_for_discord_is_short_enough_and_whole() -> None:
    alert = dataclasses.replace(GONE, title="*" * 5000)
    content = json.loads(message_of(Form.DISCORD, alert, HOME, AT).body)["content"]
    assert len(content) <= 2000
    assert content.endswith(r"\*")


@pytest.mark.parametrize("form", [Form.NTFY, Form.SLACK, Form.DISCORD])
def test_a_text_isnt_longer_than_receivers_take(form: Form) -> None:
    alert = dataclasses.replace(GONE, title="x" * 5000)
    assert len(message_of(form, alert, HOME, AT).body) < MAX_CHARACTERS + 200
