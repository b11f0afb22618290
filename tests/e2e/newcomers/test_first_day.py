"""Three machines on their first day: what is typed on one that walked in works, or is refused.

Nobody has said yes to anybody. Whatever starts, watches or stops work is there for all of them.
"""

import asyncio
import json
import subprocess
from pathlib import Path

import pytest

from jupiterd.cluster.membership.call_rights import OF_TRUSTED_MEMBERS
from jupiterd.ctl.main import cli
from jupiterd.exit_codes import ExitCode
from tests.support.ctl.command_tree import commands
from tests.support.daemons.cluster import Daemon, running
from tests.support.daemons.surroundings import own_network
from tests.support.daemons.training_runs import write_letters
from tests.support.sources.tiny_domain import write_domain
from tests.support.warm_program import JUPITERCTL, run_program

START = "train start --data letters --model 1m --seq-len 64 --max-steps 2 --wait --timeout 100"
WALK = """
status
version
completion bash
doctor
events
logs
monitor --once
node list
node show {founder}
node role {guest} trainer
node role {guest} auto
node drain {other}
node resume {other}
cluster show
cluster branches
cluster rename attic
check links
domain list
domain schema
domain new mine
domain lint {domain} --offline
data prepare {letters} --name letters --wait --timeout 60
data list
{start}
train status
train watch
model list -o json
model show {run}
model export {run} --to {folder}/model
model chat {run} --max-tokens 4 dear all
data audit
data remove letters --yes
cycle plan --domain {domain}
cycle start --domain {domain}
cycle status
cycle list
cycle pause
cycle resume
cycle extend
cycle stop --yes
cycle report
launch list
cluster close
"""
"""In this order; each is done."""

NOTHING_TO_DO = """
data samples
cycle explain
cycle watch
data why c0ffee
data export tiny --to {folder}/exported.jsonl
train stop --yes
data stop --yes
cycle dismiss
cluster switch --auto c0ffee --yes
launch logs
launch stop 1
gate run
check sync
"""
"""There is nothing that these could be done to, and that is what they say."""

REFUSED = """
node approve {other} --yes
node trust {other} --yes
node remove {other} --yes
cluster open
cluster token
cluster merge attic --yes
data purge --source code --domain tiny --yes
model promote {run} --yes
cycle rollback --yes
dismiss
launch run --nodes {founder},{guest} -- python -c pass
"""

ONLY_HERE = "cluster leave"
"""It is about this machine alone: see `test_lost_founder`."""


NOT_THERE = {ExitCode.OK, ExitCode.NOT_FOUND, ExitCode.FAILED}


def lines_of(walk: str) -> list[str]:
    return walk.strip().splitlines()


def named(lines: str) -> set[str]:
    every = dict(commands(cli))
    words = [line.format_map(_Any()).split() for line in lines_of(lines)]
    return {" ".join(each[:2]) if " ".join(each[:2]) in every else each[0] for each in words}


class _Any(dict[str, str]):
    def __missing__(self, key: str) -> str:
        return START if key == "start" else key


def test_each_command_stands_in_one_list() -> None:
    lists = [named(WALK), named(NOTHING_TO_DO), named(REFUSED), {ONLY_HERE}]
    assert set.union(*lists) <= set(dict(commands(cli)))
    assert sum(map(len, lists)) == len(set.union(*lists))
    verbs = {name.replace(" ", ".") for name in named(REFUSED) - {"dismiss"}}
    assert verbs - {"launch.run"} <= OF_TRUSTED_MEMBERS.keys()


@pytest.mark.net
@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(300)
async def test_all_of_them_typed_where_nobody_has_said_yes(tmp_path: Path) -> None:
    with own_network() as prefix:
        daemons = [Daemon(tmp_path, name, prefix) for name in ("one", "two", "three")]
        async with running(daemons) as cluster:
            view = (await cluster.meet())[0]
            (trusted,) = [row["id"] for row in view["nodes"] if row["trusted"]]
            founder = cluster.by_id(trusted, view)
            guest, other = (daemon for daemon in daemons if daemon is not founder)
            words = {
                "founder": founder.name,
                "guest": guest.name,
                "other": other.name,
                "letters": str(write_letters(tmp_path)),
                "domain": str(write_domain(tmp_path)),
                "folder": str(tmp_path),
                "start": START,
            }
            for line in lines_of(WALK):
                ran = await typed(guest, line.format_map(words))
                assert ran.returncode == 0, cluster.failure_text(
                    f"{line}: {ran.stdout}{ran.stderr}"
                )
                if line.startswith("model list"):
                    words["run"] = str(json.loads(ran.stdout)["models"][0]["id"])
            for line in lines_of(NOTHING_TO_DO):
                ran = await typed(guest, line.format_map(words))
                assert "walked in" not in ran.stderr, line
                assert ran.returncode in NOT_THERE, cluster.failure_text(f"{line}: {ran.stderr}")
            for line in lines_of(REFUSED):
                ran = await typed(guest, line.format_map(words))
                assert ran.returncode == ExitCode.REFUSED, f"{line}: {ran.stderr}"
                said, _, hint = ran.stderr.partition("\nhint: ")
                assert f"{guest.name} walked in through the open door" in said, line
                assert f"run on {founder.name}: jupiterctl node trust {guest.name}" in hint, line


async def typed(daemon: Daemon, line: str) -> subprocess.CompletedProcess[str]:
    """Run a command line of a walk as somebody on that machine types it."""
    folder = daemon.log.parent
    command = [JUPITERCTL, "--state-dir", daemon.state_dir, *line.split()]
    return await asyncio.to_thread(run_program, command, 150, folder)
