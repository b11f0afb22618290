"""What a daemon tells of its settings."""

from dataclasses import fields
from pathlib import Path
from typing import Any

from jupiterd.cluster.ledger.tokens import Token
from jupiterd.daemon.queries.cluster.settings_document import settings_document
from jupiterd.daemon.runtime.settings import Settings, load_settings
from jupiterd.ids import ClusterId

TOKEN = Token(ClusterId("c" * 32), "1" * 16, "2" * 32)


def told(flags: dict[str, Any], environment: dict[str, str], tmp_path: Path) -> dict[str, Any]:
    """Return each setting's row by its name."""
    settings, sources = load_settings({"state_dir": tmp_path} | flags, environment, None)
    return {row["name"]: row for row in settings_document(settings, sources)["settings"]}


def test_every_setting_is_there_with_where_it_comes_from(tmp_path: Path) -> None:
    rows = told({"peer": ("10.0.0.7",)}, {"JUPITER_METRICS": "9000"}, tmp_path)
    assert list(rows) == [each.name for each in fields(Settings)]
    assert rows["peer"] == {"name": "peer", "value": ["10.0.0.7"], "source": "flag"}
    assert rows["metrics"] == {
        "name": "metrics",
        "value": "127.0.0.1:9000",
        "source": "environment",
    }
    assert rows["local"] == {"name": "local", "value": False, "source": "default"}
    assert rows["state_dir"]["value"] == str(tmp_path)


def test_what_is_secret_stays_so(tmp_path: Path) -> None:
    token = str(TOKEN)
    hook = "https://ntfy.example/very-secret"
    (tmp_path / "token").write_text(token)
    rows = told({"join": str(tmp_path / "token")}, {"JUPITER_ALERTS_WEBHOOK": hook}, tmp_path)
    assert (rows["join"]["value"], rows["join"]["source"]) == ("…", "flag")
    assert rows["alerts_webhook"]["value"] == "https://ntfy.example/…"
    assert token not in str(rows)
    assert "very-secret" not in str(rows)
