"""What launchctl is told, and how what it says is read; as `launchctl print` writes it."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from jupiterd.errors import ServiceError
from jupiterd.service.asked import Scope
from jupiterd.service.launchd import Launchd
from jupiterd.service.seen import document_of
from jupiterd.service.steps import Ask, Outlast, Step, carry_out
from tests.support.service.asked import ON_A_MAC

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


def launchctl(printed: str) -> Ask:
    def answer(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        assert tuple(command) == ("launchctl", "print", TARGET)
        return subprocess.CompletedProcess(command, 0 if printed else 113, printed, "")

    return answer


def daemon(folder: Path, printed: str = "") -> Launchd:
    return Launchd(Scope.SYSTEM, launchctl(printed), folder)


def told(steps: Sequence[Step]) -> list[str]:
    return [step.told() for step in steps]


def test_what_runs_is_ended_for_certain_before_it_is_started_as_asked(tmp_path: Path) -> None:
    keeper = daemon(tmp_path)
    assert told(keeper.install(ON_A_MAC, keeper.seen())) == [
        "make the folder /Users/ada/Library/Application Support/Jupiter of ada",
        f"run launchctl bootout {TARGET}",
        f"wait until launchctl print {TARGET} finds nothing any more",
        f"write {tmp_path}/jupiter.jupiterd.plist",
        f"run launchctl enable {TARGET}",
        f"run launchctl bootstrap system {tmp_path}/jupiter.jupiterd.plist",
    ]


def test_what_runs_as_asked_goes_on(tmp_path: Path) -> None:
    keeper = daemon(tmp_path, PRINTED)
    keeper.file.write_bytes(keeper.text(ON_A_MAC))
    again = keeper.install(ON_A_MAC, keeper.seen())
    assert not [line for line in told(again) if line.startswith("run")]
    upgraded = keeper.install(ON_A_MAC, keeper.seen(), is_outdated=True)
    assert f"run launchctl bootout {TARGET}" in told(upgraded)


def test_uninstalling_waits_for_its_end(tmp_path: Path) -> None:
    assert told(daemon(tmp_path).uninstall()) == [
        f"run launchctl bootout {TARGET}",
        f"wait until launchctl print {TARGET} finds nothing any more",
        f"remove {tmp_path}/jupiter.jupiterd.plist",
    ]


def test_what_launchctl_prints_is_read(tmp_path: Path) -> None:
    keeper = daemon(tmp_path, PRINTED)
    keeper.file.write_bytes(keeper.text(ON_A_MAC))
    seen = keeper.seen()
    document = document_of(seen, None)
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
    assert keeper.log_command(9, follows=False)[-1].endswith("Jupiter/logs/jupiterd.log")


def test_a_job_that_is_not_loaded_does_not_run(tmp_path: Path) -> None:
    seen = daemon(tmp_path).seen()
    assert (seen.is_installed, seen.is_enabled, seen.is_running) == (False, False, False)


def test_an_agent_is_told_what_it_may_lack_and_a_daemon_lacks_nothing(tmp_path: Path) -> None:
    assert "local network" in Launchd(Scope.USER).note(ON_A_MAC)
    assert daemon(tmp_path).note(ON_A_MAC) == ""


def test_what_never_ends_is_not_waited_for_for_ever() -> None:
    carry_out([Outlast(("false",), 1.0)])
    with pytest.raises(ServiceError, match="didn't end within"):
        carry_out([Outlast(("true",), 0.2)])
