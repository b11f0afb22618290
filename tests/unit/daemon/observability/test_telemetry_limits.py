"""Telemetry is never larger than others take it."""

import logging
from pathlib import Path
from typing import Any

import msgpack
import pytest

from jupiterd.daemon.observability.telemetry_limits import short_telemetry
from jupiterd.daemon.runtime.telemetry import MAX_TELEMETRY_BYTES, read_telemetry
from tests.support.daemon.two_nodes import serving

LOAD = {"cpu_percent": 7.0}


def test_gpus_and_strangers_give_way_to_what_runs() -> None:
    live = {"load": LOAD, "live": [{"detail": "x" * (MAX_TELEMETRY_BYTES - 200)}]}
    told = short_telemetry(live | {"waiting": ["w" * 200], "gpus": [[1.0] * 4] * 8})
    assert msgpack.unpackb(told.raw) == live
    assert told.left_out == ("who waits", "accelerators")


def gang(nodes: int, gpus: int) -> dict[str, Any]:
    """Return what a leader tells of islands that train on machines with so many GPUs each."""
    seats = [
        {
            "node": f"{node:032x}", "rank": rank, "engine": "torch/nccl", "device": f"cuda:{rank}",
            "pid": 12345, "step": 12345, "step_lag": 0, "tokens_per_s": 12345.6, "island": node,
        }
        for node in range(nodes)
        for rank in range(gpus)
    ]  # fmt: skip
    live = {
        "cycle": "c" * 32, "round": 1, "phase": "train", "done": 12345, "total": 60000,
        "unit": "steps", "rate": 1.5, "eta_s": 31770.0, "elapsed_s": 8000.0, "values": {},
        "gang": seats, "epoch": 1, "resumed_from_step": 0, "detail": "",
    }  # fmt: skip
    return {"load": LOAD, "live": [live], "gpus": [[1.0] * 4] * gpus}


@pytest.mark.parametrize(("nodes", "gpus"), [(5, 8), (16, 8)])
def test_large_gangs_are_told_with_the_steps_of_every_rank(nodes: int, gpus: int) -> None:
    told = short_telemetry(gang(nodes, gpus))
    assert told.left_out == ()
    assert read_telemetry(told.raw) == gang(nodes, gpus)


@pytest.mark.parametrize(
    ("nodes", "ranks_told", "left_out"),
    [(24, 192, "steps of ranks"), (32, 0, "ranks"), (400, 0, "ranks")],
)
def test_larger_ones_are_told_with_less_and_always_read(
    nodes: int, ranks_told: int, left_out: str
) -> None:
    told = short_telemetry(gang(nodes, 8))
    read = read_telemetry(told.raw)
    assert told.left_out[-1] == left_out
    assert (read["live"][0]["done"], len(read["live"][0]["gang"])) == (12345, ranks_told)


def test_a_loss_that_is_no_number_costs_others_that_reading_alone() -> None:
    told = gang(1, 1)
    told["live"][0]["values"] = {"loss": float("nan"), "lr": 0.1}
    read = read_telemetry(short_telemetry(told).raw)
    assert read["live"][0]["values"] == {"lr": 0.1}


@pytest.mark.parametrize(
    "told", [{"live": [{"detail": "x" * MAX_TELEMETRY_BYTES}]}, {"door": "x" * MAX_TELEMETRY_BYTES}]
)
def test_whatever_is_told_it_is_never_too_large(told: dict[str, Any]) -> None:
    assert len(short_telemetry(told).raw) <= MAX_TELEMETRY_BYTES


async def test_what_had_to_be_left_out_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(tmp_path, "one") as one:
        with caplog.at_level(logging.WARNING):
            for _ in range(3):
                one.observers.description._packed(gang(24, 8))
    assert [record.message for record in caplog.records].count("telemetry_shortened") == 1
