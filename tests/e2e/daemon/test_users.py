"""Daemons that share nothing but the network: each is its own user with a folder of its own."""

import os
import stat
import subprocess
from pathlib import Path

import psutil
import pytest

from tests.support.daemons.cluster import NAMES, Daemon, running
from tests.support.daemons.surroundings import own_network
from tests.support.daemons.users import as_user, why_not
from tests.support.sources.tiny_domain import write_domain

pytestmark = [
    pytest.mark.net,
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.timeout(240),
]

UIDS = (61001, 61002, 61003)
"""Users nobody has given an account to."""


def own_folder(stage: Path, name: str, uid: int) -> Path:
    """Make a folder that nobody else can enter."""
    folder = stage / name
    folder.mkdir(mode=0o700)
    os.chown(folder, uid, uid)
    return folder


def environment(folder: Path) -> dict[str, str]:
    """Return what a user without an account has: a home folder, and no name."""
    return {"HOME": str(folder), "USER": "", "LOGNAME": ""}


def can_list(uid: int, folder: Path) -> bool:
    done = subprocess.run(
        ["ls", folder], user=uid, group=uid, extra_groups=[], capture_output=True, check=False
    )
    return done.returncode == 0


async def test_daemons_of_three_users_complete_a_cycle_and_read_nothing_of_each_other(
    stage: Path,
) -> None:
    (stage / "view").mkdir()
    if reason := why_not(UIDS[0], stage / "view"):
        pytest.skip(reason)
    domain = write_domain(stage)
    folders = [own_folder(stage, f"home-{uid}", uid) for uid in UIDS]
    with own_network() as network:
        daemons = [
            Daemon(folder, name, (*network, *as_user(uid, stage / "view")), environment(folder))
            for folder, name, uid in zip(folders, NAMES, UIDS, strict=True)
        ]
        async with running(daemons) as cluster:
            await cluster.meet()
            for daemon, uid in zip(daemons, UIDS, strict=True):
                found = daemon.state_dir.stat()
                assert (found.st_uid, stat.S_IMODE(found.st_mode)) == (uid, 0o700)
                assert set(psutil.Process(daemon.pid).uids()) == {uid}
                readers = [user for user in UIDS if can_list(user, daemon.state_dir)]
                assert readers == [uid]
            done = cluster.ctl("cycle", "start", "--domain", str(domain), "--wait", timeout_s=180)
            assert done.returncode == 0, cluster.failure_text(done.stdout + done.stderr)
            assert done.stdout.splitlines()[-3].startswith("verdict: ")
            for daemon in daemons:
                ended = await cluster.until(
                    lambda cycle: str(cycle["model"]).endswith("round-1"), "the model", 30, daemon
                )
                weights = Path(ended["model"]) / "model.safetensors"
                assert weights.is_relative_to(daemon.state_dir)
                assert weights.stat().st_uid == daemon.state_dir.stat().st_uid
