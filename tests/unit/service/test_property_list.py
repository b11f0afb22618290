"""The property lists, held against what launchd.plist(5) knows."""

import plistlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jupiterd.service.property_list import property_list, state_dir_in
from jupiterd.service.service_request import Scope, ServiceRequest
from tests.support.service.requests import ON_A_MAC

AGENT = replace(ON_A_MAC, scope=Scope.USER)
ODD = replace(ON_A_MAC, arguments=("--name", "<ada> & co"), state_dir=Path("/Volumes/Two & <more>"))


def _is(kind: type) -> Callable[[Any], bool]:
    return lambda value: type(value) is kind


def _is_path(value: object) -> bool:
    return isinstance(value, str) and value.startswith("/")


def _are_words(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(word, str) for word in value)


def _are_texts(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(text, str) for text in value.values())


KNOWN: dict[str, Callable[[Any], bool]] = {
    "Label": _is(str),
    "UserName": _is(str),
    "ProgramArguments": _are_words,
    "EnvironmentVariables": _are_texts,
    "RunAtLoad": _is(bool),
    "KeepAlive": lambda value: value == {"SuccessfulExit": False},
    "ThrottleInterval": _is(int),
    "ProcessType": lambda value: value in ("Background", "Standard", "Adaptive", "Interactive"),
    "ExitTimeOut": _is(int),
    "Umask": _is(int),
    "StandardOutPath": _is_path,
    "StandardErrorPath": _is_path,
}
"""Key -> what launchd takes for it."""


@pytest.mark.parametrize("service", [ON_A_MAC, AGENT, ODD], ids=["daemon", "agent", "odd"])
def test_launchd_knows_every_key_and_its_kind(service: ServiceRequest) -> None:
    read = plistlib.loads(property_list(service), fmt=plistlib.FMT_XML)
    assert {
        key for key, value in read.items() if key not in KNOWN or not KNOWN[key](value)
    } == set()
    assert read["Label"] == "jupiter.jupiterd"
    assert Path(read["ProgramArguments"][0]).is_absolute()
    assert tuple(read["ProgramArguments"][2:]) == service.arguments


def test_a_daemon_runs_as_its_user_and_an_agent_as_whoever_is_logged_in() -> None:
    assert plistlib.loads(property_list(ON_A_MAC))["UserName"] == "ada"
    assert "UserName" not in plistlib.loads(property_list(AGENT))


def test_jupiterctl_finds_the_state_folder_unasked() -> None:
    usual = Path("/Users/ada/Library/Application Support/Jupiter")
    assert state_dir_in(property_list(ON_A_MAC)) == usual
    assert state_dir_in(property_list(ODD)) == ODD.state_dir


@pytest.mark.parametrize("content", [b"", b"no list", b"bplist00", plistlib.dumps({"Label": "x"})])
def test_what_is_no_list_of_ours_names_no_folder(content: bytes) -> None:
    assert state_dir_in(content) is None
