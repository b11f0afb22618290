"""What launchctl is told, and how what it says is read; as `launchctl print` writes it."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from jupiterd.errors import ServiceError
from jupiterd.service.launchd import Launchd
from jupiterd.service.service_request import Scope
from jupiterd.service.service_status import status_document
from jupiterd.service.steps import RunProgram, Step, WaitUntilGone, carry_out
from tests.support.service.requests import ON_A_MAC

TARGET = "system/jupiter.jupiterd"
PRINTED = f"""{TARGET} = {{
	active count = 1
	path = /Library/LaunchDaemons/jupiter.jupiterd.plist
	state = running
	program = /Users/ada/.local/bin/jupiterd
	runs = 3
	pid = {os.getpid()}
	last exit code = 1
}}
"""


def launchctl(printed: str) -> RunProgram:
    def answer(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        assert tuple(command) == ("launchctl", "print", TARGET)
        return subprocess.CompletedProcess(command, 0 if printed else 113, printed, "")

    return answer


def daemon(folder: Path, printed: str = "") -> Launchd:
    return Launchd(Scope.SYSTEM, launchctl(printed), folder)


def descriptions(steps: Sequence[Step]) -> list[str]:
    return [step.description() for step in steps]


def test_what_runs_is_ended_for_certain_before_it_is_started_as_asked(tmp_path: Path) -> None:
    init_system = daemon(tmp_path)
    assert descriptions(init_system.install(ON_A_MAC, init_system.status())) == [
        "make the folder /Users/ada/Library/Application Support/Jupiter of ada",
        f"run launchctl bootout {TARGET}",
        f"wait until launchctl print {TARGET} finds nothing any more",
        f"write {tmp_path}/jupiter.jupiterd.plist",
        f"run launchctl enable {TARGET}",
        f"run launchctl bootstrap system {tmp_path}/jupiter.jupiterd.plist",
    ]


def test_what_runs_as_asked_goes_on(tmp_path: Path) -> None:
    init_system = daemon(tmp_path, PRINTED)
    init_system.file.write_bytes(init_system.text(ON_A_MAC))
    again = init_system.install(ON_A_MAC, init_system.status())
    assert not [line for line in descriptions(again) if line.startswith("run")]
    upgraded = init_system.install(ON_A_MAC, init_system.status(), is_outdated=True)
    assert f"run launchctl bootout {TARGET}" in descriptions(upgraded)


def test_uninstalling_waits_for_its_end(tmp_path: Path) -> None:
    assert descriptions(daemon(tmp_path).uninstall()) == [
        f"run launchctl bootout {TARGET}",
        f"wait until launchctl print {TARGET} finds nothing any more",
        f"remove {tmp_path}/jupiter.jupiterd.plist",
    ]


def test_what_launchctl_prints_is_read(tmp_path: Path) -> None:
    init_system = daemon(tmp_path, PRINTED)
    init_system.file.write_bytes(init_system.text(ON_A_MAC))
    current = init_system.status()
    document = status_document(current, None)
    wanted = {
        "manager": "launchd",
        "scope": "system",
        "installed": True,
        "enabled": True,
        "running": True,
        "state": "running",
        "pid": os.getpid(),
        "restarts": 2,
        "state_dir": "/Users/ada/Library/Application Support/Jupiter",
    }
    assert {key: document[key] for key in wanted} == wanted
    assert document["running_s"] > 0
    assert init_system.log_command(9, follows=False)[-1].endswith("Jupiter/logs/jupiterd.log")


def test_a_job_that_is_not_loaded_does_not_run(tmp_path: Path) -> None:
    current = daemon(tmp_path).status()
    assert (current.is_installed, current.is_enabled, current.is_running) == (False, False, False)


def test_an_agent_is_told_what_it_may_lack_and_a_daemon_lacks_nothing(tmp_path: Path) -> None:
    assert "local network" in Launchd(Scope.USER).note(ON_A_MAC)
    assert daemon(tmp_path).note(ON_A_MAC) == ""


def test_what_never_ends_is_not_waited_for_for_ever() -> None:
    carry_out([WaitUntilGone(("false",), 1.0)])
    with pytest.raises(ServiceError, match="didn't end within"):
        carry_out([WaitUntilGone(("true",), 0.2)])
