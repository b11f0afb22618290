"""Somebody's own folder: a domain with two verdicts on the first try, or a clear "no" at once."""

import contextlib
import json
import resource
import subprocess
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.support.daemons.cluster import Cluster, Daemon, running
from tests.support.daemons.surroundings import own_network
from tests.support.sources.mixed_folder import write_mixed_folder
from tests.support.warm_program import JUPITERCTL, run_program

pytestmark = [
    pytest.mark.net,
    pytest.mark.slow,
    pytest.mark.full,
    pytest.mark.timeout(900),
]

TRAINED_WITHIN_S = 800.0
REFUSED_WITHIN_S = 5.0

STEPS = 24
"""Of each round, at most: the verdicts are asked for here, and that steps follow the text is shown
by `tests/e2e/training/test_training_fits.py`."""

FEW = 12


async def test_a_mixed_folder_comes_to_two_verdicts_with_nothing_but_two_commands(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "mis docs técnicos"
    assert write_mixed_folder(folder, 60, 30, most_bytes=5_000) > 70
    async with _alone(tmp_path) as cluster:
        made = _ctl(cluster, "domain", "new", "own", "--from", str(folder))
        assert made.returncode == 0, made.stderr
        assert "can this be judged? yes" in made.stdout
        done = _ctl(
            cluster,
            *("cycle", "start", "--rounds", "2", "--size", "1m", "--wait"),
            *("--max-steps", str(STEPS)),
            timeout_s=TRAINED_WITHIN_S,
        )
        assert done.returncode == 0, cluster.failure_text(done.stdout + done.stderr)
        cycle = json.loads(_ctl(cluster, "cycle", "status", "-o", "json").stdout)["cycle"]
        assert [row["round"] for row in cycle["verdicts"]] == [1, 2]
        assert {row["verdict"] for row in cycle["verdicts"]} <= {"PROMOTE", "HOLD", "REJECT"}
        kinds = _kinds_trained_on(cluster, tmp_path / "kept.jsonl")
        kept = {kind.partition(":")[0] for kind in kinds}
        assert {"code", "documentation", "notebook", "office", "web"} <= kept


def _kinds_trained_on(cluster: Cluster, file: Path) -> set[str]:
    """Return the kinds of the newest round's documents."""
    exported = _ctl(cluster, "data", "export", "own", "--to", str(file))
    assert exported.returncode == 0, exported.stderr
    lines = file.read_text(encoding="utf-8").splitlines()
    return {json.loads(line)["document_kind"] for line in lines}


async def test_a_handful_of_files_is_refused_within_seconds_with_what_would_help(
    tmp_path: Path,
    cold_workers: None,
) -> None:
    folder = tmp_path / "notes"
    write_mixed_folder(folder)
    pages = sorted((folder / "manual").iterdir())
    for path in sorted(folder.rglob("*.*"), reverse=True):
        if path.is_file() and path not in pages[:FEW]:
            path.unlink()
    async with _alone(tmp_path) as cluster:
        assert _ctl(cluster, "domain", "new", "few", "--from", str(folder)).returncode == 0
        for option in ((), ("--dry-run",)):
            before_s = _computed_s()
            refused = _ctl(cluster, "cycle", "start", "--domain", "few", *option)
            assert _computed_s() - before_s < REFUSED_WITHIN_S
            assert refused.returncode == 5, refused.stdout + refused.stderr
            assert "a verdict needs at least" in refused.stderr
            assert "add text, or start with --without-verdict" in refused.stderr
        assert _ctl(cluster, "cycle", "start", "--without-verdict", "--dry-run").returncode == 0


def _computed_s() -> float:
    """Return what commands have had of the processors: the clock counts other tests, too.

    Of those that were started as children, that is: cold.
    """
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@contextlib.asynccontextmanager
async def _alone(folder: Path) -> AsyncGenerator[Cluster]:
    """Run one daemon that can meet nobody."""
    with own_network() as prefix:
        async with running([Daemon(folder, "alone", prefix)]) as cluster:
            await cluster.meet()
            yield cluster


def _ctl(
    cluster: Cluster, *arguments: str, timeout_s: float = 120.0
) -> subprocess.CompletedProcess[str]:
    """Run jupiterctl in the daemon's folder, where a user would stand."""
    daemon = cluster[0]
    command = [JUPITERCTL, "--state-dir", daemon.state_dir, *arguments]
    return run_program(command, timeout_s, daemon.log.parent)
