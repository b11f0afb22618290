"""What a daemon tells of a training beside its status, as the screen asks for it."""

from typing import Any

from jupiterd.client.watch import Delta, Snapshot, WatchMessage
from tests.support.tui.documents import RECORDED, Document, cycle

RUN: str = RECORDED["cycle"]["id"]
NODES: list[str] = [node["id"] for node in RECORDED["nodes"]]


def curve(points: int = 120, **changed: Any) -> Document:
    """Return the second round's loss from its first step on, and two looks at held-out text."""
    rows = [
        [
            4 * k + 1,
            round(2 + 6 / (1 + k / 9) + 0.2 * ((k * 7) % 5), 4),
            8192 * (4 * k + 1),
            1.25 * k,
        ]
        for k in range(points)
    ]
    held_out = [
        [points * 2, 3.1, 8192 * points * 2, 75.0],
        [points * 4 - 3, 2.7, 3_907_584, 148.75],
    ]
    told = {"run": RUN, "round": 2, "islands": 0, "points": rows, "validation": held_out}
    return {"schema": "jupiter/v1", "curve": told | {"missing": []} | changed}


def with_points(rows: list[list[Any]]) -> Document:
    """Return the same round's loss with these points alone."""
    whole = curve()
    return whole | {"curve": whole["curve"] | {"points": rows, "validation": []}}


def checkpoints() -> Document:
    """Return four checkpoints, of which one lies on one machine alone and one was let go."""
    rows = [
        _checkpoint("b1" * 32, 2, 400, ["node-2"], 2),
        _checkpoint("a9" * 32, 2, 200, ["node-2", "node-3"], 2),
        _checkpoint("77" * 32, 1, 500, ["node-1", "node-2", "node-3"], 2, is_final=True),
        _checkpoint("40" * 32, 1, 250, [], 0),
    ]
    told = {"run": RUN, "rows": rows, "more": 3, "silent": 1}
    return {"schema": "jupiter/v1", "checkpoints": told}


def completions() -> Document:
    """Return what a small model writes."""
    samples = [
        {"prompt": "def main(", "text": "self):\n    return self.name", "is_looping": False},
        {"prompt": "import ", "text": "os os os os os os", "is_looping": True},
    ]
    told = {"run": RUN, "round": 1, "model": "77" * 32, "samples": samples}
    return {"schema": "jupiter/v1", "completions": told}


def outer_rounds() -> Document:
    """Return two exchanges, one of which went without an island."""
    steps = [
        _outer_step(3, {1: 6.25, 2: 9.5}, {}, 11.0),
        _outer_step(2, {1: 6.0}, {2: "missing"}, None),
    ]
    islands = [{"island": n, "engine": "torch", "nodes": [f"node-{n + 1}"]} for n in (1, 2)]
    told = {"run": RUN, "round": 2, "islands": islands, "steps": steps}
    return {"schema": "jupiter/v1", "outer_rounds": told}


def with_shares() -> Delta:
    """Return the change by which a training tells all that it can."""
    seats = [
        seat | {"share": share, "tokens_per_s": 4000.0 * share}
        for seat, share in zip(RECORDED["cycle"]["gang"], (0.625, 0.375), strict=True)
    ]
    verdicts = [
        RECORDED["cycle"]["verdicts"][0]
        | {"improvement_bpb": 0.673, "lower_bound_bpb": 0.6328, "margin_bpb": 0.005}
    ]
    told = {"lr": 0.003, "grad_norm": 1.3148, "mfu": 0.3125, "predicted_tokens_per_s": 4200.0}
    return Delta({"cycle": cycle(gang=seats, verdicts=verdicts, **told)})


def of_islands() -> Delta:
    """Return the change by which two islands train in the place of the gang."""
    islands = [
        {"island": n, "engine": "torch", "nodes": [NODES[n - 1]], "step": 270 + n,
         "tokens_per_s": 1000.0 * n, "outer_step": 3, "state": state}
        for n, state in ((1, "in"), (2, "training"))
    ]  # fmt: skip
    seats = [
        seat | {"share": 1.0, "tokens_per_s": 1000.0 * n, "island": n}
        for n, seat in enumerate(RECORDED["cycle"]["gang"], 1)
    ]
    return Delta({"cycle": cycle(gang=seats, islands=islands, outer_steps=3)})


def told() -> list[tuple[str, WatchMessage]]:
    """Return every document that the screen listens to, by noun."""
    return [
        (f"curve/{RUN}", Snapshot(curve())),
        (f"checkpoints/{RUN}", Snapshot(checkpoints())),
        (f"completions/{RUN}", Snapshot(completions())),
        (f"outer_rounds/{RUN}", Snapshot(outer_rounds())),
    ]


def _checkpoint(
    artifact: str, number: int, step: int, copies: list[str], wanted: int, *, is_final: bool = False
) -> Document:
    return {
        "id": artifact, "island": None, "round": number, "step": step, "tokens": 8192 * step,
        "loss": 3.0 + 100 / step, "is_final": is_final, "on_trunk": False, "copies": copies,
        "copies_wanted": wanted,
    }  # fmt: skip


def _outer_step(
    number: int, trained_s: dict[int, float], left_out: dict[int, str], elapsed_s: float | None
) -> Document:
    slowest = max(trained_s, key=lambda island: trained_s[island])
    parts = [
        {"island": island, "tokens": 81920, "trained_s": took_s, "bytes": 1 << 20,
         "is_slowest": len(trained_s) > 1 and island == slowest}
        for island, took_s in trained_s.items()
    ]  # fmt: skip
    return {
        "number": number, "steps": 20, "contributed": parts,
        "left_out": [{"island": n, "reason": reason} for n, reason in left_out.items()],
        "bytes": len(parts) << 20, "elapsed_s": elapsed_s,
    }  # fmt: skip
