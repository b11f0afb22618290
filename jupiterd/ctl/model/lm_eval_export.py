"""Tasks for lm-evaluation-harness in the folder of an exported model: held-out text and cloze gaps.

Owns the files of these tasks. With them, users of `lm_eval` can check our figures with an
independent program; this module doesn't need it. Two tasks:

| task | output_type | expected result |
|---|---|---|
| ..._bits_per_byte | loglikelihood_rolling, over the documents that the gate scored | val_bpb |
| ..._cloze | multiple_choice: the text of a gap and three similar ones | gaps filled |

If a document is longer than the model's context, the harness gives each window one token of
context, and Jupiter a quarter of a window: the harness's bits per byte are a little higher then.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from blake3 import blake3

from jupiterd.ctl.model.judged_text import judged_on, scored_text
from jupiterd.ctl.model.special_tokens import SpecialTokens, exported_marks
from jupiterd.cycle.gate.scores import LN2, ClozeScore, DocumentScore
from jupiterd.cycle.generation.cloze import ClozeItem, HeldOutText, make_items
from jupiterd.formats import printable

FOLDER = "lm-eval"
TEXT_FILE, GAPS_FILE = "held_out.jsonl", "cloze.jsonl"


def write_tasks(folder: Path, model: Mapping[str, Any], held_out: Mapping[str, Any]) -> None:
    """Write the tasks of a candidate into a subfolder of its exported folder.

    Args:
        folder: the model's exported folder.
        model: the daemon's document of the model.
        held_out: the daemon's document of the held-out text that the model was judged on.

    Raises:
        NotFoundError: a held-out document can't be reached.
        CorruptArtifactError: the verdict's files can't be read.
    """
    scores, gaps = judged_on(Path(held_out["verdict"]))
    places = [Path(each) for each in held_out["texts"]]
    texts = [HeldOutText(row.id, row.cluster, scored_text(places, row)) for row in scores]
    scored = {row.id for row in gaps}
    items = [item for item in _items(texts, str(model["language"])) if item.id in scored]
    to = folder / FOLDER
    to.mkdir()
    _write_lines(to / TEXT_FILE, ({"id": each.id, "text": each.text} for each in texts))
    stem = _stem(model)
    names = [f"{stem}_bits_per_byte"]
    _write(to / f"{names[0]}.yaml", _bits_per_byte(names[0]))
    if items:
        names.append(f"{stem}_cloze")
        _write_lines(to / GAPS_FILE, map(_row, items))
        _write(to / f"{names[1]}.yaml", _cloze(names[1]))
    about = _about(names, scores, gaps, exported_marks(folder))
    _write(to / "README.md", "\n".join(about) + "\n")


def _items(texts: Sequence[HeldOutText], language: str) -> list[ClozeItem]:
    return make_items(texts, language) if language else []


def _row(item: ClozeItem) -> dict[str, Any]:
    """Return a gap as a multiple-choice row; its id decides the position of the right answer."""
    right = int.from_bytes(blake3(item.id.encode()).digest(4), "big") % len(item.options)
    first, *others = item.options
    options = [*others[:right], first, *others[right:]]
    choices = [option + item.after for option in options]
    return {"id": item.id, "before": item.before, "choices": choices, "answer": right}


def _bits_per_byte(name: str) -> str:
    return _yaml(
        name,
        "loglikelihood_rolling",
        TEXT_FILE,
        ['doc_to_text: ""', "doc_to_target: text"],
        [
            ("bits_per_byte", "bits_per_byte", False),
            ("byte_perplexity", "weighted_perplexity", False),
        ],
    )


def _cloze(name: str) -> str:
    return _yaml(
        name,
        "multiple_choice",
        GAPS_FILE,
        ["doc_to_text: before", "doc_to_target: answer", "doc_to_choice: choices",
         'target_delimiter: ""'],
        [("acc", "mean", True), ("acc_norm", "mean", True)],
    )  # fmt: skip


def _yaml(
    name: str, kind: str, file: str, fields: Sequence[str], metrics: Sequence[tuple[str, str, bool]]
) -> str:
    """Return the YAML of a task; `fields`: lines that name columns of the file."""
    lines = [
        f"task: {name}",
        "dataset_path: json",
        "dataset_kwargs:",
        "  data_files:",
        f"    test: {FOLDER}/{file}",
        "test_split: test",
        f"output_type: {kind}",
        "num_fewshot: 0",
        *fields,
        "metric_list:",
    ]
    for metric, aggregation, is_higher_better in metrics:
        lines += [
            f"  - metric: {metric}",
            f"    aggregation: {aggregation}",
            f"    higher_is_better: {str(is_higher_better).lower()}",
        ]
    return "\n".join([*lines, "metadata:", "  version: 1.0"]) + "\n"


def _about(
    names: Sequence[str],
    scores: Sequence[DocumentScore],
    gaps: Sequence[ClozeScore],
    marks: SpecialTokens,
) -> Iterator[str]:
    # Set explicitly: the harness would begin with the tokenizer's bos token in any case.
    begins = "" if marks.first_id is None else f",prefix_token_id={marks.first_id}"
    nats = sum(row.candidate_nats for row in scores)
    bits = nats / (LN2 * sum(row.bytes for row in scores)) if scores else 0.0
    yield "# Tasks for lm-evaluation-harness"
    yield ""
    yield "In the folder above this one, where `config.json` lies:"
    yield ""
    yield "```sh"
    yield "pip install lm_eval"
    yield (
        f"lm_eval --model hf --model_args pretrained=.,dtype=float32{begins} "
        f"--include_path {FOLDER} --tasks {','.join(names)}"
    )
    yield "```"
    yield ""
    yield f"- `{names[0]}`: {len(scores)} held-out documents; Jupiter's figure is {bits:.4f}."
    if len(names) > 1:
        right = sum(row.candidate_right for row in gaps)
        yield (
            f"- `{names[1]}`: {len(gaps)} gaps, of which the model filled {right} rightly by "
            "Jupiter's count (by likelihood per byte)."
        )
    yield ""
    yield (
        "Where a document is longer than the model's context, the harness gives each window one "
        "token of context and Jupiter a quarter of a window: its bits per byte are higher then."
    )
    yield ""
    yield (
        "This text was held out: nothing has been trained on it. Whoever publishes it can't trust "
        "scores on it any more, because other models may learn it."
    )


def _stem(model: Mapping[str, Any]) -> str:
    name = re.sub(r"\W+", "_", printable(str(model["name"]))).strip("_")
    return f"jupiter_{name}".lower()


def _write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    _write(path, "".join(json.dumps(row, sort_keys=True) + "\n" for row in rows))


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")
