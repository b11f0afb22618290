"""Daemons are upgraded one after another while they train; longer forms: make test-upgrade."""

import random
from pathlib import Path

import pytest

from jupiterd import __version__
from jupiterd.errors import ExitCode
from tests.support.daemons.cluster import NAMES, Daemon, running
from tests.support.daemons.earlier import commit_before, installed
from tests.support.daemons.rolling import (
    NEW,
    all_run,
    assert_nothing_runs,
    assert_nothing_was_lost,
    begin_training,
    identities,
    in_order,
    refusal,
    replaced,
    stopped,
)
from tests.support.daemons.surroundings import own_network

pytestmark = [
    pytest.mark.net,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not commit_before(), reason="no history to build the one before from"),
]


async def test_three_daemons_of_the_commit_before_are_upgraded_while_they_train(
    tmp_path: Path, seed: int
) -> None:
    before = installed(tmp_path / "earlier", commit_before())
    leader_at = random.Random(seed).randrange(3)
    with own_network() as prefix:
        daemons = [Daemon(tmp_path, name, prefix, command=before.command) for name in NAMES]
        async with running(daemons) as cluster:
            await cluster.meet()
            keys = identities(cluster)
            await begin_training(cluster, tmp_path)
            seen = [
                await replaced(cluster, daemon, NEW)
                for daemon in await in_order(cluster, leader_at)
            ]
            await cluster.meet()
            run = await stopped(cluster)
            assert_nothing_was_lost(cluster, run, seen)
            await all_run(cluster, __version__)
            assert identities(cluster) == keys
        assert_nothing_runs(tmp_path)


def test_a_folder_of_a_newer_program_is_refused_in_one_line_with_a_hint(tmp_path: Path) -> None:
    (tmp_path / "VERSION").write_text("99 (jupiterd 9.9.9)\n")
    refused = refusal(NEW, tmp_path)
    assert refused.returncode == ExitCode.REFUSED
    assert "layout 99, written by jupiterd 9.9.9" in refused.stderr
    assert "hint: start jupiterd 9.9.9 or a later one" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"VERSION", "lock"}
