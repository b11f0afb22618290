"""A cycle of two rounds that trains an adapter beside a real model, on real pages.

As `test_cycle`, each round trains on about 12,000 tokens. Both rounds' students must read held-out
pages better than the model alone, of which nothing changes; what the gate says is printed. When
this was written, 1.0099 bits per byte of the model alone became 0.9931 and 0.9772, and both rounds
were promoted.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from jupiterd.adapter_folder import ADAPTER_CONFIG
from tests.real.pages import write_pages
from tests.real.test_cycle import DOMAIN, PAGES_BYTES
from tests.support.daemons.cluster import Cluster

pytestmark = [pytest.mark.real, pytest.mark.net, pytest.mark.timeout(5400)]

ADAPTER = ("--lora", "rank=8,alpha=16", "--seq-len", "256", "--max-steps", "12")
LEAST_GAIN_BPB = 0.005


async def test_students_that_are_adapters_read_better_than_the_model_alone(
    alone: Cluster, model: Path, tmp_path: Path
) -> None:
    domain = tmp_path / "real.yaml"
    domain.write_text(DOMAIN.format(pages=write_pages(tmp_path / "pages", PAGES_BYTES)))
    begin = ("cycle", "start", "--domain", str(domain), "--init", str(model), "--rounds", "2")
    print(told(alone, *begin, *ADAPTER, "--accept-worse", "--wait", "--timeout", "5000"))
    verdicts = json.loads(told(alone, "cycle", "status", "-o", "json"))["cycle"]["verdicts"]
    for each in verdicts:
        print(f"{each['verdict']}: {each['val_bpb']:.4f}, before {each['incumbent_bpb']:.4f}")
    base_bpb = verdicts[0]["incumbent_bpb"]
    assert [base_bpb - each["val_bpb"] > LEAST_GAIN_BPB for each in verdicts] == [True, True]
    exported = tmp_path / "adapter"
    told(alone, "model", "export", "real/2", "--to", str(exported))
    said: dict[str, Any] = json.loads((exported / ADAPTER_CONFIG).read_text())
    assert (said["r"], said["base_model_name_or_path"]) == (8, model.name)
    asked = ("--max-tokens", "8", "--temperature", "0", "-o", "json")
    question = ("What is documentation for?", *asked)
    ours = answers(alone, "real/2", *question, "--beside", "base")
    assert len(ours) == 2
    # As somebody else's folder, which the cluster knows nothing of, it says the same.
    theirs = answers(alone, str(exported), "--base", str(model), *question)
    assert theirs == ours[:1]


def answers(cluster: Cluster, *asked: str) -> list[str]:
    found = json.loads(told(cluster, "model", "chat", *asked))["answers"]
    return [each["text"] for each in found]


def told(cluster: Cluster, *words: str) -> str:
    done = cluster.ctl(*words, timeout_s=5100)
    assert done.returncode == 0, cluster.failure_text(done.stdout + done.stderr)
    return done.stdout
