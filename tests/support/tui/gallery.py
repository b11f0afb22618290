"""Every screen of the dashboard, filled as on a busy day: what pictures and round tours are of.

Owns the documents that aren't of a training, and the keys that lead to each screen. Doesn't know
what is compared.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jupiterd.client.watch import Delta, Link, LinkChanged, Snapshot, WatchMessage
from tests.support.tui import training_documents as training
from tests.support.tui.documents import RECORDED, Document, cycle, messages, status
from tests.support.tui.pictures import StillTui, settled
from tests.unit.ctl.node.test_node_show import DOCUMENT as NODE_PAGE

if TYPE_CHECKING:
    from textual.pilot import Pilot

SIZES = {"80x24": (80, 24), "120x40": (120, 40), "200x60": (200, 60)}

LOST = LinkChanged(
    Link.LOST,
    "no jupiterd answers on /state/control.sock: the folder is there, but jupiterd isn't running",
    1.6,
    "start it with: jupiterd --state-dir /state",
)
STUCK = LinkChanged(
    Link.LOST,
    "no jupiterd answers on /state/control.sock: something listens there, but doesn't answer; "
    "its process 4711 runs",
    1.6,
    "wait a moment, or read its log: jupiterctl --state-dir /state logs; it is ended by: kill 4711 "
    "(where that does nothing: kill -9 4711)",
)
STALE = LinkChanged(Link.STALE, "nothing heard for 3 s")

RTX = {"name": "NVIDIA GeForce RTX 4090", "memory_bytes": 24 << 30}
GPU_LOAD = {
    "utilization_percent": 97.0, "memory_used_bytes": 22 << 30, "temperature_celsius": 84.0,
    "power_watts": 412.0,
}  # fmt: skip
_NO_GPU_LOAD = dict.fromkeys(GPU_LOAD)


def node(number: int, name: str, state: str = "alive", **more: Any) -> Document:
    return {
        "id": f"{number:x}" * 32, "name": name, "state": state, "role": "trainer",
        "reason": "estimated at 100% of the fastest", "addresses": [f"192.168.1.{number}:7946"],
        "last_heard_s": 0.2, "hardware": {"gpus": []}, "gpu_loads": [], "tokens_per_s": None,
        "step_lag": None, "rtt_s": 0.0021,
        "load": {"cpu_percent": 12.0 * number, "ram_percent": 11.0 * number},
    } | more  # fmt: skip


NODES = [
    node(1, "studio", tokens_per_s=5321.0, step_lag=0, rtt_s=None,
          hardware={"gpus": [{"name": "Apple M3 Max", "memory_bytes": None}]},
          gpu_loads=[_NO_GPU_LOAD | {"utilization_percent": 88.0}]),
    node(2, "workstation-under-the-desk", tokens_per_s=12840.0, step_lag=3,
          hardware={"gpus": [RTX, RTX]}, gpu_loads=[GPU_LOAD, GPU_LOAD | {"power_watts": 398.5}]),
    node(3, "living-room", role="generator", rtt_s=0.0384, load={},
          reason="somebody must generate, and it gives up the least training"),
    node(4, "attic", "suspect", last_heard_s=3.4, rtt_s=None),
    node(5, "laptop", "gone", last_heard_s=752.0, rtt_s=None,
          reason="the role that it had before it went"),
    node(6, "guest", "pending", role=None, last_heard_s=None, load={}, rtt_s=None, hardware={},
          reason="waits to be let in: apple river stone window", words="apple river stone window"),
]  # fmt: skip
HEALTH = [
    {"code": "node-gone", "severity": "warning", "title": "laptop is gone", "age_s": 741.0,
     "hint": "wake it or start jupiterd on it; the cluster carries on without it"},
    {"code": "node-waiting", "severity": "info", "title": "guest asks to be let in", "age_s": 12.0,
     "hint": "jupiterctl node approve 66666666"},
]  # fmt: skip
CLUSTER = {
    "cluster": RECORDED["cluster"] | {
        "leader": NODES[0]["id"], "nodes_alive": 3, "nodes_total": 5, "term": 4,
    },
    "node": {"id": NODES[1]["id"], "name": NODES[1]["name"]}, "nodes": NODES, "health": HEALTH,
}  # fmt: skip
UNKNOWN = CLUSTER | {
    "nodes": [
        each | {"load": {}, "gpu_loads": [], "hardware": {}, "tokens_per_s": None,
                "step_lag": None, "rtt_s": None}
        for each in NODES
    ],
}  # fmt: skip
"""The same cluster where nothing can be measured."""

LINKS = {
    "links": [
        {"nodes": [NODES[a]["id"], NODES[b]["id"]], "kind": kind, "rtt_s": rtt_s,
         "bits_per_s": bits}
        for a, b, kind, rtt_s, bits in (
            (0, 1, "thunderbolt", 0.0004, 18.2e9), (0, 2, "wifi", 0.012, 140e6),
            (1, 2, "ethernet", 0.0008, 941e6), (2, 3, None, None, None),
        )
    ]
}  # fmt: skip
UNKNOWN_LINKS = {
    "links": [link | {"rtt_s": None, "bits_per_s": None, "kind": None} for link in LINKS["links"]]
}

_DROPPED = {"generated": 69, "too-short": 3, "duplicate": 1}
_COUNTS: Mapping[tuple[int, str], Document] = {
    (1, "collect"): {"in": 671, "out": 649, "dropped": {"robots": 22}},
    (1, "filter"): {"in": 649, "out": 576, "dropped": _DROPPED},
    (1, "pack"): {"in": 576, "out": 8587, "dropped": {}},
    (2, "generate"): {"in": 200, "out": 68, "dropped": {"does-not-parse": 101, "copied": 31}},
    (2, "filter"): {"in": 717, "out": 644, "dropped": _DROPPED},
    (2, "pack"): {"in": 644, "out": 8605, "dropped": {}},
}  # fmt: skip


def counted() -> Document:
    """Return the recorded cycle with what went into each of its phases, and came out."""
    phases = [
        row | _COUNTS.get((row["round"], row["phase"]), {}) for row in RECORDED["cycle"]["phases"]
    ]
    generators = [{"node": NODES[2]["id"], "tokens_per_s": 412.0, "accepted_per_min": 9.0}]
    return cycle(phases=phases, generators=generators)


def _sample(sample: str, uri: str, text: str, reason: str = "", kind: str = "real") -> Document:
    return {"id": sample * 32, "source_uri": uri, "text": text, "reason": reason, "kind": kind}


REVIEW = {
    "review": {
        "domain": "python", "round": 2, "phase": "filter", "in": 717, "out": 644,
        "detail": "kept 576 real and 68 synthetic", "dropped": {"generated": 69, "duplicate": 1},
        "kept_samples": [
            _sample("a1", "https://git.example/lib/heap.py", "def heappush(heap, item): ..."),
            _sample("a2", "generated by 763030dd", "class Stack:\n    pass", kind="synthetic"),
        ],
        "dropped_samples": [
            _sample("b1", "https://git.example/gen/parser.py", "# by ANTLR", "generated"),
            _sample("b2", "https://git.example/lib/heap2.py", "def push(h, i): ...", "duplicate"),
        ],
        "settings": {"filter.min_tokens": "32", "mix_ratio.synthetic_share": "0.4"},
    }
}  # fmt: skip
CANDIDATE = "ab" * 32
_VERDICTS = [
    {"round": 1, "verdict": "PROMOTE", "candidate": "cd" * 32, "val_bpb": 2.1477,
     "reason": "better by more than 0.005: improvement +0.6730 bits per byte"},
    {"round": 2, "verdict": "HOLD", "candidate": CANDIDATE, "val_bpb": 2.1471,
     "reason": "not shown to be better: the improvement may be as low as -0.0012"},
]  # fmt: skip
_PAUSED = {"name": "studio", "at": "2026-01-01T12:00:00+00:00", "reason": "waits after filter",
           "asks": True, "edit": 3}  # fmt: skip
CYCLES = {
    "cycles": [
        {"id": "763030ddd296e43a", "domain": "python", "state": "paused", "rounds": 3,
         "rounds_done": 2, "val_bpb": 2.1477, "self_hosting": 0.43, "paused": _PAUSED,
         "verdicts": _VERDICTS},
        {"id": "0123456789abcdef", "domain": "chemistry", "state": "failed", "rounds": 1,
         "rounds_done": 0, "val_bpb": None, "self_hosting": None, "paused": None, "verdicts": []},
    ],
}  # fmt: skip
VERDICT = {
    "verdict": {
        "verdict": "HOLD",
        "explained": [
            "Round 2: HOLD. The student of round 1 keeps writing.",
            (
                "  G1 compares bits per byte on 80 documents: candidate 2.1471, incumbent 2.1477; "
                "the improvement of 0.0006 may be anything from -0.0012 to 0.0024."
            ),
            "  G2 wasn't asked: G1 was not sure.",
        ],
        "answers": {
            "trouble": None,
            "models": {"base": "ef" * 32, "incumbent": "cd" * 32, "candidate": CANDIDATE},
            "rows": [
                {
                    "prompt": "def heappush(heap, item):\n    ",
                    "is_question": False,
                    "base": "return heap\n    return heap\n    return heap",
                    "incumbent": "heap.append(item)\n    heap.sort()",
                    "candidate": "heap.append(item)\n    _siftdown(heap, 0, len(heap) - 1)",
                },
                {
                    "prompt": "What does heappop return?",
                    "is_question": True,
                    "base": "",
                    "incumbent": "The heap.",
                    "candidate": "The smallest item\x1b[2J.",
                },
            ],
        },
    }
}
EVENTS = {
    "since": "2026-01-01T00:00:00+00:00",
    "events": [
        {"seq": 1, "at": "2026-01-01T10:00:00+00:00", "level": "info", "code": "node-joined",
         "text": "laptop is a member", "node": NODES[4]["id"], "cycle": None},
        {"seq": 2, "at": "2026-01-01T10:07:41+00:00", "level": "info", "code": "cycle-started",
         "text": "cycle 763030dd of python began", "node": None, "cycle": "763030ddd296e43a"},
        {"seq": 3, "at": "2026-01-01T11:47:20+00:00", "level": "warning", "code": "node-gone",
         "text": "laptop went away; its work goes on without it from step 200 on, the last "
                 "checkpoint of which two machines have copies", "node": NODES[4]["id"],
         "cycle": None},
        {"seq": 4, "at": "2026-01-01T11:48:02+00:00", "level": "error", "code": "loss-not-a-number",
         "text": "the loss of cycle 763030dd was no number at step 204; it went back to step 200",
         "node": None, "cycle": "763030ddd296e43a"},
    ],
}  # fmt: skip
WHY = {
    "why": {
        "sample": {"id": "a1" * 32, "kind": "real", "text_bytes": 1830, "license": "MIT",
                   "source": "git", "source_uri": "https://git.example/lib/heap.py",
                   "fetched_at": "2026-01-01T10:08:00+00:00", "collector": "git 1",
                   "text_begins": "def heappush(heap, item):"},
    },
}  # fmt: skip

_PLACE = f"review/{RECORDED['cycle']['id']}"


@dataclass(frozen=True)
class Shot:
    """One screen: what is told, and the keys that lead there."""

    keys: tuple[str, ...]
    document: Document
    others: tuple[tuple[str, WatchMessage], ...] = ()
    change: WatchMessage | None = None
    """What comes after the loss that the usual messages tell."""


def _told(**documents: Document) -> tuple[tuple[str, WatchMessage], ...]:
    return tuple((noun, Snapshot(document)) for noun, document in documents.items())


_CLUSTER_TOLD = _told(links=LINKS)
_DATA = status(cycle=counted(), **CLUSTER)
_DATA_TOLD = (
    (f"{_PLACE}/2/filter", Snapshot(REVIEW)),
    (f"{_PLACE}/2/pack", Snapshot(REVIEW)),
    (f"why/{'a1' * 32}", Snapshot(WHY)),
)
_CYCLES_TOLD = (
    *_told(cycles=CYCLES),
    (f"verdict/{CANDIDATE}", Snapshot(VERDICT)),
    (_PLACE, Snapshot(REVIEW)),
)
_ON_CLUSTER = status(**CLUSTER)

SCREENS: Mapping[str, Shot] = {
    "cluster": Shot(("1",), _ON_CLUSTER, _CLUSTER_TOLD),
    "training": Shot(("2",), RECORDED, tuple(training.told()), training.with_shares()),
    "data": Shot(("3",), _DATA, _DATA_TOLD),
    "cycles": Shot(("4",), _ON_CLUSTER, _CYCLES_TOLD),
    "events": Shot(("5",), _ON_CLUSTER, _told(events=EVENTS)),
    "node": Shot(
        ("1", "enter"),
        _ON_CLUSTER,
        (*_CLUSTER_TOLD, (f"node/{NODES[3]['id']}", Snapshot(NODE_PAGE))),
    ),
}  # fmt: skip
"""Those of which there is a picture in every size and every state of the link."""

DIALOGS: Mapping[str, Shot] = {
    "help": Shot(("1", "question_mark"), _ON_CLUSTER, _CLUSTER_TOLD),
    "confirm": Shot(("1", "X"), _ON_CLUSTER, _CLUSTER_TOLD),
    "sample": Shot(("3", "enter"), _DATA, _DATA_TOLD),
    "verdict": Shot(("4", "down", "enter"), _ON_CLUSTER, _CYCLES_TOLD),
    "review": Shot(("4", "A"), _ON_CLUSTER, _CYCLES_TOLD),
    "start": Shot(("4", "N"), _ON_CLUSTER, _CYCLES_TOLD),
    "islands": Shot(("2",), RECORDED, tuple(training.told()), training.of_islands()),
}

_EMPTY_TRAINING = {noun: Snapshot({noun.partition("/")[0]: {}}) for noun, _ in training.told()}
_NOTHING_MEASURED = cycle(
    step=0, total_steps=0, tokens=None, loss=None, val_bpb=None, tokens_per_s=None, verdicts=[],
    gang=[{"node": NODES[0]["id"], "rank": 0}], model=None, epoch=0,
    phases=[row | {"values": {}} for row in RECORDED["cycle"]["phases"]],
)  # fmt: skip

UNKNOWNS: Mapping[str, Shot] = {
    "cluster": Shot(("1",), status(**UNKNOWN), _told(links=UNKNOWN_LINKS)),
    "training": Shot(
        ("2",), RECORDED, tuple(_EMPTY_TRAINING.items()), Delta({"cycle": _NOTHING_MEASURED})
    ),
    "data": Shot(("3",), status(**CLUSTER), ((f"{_PLACE}/2/pack", Snapshot({})),)),
    "cycles": Shot(("4",), status(**CLUSTER), _told(cycles={"cycles": [
        CYCLES["cycles"][1],
        CYCLES["cycles"][0] | {"val_bpb": None, "paused": None, "state": "running",
                               "self_hosting": None,
                               "verdicts": [_VERDICTS[0] | {"verdict": "ABSTAIN", "val_bpb": None,
                                                            "reason": None}]},
    ]})),
    "events": Shot(("5",), status(**CLUSTER), _told(events={"events": [
        event | {"at": None, "code": None} for event in EVENTS["events"]
    ]})),
    "node": Shot(
        ("1", "enter"), status(**UNKNOWN),
        ((f"node/{NODES[3]['id']}", Snapshot(NODE_PAGE | {
            "versions": None, "processes": None, "log": None, "seats": [],
            "note": "there is no link to node 44444444",
        })),),
    ),
}  # fmt: skip
"""The same screens where nothing is known of what they show."""

EMPTY: Mapping[str, Shot] = {
    "cluster": Shot(("1",), status(**CLUSTER | {"nodes": NODES[1:2], "health": []}),
                    _told(links={"links": []})),
    "training": Shot(("2",), status(cycle=None)),
    "data": Shot(("3",), status(cycle=None)),
    "cycles": Shot(("4",), status(cycle=None), _told(cycles={"cycles": []})),
    "events": Shot(("5",), status(cycle=None), _told(events={"events": []})),
}  # fmt: skip
"""The same screens where there is nothing to show yet."""


@asynccontextmanager
async def shot(
    taken: Shot, size: tuple[int, int], *more: WatchMessage, **options: Any
) -> AsyncGenerator["Pilot[None]"]:
    """Open a screen, told everything, with `more` told at the end."""
    app = StillTui(**options)
    async with app.run_test(size=size, notifications=True) as pilot:
        told = messages() if taken.change is not None else (LinkChanged(Link.LIVE),)
        for message in (*told, *([Snapshot(taken.document)] * (taken.change is None))):
            app.take_status(message)
        if taken.change is not None:
            app.take_status(taken.change)
        for noun, message in taken.others:
            app.take_document(noun, message)
        for key in taken.keys:
            app.flush()
            await pilot.press(key)
        for message in more:
            app.take_status(message)
        app.flush()
        await settled(pilot)
        yield pilot
