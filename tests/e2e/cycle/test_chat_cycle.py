"""A cycle that begins with a model that is talked to, with questions and answers about its text."""

import json
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import pytest

from jupiterd.ids import ArtifactId
from jupiterd.store.artifacts import ArtifactStore
from tests.support.daemons.cluster import NAMES, Cluster, Daemon, running
from tests.support.daemons.surroundings import own_network
from tests.support.sources.writing_server import writing_server
from tests.support.strikes.wholeness import left_over
from tests.support.workers.chat_material import MARKS, TEMPLATE

pytestmark = [
    pytest.mark.net,
    pytest.mark.slow,
    pytest.mark.full,
    pytest.mark.timeout(300),
]

LEAST_CHARS = 800
DOMAIN = """version: 1
domain: manual
title: Topics of Python's manual
language: en
data_sources:
  - {{kind: folder, path: {path}, license: PSF-2.0, glob: "**/*.txt"}}
generation:
  templates: [{{kind: question_answer, samples: 48}}]
holdout: {{fraction: 0.3, salt: manual, dev: 0.0, vault: 0.0, min_documents: 10, min_clusters: 5}}
evaluation: {{min_document_bytes: 64, max_document_bytes: 1024}}
gate: {{proxies: "off"}}
training: {{steps: 20, seq_len: 64, batch_sequences: 4}}
"""


def write_topics(folder: Path) -> dict[str, str]:
    """Write the longer topics into folders by their first letter; return them."""
    chosen = {name: text for name, text in topics.items() if len(text) >= LEAST_CHARS}
    for name, text in chosen.items():
        place = folder / name[0].lower() / f"{name}.txt"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return chosen


def write_chat_model(folder: Path, texts: list[str]) -> Path:
    """Write a tiny Llama with random weights, a tokenizer and its chat template."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    from jupiterd.workers.tokens.tokenizer import save_tokenizer, train_tokenizer

    torch.manual_seed(3)
    tokenizer = train_tokenizer(texts, 600)
    tokenizer.add_special_tokens(MARKS)
    config = LlamaConfig(
        vocab_size=tokenizer.get_vocab_size(), hidden_size=64, intermediate_size=96,
        num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1,
        max_position_embeddings=512, bos_token_id=0, eos_token_id=0, tie_word_embeddings=True,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder)
    save_tokenizer(tokenizer, folder)
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    return folder


def told(cluster: Cluster, *words: str) -> Any:
    done = cluster.ctl(*words, "-o", "json")
    assert done.returncode == 0, cluster.failure_text(done.stdout + done.stderr)
    return json.loads(done.stdout)


async def test_questions_and_answers_are_trained_on_by_the_template_of_the_model(tmp_path: Path):
    texts = write_topics(tmp_path / "manual")
    model = write_chat_model(tmp_path / "talker", list(texts.values()))
    domain = tmp_path / "manual.yaml"
    domain.write_text(DOMAIN.format(path=tmp_path / "manual"))
    with own_network() as prefix, writing_server(prefix) as url:
        async with running([Daemon(tmp_path, NAMES[0], prefix)]) as cluster:
            await cluster.meet()
            done = cluster.ctl(
                *("cycle", "start", "--domain", str(domain), "--init", str(model)),
                *("--generator", url, "--lr", "1e-3", "--rounds", "2", "--wait"),
                timeout_s=240,
            )
            assert done.returncode == 0, cluster.failure_text(done.stdout + done.stderr)
            rows = _rows(cluster, tmp_path / "rows.jsonl")
            _assert_grounded(rows)
            _assert_shown(cluster, tmp_path, rows)
            _assert_talked_to(cluster, rows)
        assert left_over(tmp_path, []) == []


def _rows(cluster: Cluster, to: Path) -> list[dict[str, Any]]:
    done = cluster.ctl("data", "export", "manual/1", "--to", str(to))
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in to.read_text().splitlines()]


def _assert_grounded(rows: list[dict[str, Any]]) -> None:
    """Samples are rows of messages that name their document, as many as the mix has room for."""
    real = {row["id"]: row for row in rows if row["kind"] == "real"}
    pairs = [row for row in rows if row["kind"] == "synthetic"]
    assert len(pairs) >= 12
    for row in pairs:
        asked, answer = row["messages"]
        assert (asked["role"], answer["role"]) == ("user", "assistant")
        assert row["text"] == f"Question: {asked['content']}\nAnswer: {answer['content']}"
        assert row["filters"]
        assert row["source_uri"].startswith("folder:manual/"), row["source_uri"]
    known = [row for row in pairs if row["parents"][0] in real]
    assert len(known) >= len(pairs) / 2, "the others are of documents that are like others"
    made = sum(len(row["text"].encode()) for row in pairs)
    assert 0 < made / (made + sum(len(row["text"].encode()) for row in real.values())) <= 0.4
    assert not any("messages" in row for row in real.values())


def _assert_shown(cluster: Cluster, folder: Path, rows: list[dict[str, Any]]) -> None:
    shown = cluster.ctl("data", "samples", "--round", "1", "--phase", "generate").stdout
    assert "question_answer, a conversation of 2 messages" in shown
    pair = next(row for row in rows if row.get("messages"))
    why = cluster.ctl("data", "why", pair["id"][:16]).stdout
    assert "conversation   2 messages" in why
    assert "trained on     manual round 1" in why
    assert "made from:" in why
    phases = told(cluster, "cycle", "status")["cycle"]["phases"]
    packed = next(each for each in phases if (each["round"], each["phase"]) == (1, "pack"))
    assert "as conversations, and the loss counts" in packed["detail"]
    done = cluster.ctl("cycle", "report", "--to", str(folder / "r.html"))
    assert "as a conversation" in (folder / "r.html").read_text(), done.stderr


def _assert_talked_to(cluster: Cluster, rows: list[dict[str, Any]]) -> None:
    """The student has the template, by which it was trained and is asked."""
    from jupiterd.cycle.templates.prompt import Prompt
    from jupiterd.workers.generate.model_text import ModelText
    from jupiterd.workers.tokens.shards import ShardSet

    cycle = told(cluster, "cycle", "status")["cycle"]
    text = ModelText(Path(cycle["model"]))
    assert text.is_chat
    said = text.tokenizer.decode(text.ids(Prompt("Why?", "<doc>")), skip_special_tokens=False)
    assert said == "<|im_start|>user\nWhy?<|im_end|>\n<|im_start|>assistant\n"
    daemon = cluster.daemons[0]
    manifest = next(iter(daemon.state().cycles.values())).manifests[1]
    (found,) = manifest.shards
    shards = ShardSet(ArtifactStore(daemon.state_dir / "store").path(ArtifactId(found)))
    assert 0 < shards.index.counted_tokens < shards.index.tokens
    assert shards.index.documents == len(rows)
