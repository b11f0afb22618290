"""From a machine that nobody has used to the first step of a training, and away again.

Owns the stages and how long each took. Doesn't know where the packages come from: that is the
machine's business.
"""

import json
import os
import secrets
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.install.machine import Machine
from tests.install.packages import ROOT

LIMIT_S = 240.0
LOOK_S = 0.2
TEXTS = ("daemon", "cluster", "store")
"""Folders of Jupiter's own sources to train on."""

TRAINING = ("--model", "1m", "--seq-len", "64", "--gradient-accumulation-steps", "1")
STEPS = "100000"
"""More than anybody waits for."""


class Stages:
    """How long each stage took, in the order in which they were gone through."""

    def __init__(self) -> None:
        self.elapsed_s: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Measure what is done inside."""
        began_s = time.monotonic()
        yield
        self.elapsed_s[name] = time.monotonic() - began_s

    def lines(self) -> list[str]:
        """Return a line for each stage, and one for all of them."""
        rows = [*self.elapsed_s.items(), ("all of it", sum(self.elapsed_s.values()))]
        return [f"{name:<28}{elapsed_s:7.1f} s" for name, elapsed_s in rows]


def walk(
    machine: Machine,
    install: Callable[[], subprocess.CompletedProcess[str]],
    *,
    wants_model: bool = False,
) -> Stages:
    """Install, start, look, train one step, stop and remove everything; return the times.

    wants_model: a short training is carried to its end as well.

    Raises:
        AssertionError: a stage failed, or left something behind.
    """
    stages = Stages()
    with stages.stage("install.sh"):
        done = install()
        assert done.returncode == 0, (
            done.stdout + done.stderr + _end_of(machine.root / "install.log")
        )
    daemon = _start(machine)
    try:
        with stages.stage("jupiterd answers"):
            _wait(machine, "status", _has_leader)
        with stages.stage("the first step of a training"):
            _train(machine)
            status = _wait(machine, "train status", _has_stepped)
        assert status["train"]["failure"] is None
        if wants_model:
            with stages.stage("a short training"):
                _finish_one(machine)
        refused = machine.install("--uninstall")
        assert "Jupiter is running here" in refused.stderr, refused.stdout
    finally:
        _stop(daemon)
    with stages.stage("install.sh --uninstall"):
        done = machine.install("--uninstall")
        assert done.returncode == 0, done.stderr
    kept = Path(machine.state).relative_to(machine.home).parts
    assert all(
        Path(file).parts[: len(kept)] == kept[: len(Path(file).parts)] for file in machine.files()
    )
    done = machine.install("--uninstall", "--purge", "--yes")
    assert done.returncode == 0, done.stderr
    assert not machine.state.exists()
    return stages


def _start(machine: Machine) -> subprocess.Popen[bytes]:
    """Start the daemon as the installer says, but among itself alone."""
    options = ["--local", "--port", "0", "--scope", f"install-{secrets.token_hex(4)}"]
    with (machine.work.parent / "jupiterd.out").open("wb") as log:
        return subprocess.Popen(
            [machine.bin / "jupiterd", *options],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=machine.work,
            env=machine.environment,
            start_new_session=True,
        )


def _stop(daemon: subprocess.Popen[bytes]) -> None:
    daemon.terminate()
    try:
        daemon.wait(30)
    except subprocess.TimeoutExpired:
        os.killpg(daemon.pid, signal.SIGKILL)
        daemon.wait()
        raise


def _train(machine: Machine) -> None:
    texts = machine.work.parent / "texts"
    texts.mkdir()
    for number, file in enumerate(
        file for name in TEXTS for file in (ROOT / "jupiterd" / name).glob("*.py")
    ):
        (texts / f"{number}.txt").write_bytes(file.read_bytes())
    done = machine.run(
        "jupiterctl", "train", "start", "--data", texts, *TRAINING, "--max-steps", STEPS
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _finish_one(machine: Machine) -> None:
    """Train to the end, and see that there is a model in the usual form."""
    texts = machine.work.parent / "texts"
    wanted = ("--data", texts, *TRAINING, "--max-steps", "20", "--wait")
    for command in (("stop",), ("start", *wanted)):
        done = machine.run("jupiterctl", "train", *command)
        assert done.returncode == 0, done.stdout + done.stderr
    answer = json.loads(machine.run("jupiterctl", "train", "status", "-o", "json").stdout)
    model = Path(answer["train"]["model"])
    assert {"config.json", "model.safetensors"} <= {file.name for file in model.iterdir()}


def _wait(machine: Machine, command: str, is_there: Callable[[Any], bool]) -> Any:
    """Ask until it is as it should be; return the answer."""
    began_s = time.monotonic()
    while True:
        done = machine.run("jupiterctl", *command.split(), "-o", "json")
        answer = json.loads(done.stdout) if done.returncode == 0 else None
        if answer and is_there(answer):
            return answer
        waited_s = time.monotonic() - began_s
        log = _end_of(machine.work.parent / "jupiterd.out")
        assert waited_s < LIMIT_S, (
            f"{command} after {waited_s:.0f} s: {done.stdout}{done.stderr}{log}"
        )
        time.sleep(LOOK_S)  # noqa: TID251 - other programs are waited for, and tell nobody


def _has_leader(answer: Any) -> bool:
    return answer["cluster"]["leader"] is not None


def _has_stepped(answer: Any) -> bool:
    return (answer["train"]["step"] or 0) >= 1 or answer["train"]["failure"] is not None


def _end_of(file: Path) -> str:
    return "\n".join(file.read_text().splitlines()[-20:]) if file.exists() else ""
