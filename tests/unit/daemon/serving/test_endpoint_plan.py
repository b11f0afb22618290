"""What an endpoint may be, and what is refused before anything listens."""

from pathlib import Path

import pytest

from jupiterd.daemon.serving.endpoint_plan import EndpointPlan, checked_plan
from jupiterd.daemon.serving.engines import installed_engines
from jupiterd.errors import (
    InvalidSettingError,
    JupiterError,
    MissingExtraError,
    RefusedError,
    UsageError,
)
from jupiterd.ports import Address

HERE = Address("127.0.0.1", 47480)
TOKEN = "a0" * 16


def secret(folder: Path, text: str = f"{TOKEN}\n", mode: int = 0o600) -> str:
    path = folder / "token"
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def plan(address: Address = HERE, token: str = "", *origins: str, models: tuple[str, ...] = ()):
    return checked_plan(models, address, token, origins, is_pinned=False)


def test_what_is_not_said_is_the_promoted_model_on_this_machine_alone():
    assert plan() == EndpointPlan()
    assert plan(models=("a", "b", "a")).models == ("a", "b")


def test_the_token_comes_out_of_its_file_and_is_shown_to_nobody(tmp_path: Path):
    found = plan(Address("0.0.0.0", 1), secret(tmp_path))
    assert found.token == TOKEN
    assert TOKEN not in repr(found)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.20", "studio.local"])
def test_beyond_this_machine_a_token_is_needed(host: str):
    with pytest.raises(RefusedError) as caught:
        plan(Address(host, 47480))
    assert "--token FILE" in caught.value.hint


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "localhost", "::1"])
def test_on_this_machine_none_is_needed(host: str):
    assert plan(Address(host, 1)).token == ""


@pytest.mark.parametrize(
    ("text", "mode", "line"),
    [
        ("", 0o600, "holds no token"),
        ("short", 0o600, "holds no token"),
        (f"{TOKEN} {TOKEN}", 0o600, "holds no token"),
        (f"{TOKEN}\n{TOKEN}", 0o600, "holds no token"),
        (f"{TOKEN}\u00e9", 0o600, "holds no plain text"),
        (TOKEN, 0o644, "others on this machine may read"),
    ],
)
def test_a_wrong_token_file_is_one_line_and_a_hint(tmp_path: Path, text: str, mode: int, line: str):
    with pytest.raises(InvalidSettingError, match=line) as caught:
        plan(HERE, secret(tmp_path, text, mode))
    assert caught.value.hint
    assert TOKEN not in caught.value.message


def test_a_token_file_that_is_not_there_is_told(tmp_path: Path):
    with pytest.raises(InvalidSettingError, match="No such file"):
        plan(HERE, str(tmp_path / "none"))
    with pytest.raises(InvalidSettingError, match="directory"):
        plan(HERE, str(tmp_path))


@pytest.mark.parametrize("origin", ["chat.example.org", "https://a/b", "null", "", "ftp://a"])
def test_what_is_no_origin_is_refused(origin: str):
    with pytest.raises(JupiterError, match="is no origin"):
        plan(HERE, "", origin)


def test_origins_are_taken():
    assert plan(HERE, "", "https://a.example.org:8443", "*").origins[1] == "*"


def test_an_engine_that_is_unknown_or_not_installed_is_refused_with_a_hint(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(installed_engines, "installed", lambda _names: ())
    with pytest.raises(MissingExtraError, match="vllm can't answer here: vllm must be") as caught:
        checked_plan((), HERE, "", (), is_pinned=False, engine="vllm")
    assert "pip install vllm" in caught.value.hint
    with pytest.raises(UsageError, match="there is no engine ollama") as unknown:
        checked_plan((), HERE, "", (), is_pinned=False, engine="ollama")
    assert "llama.cpp" in unknown.value.hint
    monkeypatch.setattr(installed_engines, "installed", tuple)
    assert checked_plan((), HERE, "", (), is_pinned=False, engine="mlx").engine == "mlx"
