"""installers/install.sh where something is there already; what it installs are stand-ins."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from jupiterd.errors import ExitCode
from tests.install.machine import PROGRAMS, Done, Machine

pytestmark = [pytest.mark.timeout(60), pytest.mark.xdist_group("install")]

PYTHON = """#!/bin/sh
case "$*" in
  '-m venv '*) mkdir -p "$3/bin" && cp '{made}'/* "$3/bin/" ;;
  *sys.version*) echo {version} ;;
  *) exec '{real}' "$@" ;;
esac
"""

INSIDE = """#!/bin/sh
printf '%s\\n' "$*" >>'{calls}'
case "$*" in
  *"$(cat '{failing}' 2>/dev/null || echo nothing)"*)
    echo 'ERROR: no way to the index' >&2
    exit 1 ;;
  '-m '*) exit 0 ;;
  '-P -') PYTHONPATH='{packages}' exec '{python}' "$@" ;;
  *sys.version*) echo 3.11 ;;
  *) exec '{real}' "$@" ;;
esac
"""
"""The Python of an environment, in which nothing needs to be installed."""

PROGRAM = """#!/bin/sh
case "$*" in
  'service install')
    mkdir -p '{unit.parent}' && echo "ExecStart=$0" > '{unit}'
    sh -c 'echo $$ > "$1" && read end < "$2"' "$0" '{pid}' '{end}' >/dev/null 2>&1 &
    while [ ! -s '{pid}' ]; do :; done ;;
  'service uninstall --user') rm '{unit}' ;;
esac
"""
"""Jupiter's programs: a service is a process that waits, with their path among its words."""


class Bench:
    """A machine on which installing takes no time."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.environment = machine.root / "environment"
        self.unfinished = machine.root / "unfinished"
        self.unit = machine.home / ".config" / "systemd" / "user" / "jupiterd.service"
        self.pid = machine.work / "pid"
        self.failing = machine.work / "failing"
        self.calls = machine.work / "calls"
        """What the environment's Python was told, a line for each time."""
        self.packages = machine.work / "packages"
        self.wheel = machine.work / "jupiterd-1-py3-none-any.whl"
        self.wheel.touch()
        self.programs = machine.work / "programs"
        self.programs.mkdir()
        end = machine.work / "end"
        os.mkfifo(end)
        made = machine.work / "made"
        made.mkdir()
        real = machine.python
        inside = INSIDE.format(
            failing=self.failing,
            real=real,
            calls=self.calls,
            packages=self.packages,
            python=sys.executable,
        )
        self._write(made / "python", inside)
        for program in PROGRAMS:
            self._write(made / program, PROGRAM.format(unit=self.unit, pid=self.pid, end=end))
        for version in ("3.11", "3.12"):
            text = PYTHON.format(made=made, version=version, real=real)
            self._write(machine.work / f"python{version}", text)

    def install(self, *options: str | Path, python: str = "3.11", extra: str = "none") -> Done:
        """Run the installer."""
        return self.machine.install(
            *("--from", self.wheel, "--python", self.machine.work / f"python{python}", "--yes"),
            *(("--extra", extra) if extra else ()),
            *options,
            environment={"PATH": f"{self.programs}:{self.machine.environment['PATH']}"},
        )

    def has(self, program: str, does: str) -> None:
        """From now on there is such a program, before the usual one."""
        self._write(self.programs / program, f"#!/bin/sh\n{does}\n")

    def has_driver(self, version: str) -> None:
        """From now on there is a GPU with this driver."""
        self.has("nvidia-smi", f"case $* in -L) echo 'GPU 0: one' ;; *) echo {version} ;; esac")

    def has_torch(self, version: str, cuda: str) -> None:
        """From now on the environment has this torch, which is built for that CUDA."""
        folder = self.packages / "torch"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "__init__.py").write_text("raise ImportError('nobody is to load it')\n")
        (folder / "version.py").write_text(f"__version__ = {version!r}\ncuda = {cuda!r}\n")

    def torches_installed(self) -> list[str]:
        """Return the calls of pip that name torch, and forget them."""
        calls = self.calls.read_text().splitlines() if self.calls.exists() else []
        self.calls.unlink(missing_ok=True)
        return [call for call in calls if call.split()[-1].startswith("torch")]

    def fails(self, words: str) -> None:
        """From now on what the environment's Python is told with these words fails."""
        self.failing.write_text(words)

    @staticmethod
    def _write(program: Path, text: str) -> None:
        program.write_text(text)
        program.chmod(0o755)


@pytest.fixture
def bench(machine: Machine):
    bench = Bench(machine)
    yield bench
    if bench.pid.exists():
        os.kill(int(bench.pid.read_text()), signal.SIGKILL)


def test_an_upgrade_without_a_network_leaves_what_was_there(bench: Bench) -> None:
    assert bench.install().returncode == 0
    for words in ("pip download", "pip install"):
        bench.fails(words)
        failed = bench.install("--from", "index" if "download" in words else bench.wheel)
        assert failed.returncode == ExitCode.FAILED
        assert "no way to the index" in failed.stderr
        assert not bench.unfinished.exists()
    bench.failing.unlink()
    done = bench.install()
    assert done.returncode == 0
    assert "is made anew" not in done.stdout


def test_a_first_installation_that_fails_is_begun_anew(bench: Bench) -> None:
    bench.fails("pip install")
    assert bench.install().returncode == ExitCode.FAILED
    bench.failing.unlink()
    assert "is made anew" in bench.install().stdout
    assert not bench.unfinished.exists()


def test_an_environment_that_is_half_removed_is_known_for_it_and_the_error_is_told(
    bench: Bench,
) -> None:
    assert bench.install().returncode == 0
    stuck = "case $* in */environment) echo 'rm: stuck' >&2; exit 1 ;; esac"
    bench.has("rm", f'{stuck}; exec /bin/rm "$@"')
    failed = bench.install(extra="cpu")
    assert failed.returncode == ExitCode.FAILED
    assert failed.stderr.splitlines()[0] == "install: error: a step failed: rm: stuck"
    assert "\nhint: " in failed.stderr
    assert bench.unfinished.exists()


def test_what_was_asked_for_once_holds_for_every_upgrade(bench: Bench) -> None:
    bench.install(extra="none")
    again = bench.install(extra="")
    assert "extra        none (as asked; " in again.stdout
    assert "is made anew" not in again.stdout
    assert "extra        cpu (as asked; " in bench.install(extra="cpu").stdout


def test_a_gpu_that_does_not_answer_for_once_costs_no_installation(bench: Bench) -> None:
    bench.has("nvidia-smi", "echo 'GPU 0: one'")
    assert "extra        nvidia (by the hardware" in bench.install(extra="").stdout
    bench.has("nvidia-smi", "exit 9")
    again = bench.install(extra="")
    assert "extra        nvidia (" in again.stdout
    assert "is made anew" not in again.stdout


FOR_CUDA_12 = "--index-url https://download.pytorch.org/whl/cu126 torch"


@pytest.mark.parametrize(
    ("driver", "cuda", "installed"),
    [
        ("580.65.06", "CUDA         13 (the newest)", []),
        (
            "535.183.01",
            "CUDA         12 (driver 535 runs CUDA 12; CUDA 13 needs driver 580)",
            [f"-m pip install --no-compile {FOR_CUDA_12}"],
        ),
        ("470.256.02", "note: driver 470 is too old for torch's builds", []),
        ("[N/A]", "CUDA         13 (the newest)", []),
    ],
)
def test_torch_is_built_for_the_cuda_that_the_driver_runs(
    bench: Bench, driver: str, cuda: str, installed: list[str]
) -> None:
    bench.has_driver(f"'{driver}'")
    done = bench.install(extra="")
    assert done.returncode == 0, done.stderr
    assert cuda in done.stdout
    assert bench.torches_installed() == installed


def test_a_cuda_that_the_driver_does_not_run_is_refused_with_what_helps(bench: Bench) -> None:
    bench.has_driver("535.183.01")
    refused = bench.install("--cuda", "13", extra="")
    assert refused.returncode == ExitCode.FAILED
    assert "CUDA 13 needs driver 580 or newer, and driver 535 runs CUDA 12" in refused.stderr
    assert "hint: install with --cuda 12, or a newer driver" in refused.stderr
    assert bench.install("--cuda", "11", extra="nvidia").returncode == ExitCode.USAGE
    assert bench.install("--cuda", "12", extra="cpu").returncode == ExitCode.USAGE


def test_the_cuda_that_was_asked_for_holds_for_every_upgrade(bench: Bench) -> None:
    bench.has_driver("580.65.06")
    assert "CUDA         12 (as asked)" in bench.install("--cuda", "12", extra="").stdout
    assert "CUDA         12 (as asked)" in bench.install(extra="").stdout
    assert "CUDA         13 (as asked)" in bench.install("--cuda", "13", extra="").stdout
    assert "CUDA         13 (as asked)" in bench.install(extra="").stdout


def test_a_torch_for_cuda_that_somebody_put_there_stays(bench: Bench) -> None:
    bench.has_driver("580.65.06")
    bench.install(extra="")
    bench.has_torch("2.11.0+cu128", "12.8")
    again = bench.install(extra="")
    assert "torch        2.11.0+cu128, which was here, stays" in again.stdout
    assert bench.torches_installed() == []
    assert "stays" not in bench.install("--cuda", "13", extra="").stdout
    assert bench.torches_installed() == ["-m pip install --no-compile --force-reinstall torch"]


@pytest.mark.parametrize(
    ("version", "cuda"), [("2.10.0+cu128", "12.8"), ("3.0.0+cu130", "13.0"), ("2.13.0", "")]
)
def test_a_torch_that_will_not_do_does_not_stay(bench: Bench, version: str, cuda: str) -> None:
    bench.has_driver("580.65.06")
    bench.install(extra="")
    bench.has_torch(version, cuda)
    assert "stays" not in bench.install(extra="").stdout


def test_a_torch_for_a_newer_cuda_than_the_driver_runs_is_replaced(bench: Bench) -> None:
    bench.has_driver("535.183.01")
    bench.install(extra="")
    bench.torches_installed()
    bench.has_torch("2.12.0+cu130", "13.0")
    assert "stays" not in bench.install(extra="").stdout
    (again,) = bench.torches_installed()
    assert again == f"-m pip install --no-compile --force-reinstall {FOR_CUDA_12}"


def test_a_folder_that_cannot_be_made_is_told_in_one_line_with_a_hint(bench: Bench) -> None:
    failed = bench.install("--prefix", "/dev/null/x")
    assert failed.returncode == ExitCode.FAILED
    assert failed.stderr.splitlines()[0] == (
        "install: error: the folder /dev/null/x/share/jupiter can't be made"
    )


def test_another_python_that_is_asked_for_is_taken(bench: Bench) -> None:
    bench.install()
    assert "is made anew" not in bench.install().stdout
    assert "is made anew" in bench.install(python="3.12").stdout


@pytest.mark.parametrize("spelling", ["my place/", "./my place", "my place//", "./my place/."])
def test_a_prefix_is_one_place_however_it_is_written(bench: Bench, spelling: str) -> None:
    assert bench.install("--prefix", spelling).returncode == 0
    removed = bench.machine.install("--uninstall", "--prefix", bench.machine.work / "my place")
    assert removed.returncode == 0
    assert not (bench.machine.work / "my place").exists()


def test_only_what_ran_before_is_to_be_started_again(bench: Bench) -> None:
    first = bench.install("--service")
    assert first.returncode == 0
    assert "still runs" not in first.stdout
    again = bench.install("--service")
    assert again.returncode == 0
    assert (
        f"note: process {bench.pid.read_text().strip()} still runs what was here before; "
        "start it again: systemctl --user restart jupiterd\n"
    ) in again.stdout


def test_all_that_runs_is_named_but_not_what_it_has_started_itself(bench: Bench) -> None:
    bench.install("--service")
    words = "sh -c 'echo; read end' \"$0\"; exit"
    daemon = subprocess.Popen(
        ["sh", "-c", words, str(bench.environment / "bin" / "jupiterd")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with daemon:
        assert daemon.stdout is not None
        daemon.stdout.readline()  # of the worker that it has started
        pids = f"{bench.pid.read_text().strip()} {daemon.pid}"
        again = bench.install()
        daemon.communicate(b"\n")
    assert f"processes {pids} still run what was here before" in again.stdout


def test_a_service_that_a_broken_installation_cannot_remove_keeps_it(bench: Bench) -> None:
    bench.install()
    bench.unit.parent.mkdir(parents=True)
    bench.unit.write_text(f"ExecStart={bench.environment}/bin/jupiterd\n")
    program = bench.environment / "bin" / "jupiterd"
    program.write_text("#!/nowhere/python\n")
    kept = bench.machine.install("--uninstall")
    assert kept.returncode == ExitCode.FAILED
    assert "is broken" in kept.stderr
    assert bench.environment.exists()
    assert bench.install(python="3.12").returncode == 0  # makes it anew
    assert bench.machine.install("--uninstall").returncode == 0
    assert not bench.unit.exists()
