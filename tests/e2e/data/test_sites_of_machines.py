"""Sites and archives are read by all machines, and come to what one machine reads of them."""

import asyncio
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from jupiterd.cluster.facts.facts import WorkCompleted
from jupiterd.cycle.domain.source_parts import HUB_PARTS
from jupiterd.ids import CycleId
from tests.support.daemons.cluster import Cluster, Daemon, running
from tests.support.daemons.surroundings import own_network
from tests.support.sources.frozen_data import FREEZE_TIMEOUT_S, LOOK_S, frozen, known, start
from tests.support.sources.site_server import serving_sites
from tests.support.workers.local_hub import NAME

pytestmark = [
    pytest.mark.net,
    pytest.mark.slow,
    pytest.mark.timeout(400),
    pytest.mark.skipif(sys.platform != "linux", reason="127.0.0.1 is the only loopback address"),
]

HOSTS = ("127.0.0.2", "127.0.0.3", "127.0.0.4")
SITES = tuple(f"r1/collect/0/{n}" for n in range(len(HOSTS)))
FILES = tuple(f"r1/collect/1/{n}" for n in range(HUB_PARTS))

_DOMAIN = """version: 1
domain: sites
title: A manual that three sites share
language: en
data_sources:
  - kind: web
    name: manual
    urls: [{urls}]
    cluster_depth: 1
    delay_s: 0.02
    license: PSF-2.0
    allow_private_addresses: true
  - {{kind: hugging_face, name: archive, path: {data_set}, license: PSF-2.0}}
holdout: {{fraction: 0.3, salt: sites, dev: 0.0, vault: 0.0, min_documents: 10, min_clusters: 5}}
evaluation: {{min_document_bytes: 64, max_document_bytes: 1024}}
gate: {{proxies: off}}
training: {{steps: 30, vocab_size: 512, seq_len: 64, batch_sequences: 4}}
"""

Counts = Mapping[str, Mapping[str, float]]


@pytest.mark.parametrize(
    "is_struck",
    [
        pytest.param(True, id="one dies"),
        pytest.param(False, id="none dies", marks=pytest.mark.long),
    ],
)
async def test_however_many_machines_read_the_sites_the_text_is_the_same(
    is_struck: bool, tmp_path: Path
) -> None:
    pytest.importorskip("datasets", reason="the package datasets isn't installed")
    with own_network() as prefix, serving_sites(prefix, HOSTS) as (urls, hub):
        domain = tmp_path / "sites.yaml"
        domain.write_text(_DOMAIN.format(urls=", ".join(urls), data_set=NAME))
        of_hub = {"HF_ENDPOINT": hub, "HF_HUB_OFFLINE": "0", "HF_HOME": str(tmp_path / "home")}
        async with running([Daemon(tmp_path, "alone", prefix, of_hub)]) as cluster:
            await cluster.meet()
            cycle = start(cluster, domain)
            expected = await frozen(cluster, cycle)
            counts = counts_of(collected(cluster, cycle))
            assert all(counts[part]["documents"] for part in (*SITES, *FILES))
        both = [Daemon(tmp_path, name, prefix, of_hub) for name in ("one", "two")]
        async with running(both) as cluster:
            await cluster.meet()
            cycle = start(cluster, domain)
            if is_struck:
                await kill_amid_reading(cluster, cycle)
            assert await frozen(cluster, cycle) == expected, cluster.failure_text("not the same")
            done = collected(cluster, cycle)
            assert counts_of(done) == counts
            if not is_struck:
                for parts in (SITES, FILES):
                    assert len({done[part].node for part in parts}) == 2


async def kill_amid_reading(cluster: Cluster, cycle: CycleId) -> None:
    """Kill a daemon and its workers while both read; it comes back."""
    deadline_s = time.monotonic() + FREEZE_TIMEOUT_S
    while not all(daemon.workers() for daemon in cluster.daemons):
        assert time.monotonic() < deadline_s, cluster.failure_text("not both of them read")
        await asyncio.sleep(LOOK_S)
    assert not collected(cluster, cycle).keys() & set(SITES)
    victim = cluster[1]
    victim.kill()
    victim.start()


def collected(cluster: Cluster, cycle: CycleId) -> dict[str, WorkCompleted]:
    """Return what the daemons know to be collected."""
    done = (fact for of in known(cluster, cycle) for fact in of.completed.values())
    return {fact.item: fact for fact in done if fact.phase == "collect"}


def counts_of(done: Mapping[str, WorkCompleted]) -> Counts:
    return {item: fact.counts for item, fact in done.items()}
