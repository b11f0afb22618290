"""The unit files, as systemd itself reads them."""

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from jupiterd.service.service_request import ServiceRequest
from jupiterd.service.unit import STOP_S, WATCHDOG_S, state_dir_in, unit_text
from tests.support.service.requests import OF_A_USER, OF_THE_MACHINE

BOTH = pytest.mark.parametrize("service", [OF_THE_MACHINE, OF_A_USER], ids=["system", "user"])
ODD = replace(
    OF_THE_MACHINE,
    arguments=("--name", "50% of \"us\" $HOME; 'and' me\\", "--peer", "[fe80::1%eth0]:47470", ""),
    state_dir=Path("/srv/two words 100%"),
)


def values(text: str, key: str) -> list[str]:
    return [line.partition("=")[2] for line in text.splitlines() if line.startswith(f"{key}=")]


@BOTH
def test_a_unit_is_watched_and_started_again_and_stopped_in_order(service: ServiceRequest) -> None:
    text = unit_text(service)
    wanted = {
        "Type": "notify",
        "NotifyAccess": "main",
        "WatchdogSec": f"{WATCHDOG_S}s",
        "Restart": "on-failure",
        "KillMode": "process",
        "TimeoutStopSec": f"{STOP_S}s",
        "OOMPolicy": "continue",
        "NoNewPrivileges": "yes",
        "RuntimeDirectoryMode": "0700",
    }
    assert {key: values(text, key) for key in wanted} == {k: [v] for k, v in wanted.items()}


@BOTH
@pytest.mark.parametrize(
    "key",
    ["PrivateDevices", "DeviceAllow", "DevicePolicy", "ProtectClock", "PrivateTmp", "DynamicUser"],
)
def test_nothing_takes_the_gpus_away(service: ServiceRequest, key: str) -> None:
    assert values(unit_text(service), key) == []


def test_the_doctor_may_still_look_at_the_clock() -> None:
    (refused,) = values(unit_text(OF_THE_MACHINE), "SystemCallFilter")
    assert refused.startswith("~")
    assert "@clock" not in refused  # adjtimex, which only reads; setting it takes a capability


def test_the_machine_s_service_has_folders_and_a_user_of_its_own() -> None:
    text = unit_text(OF_THE_MACHINE)
    assert values(text, "User") == ["jupiter"]
    assert values(text, "StateDirectory") == values(text, "CacheDirectory") == ["jupiter"]
    assert values(text, "StateDirectoryMode") == values(text, "CacheDirectoryMode") == ["0700"]
    assert values(text, "ReadWritePaths") == ["/tmp"]
    assert "JUPITER_STATE_DIR=/var/lib/jupiter" in values(text, "Environment")


def test_another_state_folder_is_named_and_may_be_written() -> None:
    text = unit_text(replace(OF_THE_MACHINE, state_dir=Path("/srv/jupiter")))
    assert values(text, "StateDirectory") == []
    assert values(text, "ReadWritePaths") == ["/tmp", "/srv/jupiter"]
    assert state_dir_in(text) == Path("/srv/jupiter")


def test_what_a_unit_says_of_its_state_folder_is_read_back() -> None:
    assert state_dir_in(unit_text(ODD)) == ODD.state_dir
    assert state_dir_in(unit_text(OF_A_USER)) is None
    assert state_dir_in(unit_text(OF_THE_MACHINE)) == Path("/var/lib/jupiter")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze")
@pytest.mark.parametrize("service", [OF_THE_MACHINE, OF_A_USER, ODD], ids=["system", "user", "odd"])
def test_systemd_finds_nothing_wrong_with_it(service: ServiceRequest, tmp_path: Path) -> None:
    file = tmp_path / "jupiterd.service"
    file.write_text(unit_text(replace(service, program=(sys.executable,))))  # it must exist
    whose = ("--user",) if service.scope == "user" else ()
    ran = subprocess.run(
        ["systemd-analyze", *whose, "--man=no", "verify", file],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path), "HOME": str(tmp_path)},
    )
    assert [line for line in ran.stderr.splitlines() if "jupiterd.service" in line] == []
    assert ran.returncode == 0, ran.stderr
