"""`jupiterd service`, on a machine whose systemctl only records its commands."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jupiterd.daemon.runtime.state_dir import StateDir
from jupiterd.errors import (
    ConflictError,
    InvalidSettingError,
    JupiterError,
    NotFoundError,
    RefusedError,
    ServiceError,
    UsageError,
)
from jupiterd.service.preconditions import require_free
from jupiterd.service.service_status import ServiceStatus
from tests.support.service.requests import OF_THE_MACHINE
from tests.unit.service.conftest import Machine

USER = "systemctl --user "
WHOLE = [f"{USER}daemon-reload", f"{USER}enable jupiterd.service", f"{USER}start jupiterd.service"]


def error_of(machine: Machine, *words: str) -> JupiterError:
    ran = machine.service(*words)
    assert isinstance(ran.exception, JupiterError), ran.output
    return ran.exception


def test_installing_writes_the_unit_enables_and_starts_it(machine: Machine) -> None:
    ran = machine.service("install", "--user", "--peer", "10.0.0.7", "--peer", "ada", "--closed")
    assert ran.exception is None, ran.output
    assert machine.commands() == WHOLE
    program = machine.folder / "bin" / "jupiterd"
    assert (
        f"\nExecStart={program} --peer 10.0.0.7 --peer ada --closed\n" in machine.unit.read_text()
    )
    assert "loginctl enable-linger" in ran.output


def test_options_may_stand_before_the_word_service(machine: Machine) -> None:
    before = machine._runs(
        "--name", "ada", "service", "install", "--user", "--print", "--port", "1"
    )
    after = machine.service("install", "--user", "--print", "--port", "1", "--name", "ada")
    assert before.exception is after.exception is None
    assert sorted(before.output.split()) == sorted(after.output.split())
    assert "--name ada" in after.output


def test_no_port_is_an_option_too(machine: Machine) -> None:
    assert " --port 0\n" in machine.service("install", "--user", "--print", "--port", "0").output


def test_installing_again_changes_nothing_and_another_option_starts_it_anew(
    machine: Machine,
) -> None:
    machine.service("install", "--user")
    machine.starts()
    machine.commands()
    machine.service("install", "--user")
    assert machine.commands() == WHOLE[1:]
    machine.service("install", "--user", "--port", "4711")
    assert machine.commands() == [*WHOLE[:2], f"{USER}restart jupiterd.service"]


def test_a_file_s_whole_path_is_passed_on(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(machine.folder)
    Path("jupiter.yaml").write_text("port: 4711\n")
    ran = machine.service(
        "install", "--user", "--print", "--config", "jupiter.yaml", "--state-dir", "here"
    )
    assert f"--config {machine.folder}/jupiter.yaml" in ran.output
    assert f"Environment=JUPITER_STATE_DIR={machine.folder}/here\n" in ran.output


@pytest.mark.parametrize("words", [("--print",), ("--dry-run",)])
def test_only_looking_changes_nothing(machine: Machine, words: tuple[str, ...]) -> None:
    ran = machine.service("install", "--user", *words)
    assert ran.exception is None, ran.output
    assert not machine.unit.exists()
    assert machine.commands() == []


def test_a_dry_run_says_every_step(machine: Machine) -> None:
    ran = machine.service("install", "--user", "--dry-run")
    assert ran.output.splitlines() == [
        f"would write {machine.unit}",
        *(f"would run {line}" for line in WHOLE),
    ]


def test_a_setting_that_is_wrong_is_refused_at_once(machine: Machine) -> None:
    assert isinstance(error_of(machine, "install", "--user", "--port", "-1"), InvalidSettingError)
    assert not machine.unit.exists()


def test_no_token_is_written_where_everybody_can_read_it(machine: Machine) -> None:
    error = error_of(machine, "install", "--user", "--join", "-")
    assert isinstance(error, UsageError)
    assert error.hint.startswith("start jupiterd --join - once by hand")


def test_a_daemon_that_runs_by_hand_is_in_the_way(machine: Machine) -> None:
    folder = StateDir.open(machine.folder / "states" / "jupiter")
    try:
        error = error_of(machine, "install", "--user")
    finally:
        folder.close()
    assert isinstance(error, ConflictError)
    assert str(os.getpid()) in error.message
    assert not machine.unit.exists()


def test_a_service_that_does_not_start_is_told_of(machine: Machine) -> None:
    machine.breaks()
    error = error_of(machine, "install", "--user")
    assert isinstance(error, ServiceError)
    assert error.message.endswith("Job failed")
    assert "jupiterd service logs" in error.hint


def test_without_systemd_one_line_says_so(machine: Machine) -> None:
    (machine.folder / "run" / "systemd" / "private").unlink()
    error = error_of(machine, "install", "--user")
    assert isinstance(error, ServiceError)
    assert "jupiterd" in error.hint


def test_only_root_installs_for_the_machine_and_the_hint_is_the_whole_command(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setattr("jupiterd.service.systemd.Systemd.require", lambda _: None)
    error = error_of(machine, "install", "--system", "--name", "two words")
    program = machine.folder / "bin" / "jupiterd"
    assert isinstance(error, RefusedError)
    assert error.hint == f"sudo {program} service install --system --name 'two words'"


@pytest.mark.parametrize("closed", ["program", "python"])
def test_the_machines_user_must_reach_the_program_and_its_python(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, closed: str
) -> None:
    machine.folder.chmod(0o755)
    for name in ("program", "python"):
        (machine.folder / name).mkdir(mode=0o700 if name == closed else 0o755)
        (machine.folder / name / name).touch(mode=0o755)
    monkeypatch.setattr("sys.executable", str(machine.folder / "python" / "python"))
    request = replace(OF_THE_MACHINE, program=(str(machine.folder / "program" / "program"),))
    current = ServiceStatus(manager="systemd", scope=request.scope, file=machine.unit)
    with pytest.raises(RefusedError, match=f"{closed} is closed to it"):
        require_free(request, current)


def test_uninstalling_takes_the_unit_away_and_leaves_the_state(machine: Machine) -> None:
    machine.service("install", "--user")
    machine.commands()
    ran = machine.service("uninstall")
    assert ran.exception is None
    assert machine.commands() == [
        f"{USER}disable --now jupiterd.service",
        f"{USER}daemon-reload",
    ]
    assert not machine.unit.exists()
    assert f"its state stays in {machine.folder}/states/jupiter" in ran.output
    assert "no service" in machine.service("uninstall").output
    assert machine.commands() == []


def test_status_says_since_when_it_runs_and_what_it_does(machine: Machine) -> None:
    machine.service("install", "--user")
    machine.starts()
    ran = machine.service("status", "-o", "json")
    service = json.loads(ran.output)["service"]
    assert ran.exit_code == 0
    assert service["running_s"] > 0
    assert service["since"].startswith("20")
    assert {key: service[key] for key in ("manager", "scope", "file", "installed", "enabled")} == {
        "manager": "systemd",
        "scope": "user",
        "file": str(machine.unit),
        "installed": True,
        "enabled": True,
    }
    assert (service["pid"], service["restarts"], service["told"]) == (
        4711,
        2,
        "jupiter, 3 of 3 nodes, leads, hybrid",
    )
    shown = machine.service("status").output
    assert "jupiter, 3 of 3 nodes, leads, hybrid" in shown
    assert "active (running), process 4711" in shown


def test_status_ends_with_8_where_it_does_not_run_and_6_where_there_is_none(
    machine: Machine,
) -> None:
    assert machine.service("status", "--user").exit_code == 6
    machine.service("install", "--user")
    assert machine.service("status").exit_code == 8


def test_logs_come_from_the_journal_where_it_may_be_read_else_from_the_state_folder(
    machine: Machine,
) -> None:
    assert isinstance(error_of(machine, "logs", "--user"), NotFoundError)
    machine.service("install", "--user")
    log = machine.folder / "states" / "jupiter" / "logs" / "jupiterd.log"
    words = ("logs", "--print", "-f", "-n", "7")
    assert machine.service(*words).output == f"tail -n 7 -F {log}\n"
    machine.keeps_journal()
    assert (
        machine.service(*words).output
        == "journalctl --user-unit=jupiterd.service --lines=7 --follow\n"
    )


def test_after_an_upgrade_the_new_version_is_started(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def status(_: str, folder: Path) -> dict[str, Any]:
        assert folder == machine.folder / "states" / "jupiter"
        hardware = {"versions": {"jupiterd": "0.0.1"}}
        return {"node": {"id": "a"}, "nodes": [{"id": "b"}, {"id": "a", "hardware": hardware}]}

    machine.service("install", "--user")
    machine.starts()
    machine.commands()
    monkeypatch.setattr("jupiterd.service.preconditions.answer_to", status)
    machine.service("install", "--user")
    assert machine.commands() == [WHOLE[1], f"{USER}restart jupiterd.service"]
