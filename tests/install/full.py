"""The installer from end to end, with every package installed anew; prints the time of each stage.

python -m tests.install.full [--extra EXTRA] [--dist FOLDER] [--model]

What is to be downloaded is downloaded first, by an installation that is thrown away; the one that
is measured takes everything from the cache of pip, as the goal of a minute supposes.
"""

import argparse
import hashlib
import os
import shutil
import sys
import tempfile
from pathlib import Path

from tests.install.first_step import Stages, walk
from tests.install.machine import Machine
from tests.install.packages import Built, build

GOAL_S = 60.0
PASSED_ON = ("PIP_", "JUPITER_TORCH_INDEX", "SSL_CERT_FILE", "HTTPS_PROXY", "https_proxy")
"""Variables that say where packages come from."""


def main() -> None:
    """Build, walk twice, and print how long it took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--extra", default="cpu")
    parser.add_argument("--dist", type=Path, help="keep wheel and sdist here, and nothing older")
    parser.add_argument("--model", action="store_true", help="train a small model to its end, too")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="jupiter-install-") as place:
        stages = _walk_twice(Path(place), chosen)
    print("\n".join(stages.lines()))
    to_step_s = sum(list(stages.elapsed_s.values())[:3])
    print(f"{'to the first step':<28}{to_step_s:7.1f} s   (goal {GOAL_S:.0f} s)")


def _walk_twice(folder: Path, chosen: argparse.Namespace) -> Stages:
    """Install once for the cache, then walk; return the times of the walk."""
    built = _build(folder, chosen.dist)
    cache = folder / "cache"
    first, second = (_machine(folder / name, cache) for name in ("first", "second"))
    options = ("--from", built.wheel, "--python", sys.executable, "--extra", chosen.extra, "--yes")
    stages = Stages()
    with stages.stage("downloading and installing"):
        done = first.install(*options)
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    first.install("--uninstall")
    print("\n".join([*stages.lines()[:1], "and with everything downloaded:"]), flush=True)
    return walk(second, lambda: second.install(*options), wants_model=chosen.model)


def _build(folder: Path, target: Path | None) -> Built:
    """Build wheel and sdist, and print their hashes."""
    if target:
        shutil.rmtree(target, ignore_errors=True)
    built = build(folder, target and target.absolute())
    for file in (built.wheel, built.sdist):
        print(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}", flush=True)
    return built


def _machine(folder: Path, cache: Path) -> Machine:
    """Return a machine that reaches the index, with a cache for what it has fetched."""
    machine = Machine(folder, folder)
    for name in ("PIP_CONFIG_FILE", "PIP_NO_INDEX", "PIP_NO_BUILD_ISOLATION"):
        del machine.environment[name]
    passed = {name: value for name, value in os.environ.items() if name.startswith(PASSED_ON)}
    machine.environment |= passed | {"PIP_CACHE_DIR": str(cache)}
    return machine


if __name__ == "__main__":
    main()
