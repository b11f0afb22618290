"""A generator as people name it: what is told before anything starts."""

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jupiterd.ctl.cycle.cycle_arguments import start_arguments
from jupiterd.ctl.hub.fetches import Fetches
from jupiterd.ctl.sources import server_trial
from jupiterd.ctl.sources.generator_source import generator_arguments
from jupiterd.errors import (
    CorruptArtifactError,
    GeneratorRefusedError,
    GeneratorUnreachableError,
    JupiterError,
    NotFoundError,
    UsageError,
)
from jupiterd.locations import config_folder
from tests.support.workers.answering_server import Reply, answer, answering, trouble

START = ("cycle", "start", "--domain", "chemistry")


@pytest.fixture(autouse=True)
def ask_once(monkeypatch) -> None:
    """Let no busy server be asked again, where a test doesn't say otherwise."""
    monkeypatch.setattr(server_trial, "PAUSE_S", 1000.0)


def weights(tensor: bytes) -> bytes:
    """Return a file of one tensor of eight bytes, which may be cut off."""
    header = json.dumps({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
    return len(header).to_bytes(8, "little") + header + tensor


def folder_of(place: Path, **files: str) -> Path:
    place.mkdir()
    whole = {"config.json": '{"model_type": "llama"}', "tokenizer.json": "{}"}
    for name, text in (whole | {n.replace("__", "."): t for n, t in files.items()}).items():
        (place / name).write_text(text)
    (place / "model.safetensors").write_bytes(weights(b"\0" * 8))
    return place


@pytest.mark.net
def test_a_server_is_recorded_with_its_model_and_the_name_of_its_key(
    daemon, ctl, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("BOX_API_KEY", "secret")
    with answering(lambda *_: answer("")) as served:
        named = f"{served.url}/#tiny"
        ran = ctl(*START, "--generator", named, "--api-key-env", "BOX_API_KEY")
        assert (ran.exit_code, ran.err) == (0, "")
    _, arguments = daemon.executed[0]
    assert arguments["generator"] == {
        "name": "tiny", "url": served.url, "model": "tiny", "api_key_env": "BOX_API_KEY",
    }  # fmt: skip
    assert "secret" not in json.dumps(arguments)
    assert served.asked == [], "a domain's file may name any address: only jupiterd shows a key"


@pytest.mark.net
def test_a_servers_only_model_needs_no_name_and_of_several_one_must_be_named():
    with answering(lambda *_: answer("")) as served:
        assert generator_arguments(served.url, Fetches())["generator"]["model"] == "tiny"
        served.models = ["tiny", "large"]
        with pytest.raises(UsageError, match="it has tiny, large"):
            generator_arguments(served.url, Fetches())
    with pytest.raises(GeneratorUnreachableError, match="can't be reached from this machine"):
        generator_arguments(f"{served.url}#tiny", Fetches())


@pytest.mark.net
def test_a_model_that_answers_one_prompt_is_taken_whatever_the_server_lists():
    with answering(lambda *_: answer("Hello!")) as served:
        assert (
            generator_arguments(f"{served.url}#./huge.gguf", Fetches())["generator"]["model"]
            == "./huge.gguf"
        )
        (asked,) = served.asked
        assert (asked["model"], asked["max_tokens"]) == ("./huge.gguf", 16)
        for models in ([], None):
            served.models = models
            assert (
                generator_arguments(f"{served.url}#huge", Fetches())["generator"]["model"] == "huge"
            )
        with pytest.raises(UsageError, match="doesn't say which model"):
            generator_arguments(served.url, Fetches())


@pytest.mark.net
def test_a_model_that_the_server_does_not_have_is_told_with_those_that_it_lists():
    with answering(lambda *_: trouble(404, "model 'huge' not found")) as served:
        served.models = ["tiny", "large"]
        with pytest.raises(NotFoundError, match="has no model huge: HTTP 404, model") as told:
            generator_arguments(f"{served.url}#huge", Fetches())
        assert told.value.hint == "it lists tiny, large"
        served.models = []
        with pytest.raises(NotFoundError, match="has no model huge"):
            generator_arguments(f"{served.url}#huge", Fetches())


@pytest.mark.net
@pytest.mark.parametrize(
    ("reply", "error", "told"),
    [
        (trouble(500, "no memory"), GeneratorUnreachableError, "doesn't answer: HTTP 500, no mem"),
        (trouble(503, "loading"), GeneratorUnreachableError, "HTTP 503, loading"),
        (trouble(401, "no key"), GeneratorRefusedError, "asks for a key: HTTP 401, no key"),
        (trouble(400, "bad"), GeneratorRefusedError, "doesn't answer a short prompt: HTTP 400"),
        ((200, b"<html>", {}), GeneratorUnreachableError, "no chat completion"),
    ],
)
def test_a_server_that_does_not_answer_one_prompt_is_no_generator(
    reply: Reply, error: type[JupiterError], told: str
):
    with answering(lambda *_: reply) as served, pytest.raises(error, match=told):
        generator_arguments(f"{served.url}#tiny", Fetches())


@pytest.mark.net
def test_where_a_server_fails_for_a_model_that_it_lacks_that_is_what_to_look_for():
    """As `transformers serve` answers for a name that it can't load."""
    failing = 500, b"Internal Server Error", {"content-type": "text/plain"}
    with (
        answering(lambda *_: failing) as served,
        pytest.raises(GeneratorUnreachableError, match="doesn't answer: HTTP 500") as told,
    ):
        generator_arguments(f"{served.url}#huge", Fetches())
    assert told.value.hint.endswith(
        "it may not have huge, or not be able to load it; it lists tiny"
    )


@pytest.mark.net
def test_an_address_that_lacks_its_path_is_told_as_such():
    """As FastAPI answers for a path that it doesn't know."""
    missing = 404, b'{"detail": "Not Found"}', {}
    with answering(lambda *_: missing) as served:
        served.models = []
        with pytest.raises(NotFoundError, match="HTTP 404, Not Found") as told:
            generator_arguments(f"{served.url}#tiny", Fetches())
    assert "write its address up to /v1" in told.value.hint


@pytest.mark.net
def test_a_server_that_loads_its_model_yet_is_told_as_such():
    """As llama.cpp answers until its model is loaded."""
    with (
        answering(lambda *_: trouble(503, "Loading model")) as served,
        pytest.raises(GeneratorUnreachableError, match="HTTP 503, Loading model") as told,
    ):
        generator_arguments(f"{served.url}#tiny", Fetches())
    assert "it may be loading its model" in told.value.hint


@pytest.mark.net
def test_a_server_that_is_busy_with_others_is_waited_for_and_then_taken(daemon, ctl, monkeypatch):
    monkeypatch.setattr(server_trial, "ANSWER_TIMEOUT_S", 1.0)
    monkeypatch.setattr(server_trial, "PAUSE_S", 0.4)
    is_free = threading.Event()

    def writes_for_others(_body: dict[str, Any], _number: int) -> Reply:
        is_free.wait(20)
        return answer("Hello!")

    replies: dict[str, Callable[[dict[str, Any], int], Reply]] = {
        "has too much to do": lambda *_: trouble(429, "slow down"),
        "has no time before 200 s from now": lambda *_: trouble(503, "full", Retry_After="200"),
        "hasn't answered it within 1 s": writes_for_others,
        "": lambda _, number: trouble(429, "slow down") if number == 0 else answer("Hello!"),
    }
    for told, reply in replies.items():
        is_free.clear()
        with answering(reply) as served:
            ran = ctl(*START, "--generator", f"{served.url}#tiny", "--dry-run")
            is_free.set()
        assert ran.exit_code == 0, ran.err
        assert told in ran.err
        assert ("it is busy, or loads its model; the cycle begins" in ran.err) == bool(told)


@pytest.mark.net
def test_parameters_that_a_server_wants_otherwise_do_not_keep_it_from_being_taken():
    def reply(body: dict[str, Any], _: int) -> Reply:
        if "max_tokens" in body:
            return trouble(400, "use 'max_completion_tokens' instead")
        return trouble(400, "temperature: only 1") if "temperature" in body else answer("Hello!")

    with answering(reply) as served:
        assert generator_arguments(f"{served.url}#tiny", Fetches())["generator"]["model"] == "tiny"
        assert len(served.asked) == 3


@pytest.mark.net
def test_a_server_that_wants_a_key_is_tried_by_jupiterd():
    with answering(lambda *_: trouble(401, "no key")) as served:
        found = generator_arguments(f"{served.url}#tiny", Fetches(), "BOX_API_KEY")
        assert found["generator"]["api_key_env"] == "BOX_API_KEY"
        assert served.asked == []


@pytest.mark.net
def test_a_dry_run_asks_the_server_too(daemon, ctl):
    with answering(lambda *_: trouble(404, "gone")) as served:
        ran = ctl(*START, "--generator", f"{served.url}#huge", "--dry-run")
        assert ran.exit_code == 6
        assert "has no model huge: HTTP 404, gone" in ran.err
    assert daemon.executed == []


def test_a_generator_of_which_a_domain_asks_nothing_is_an_error(daemon, ctl, tmp_path: Path):
    text = (config_folder() / "domains" / "python.yaml").read_text()
    head, _, rest = text.partition("  templates:")
    domain = tmp_path / "silent.yaml"
    domain.write_text(
        head + "  templates: []\n" + rest.partition("samples: ")[2].partition("\n")[2]
    )
    folder = folder_of(tmp_path / "mine")
    ran = ctl("cycle", "start", "--domain", str(domain), "--generator", str(folder))
    assert ran.exit_code == 2
    assert "wants no generated text: its generation.templates are empty" in ran.err
    assert daemon.executed == []


def test_a_folder_whose_weights_are_cut_off_is_told(tmp_path: Path):
    folder = folder_of(tmp_path / "mine")
    (folder / "model.safetensors").write_bytes(weights(b"\0" * 5))
    with pytest.raises(CorruptArtifactError, match="is cut off: 3 bytes are missing"):
        generator_arguments(str(folder), Fetches())
    (folder / "model.safetensors").write_bytes(b"PK" * 40)
    with pytest.raises(CorruptArtifactError, match="is cut off, or no safetensors"):
        generator_arguments(str(folder), Fetches())
    (folder / "config.json").write_text("{}")
    with pytest.raises(CorruptArtifactError, match="doesn't say what kind of model"):
        generator_arguments(str(folder), Fetches())


@pytest.mark.parametrize(
    ("text", "key", "told"),
    [
        ("http://user:password@box/v1#m", "", "mustn't hold a password"),
        ("http://box/v1#m", "PATH", "can't be named"),
        ("ab" * 32, "BOX_API_KEY", "only a server is shown a key"),
        ("http:///v1#m", "", "no server's address"),
    ],
)
def test_what_can_be_no_generator_is_refused(text: str, key: str, told: str):
    with pytest.raises(UsageError, match=told):
        generator_arguments(text, Fetches(), key)


def test_a_folder_is_taken_in_by_the_daemon_where_it_is_whole(daemon, ctl, tmp_path: Path):
    folder = folder_of(tmp_path / "mine")
    assert ctl(*START, "--generator", str(folder)).exit_code == 0
    _, arguments = daemon.executed[0]
    assert arguments["generator"] == {"name": "mine"}
    assert arguments["generator_folder"] == str(folder)
    assert arguments["generator_config"] == (folder / "config.json").read_text(), "to be checked"


def with_judge(folder: Path, judge: str) -> str:
    text = (config_folder() / "domains" / "python.yaml").read_text()
    domain = folder / "judged.yaml"
    named = f"\ngate:\n  judge: {judge}\n  judge_api_key_env: BOX_API_KEY\n"
    domain.write_text(text.replace("\ngate:\n", named))
    return str(domain)


@pytest.mark.net
def test_the_judge_that_a_domain_names_is_looked_for_as_a_generator_is(daemon, ctl, tmp_path: Path):
    with answering(lambda *_: answer("")) as served:
        domain = with_judge(tmp_path, f"{served.url}#tiny")
        ran = ctl("cycle", "start", "--domain", domain)
        assert (ran.exit_code, ran.err) == (0, "")
    _, arguments = daemon.executed[0]
    assert arguments["judge"] == {
        "name": "tiny", "url": served.url, "model": "tiny", "api_key_env": "BOX_API_KEY",
    }  # fmt: skip
    assert "generator" not in arguments
    assert ctl("cycle", "start", "--domain", domain).exit_code == 3, "its server has gone"


def test_a_judge_that_is_a_folder_is_taken_in_and_a_look_at_the_plan_needs_none(
    daemon, ctl, tmp_path: Path
):
    domain = with_judge(tmp_path, str(tmp_path / "mine"))
    assert ctl("cycle", "start", "--domain", domain).exit_code == 6
    assert (
        start_arguments(domain, 1, "1m", None, None, judge="", fetches=Fetches(), state_dir=Path())[
            "judge"
        ]
        == {}
    )
    folder = folder_of(tmp_path / "mine")
    assert ctl("cycle", "start", "--domain", domain).exit_code == 0
    _, arguments = daemon.executed[0]
    assert (arguments["judge"], arguments["judge_folder"]) == ({"name": "mine"}, str(folder))


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
def test_a_folder_with_a_missing_file_never_reaches_the_daemon(
    name: str, daemon, ctl, tmp_path: Path
):
    (folder_of(tmp_path / "mine") / name).unlink()
    ran = ctl(*START, "--generator", str(tmp_path / "mine"))
    assert ran.exit_code == 2
    assert f"is no whole model: it lacks {name}" in ran.err
    assert daemon.executed == []


def test_a_part_of_the_weights_that_is_missing_is_named(tmp_path: Path):
    index = json.dumps({"weight_map": {"a": "model-1.safetensors", "b": "model.safetensors"}})
    folder = folder_of(tmp_path / "mine", model__safetensors__index__json=index)
    with pytest.raises(UsageError, match=r"lacks model-1\.safetensors"):
        generator_arguments(str(folder), Fetches())
    (folder / "model.safetensors.index.json").write_text("broken")
    with pytest.raises(UsageError, match="that can be read"):
        generator_arguments(str(folder), Fetches())


def test_a_folder_that_is_not_there_is_told(tmp_path: Path):
    with pytest.raises(NotFoundError, match="is no folder on this machine"):
        generator_arguments(str(tmp_path / "nothing"), Fetches())


@pytest.mark.net
def test_a_key_that_is_refused_is_told(monkeypatch: pytest.MonkeyPatch):
    import httpx

    with answering(lambda *_: answer("")) as served:
        refused = httpx.Response(401)
        monkeypatch.setattr(httpx, "get", lambda *_, **__: refused)
        with pytest.raises(GeneratorRefusedError, match="asks for a key"):
            generator_arguments(f"{served.url}#tiny", Fetches())


def test_an_artifact_is_named_by_its_id():
    assert generator_arguments("ab" * 32, Fetches()) == {
        "generator": {"name": "abababab", "artifact": "ab" * 32}
    }
    assert generator_arguments("", Fetches()) == {}


def test_an_adapter_alone_is_no_generator(tmp_path: Path):
    folder = folder_of(tmp_path / "adapter", adapter_config__json="{}")
    with pytest.raises(UsageError, match="holds a LoRA adapter, not a model"):
        generator_arguments(str(folder), Fetches())
