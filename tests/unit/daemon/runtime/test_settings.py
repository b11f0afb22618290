"""Where a setting comes from."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from jupiterd.daemon.runtime.address_text import DEFAULT_PORT, parse_address
from jupiterd.daemon.runtime.settings import Settings, load_settings
from jupiterd.errors import InvalidSettingError
from jupiterd.ports import Address


def config(folder: Path, text: str) -> Path:
    path = folder / "jupiter.yaml"
    path.write_text(text)
    return path


def test_a_flag_beats_the_environment_which_beats_the_file_which_beats_the_default(
    tmp_path: Path,
) -> None:
    file = config(tmp_path, "name: from-file\nport: 1000\nlocal: true\n")
    settings, sources = load_settings(
        {"name": "from-flag"}, {"JUPITER_NAME": "from-env", "JUPITER_PORT": "2000"}, file
    )
    assert (settings.name, settings.port, settings.local) == ("from-flag", 2000, True)
    assert settings.peer == ()
    assert sources == dict.fromkeys((each.name for each in fields(Settings)), "default") | {
        "name": "flag",
        "port": "environment",
        "local": str(file),
    }


def test_without_anything_every_setting_is_a_default() -> None:
    settings, sources = load_settings({}, {}, None)
    assert settings.port == DEFAULT_PORT
    assert set(sources.values()) == {"default"}


def test_several_daemons_on_one_machine_have_names_of_their_own(tmp_path: Path) -> None:
    def name(**flags: Any) -> str:
        return load_settings(flags, {}, None)[0].name

    host = name()
    assert name(local=True) == name(state_dir=tmp_path / "d1") == host
    assert name(local=True, state_dir=tmp_path / "d1") == f"{host}-d1"[:64]
    assert name(local=True, state_dir=tmp_path / "d1", name="desk") == "desk"
    assert len(name(local=True, state_dir=tmp_path / ("d" * 90))) == 64


@pytest.mark.parametrize("told", ["d1", "./d1", "~/d1"])
def test_a_folder_is_meant_from_where_the_daemon_was_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    settings, _ = load_settings({"state_dir": told}, {}, None)
    assert settings.state_dir == tmp_path / "d1"


def test_a_folder_of_a_user_whom_nobody_knows_is_a_mistake() -> None:
    for told in ({"state_dir": "~nobody99/x"}, {"readable_folders": "~nobody99/x"}):
        with pytest.raises(InvalidSettingError, match="nobody is called so here"):
            load_settings(told, {}, None)


def test_the_folder_of_the_start_may_be_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    _, sources = load_settings({"state_dir": str(tmp_path / "d1")}, {}, None)
    assert sources["cluster"] == "default"


def test_lists_are_written_with_commas_in_the_environment() -> None:
    settings, _ = load_settings({}, {"JUPITER_PEER": "one, two:99", "JUPITER_INTERFACE": ""}, None)
    assert settings.peer_addresses() == (Address("one", DEFAULT_PORT), Address("two", 99))
    assert settings.interface == ()


@pytest.mark.parametrize(
    ("text", "devices"),
    [("[cpu, cpu]", ("cpu", "cpu")), ("[0, 1]", ("0", "1")), ("1", ("1",)), ("cpu", ("cpu",))],
)
def test_devices_are_words_or_numbers(tmp_path: Path, text: str, devices: tuple[str, ...]) -> None:
    settings, _ = load_settings({}, {}, config(tmp_path, f"devices: {text}\n"))
    assert settings.devices == devices


@pytest.mark.parametrize(
    ("told", "address"),
    [
        ("9474", Address("127.0.0.1", 9474)),
        ("0", Address("127.0.0.1", 0)),
        ("0.0.0.0:9474", Address("0.0.0.0", 9474)),
        ("[::1]:9474", Address("::1", 9474)),
        ("attic:80", Address("attic", 80)),
        ("", None),
    ],
)
def test_metrics_are_served_on_loopback_unless_an_address_is_named(
    tmp_path: Path, told: str, address: Address | None
) -> None:
    assert Settings().metrics is None
    assert load_settings({"metrics": told}, {}, None)[0].metrics == address
    assert load_settings({}, {"JUPITER_METRICS": told}, None)[0].metrics == address
    file = config(tmp_path, f"metrics: {told if told.isdecimal() else repr(told)}\n")
    assert load_settings({}, {}, file)[0].metrics == address


@pytest.mark.parametrize("told", ["70000", "attic", "::1", "[::1]", ":9474", "a:b:1", "-1", "a:"])
def test_metrics_need_a_port(told: str) -> None:
    with pytest.raises(InvalidSettingError, match="metrics"):
        load_settings({"metrics": told}, {}, None)


@pytest.mark.parametrize(
    ("flags", "environment", "text", "source"),
    [
        ({"port": 70000}, {}, "", "port (from flag)"),
        ({}, {"JUPITER_PORT": "many"}, "", "port (from environment)"),
        ({}, {"JUPITER_PEER": "host:0"}, "", "peer (from environment)"),
        ({"peer": ("foo bar",)}, {}, "", "peer (from flag)"),
        ({"peer": ("http://host/",)}, {}, "", "peer (from flag)"),
        ({"scope": "we ird/"}, {}, "", "scope (from flag)"),
        ({}, {}, "lora: width=4\n", "FILE:1: lora: width=4"),
        ({"devices": "gpu"}, {}, "", "devices (from flag): expected cpu or numbers of CUDA"),
        ({}, {"JUPITER_DEVICES": "cpu,-1"}, "", "devices (from environment)"),
        ({}, {}, "devices: [true]\n", "FILE:1: devices"),
        ({}, {}, "name: ''\n", "FILE:1: name: expected text"),
        ({}, {}, "colour: red\n", "FILE:1: colour: expected one of"),
    ],
)
def test_an_error_names_the_setting_and_its_source(
    tmp_path: Path, flags: dict[str, Any], environment: dict[str, str], text: str, source: str
) -> None:
    file = config(tmp_path, text)
    with pytest.raises(InvalidSettingError) as error:
        load_settings(flags, environment, file)
    assert error.value.message.startswith(source.replace("FILE", str(file)))
    assert "\n" not in error.value.message


def test_a_wrong_flag_leads_to_the_help_and_a_wrong_line_to_the_file_of_settings(
    tmp_path: Path,
) -> None:
    with pytest.raises(InvalidSettingError) as of_flag:
        load_settings({"port": 70000}, {}, None)
    with pytest.raises(InvalidSettingError) as of_file:
        load_settings({}, {}, config(tmp_path, "port: 70000\n"))
    assert of_flag.value.hint == "jupiterd --help lists every option"
    assert of_file.value.hint == InvalidSettingError.default_hint


@pytest.mark.parametrize("text", ["- a list\n", "name: [\n", "just words\n"])
def test_a_file_that_is_no_list_of_settings_is_named(tmp_path: Path, text: str) -> None:
    file = config(tmp_path, text)
    with pytest.raises(InvalidSettingError, match=str(file)) as error:
        load_settings({}, {}, file)
    assert "\n" not in error.value.message


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettingError, match=r"missing\.yaml can't be read"):
        load_settings({}, {}, tmp_path / "missing.yaml")


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("host", Address("host", DEFAULT_PORT)),
        ("10.0.0.1:5", Address("10.0.0.1", 5)),
        ("fe80::1", Address("fe80::1", DEFAULT_PORT)),
        ("[fe80::1]:5", Address("fe80::1", 5)),
        ("[fe80::1]", Address("fe80::1", DEFAULT_PORT)),
        ("[fe80::1%eth0]:5", Address("fe80::1%eth0", 5)),
        ("FE80:0::0001%eth0", Address("fe80::1%eth0", DEFAULT_PORT)),
    ],
)
def test_addresses_may_be_written_as_people_write_them(text: str, address: Address) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize(
    "text", ["", ":5", "host:0", "host:65536", "host:x", "[]:5", "a:b:c", "[fe80::1%]:5"]
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not HOST, HOST:PORT or"):
        parse_address(text)


def test_a_mistyped_join_token_is_refused_with_its_source(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("jupiter-abc\n")
    wrong = r"join \(from flag\): .*isn't a join token"
    with pytest.raises(InvalidSettingError, match=wrong) as refused:
        load_settings({"join": str(tmp_path / "token")}, {}, None)
    assert "jupiterctl cluster token" in refused.value.hint
