"""installers/install.sh on machines that nobody has used: what it makes and takes away."""

import hashlib
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from jupiterd import __version__
from jupiterd.errors import ExitCode
from jupiterd.locations import default_state_dir_of
from tests.install.machine import PROGRAMS, SCRIPT, Machine
from tests.install.packages import Built, checkout, site_packages

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.xdist_group("install"),
]  # several installations each


@pytest.mark.full
def test_a_failed_run_is_finished_by_the_next_and_a_damaged_installation_is_mended(
    machine: Machine, built: Built
) -> None:
    (machine.work / "zipfile.py").write_text("raise SystemExit('the wrong one')\n")
    hash_of_it = hashlib.sha256(built.wheel.read_bytes()).hexdigest()
    wrong = machine.install_from(built.wheel, "--sha256", "0" * 64)
    assert wrong.returncode == ExitCode.REFUSED
    assert _error(wrong.stderr) == (
        f"{built.wheel.name} has not the hash that was given, so it isn't installed"
    )
    assert not machine.bin.exists()
    half = machine.root / "environment" / "half"
    half.touch()

    first = machine.install_from(built.wheel, "--sha256", hash_of_it.upper())
    assert first.returncode == 0, first.stdout + first.stderr + _log(machine)
    assert "is made anew" in first.stdout
    assert not half.exists()
    assert f"sha256       {hash_of_it}" in first.stdout
    assert f"jupiterd, version {__version__} is installed." in first.stdout
    assert f"note: {machine.bin} is not on your PATH." in first.stdout
    assert {file.name for file in machine.bin.iterdir()} == set(PROGRAMS)
    listed = machine.run("jupiterctl", "domain", "list")
    assert listed.returncode == 0, listed.stderr
    assert "python" in listed.stdout

    manifest = (machine.root / "manifest").read_text()
    package = site_packages(machine.root / "environment") / "jupiterd"
    (package / "locations.py").write_text("broken")
    (machine.bin / "jupiterctl").unlink()
    second = machine.install_from(built.wheel)
    assert second.returncode == 0, second.stdout + second.stderr + _log(machine)
    assert "making the environment" not in second.stdout
    assert machine.run("jupiterctl", "domain", "list").stdout == listed.stdout
    assert (machine.root / "manifest").read_text() == manifest

    removed = machine.install("--uninstall")
    assert removed.returncode == 0, removed.stderr
    assert machine.files() == []
    again = machine.install("--uninstall")
    assert (again.returncode, again.stdout) == (0, f"Jupiter isn't installed in {machine.root}\n")


@pytest.mark.long
def test_a_checkout_is_installed_by_the_script_that_lies_in_it_and_stays_as_it_was(
    machine: Machine, tmp_path: Path
) -> None:
    source = checkout(tmp_path / "check out")  # a name with a space
    before = sorted(source.rglob("*"))
    target = machine.home / "my programs"
    done = machine.install(
        *("--python", machine.python, "--extra", "cpu", "--yes", "--prefix", target),
        script=source / "installers" / "install.sh",
    )
    assert done.returncode == 0, done.stdout + done.stderr + _log(machine, target / "share/jupiter")
    assert f"source       {source}" in done.stdout
    assert sorted(source.rglob("*")) == before
    environment = target / "share" / "jupiter" / "environment"
    assert list((site_packages(environment) / "jupiterd" / "__pycache__").glob("locations.*.pyc"))
    machine.bin = target / "bin"
    assert machine.run("jupiterctl", "domain", "list").returncode == 0
    assert machine.install("--uninstall", "--prefix", target).returncode == 0
    assert machine.files() == []


def test_through_a_pipe_it_takes_the_index(machine: Machine) -> None:
    done = machine.install("--python", machine.python, "--dry-run", is_piped=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("source       index\n")
    assert " -m pip download --no-deps " in done.stdout
    assert machine.files() == []


def test_a_script_that_breaks_off_on_its_way_does_nothing(machine: Machine) -> None:
    whole = SCRIPT.read_text()
    for part in (whole[: len(whole) // 2], whole.removesuffix('main "$@"\n')):
        (machine.work / "install.sh").write_text(part)
        machine.install("--yes", script=machine.work / "install.sh")
        assert machine.files() == []


def test_a_dry_run_shows_every_step_and_changes_nothing(machine: Machine, built: Built) -> None:
    done = machine.install_from(built.wheel, "--dry-run", "--service")
    assert done.returncode == 0, done.stderr
    environment = machine.root / "environment"
    pip = f"{environment}/bin/python -m pip install --no-compile"
    for step in (
        f"{machine.python} -m venv {environment}",
        f"{pip} --no-deps --require-hashes -r jupiterd/requirements/cpu.txt",
        f"{pip} -c jupiterd/constraints.txt jupiterd.whl[cpu]",
        f"ln -sf {environment}/bin/jupiterctl {machine.bin}/jupiterctl",
        f"{environment}/bin/jupiterd service install",
    ):
        assert f"  would run: {step}\n" in done.stdout
    assert done.stdout.endswith("nothing was changed\n")
    assert machine.files() == []


def test_models_stay_until_their_removal_is_asked_for_and_confirmed(machine: Machine) -> None:
    machine.state.mkdir(parents=True)
    (machine.state / "lock").touch()
    (machine.state / "model").touch()
    kept = machine.install("--uninstall")
    assert kept.returncode == 0
    assert f"kept: {machine.state}" in kept.stdout
    refused = machine.install("--uninstall", "--purge")
    assert refused.returncode == ExitCode.REFUSED
    assert (machine.state / "model").exists()
    assert machine.install("--uninstall", "--purge", "--yes").returncode == 0
    assert not machine.state.exists()


@pytest.mark.parametrize("is_ours", [True, False])
def test_a_service_goes_with_what_it_starts_and_anothers_stays(
    machine: Machine, is_ours: bool
) -> None:
    programs = machine.root / "environment" / "bin"
    programs.mkdir(parents=True)
    unit = machine.home / ".config" / "systemd" / "user" / "jupiterd.service"
    unit.parent.mkdir(parents=True)
    unit.write_text(f"ExecStart={programs if is_ours else '/opt/bin'}/jupiterd\n")
    jupiterd = programs / "jupiterd"  # stands in for the one that knows systemd
    jupiterd.write_text(
        f"""#!/bin/sh
case $* in
  'service uninstall --user') rm '{unit}' ;;
esac
"""
    )
    jupiterd.chmod(0o755)
    (machine.root / "manifest").write_text(f"folder\t{programs.parent}\nmade\t{machine.root}\n")
    done = machine.install("--uninstall")
    assert done.returncode == 0, done.stderr
    assert ("removing the service" in done.stdout) is is_ours
    assert unit.exists() is not is_ours
    assert not machine.root.exists()


@pytest.mark.parametrize(("answer", "is_kept"), [("", True), ("n", True), ("y", False)])
def test_whoever_sits_at_a_terminal_is_asked_there(
    machine: Machine, answer: str, is_kept: bool
) -> None:
    machine.state.mkdir(parents=True)
    (machine.state / "lock").touch()
    status, screen = machine.install_at_terminal(answer, "--uninstall", "--purge")
    assert status == 0
    assert f"Remove {machine.state} with its key, ledger and models, for good? [y/N]" in screen
    assert machine.state.exists() is is_kept


def test_ctrl_c_leaves_what_the_next_run_finishes_or_takes_away(machine: Machine) -> None:
    (wheel := machine.work / "some.whl").touch()
    os.mkfifo(began := machine.work / "began")
    slow = machine.work / "python3"
    slow.write_text(
        f"""#!/bin/sh
[ "$1 $2" = "-m venv" ] || exec "{machine.python}" "$@"
mkdir -p "$3/bin"
echo > "{began}"
exec sleep 300
"""
    )
    slow.chmod(0o755)
    running = subprocess.Popen(
        ["sh", SCRIPT, "--from", wheel, "--python", slow, "--yes"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=machine.environment,
        start_new_session=True,
    )
    began.read_text()
    os.killpg(running.pid, signal.SIGINT)
    told = running.communicate()[1]
    assert running.returncode == ExitCode.INTERRUPTED
    assert _error(told) == "interrupted"
    assert (machine.root / "unfinished").exists()
    assert not (machine.root / "scratch").exists()
    assert machine.install("--uninstall").returncode == 0
    assert machine.files() == []


def test_a_folder_that_is_no_state_folder_is_never_purged(machine: Machine) -> None:
    (machine.home / "photos").mkdir()
    (machine.home / "photos" / "me").touch()
    elsewhere = {"JUPITER_STATE_DIR": str(machine.home / "photos")}
    done = machine.install("--uninstall", "--purge", "--yes", environment=elsewhere)
    assert done.returncode == ExitCode.REFUSED
    assert (machine.home / "photos" / "me").exists()


def test_it_knows_the_state_folder_that_the_daemon_takes(machine: Machine) -> None:
    for chosen in ({}, {"XDG_STATE_HOME": str(machine.home / "s")}, {"XDG_STATE_HOME": "s"}):
        state = default_state_dir_of("linux", machine.home, chosen)
        state.mkdir(parents=True)
        (state / "lock").touch()
        done = machine.install("--uninstall", "--purge", "--yes", environment=chosen)
        assert f"removing {state}\n" in done.stdout
        shutil.rmtree(machine.home)
        machine.home.mkdir()


def test_another_installations_programs_are_left_alone(machine: Machine, built: Built) -> None:
    machine.bin.mkdir(parents=True)
    (machine.bin / "jupiterctl").write_text("theirs")
    done = machine.install_from(built.wheel)
    assert done.returncode == ExitCode.CONFLICT
    assert _error(done.stderr).startswith(f"{machine.bin}/jupiterctl is there already")
    assert machine.files() == [".local", ".local/bin", ".local/bin/jupiterctl"]


@pytest.mark.parametrize(
    ("options", "status", "told"),
    [
        (["--frm", "index"], ExitCode.USAGE, "there is no option --frm"),
        (["--from"], ExitCode.USAGE, "--from needs a value"),
        (["--from", "/nowhere.whl"], ExitCode.NOT_FOUND, "there is no /nowhere.whl"),
        (["--from", "/etc"], ExitCode.NOT_FOUND, "/etc is no checkout of Jupiter"),
        (["--from", "/etc/passwd"], ExitCode.USAGE, "/etc/passwd is neither a wheel nor an sdist"),
        (["--extra", "tpu"], ExitCode.USAGE, "there is no extra tpu"),
        (["--python", "python9"], ExitCode.NOT_FOUND, "there is no Python python9"),
        (["--purge"], ExitCode.USAGE, "--purge only goes with --uninstall"),
    ],
)
def test_a_mistake_is_one_line_and_a_hint(
    machine: Machine, options: list[str], status: ExitCode, told: str
) -> None:
    done = machine.install(*options)
    assert done.returncode == status
    assert _error(done.stderr) == told
    assert machine.files() == []


def _error(told: str) -> str:
    line, empty, hint = told.splitlines()
    assert empty == ""
    assert hint.startswith("hint: ")
    return line.removeprefix("install: error: ")


def _log(machine: Machine, root: Path | None = None) -> str:
    log = (root or machine.root) / "install.log"
    return log.read_text() if log.exists() else ""
