"""What one member tells of itself never breaks the status of others."""

import json
from pathlib import Path

import msgpack
import pytest

from jupiterd.cluster.ledger.lww_registers import canonical_bytes
from jupiterd.cycle.base.work_item import Phase
from jupiterd.daemon.leader.progress_board import PhaseProgress
from jupiterd.daemon.queries.cycle.cycles_document import cycles_document
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.daemon.runtime.telemetry import read_telemetry
from tests.support.cluster.building import CYCLE, started
from tests.support.daemon.shown import status_of
from tests.support.daemon.two_nodes import found, link, serving, whole_ledger

LIVE = PhaseProgress(CYCLE, 1, Phase.TRAIN, 0.0).to_plain(7.0)
SEAT = {"node": "a" * 32, "rank": 0, "engine": "torch/gloo", "device": "cpu", "pid": None}
SPEED = {"node": "a" * 32, "tokens_per_s": 70.0, "accepted_per_min": 2.5}
NO_NUMBER = float("nan")

deep: list[object] = []
for _ in range(500):
    deep = [deep]


def test_what_a_leader_tells_of_a_running_phase_is_read_as_it_is() -> None:
    seat = SEAT | {"step": 7, "step_lag": 0, "tokens_per_s": 90.5, "island": 2}
    live = LIVE | {"gang": [seat, SEAT | {"tokens_per_s": None}], "ahead": [SPEED]}
    told = {"load": {"cpu_percent": 7.0}, "live": [live], "door": {"trusts_lan": False}}
    assert read_telemetry(canonical_bytes(told)) == told


@pytest.mark.parametrize(
    "told",
    [
        {"load": 5},
        {"load": [1]},
        {"load": {"cpu_percent": "much"}},
        {"load": {"cpu_percent": NO_NUMBER}},
        {"door": {"closes_in_s": float("inf")}},
        {"live": 5},
        {"live": [5]},
        {"live": [{"cycle": CYCLE}]},
        {"live": [LIVE | {"phase": "dream"}]},
        {"live": [LIVE | {"values": 5}]},
        {"live": [LIVE | {"gang": [5]}]},
        {"live": [LIVE | {"gang": [{"pid": deep}]}]},
        {"live": [LIVE | {"elapsed_s": "long"}]},
        {"live": [LIVE | {"gang": [SEAT | {"tokens_per_s": "fast"}] * 2}]},
        {"live": [LIVE | {"gang": [SEAT | {"island": [1]}]}]},
        {"live": [LIVE | {"gang": [SEAT | {"device": {}}]}]},
        {"live": [LIVE | {"ahead": 5}]},
        {"live": [LIVE | {"ahead": [SPEED | {"accepted_per_min": "many"}]}]},
    ],
)
async def test_status_is_told_whatever_the_leader_says(
    tmp_path: Path, told: dict[str, object]
) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await found(one, other, facts=(started(),))
        await other.replica.move_to(whole_ledger(one.replica))
        await link(one, other)
        one.heartbeats.roster_changed()
        leader = other.identity.node_id
        beat = other.heartbeats.message(one.identity.node_id)
        beat.leader, beat.telemetry = leader, msgpack.packb(told)
        one.heartbeats.heard(leader, beat)
        document = status_of(one)
        assert document["cluster"]["leader"] == leader
        json.dumps(document, allow_nan=False)
        json.dumps(cycles_document(one.observers.sources), allow_nan=False)


async def test_a_new_leader_goes_on_with_the_time_that_a_phase_has_taken(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await found(one, other, facts=(started(),))
        await link(one, other)
        peer = one.peers.require(other.identity.node_id)
        peer.telemetry, peer.heard_s = {"live": [LIVE | {"elapsed_s": 46.0}]}, now_s() - 5.0
        board = one._begin_term(1).board
        board.begin(CYCLE, 1, Phase.TRAIN, now_s())
        (live,) = board.to_plain(now_s())
        assert live["elapsed_s"] == pytest.approx(51.0, abs=1.0)
