"""The check for WSL, run for real on made-up systems; the script for Windows is only read."""

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from jupiterd.daemon.runtime.address_text import DEFAULT_PORT
from jupiterd.doctor import wsl
from tests.docs.pages import ROOT

FOLDER = ROOT / "installers" / "wsl"
CHECK = FOLDER / "check.sh"
SETUP = (FOLDER / "setup.ps1").read_text()
WSL2 = "6.6.87.2-microsoft-standard-WSL2"
BAD = 8


@dataclass
class Machine:
    """A made-up system: its files below a folder, its programs in another."""

    root: Path
    programs: Path

    def kernel(self, name: str) -> None:
        file = self.root / "proc" / "sys" / "kernel" / "osrelease"
        file.parent.mkdir(parents=True)
        file.write_text(f"{name}\n")

    def program(self, name: str, says: str, status: int = 0) -> None:
        file = self.programs / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"#!/bin/sh\nprintf '{says}'\nexit {status}\n")
        file.chmod(0o755)

    def check(self, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", CHECK, *options],
            capture_output=True,
            text=True,
            env={
                "PATH": f"{self.programs}:{os.defpath}",
                "HOME": str(self.root),
                "WSL_CHECK_ROOT": str(self.root),
                **variables,
            },
            check=False,
            timeout=20,
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    (tmp_path / "programs").mkdir()
    return Machine(tmp_path / "root", tmp_path / "programs")


@pytest.fixture
def good(machine: Machine) -> Machine:
    """Return a WSL 2 in which nothing is wrong."""
    machine.kernel(WSL2)
    machine.program("wslinfo", "mirrored\\r\\n")
    machine.program("powershell.exe", "47470\\r\\n32768-60999\\r\\n")
    (machine.root / "run" / "systemd" / "system").mkdir(parents=True)
    smi = machine.root / "usr" / "lib" / "wsl" / "lib"
    Machine(machine.root, smi).program("nvidia-smi", "GPU 0: NVIDIA GeForce RTX 4090\\n")
    return machine


def lines(told: str) -> str:
    """Return what was said on one line, so that it may be broken anywhere."""
    return re.sub(r"\s+", " ", told)


def test_another_linux_is_told_that_there_is_nothing_to_do(machine):
    machine.kernel("6.8.0-45-generic")
    done = machine.check()
    assert (done.returncode, done.stdout) == (
        0, "ok     this isn't WSL (kernel 6.8.0-45-generic): nothing to do here\n"
    )  # fmt: skip


def test_where_all_is_well_it_says_so_and_how_to_start(good):
    done = good.check()
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("\nok  ") + done.stdout.startswith("ok  ") == 5
    assert "bad" not in done.stdout
    assert "GeForce RTX 4090" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("start  jupiterd;")


@pytest.mark.parametrize("mode", ["nat", "virtioproxy", "none"])
def test_a_network_that_lets_nobody_in_is_named_with_the_doctors_fix(good, mode):
    good.program("wslinfo", mode)
    done = good.check()
    assert done.returncode == BAD
    assert f"WSL's network mode is {mode}: no other machine can get in" in done.stdout
    assert wsl.MIRRORED in lines(done.stdout)
    assert "jupiterd --peer HOST" in done.stdout.splitlines()[-2]


def test_an_old_wsl_that_does_not_tell_its_mode_is_taken_for_nat(good):
    (good.programs / "wslinfo").unlink()
    assert "unknown, most likely nat" in good.check().stdout


@pytest.mark.parametrize(
    ("rules", "is_let_in"),
    [("Any", True), ("47470", True), ("40000-50000", True), ("22\\r\\n80", False), ("", False),
     ("1-47469", False)],
)  # fmt: skip
def test_the_firewalls_rule_is_looked_for(good, rules, is_let_in):
    good.program("powershell.exe", rules)
    done = good.check()
    assert done.returncode == (0 if is_let_in else BAD)
    if not is_let_in:
        command = lines(wsl.judge(wsl.WslReading(WSL2, "mirrored", port=DEFAULT_PORT)).fix or "")
        assert command.partition(";")[0] in lines(done.stdout)


def test_another_port_is_looked_for_where_the_daemon_has_another(good):
    done = good.check(JUPITER_PORT="5000")
    assert done.returncode == BAD
    assert "no rule that lets TCP port 5000 in" in done.stdout


def test_without_powershell_the_rule_is_left_to_people(good):
    (good.programs / "powershell.exe").unlink()
    done = good.check()
    assert done.returncode == 0
    assert "can't be asked from here" in done.stdout


def test_wsl_1_and_a_driver_that_does_not_answer_are_named(good):
    kernel = good.root / "proc" / "sys" / "kernel" / "osrelease"
    kernel.write_text("4.4.0-19041-Microsoft\n")
    Machine(good.root, good.root / "usr" / "lib" / "wsl" / "lib").program("nvidia-smi", "", 9)
    done = good.check()
    assert done.returncode == BAD
    assert "this is WSL 1, which Jupiter doesn't know" in done.stdout
    assert "NVIDIA's driver is there and doesn't answer" in done.stdout


def test_a_state_folder_on_windows_disk_is_named(good):
    assert "many times slower" in good.check(JUPITER_STATE_DIR="/mnt/c/jupiter").stdout


def test_a_linux_without_systemd_or_gpu_works_all_the_same(good):
    (good.root / "run" / "systemd" / "system").rmdir()
    (good.root / "usr" / "lib" / "wsl" / "lib" / "nvidia-smi").unlink()
    done = good.check()
    assert done.returncode == 0
    assert done.stdout.count("note  ") == 2


def test_only_the_command_is_shown_where_that_is_asked_for(good):
    assert good.check("--peer").stdout.splitlines() == [
        "start  jupiterd; if no other machine is found, name one: jupiterd --peer HOST"
    ]


def test_both_scripts_speak_of_the_same_port_rule_and_virtual_machine():
    check = CHECK.read_text()
    doctors = wsl.judge(wsl.WslReading(WSL2, "mirrored", port=DEFAULT_PORT)).fix or ""
    creator = re.search(r"\{[0-9A-F-]{36}\}", doctors)
    assert creator is not None
    assert creator[0] in check
    assert creator[0] in SETUP
    assert f"${{JUPITER_PORT:-{DEFAULT_PORT}}}" in check
    assert f"$Port = {DEFAULT_PORT}" in SETUP
    assert "-LocalPorts $port,32768-60999" in check
    assert "$GangPorts = '32768-60999'" in SETUP
    assert f"-LocalPorts {DEFAULT_PORT},32768-60999;" in doctors
    assert "networkingMode=mirrored" in SETUP


def test_the_script_for_windows_changes_nothing_unless_it_is_told_to():
    changing = (
        r"^ *(?:\[IO\.File\]::Write|Copy-Item|New-NetFirewallHyperVRule @rule|if .*Copy-Item)"
    )
    for function in re.findall(r"^function \S+ \{\n(.*?)^\}", SETUP, re.MULTILINE | re.DOTALL):
        found = re.search(changing, function, re.MULTILINE)
        if found:
            assert "if (-not $Apply)" in function[: found.start()]


@pytest.mark.parametrize("pair", ["{}", "()", "[]"])
def test_the_script_for_windows_closes_what_it_opens(pair):
    code = re.sub(r"<#.*?#>", "", SETUP, flags=re.DOTALL)
    code = re.sub(r"'[^'\n]*'|\"[^\"\n]*\"|^\s*#.*$", "", code, flags=re.MULTILINE)
    assert code.count(pair[0]) == code.count(pair[1]) > 0
