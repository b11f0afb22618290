"""`jupiterctl doctor`, with a daemon and without one."""

import json
import subprocess

import pytest

from jupiterd.ctl.diagnose import doctor
from jupiterd.errors import NotFoundError


def finding(check: str, status: str, why: str, fix: str = "") -> dict[str, str]:
    return {"check": check, "status": status, "why": why, "fix": fix}


FINDINGS = [
    finding("daemon", "ok", "jupiterd runs with /home/ada/.local/state/jupiter"),
    finding(
        "firewall",
        "fail",
        "the firewall drops TCP port 47470 (jupiterd), UDP port 5353 (multicast DNS)",
        "sudo nft insert rule inet filter input ip saddr 192.168.1.0/24 accept",
    ),
    finding("clock", "warn", "nobody keeps this clock right", "sudo timedatectl set-ntp true"),
    finding("wsl", "not here", "this isn't WSL"),
    finding("nvidia", "not here", "there is no NVIDIA GPU"),
]
DOCUMENT = {
    "schema": "jupiter/v1",
    "healthy": False,
    "counts": {"ok": 1, "warn": 1, "fail": 1, "not here": 2},
    "findings": FINDINGS,
}


def test_what_the_daemon_finds_is_shown_and_the_status_says_that_something_fails(
    daemon, ctl, golden
):
    daemon.documents["doctor"] = DOCUMENT
    ran = ctl("doctor")
    assert (ran.exit_code, ran.err) == (8, "")
    golden("doctor.txt", ran.out)


def test_scripts_get_the_document(daemon, ctl, golden):
    daemon.documents["doctor"] = DOCUMENT | {"healthy": True}
    ran = ctl("doctor", "-o", "json")
    assert ran.exit_code == 0
    golden("doctor.json", ran.out)


@pytest.fixture
def without_daemon(monkeypatch):
    """Let `jupiterd doctor` find nothing wrong; note how it was started."""
    started: list[list[str]] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        started.append(command)
        return subprocess.CompletedProcess(command, 0, json.dumps(DOCUMENT | {"healthy": True}), "")

    monkeypatch.setattr(doctor.subprocess, "run", run)
    return started


def test_without_a_daemon_the_same_checks_are_made_in_a_process_of_their_own(
    ctl, state_dir, without_daemon
):
    ran = ctl("doctor", "-o", "jsonl")
    assert ran.exit_code == 0
    assert json.loads(ran.out)["healthy"] is True
    assert ran.err.startswith("jupiterctl: no jupiterd answers on ")
    (command,) = without_daemon
    assert command[-5:] == ["--state-dir", str(state_dir), "doctor", "-o", "json"]


def test_an_older_daemon_is_not_asked_twice(older_daemon, ctl, without_daemon):
    older_daemon.failure = NotFoundError("there is no document called doctor")
    ran = ctl("doctor")
    assert ran.exit_code == 0
    assert "older than this" in ran.err


def test_an_answer_that_is_none_is_an_error(ctl, monkeypatch):
    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, 1, "", "jupiterd: error: no room")

    monkeypatch.setattr(doctor.subprocess, "run", run)
    ran = ctl("doctor")
    assert (ran.exit_code, ran.out) == (1, "")
    assert "hint: run it: jupiterd --state-dir" in ran.err
