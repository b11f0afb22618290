"""A control server of sixteen busy nodes, in a process of its own: a real stream, without daemons.

python -m tests.bench.dashboard.server STATE_DIR SECONDS UPDATES_PER_S [--folded]

Owns what is told, and how often. Each update is a change of one node's figures, sent at once and
alone, or folded with the others of half a second as jupiterd does; its number stands in the header
as the term, so that whoever looks knows how far the dashboard has come. The last line on standard
output is how many were sent.
"""

import argparse
import asyncio
import json
import random
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import grpc.aio

from jupiterd.daemon.api.control_service import DELTA_S
from jupiterd.rpc import control_pb2, control_pb2_grpc
from tests.support.tui import training_documents as training
from tests.support.tui.documents import RECORDED
from tests.support.tui.gallery import CYCLES, EVENTS, GPU_LOAD, LINKS, REVIEW, RTX, counted, node

SEED = 20
NODES = 16
TICK_S = 0.05
TOLD = {
    "links": LINKS, "cycles": CYCLES, "events": EVENTS, "curve": training.curve(400),
    "checkpoints": training.checkpoints(), "completions": training.completions(),
    "outer_rounds": training.outer_rounds(),
}  # fmt: skip

Document = dict[str, Any]


class Busy(control_pb2_grpc.ControlServicer):
    """Sixteen nodes that train."""

    def __init__(self, seconds: float, updates_per_s: float, *, folds: bool) -> None:
        self._seconds, self._updates_per_s, self._folds = seconds, updates_per_s, folds
        self._random = random.Random(SEED)
        self.sent = 0
        self.is_over = asyncio.Event()
        self._nodes = [
            node(number, f"node-{number:02}", hardware={"gpus": [RTX] * 2}, rtt_s=0.001)
            for number in range(1, NODES + 1)
        ]
        self._cycle = counted() | {"gang": _seats(self._nodes), "mfu": 0.4, "lr": 0.003}

    async def Status(  # noqa: N802 - gRPC's name
        self, request: control_pb2.StatusRequest, context: grpc.aio.ServicerContext
    ) -> control_pb2.Document:
        del context
        return _packed(_other(request.noun))

    async def Watch(  # noqa: N802 - gRPC's name
        self, request: control_pb2.WatchRequest, context: grpc.aio.ServicerContext
    ) -> AsyncIterator[control_pb2.WatchEvent]:
        del context
        if request.noun != "status":
            yield control_pb2.WatchEvent(snapshot=_packed(_other(request.noun)))
            while True:
                await asyncio.sleep(1.0)
                yield control_pb2.WatchEvent(heartbeat=1)
        yield control_pb2.WatchEvent(snapshot=_packed(self._whole()))
        began_s = time.monotonic()
        while (now_s := time.monotonic() - began_s) < self._seconds:
            for changed in self._told(int(now_s * self._updates_per_s) - self.sent):
                yield control_pb2.WatchEvent(delta=_packed(changed))
            await asyncio.sleep(DELTA_S if self._folds else TICK_S)
        self.is_over.set()
        while True:
            await asyncio.sleep(1.0)
            yield control_pb2.WatchEvent(heartbeat=1)

    def _told(self, due: int) -> Iterator[Document]:
        folded: Document = {}
        for _ in range(due):
            self.sent += 1
            changed = self._changed()
            folded |= changed
            if not self._folds:
                yield changed
        if self._folds and folded:
            yield folded

    def _whole(self) -> Document:
        own = {"id": self._nodes[0]["id"], "name": self._nodes[0]["name"]}
        return RECORDED | {"node": own, "cycle": self._cycle} | self._changed()

    def _changed(self) -> Document:
        """Return what one more measurement changes: a node, and each second the training."""
        at = self.sent % NODES
        self._nodes[at] = self._nodes[at] | self._figures()
        cluster = RECORDED["cluster"] | {
            "leader": self._nodes[0]["id"], "term": self.sent, "nodes_alive": NODES,
            "nodes_total": NODES,
        }  # fmt: skip
        changed: Document = {"nodes": self._nodes, "cluster": cluster}
        if at == 0:
            self._cycle = self._cycle | self._trained()
            changed["cycle"] = self._cycle
        return changed

    def _figures(self) -> Document:
        drawn = self._random.uniform
        loads = [
            GPU_LOAD | {"utilization_percent": drawn(80, 100), "power_watts": drawn(300, 450)}
            for _ in range(2)
        ]
        return {
            "gpu_loads": loads, "rtt_s": drawn(0.0005, 0.002), "tokens_per_s": drawn(9e3, 1.3e4),
            "load": {"cpu_percent": drawn(0, 100), "ram_percent": drawn(30, 40)},
            "step_lag": self._random.randrange(2),
        }  # fmt: skip

    def _trained(self) -> Document:
        step = self.sent // NODES
        phases = [
            row | ({"done": step, "total": 100_000, "values": {"loss": self._loss(step)}}
                   if row["state"] == "running" else {})
            for row in self._cycle["phases"]
        ]  # fmt: skip
        return {"step": step, "total_steps": 100_000, "phases": phases, "loss": self._loss(step)}

    def _loss(self, step: int) -> float:
        return 2 + 6 / (1 + step / 90) + self._random.uniform(0, 0.2)


def _seats(nodes: list[Document]) -> list[Document]:
    return [
        {"node": each["id"], "rank": rank, "engine": "torch/nccl", "device": "cuda:0", "pid": 7,
         "share": 1 / NODES, "tokens_per_s": 1e4}
        for rank, each in enumerate(nodes)
    ]  # fmt: skip


def _other(noun: str) -> Document:
    """Return a document beside the status, as the screen in front asks for it."""
    kind = noun.partition("/")[0]
    asked = TOLD.get(kind)
    return REVIEW if asked is None else asked


def _packed(document: Document) -> control_pb2.Document:
    return control_pb2.Document(json=json.dumps(document))


async def serve(state_dir: Path, busy: Busy) -> None:
    """Tell whoever asks, and print how many updates were sent when the time is over."""
    server = grpc.aio.server()
    control_pb2_grpc.add_ControlServicer_to_server(busy, server)
    server.add_insecure_port(f"unix:{state_dir / 'control.sock'}")
    await server.start()
    await busy.is_over.wait()
    print(busy.sent, flush=True)
    await server.wait_for_termination()


def main() -> None:
    """Run as a program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("state_dir", type=Path)
    parser.add_argument("seconds", type=float)
    parser.add_argument("updates_per_s", type=float)
    parser.add_argument("--folded", action="store_true")
    chosen = parser.parse_args()
    busy = Busy(chosen.seconds, chosen.updates_per_s, folds=chosen.folded)
    asyncio.run(serve(chosen.state_dir, busy))


if __name__ == "__main__":
    main()
