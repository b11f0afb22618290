"""Back to the model alone: its adapter was promoted, and people have taken it back."""

import asyncio
import json
from pathlib import Path

import httpx
import pytest

from tests.e2e.cycle.test_adapter_cycle import OPTIONS, write_tuned_base
from tests.e2e.cycle.test_promoted_model import FOLLOWS_WITHIN_S, answered, done, promoted
from tests.support.daemons.cluster import LOOK_S, NAMES, Cluster, Daemon, running
from tests.support.serving.served_command import served_command
from tests.support.sources.tiny_domain import write_domain

pytestmark = [
    pytest.mark.net,
    pytest.mark.slow,
    pytest.mark.full,
    pytest.mark.timeout(500),
]


async def test_the_model_alone_answers_and_is_what_the_next_round_must_beat(
    tmp_path: Path,
) -> None:
    base = write_tuned_base(tmp_path / "made")
    domain = write_domain(tmp_path, steps=60, samples=0, batch=8)
    domain.write_text(domain.read_text().replace("vocab_size: 512, ", ""))
    begin = ("cycle", "start", "--domain", str(domain), "--init", str(base), *OPTIONS, "--wait")
    async with running([Daemon(tmp_path, name) for name in NAMES[:2]]) as cluster:
        await cluster.meet()
        await cluster.say_yes()
        async with (
            served_command(cluster[1].state_dir) as serving,
            httpx.AsyncClient(base_url=serving.url, timeout=60) as client,
        ):
            await asyncio.to_thread(done, cluster, *begin)
            assert promoted(cluster) == ["tiny/1"]
            await answered(client, lambda found: found.status_code == 200)
            await asyncio.to_thread(_is_written_by, cluster, "tiny/1")
            told = await asyncio.to_thread(done, cluster, "cycle", "rollback", "--yes")
            assert "promoted means small-llama now" in told, told
            await _serves(cluster[1], _base(cluster))
            await answered(client, lambda found: found.status_code == 200)
            await asyncio.to_thread(_is_written_by, cluster, "tiny/1/base")
            await asyncio.to_thread(_is_the_base, cluster)
            extended = ("cycle", "extend", "--rounds", "1", "--accept-worse", "--wait")
            shown = await asyncio.to_thread(done, cluster, *extended)
            assert "on the trunk of round 1" in shown, "training goes on with it all the same"
            told = json.loads(done(cluster, "cycle", "explain", "2", "-o", "json"))
            assert told["given"]["incumbent"] == _base(cluster)


async def _serves(daemon: Daemon, artifact: str) -> None:
    """Wait until an endpoint answers with it by the name `promoted`."""
    async with asyncio.timeout(FOLLOWS_WITHIN_S):
        while not any(  # noqa: ASYNC110 - a log tells nobody
            "promoted_model_serves" in line and artifact[:8] in line
            for line in daemon.log.read_text().splitlines()
        ):
            await asyncio.sleep(LOOK_S)


def _is_written_by(cluster: Cluster, name: str) -> None:
    asked = ("def ", "--max-tokens", "24", "--temperature", "0", "-o", "json", "--beside", name)
    one, other = json.loads(done(cluster, "model", "chat", "promoted", *asked))["answers"]
    assert one["text"] == other["text"]


def _is_the_base(cluster: Cluster) -> None:
    assert promoted(cluster) == []
    shown = json.loads(done(cluster, "model", "show", "promoted", "-o", "json"))["model"]
    assert (shown["kind"], shown["name"], shown["id"]) == ("base", "small-llama", _base(cluster))


def _base(cluster: Cluster) -> str:
    (cycle,) = cluster[0].state().cycles.values()
    assert cycle.started is not None
    return str(cycle.started.settings["start_from"])
