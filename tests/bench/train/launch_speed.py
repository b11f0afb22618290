"""Prints how fast a script trains under `jupiterctl launch`, beside the launcher it was made for.

python -m tests.bench.train.launch_speed [--only TEXT] [--trials N]

The same script with two processes on this machine, one launcher after the other, in turns; each
line is a ratio of tokens per second. What can't be run here is said to be not run.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench.figure import Figure, Goal, line, machine

BIN = Path(sys.executable).parent
SCRIPTS = Path(__file__).parents[2] / "e2e" / "scripts"
TIMEOUT_S = 120.0
GOAL = Goal(0.5, 0.98, at_least=True)
TRIALS = 6

_SPEED = re.compile(r"([\d.]+) tokens/s")


@dataclass(frozen=True)
class Pair:
    """One script, our launcher and theirs."""

    name: str
    ours: Sequence[str]
    theirs: Sequence[str]


def pairs() -> list[Pair]:
    """Return what is compared: the arguments make a run of some seconds on two cores."""
    gpt = ["ddp_gpt.py", "--steps", "60", "--layers", "4", "--width", "192", "--length", "128"]
    mlx = ["mlx_train.py", "--steps", "1500", "--width", "512", "--batch", "64"]
    launch = [str(BIN / "jupiterctl"), "launch", "--per-node", "2"]
    return [
        Pair(
            "a DDP script under launch / torchrun",
            [*launch, "--", sys.executable, *gpt],
            [str(BIN / "torchrun"), "--nproc-per-node", "2", *gpt],
        ),
        Pair(
            "an MLX script under launch / mlx.launch",
            [*launch, "--", sys.executable, *mlx],
            [str(BIN / "mlx.launch"), "-n", "2", "--python", sys.executable, *mlx],
        ),
    ]


def speed(command: Sequence[str]) -> float:
    """Run a launcher to its end; return what its first rank says of its speed."""
    silent, keyboard = os.pipe()  # as a terminal: mlx.launch spins where its input is at its end
    try:
        done = subprocess.run(
            command,
            cwd=SCRIPTS,
            stdin=silent,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    finally:
        os.close(silent)
        os.close(keyboard)
    found = _SPEED.search(done.stdout)
    if done.returncode != 0 or found is None:
        raise AssertionError(f"{command[0]}: status {done.returncode}: {done.stderr[-300:]}")
    return float(found[1])


async def _never() -> float:
    raise AssertionError("both launchers are measured in turns")


def compare(pair: Pair, trials: int) -> None:
    """Run both in turns, each first in every second trial; print each ratio, and the figure."""
    if shutil.which(pair.theirs[0]) is None:
        print(f"{pair.name}: not run: there is no {Path(pair.theirs[0]).name} here")
        return
    ratios: list[float] = []
    for trial in range(trials):
        order = (pair.ours, pair.theirs) if trial % 2 == 0 else (pair.theirs, pair.ours)
        try:
            found = {id(command): speed(command) for command in order}
        except (AssertionError, subprocess.TimeoutExpired) as error:
            print(f"  trial {trial + 1}: failed: {str(error).splitlines()[0]}", flush=True)
            continue
        ours, theirs = found[id(pair.ours)], found[id(pair.theirs)]
        ratios.append(ours / theirs)
        print(f"  {ours:,.0f} / {theirs:,.0f} tokens/s = {ours / theirs:.3f}", flush=True)
    if not ratios:
        print(f"{pair.name}: not run: no trial came to its end")
        return
    print(line(Figure(pair.name, "ratio", (GOAL,), _never), ratios))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="figures whose name holds this text")
    parser.add_argument("--trials", type=int, default=TRIALS)
    chosen = parser.parse_args()
    print(machine())
    for pair in pairs():
        if chosen.only in pair.name:
            compare(pair, chosen.trials)


if __name__ == "__main__":
    main()
