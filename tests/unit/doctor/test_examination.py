"""The whole examination: nothing hides anything else, with a daemon or without one."""

import asyncio
import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from jupiterd.cluster.text.finding_lines import finding_lines, summary
from jupiterd.daemon.app.main import cli
from jupiterd.doctor import engines, examination, system_command
from jupiterd.doctor.examination import CHECKS, examine
from jupiterd.doctor.finding import Finding, Status, doctor_document, fail, ok
from jupiterd.doctor.system_command import CommandOutput
from tests.support.daemon.shown import shown
from tests.support.daemon.two_nodes import serving
from tests.support.doctor.machines import machine

QUICK = {
    name: CHECKS[name] for name in ("daemon", "disk", "clock", "wsl", "local-network", "versions")
}


def test_a_check_that_cannot_look_does_not_hide_the_others():
    def broken(_: object) -> Finding:
        raise OSError("no such device")

    found = examine(machine(), {"first": broken, "second": lambda _: ok("second", "fine")})
    assert [(f.check, f.status) for f in found] == [("first", Status.WARN), ("second", Status.OK)]
    assert "OSError: no such device" in found[0].why


def test_the_document_counts_what_was_found():
    document = doctor_document([ok("disk", "fine"), fail("ports", "taken", "choose another")])
    assert document["healthy"] is False
    assert document["counts"] == {"ok": 1, "warn": 0, "fail": 1, "not here": 0}
    assert summary(document) == "1 fails"


def test_lines_fit_a_terminal_and_fixes_are_never_broken():
    long = Finding("firewall", Status.WARN, "word " * 40, "sudo " + "x" * 90)
    lines = finding_lines(doctor_document([long, Finding("wsl", Status.NOT_HERE, "")]))
    assert max(len(line) for line in lines if "fix:" not in line) <= 80
    assert f"{' ' * 22}fix: sudo {'x' * 90}" in lines
    assert lines[-1] == "1 to look at"


def test_what_another_machine_tells_cannot_steer_the_terminal():
    steering = Finding("ports", Status.WARN, "beta\x1b[2J is gone", "wake beta\x1b[2J")
    assert "\x1b" not in "".join(finding_lines(doctor_document([steering])))


def test_a_command_that_is_not_there_is_no_answer():
    assert system_command.run_command("jupiter-has-no-such-command").exit_code is None
    assert system_command.run_command("sh", "-c", "echo yes; exit 3") == CommandOutput(3, "yes\n")


@pytest.fixture
def quick(monkeypatch):
    """Leave out the checks that take seconds."""
    monkeypatch.setattr(examination, "CHECKS", QUICK)


async def test_a_running_daemon_examines_its_own_machine(tmp_path: Path, quick: None) -> None:
    async with serving(tmp_path, "one") as one, asyncio.timeout(20):
        document = await shown(one, "doctor")
    assert document["findings"][0]["check"] == "daemon"
    assert document["findings"][0]["status"] == "ok"
    json.dumps(document)


@pytest.mark.parametrize("form", ["json", "table"])
def test_jupiterd_examines_without_one(tmp_path: Path, quick: None, form: str) -> None:
    state_dir = tmp_path / "state"
    ran = CliRunner().invoke(cli, ["--state-dir", str(state_dir), "doctor", "-o", form])
    assert ran.exit_code == 0, ran.output
    told = ran.output.replace(str(state_dir), "/state")
    assert "no jupiterd answers on /state/control.sock" in " ".join(told.split())
    if form == "json":
        assert json.loads(ran.output)["counts"]["fail"] == 0
    else:
        assert re.search(r"^not here +(wsl|local-network)", told, re.MULTILINE)


def test_where_something_fails_the_exit_status_is_8(tmp_path: Path, monkeypatch) -> None:
    broken = {"ports": lambda _: fail("ports", "another program has it", "choose another one")}
    monkeypatch.setattr(examination, "CHECKS", broken)
    ran = CliRunner().invoke(cli, ["--state-dir", str(tmp_path), "doctor"])
    assert ran.exit_code == 8
    assert ran.output == (
        "fail     ports        another program has it\n"
        "                      fix: choose another one\n"
        "\n"
        "1 fails\n"
    )


def test_all_that_was_promised_is_looked_at():
    promised = {"multicast", "firewall", "local-network", "wsl", "clock", "disk", "ports"}
    assert promised | {"versions", "links", "nvidia", "env", "engines", "daemon"} == set(CHECKS)
    assert {engines.TORCH, engines.NCCL, engines.MLX} == {"torch", "nccl", "mlx"}
