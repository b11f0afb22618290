"""A model as a daemon tells of it, and a folder in which one lies."""

from pathlib import Path
from typing import Any

from tests.support.ctl.documents import ALPHA
from tests.unit.ctl.cycle.test_gate import judged as judged_folder

MODEL = "a1b2c3d4" * 8
OTHERS = "5e6f7a8b" * 8


def row(number: int, **more: Any) -> dict[str, Any]:
    return {
        "id": f"{number}{MODEL[1:]}",
        "name": f"python/{number}",
        "kind": "candidate",
        "run": "c0ffee0000000001",
        "round": number,
        "verdict": "HOLD",
        "val_bpb": 1.23456,
        "reason": "not shown to be better by more than 0.005",
        "writes": False,
        "writing_share": 0.0,
        "promoted": False,
        "step": 600,
        "tokens": 1_234_567,
        "loss": 2.5,
        "held_here": True,
        "folder": None,
    } | more


MODELS = [
    row(3, verdict=None, val_bpb=None, reason=None, held_here=False),
    row(2),
    row(1, verdict="PROMOTE", writes=True, writing_share=0.1, promoted=True),
    row(0, name="org/writer\x1b[2J", kind="generator", round=None, verdict=None, val_bpb=None,
        reason=None, tokens=None),
]  # fmt: skip

DETAILS: dict[str, Any] = {
    "domain": "python",
    "title": "The *standard* library",
    "language": "code:python",
    "sources": [
        {"name": "stdlib", "kind": "python_stdlib", "license": "PSF-2.0", "address": ""},
        {"name": "docs", "kind": "web", "license": "unknown", "address": "https://example.org/d"},
    ],
    "started_at": "2026-01-01T00:00:00Z",
    "data": {
        "shards": "7" * 64,
        "tokens": 900_000.0,
        "documents": 607.0,
        "synthetic_documents": 107.0,
        "bytes": 3_000_000.0,
        "contents": {
            "bytes": 3_000_000,
            "synthetic_bytes": 600_000,
            "source": {"stdlib": 590, "docs": 12, "forum|x": 5},
            "license": {"PSF-2.0": 595, "unknown": 12},
            "generator": {OTHERS: 107},
            "template": {"complete_function": 107},
        },
    },
    "log": [
        {
            "round": number,
            "epochs": [
                {"epoch": number, "island": "", "engine": "torch/gloo", "reason": "as asked",
                 "nodes": [ALPHA, "b2" * 16], "from_step": 0, "elapsed_s": 61.0,
                 "ended": "finished"},
            ],
            "points": [
                {"step": 300, "tokens": 300_000 * number, "loss": 3.5 - number},
                {"step": 600, "tokens": 600_000 * number, "loss": 3.25 - number},
            ],
            "steps": 600,
            "tokens": 600_000 * number,
            "packed_tokens": 900_000,
            "phases": {"collect": 1.5, "train": 61.0},
        }
        for number in (1, 2)
    ],
    "verdict_document": None,
    "completions": [
        {"prompt": "def count(", "text": "xs):\n    return ```len(xs)```\n", "is_looping": False},
        {"prompt": "import ", "text": "a a a a a\x1b[2J", "is_looping": True},
    ],
    "machines": {ALPHA: "alpha"},
}  # fmt: skip


def model(number: int = 2, **more: Any) -> dict[str, Any]:
    return row(number) | DETAILS | more


def verdict_document(folder: Path) -> dict[str, Any]:
    """A verdict that the gate has written, as it is read."""
    from jupiterd.ctl.cycle.verdict_folder import recorded_verdict

    return recorded_verdict(judged_folder(folder / "verdict"))
