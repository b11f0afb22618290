"""Documents as a daemon makes them."""

from typing import Any

ALPHA, BETA = "a1" * 16, "b2" * 16

HARDWARE = {
    "system": "Linux",
    "machine": "x86_64",
    "cpu": "Ryzen 9",
    "cores": 16,
    "ram_bytes": 64 << 30,
    "gpus": [{"name": "RTX 4090", "uuid": "u", "memory_bytes": 24 << 30, "kind": "cuda"}] * 2,
    "engines": ["torch"],
    "on_mains": True,
}


def phase(round_number: int, name: str, state: str, **more: Any) -> dict[str, Any]:
    empty = {"done": 0, "total": 0, "unit": "", "rate": None, "eta_s": None, "elapsed_s": None}
    return {"round": round_number, "phase": name, "state": state} | empty | {"detail": ""} | more


def cycle(state: str = "running", **more: Any) -> dict[str, Any]:
    return {
        "id": "c0ffee0000000001",
        "domain": "python",
        "state": state,
        "rounds": 2,
        "round": 1,
        "phase": "train",
        "val_bpb": None,
        "verdicts": [],
        "model": None,
        "failure": None,
        "phases": [
            phase(1, "collect", "done", done=690, total=690, unit="documents", elapsed_s=12.0,
                  rate=57.5, detail="139 held out"),
            phase(1, "generate", "skipped", detail="no generator yet"),
            phase(1, "train", "running", done=120, total=600, unit="steps", rate=6.0, eta_s=80.0,
                  elapsed_s=20.0, values={"loss": 4.1234, "tokens_per_s": 10240.4, "tokens": 1}),
            phase(1, "evaluate", "waiting"),
        ],
        "events": [{"seq": 2, "text": "attempt 1: 2 ranks (gloo) from the start of the round"}],
    } | more  # fmt: skip


VERDICT = {
    "round": 1,
    "verdict": "PROMOTE",
    "val_bpb": 2.40118,
    "incumbent_bpb": None,
    "byte_bpb": 3.0512,
    "unigram_bpb": 3.9,
    "reason": "better than the order-2 byte model by 0.65 +- 0.02 bits per byte",
}

FINISHED = cycle(
    "finished", phases=[], events=[], verdicts=[VERDICT], val_bpb=2.40118, model="/state/runs/c0/m"
)

FAILED = cycle(
    "failed",
    phases=[],
    events=[],
    failure={"code": "disk-full", "message": "no room on beta", "hint": "free some space"},
)

PAUSED = cycle(
    "paused",
    phases=[],
    events=[],
    paused={
        "node": ALPHA,
        "name": "alpha\x1b",
        "at": "2026-01-02T03:04:05+00:00",
        "reason": "paused by a person",
    },
)

STATUS = {
    "schema": "jupiter/v1",
    "node": {"id": ALPHA, "name": "alpha"},
    "cluster": {
        "id": "cc" * 16,
        "name": "quiet-comet",
        "leader": ALPHA,
        "term": 3,
        "head": "dd" * 32,
        "nodes_alive": 1,
        "nodes_total": 2,
        "open": True,
        "door": {
            "open": True,
            "reason": "somebody opened it",
            "closes_in_s": 492.0,
            "trusts_lan": False,
        },
        "tokens": [
            {"id": "1f2e3d4c5b6a7988", "uses": 5, "used": 1, "expires_in_s": 80000.0},
            {"id": "2f2e3d4c5b6a7988", "uses": 0, "used": 3, "expires_in_s": None},
        ],
    },
    "nodes": [
        {
            "id": ALPHA,
            "name": "alpha",
            "state": "alive",
            "role": "trainer",
            "reason": "has torch",
            "addresses": ["192.168.1.5:47470", "[fe80::1]:47470"],
            "hardware": HARDWARE,
        },
        {
            "id": BETA,
            "name": "beta\x1b[2J",
            "state": "gone",
            "role": "hybrid",
            "reason": "the role that it had before it went",
            "last_heard_s": 20.4,
            "addresses": [],
            "hardware": None,
        },
    ],
    "cycle": cycle(),
    "health": [
        {
            "code": "node-gone",
            "severity": "warning",
            "title": "beta hasn't been heard for 20 s",
            "hint": "is it switched on?",
            "age_s": 250,
            "node": "b2" * 16,
            "cycle": None,
        }
    ],
}

GAMMA = "c3" * 16

WAITING = {
    "id": GAMMA,
    "name": "gamma",
    "state": "pending",
    "role": None,
    "reason": "waits to be let in: radar canvas tiny plug",
    "words": "radar canvas tiny plug",
    "addresses": [],
    "hardware": {},
}

STATUS_WITH_NEWCOMER = STATUS | {"nodes": [*STATUS["nodes"], WAITING]}


def train(state: str = "running", **more: Any) -> dict[str, Any]:
    """A training run without the cycle."""
    return cycle(state) | {
        "id": "facade0000000001",
        "kind": "train",
        "domain": "letters",
        "rounds": 1,
        "predicted_tokens_per_s": 9_930.0,
        "measured_tokens_per_s": 10_240.4,
        "phases": [
            phase(1, "pack", "done", done=29640, total=29640, unit="tokens", elapsed_s=1.0,
                  rate=29640.0, detail="57 documents of 136,436 bytes"),
            phase(1, "train", "running", done=120, total=600, unit="steps", rate=6.0, eta_s=80.0,
                  elapsed_s=20.0, values={"loss": 4.1234, "tokens_per_s": 10240.4, "tokens": 1}),
            phase(1, "evaluate", "waiting"),
        ],
    } | more  # fmt: skip


TRAINED = train(
    "finished", phases=[], events=[], val_bpb=2.25, model="/state/runs/letters-fa/model",
    measured_tokens_per_s=7_912.6,
)  # fmt: skip

DATA = {
    "id": "decade0000000001",
    "name": "letters",
    "state": "ready",
    "source": "/home/ada/letters",
    "kind": "folder",
    "tokens": 29640,
    "documents": 57,
    "bytes": 136436,
    "vocab_size": 4096,
    "holdout_documents": 3,
    "shards": "5" * 64,
    "tokenizer": "7" * 64,
    "held_here": True,
    "failure": None,
}


def audit(*problems: str) -> dict[str, Any]:
    """The proof of one run, with these problems."""
    part = {
        "round": 1,
        "sequences": 463,
        "cursor": 960,
        "tokens": 61440,
        "passes": 2,
        "of_next_pass": 34,
        "ranges": [{"first": 0, "end": 960, "epoch": 1, "checkpoint": "checkpoint 491c317c"}],
        "problems": list(problems),
    }
    return {
        "id": "facade0000000001",
        "name": "letters",
        "kind": "train",
        "ok": not problems,
        "rounds": [part],
        "checkpoints": 3,
        "checkpoints_read": 3,
        "problems": [],
    }


def _sample(text_id: str, **more: Any) -> dict[str, Any]:
    """The record of a real sample."""
    return {
        "id": text_id,
        "kind": "real",
        "depth": 0,
        "parents": [],
        "cluster_id": "json",
        "source": "cpython",
        "source_uri": "python-stdlib:3.11.2/json/decoder.py",
        "revision": "3.11.2",
        "license": "PSF-2.0",
        "collector": "python_stdlib@1",
        "fetched_at": "2026-01-02T03:04:05Z",
        "language": "code:python",
        "template": "",
        "generator": "",
        "sampler": {},
        "source_hash": "",
        "extractor": "",
        "robots_ok": None,
        "filters": "filter@1",
        "filter_scores": {"letters": 0.71, "quality": 0.5},
        "duplicate_cluster": "",
        "split": "train",
        "text_bytes": 1234,
        "text_begins": '"""Implementation of JSONDecoder\n"""\x1b[2J',
    } | more


def _seen(phase_name: str, output: str, round_number: int) -> dict[str, Any]:
    return {
        "run": "c0ffee0000000001",
        "kind": "cycle",
        "name": "python",
        "round": round_number,
        "phase": phase_name,
        "output": output,
        "artifact": "9" * 64,
        "node": {"id": BETA, "name": "beta\x1b[2J"},
    }


PACKED = {
    "run": "c0ffee0000000001",
    "name": "python",
    "round": 2,
    "shards": "5" * 64,
    "document": 41,
    "first": 12000,
    "end": 12345,
}

WHY = {
    "position": {"offset": 12001, **PACKED},
    "sample": _sample(
        "ab" * 32,
        kind="synthetic",
        depth=1,
        parents=["cd" * 32],
        generator="6" * 64,
        template="complete_function",
        sampler={"seed": 7, "temperature": 0.8},
    ),
    "seen": [_seen("filter", "kept", 2), _seen("generate", "samples", 2)],
    "packed": [PACKED],
    "generator": {
        "artifact": "6" * 64,
        "run": "c0ffee0000000001",
        "name": "python",
        "round": 1,
        "step": 600,
    },
    "parents": [
        {
            "sample": _sample("cd" * 32),
            "seen": [_seen("collect", "train", 1)],
            "packed": [],
            "generator": None,
            "parents": [],
        }
    ],
    "elapsed_ms": 1.25,
}
