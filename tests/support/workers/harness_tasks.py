"""Folders with tasks of lm-evaluation-harness, whose data lie beside them."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

SUMS = [
    {"q": f"{n} + {n} =", "options": [str(2 * n), str(2 * n + 1), "9"], "gold": n % 2}
    for n in range(8)
]
PROSE = [{"text": f"The bread rises {n} times as the yeast rests."} for n in range(5)]
CAPITALS = [{"country": "France", "capital": "Paris"}, {"country": "Italy", "capital": "Rome"}]


def write_tasks(folder: Path) -> Path:
    """Write one task of each kind: choices, whole texts, and answers that are written."""
    folder.mkdir()
    write_task(folder, "own_sums", "multiple_choice", SUMS, {
        "doc_to_text": "{{q}}", "doc_to_choice": "options", "doc_to_target": "gold",
    }, {"acc": "mean", "acc_norm": "mean"})  # fmt: skip
    write_task(folder, "own_prose", "loglikelihood_rolling", PROSE, {
        "doc_to_text": "", "doc_to_target": "text",
    }, {"bits_per_byte": "bits_per_byte", "byte_perplexity": "weighted_perplexity"})  # fmt: skip
    write_task(folder, "own_capitals", "generate_until", CAPITALS, {
        "doc_to_text": "The capital of {{country}} is", "doc_to_target": " {{capital}}",
        "generation_kwargs": {"until": [".", ","], "max_gen_toks": 4, "do_sample": False},
    }, {"exact_match": "mean"})  # fmt: skip
    return folder


def write_task(
    folder: Path,
    name: str,
    kind: str,
    rows: Sequence[Mapping[str, Any]],
    fields: Mapping[str, Any],
    metrics: Mapping[str, str],
) -> None:
    """Write a task and its data into a folder."""
    data = f"{name}.jsonl"
    (folder / data).write_text("".join(json.dumps(row) + "\n" for row in rows))
    task = {
        "task": name, "dataset_path": "json", "dataset_kwargs": {"data_files": {"test": data}},
        "test_split": "test", "output_type": kind, **fields,
        "metric_list": [
            {"metric": metric, "aggregation": aggregation,
             "higher_is_better": aggregation == "mean"}
            for metric, aggregation in metrics.items()
        ],
    }  # fmt: skip
    (folder / f"{name}.yaml").write_text(json.dumps(task))  # JSON is YAML
