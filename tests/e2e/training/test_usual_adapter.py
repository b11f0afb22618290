"""A machine whose settings say that adapters are trained: plans name it, and --lora off doesn't."""

from pathlib import Path

import pytest

from tests.support.daemons.adapter_runs import write_base
from tests.support.daemons.cluster import Cluster, Daemon, running
from tests.support.daemons.training_runs import write_letters
from tests.support.sources.tiny_domain import write_domain

pytestmark = [pytest.mark.net, pytest.mark.slow, pytest.mark.timeout(200)]

FEW = ("--seq-len", "64", "--max-steps", "2")
ASKS = "lora in jupiter.yaml of alone asks for the adapter; --lora off trains all weights"
SAYS = "as lora in jupiter.yaml of alone says, --lora off: all weights"


async def test_what_begins_with_weights_there_trains_an_adapter_unless_told_otherwise(
    tmp_path: Path,
) -> None:
    letters = write_letters(tmp_path)
    base = write_base(tmp_path, letters)
    domain = write_domain(tmp_path, steps=2, samples=0)
    domain.write_text(domain.read_text().replace("vocab_size: 512, ", ""))
    daemon = Daemon(tmp_path, "alone", environment={"JUPITER_LORA": "rank=3"})
    async with running([daemon]) as cluster:
        await cluster.meet()
        run = ("train", "start", "--data", str(letters), "--model", str(base), *FEW)
        cycle = ("cycle", "start", "--domain", str(domain), "--init", str(base), *FEW)
        for start, says in ((run, ASKS), (cycle, SAYS)):
            assert says in planned(cluster, *start)
            assert "jupiter.yaml" not in planned(cluster, *start, "--lora", "rank=2")
            assert "adapter" not in planned(cluster, *start, "--lora", "off")
        drawn = ("train", "start", "--data", str(letters), "--model", "1m", *FEW)
        assert "adapter" not in planned(cluster, *drawn)
        done = cluster.ctl(*run, "--lora", "off", "--wait")
        assert done.returncode == 0, cluster.failure_text(done.stdout + done.stderr)
        done = cluster.ctl(*run, "--wait")
        assert done.returncode == 0, cluster.failure_text(done.stdout + done.stderr)
        whole, adapted = sorted(daemon.state().cycles.values(), key=lambda each: each.start_order)
        said = [each.training.settings.get("lora") for each in (whole, adapted) if each.training]
        assert said == [None, "rank=3"]


def planned(cluster: Cluster, *words: str) -> str:
    done = cluster.ctl(*words, "--dry-run")
    assert done.returncode == 0, cluster.failure_text(done.stdout + done.stderr)
    return done.stdout
