"""What the document of a cycle tells of its packing and of its running training."""

import pytest

from tests.unit.daemon.queries.cycle.test_cycle_document import (
    document,
    phase,
    started,
    training,
    work,
)


def test_how_much_may_be_synthetic_is_told_where_some_is_packed() -> None:
    reason = "35.0%: it helped small students in round 1, so the share rose from 30.0%"
    told = {"mix_reason": "", "share_reason": reason}
    packed = work("pack", counts={"sequences": 9.0, "synthetic_documents": 4.0}, summary=told)
    assert reason in phase(document(started(), packed), "pack")["detail"]
    alone = work("pack", counts={"sequences": 9.0, "synthetic_documents": 0.0}, summary=told)
    assert reason not in phase(document(started(), alone), "pack")["detail"]


def test_the_share_of_the_devices_peak_is_told_where_the_leader_knows_it() -> None:
    live = training()
    assert document(started(), live=live)["mfu"] is None
    peaks = {"flops_per_token": 6e9, "peak_flops_per_s": 1e14, "lr": 0.003, "grad_norm": 1.5}
    shown = document(started(), live={**live, "values": {**live["values"], **peaks}})
    assert shown["mfu"] == pytest.approx(5000 * 6e9 / 1e14)
    assert (shown["lr"], shown["grad_norm"]) == (0.003, 1.5)
