from pathlib import Path

import pytest

from jupiterd import locations
from jupiterd.errors import NotFoundError, UsageError
from jupiterd.locations import config_folder, default_state_dir_of, directed, state_dir

HOME = Path("/home/ada")


@pytest.mark.parametrize(
    ("system", "environment", "expected"),
    [
        ("linux", {}, "/home/ada/.local/state/jupiter"),
        ("linux", {"XDG_STATE_HOME": "/var/state"}, "/var/state/jupiter"),
        ("linux", {"XDG_STATE_HOME": "not/absolute"}, "/home/ada/.local/state/jupiter"),
        ("darwin", {"XDG_STATE_HOME": "/x"}, "/home/ada/Library/Application Support/Jupiter"),
    ],
)
def test_the_default_follows_the_operating_system(system, environment, expected):
    assert str(default_state_dir_of(system, HOME, environment)) == expected


def test_a_flag_wins_over_the_environment_and_that_over_the_default(monkeypatch, tmp_path):
    monkeypatch.delenv("JUPITER_STATE_DIR", raising=False)
    monkeypatch.setenv("HOME", str(HOME))
    assert HOME in state_dir().parents
    monkeypatch.setenv("JUPITER_STATE_DIR", str(tmp_path / "named"))
    assert state_dir() == tmp_path / "named"
    assert state_dir("~/flag") == HOME / "flag"


def test_an_empty_name_is_refused_wherever_it_comes_from(monkeypatch):
    with pytest.raises(UsageError, match="--state-dir is empty"):
        state_dir("")
    monkeypatch.setenv("JUPITER_STATE_DIR", "")
    with pytest.raises(UsageError, match="JUPITER_STATE_DIR is empty"):
        state_dir()


def test_a_relative_folder_becomes_absolute(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert state_dir("here") == tmp_path / "here"


def test_what_is_missing_is_installed_for_the_python_that_runs_this(monkeypatch):
    monkeypatch.setattr("sys.executable", "/home/ada/my place/bin/python")
    told = locations.pip_install("--force-reinstall", "jupiterd[cpu]")
    assert told == (
        "'/home/ada/my place/bin/python' -m pip install --force-reinstall 'jupiterd[cpu]'"
    )


def test_the_config_folder_has_the_domains():
    assert (config_folder() / "domains" / "python.yaml").is_file()


def test_a_lost_config_folder_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(locations, "_PACKAGE", tmp_path / "site" / "jupiterd")
    with pytest.raises(NotFoundError, match="config folder is missing"):
        config_folder()


def test_commands_name_the_folder_that_a_flag_named_unless_they_are_for_another_machine():
    said = "try jupiterctl status, or on studio: jupiterctl doctor"
    assert directed(said, None) == said
    assert directed(said, Path("/my state")) == (
        "try jupiterctl --state-dir '/my state' status, or on studio: jupiterctl doctor"
    )


def test_what_goes_on_goes_on_at_the_folder_that_a_flag_named():
    said = "go on with it: jupiterctl train start --resume facade00"
    assert directed(said, Path("/mine")) == (
        "go on with it: jupiterctl --state-dir /mine train start --resume facade00"
    )
