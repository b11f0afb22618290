"""A cycle whose rounds train an adapter beside a model that stays as it is."""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from jupiterd.adapter_folder import ADAPTER_CONFIG, ADAPTER_FILE, base_named_in
from tests.e2e.cycle.test_chat_cycle import write_chat_model
from tests.e2e.cycle.test_promoted_model import answered, done, promoted
from tests.support.daemons.cluster import NAMES, Cluster, Daemon, running
from tests.support.serving.served_command import served_command
from tests.support.sources.tiny_domain import write_domain

pytestmark = [
    pytest.mark.net,
    pytest.mark.slow,
    pytest.mark.full,
    pytest.mark.timeout(500),
]

OPTIONS = ("--lr", "1e-2", "--seq-len", "64", "--lora", "rank=4")
PRETRAINED_STEPS = 40
"""Enough to be better than counting letters; an adapter still has something to gain."""


async def test_adapters_are_trained_judged_promoted_and_taken_back_beside_one_base(
    tmp_path: Path,
) -> None:
    domain = _domain(tmp_path)
    base = write_tuned_base(tmp_path / "made")
    begin = ("cycle", "start", "--domain", str(domain), "--rounds", "2")
    async with running([Daemon(tmp_path, name) for name in NAMES[:2]]) as cluster:
        await cluster.meet()
        await cluster.say_yes()
        _is_refused_without_a_base(cluster, *begin)
        async with (
            served_command(cluster[1].state_dir) as serving,
            httpx.AsyncClient(base_url=serving.url, timeout=60) as client,
        ):
            asked = (*begin, "--init", str(base), *OPTIONS, "--wait")
            shown = await asyncio.to_thread(done, cluster, *asked)
            assert "beside an adapter of 7,424 (" in shown, shown
            assert "on the trunk of round 1" in shown, shown
            await answered(client, lambda found: found.status_code == 200)
            await asyncio.to_thread(_is_judged_beside_its_base, cluster)
            await asyncio.to_thread(_is_exported, cluster, tmp_path)
            await asyncio.to_thread(_is_taken_back, cluster)
            await answered(client, lambda found: found.status_code == 200)


def _domain(folder: Path) -> Path:
    domain = write_domain(folder, steps=60, samples=0, batch=8)
    domain.write_text(domain.read_text().replace("vocab_size: 512, ", ""))
    return domain


def write_tuned_base(folder: Path) -> Path:
    """Write a model that has read such code before, and not for long."""
    import torch
    from transformers import AutoTokenizer, LlamaForCausalLM

    write_domain(folder)
    texts = [path.read_text() for path in sorted((folder / "code").rglob("*.py"))]
    place = write_chat_model(folder / "small-llama", texts)
    tokenizer: Any = AutoTokenizer.from_pretrained(place)
    tokens = torch.tensor([each for text in texts for each in tokenizer(text)["input_ids"]])
    model: Any = LlamaForCausalLM.from_pretrained(place)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(PRETRAINED_STEPS):
        rows = torch.stack([tokens[at : at + 64] for at in torch.randint(len(tokens) - 64, (16,))])
        model(input_ids=rows, labels=rows).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    model.save_pretrained(place)
    return place


def _is_refused_without_a_base(cluster: Cluster, *begin: str) -> None:
    refused = cluster.ctl(*begin, "--lora")
    assert refused.returncode == 2, refused.stdout
    assert "an adapter is trained beside weights that are there" in refused.stderr
    assert "--init FOLDER" in refused.stderr


def _is_judged_beside_its_base(cluster: Cluster) -> None:
    """The first incumbent is the base alone, the second one the adapter that was promoted."""
    first, second = (_told(cluster, "cycle", "explain", number) for number in ("1", "2"))
    verdicts = _told(cluster, "cycle", "status")["cycle"]["verdicts"]
    assert verdicts[0]["verdict"] == "PROMOTE", verdicts
    assert second["given"]["incumbent"] == first["given"]["candidate"]
    (cycle,) = cluster[0].state().cycles.values()
    assert cycle.started is not None
    base = str(cycle.started.settings["start_from"])
    assert first["given"]["incumbent"] in ("", base)
    assert all(daemon.holds(base) for daemon in cluster.daemons)
    for number in (1, 2):
        folder = cluster[0].state_dir / "runs"
        (made,) = folder.glob(f"*/round-{number}")
        assert base_named_in(made) == base
        assert (made / ADAPTER_FILE).is_file()


def _is_exported(cluster: Cluster, folder: Path) -> None:
    done(cluster, "model", "export", "promoted", "--to", str(folder / "alone"))
    done(cluster, "model", "export", "tiny/1", "--merge", "--to", str(folder / "whole"))
    assert (folder / "alone" / ADAPTER_CONFIG).is_file()
    assert (folder / "whole" / "config.json").is_file()
    assert not (folder / "whole" / ADAPTER_CONFIG).exists()


def _is_taken_back(cluster: Cluster) -> None:
    """The adapter before it is promoted then, and answers."""
    (before,) = promoted(cluster)
    if before == "tiny/1":
        done(cluster, "model", "promote", "tiny/2", "--yes")
    done(cluster, "cycle", "rollback", "--yes")
    assert promoted(cluster) == ["tiny/1"]


def _told(cluster: Cluster, *words: str) -> Any:
    return json.loads(done(cluster, *words, "-o", "json"))
