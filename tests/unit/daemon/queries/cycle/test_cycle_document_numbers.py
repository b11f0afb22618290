"""The numbers in the document of a cycle: each is one that JSON knows."""

import json
import math

from jupiterd.cluster.facts.facts import (
    CheckpointCommitted,
    RoundCommitted,
    VerdictReached,
    WorkCompleted,
)
from jupiterd.cycle.base.work_item import Phase
from jupiterd.daemon.leader.progress_board import PhaseProgress
from jupiterd.ids import ArtifactId
from jupiterd.protocol.frames import Progressed
from tests.support.cluster.building import CYCLE, NODES, started
from tests.unit.daemon.queries.cycle.test_cycle_document import document


def test_a_document_holds_no_number_that_json_does_not_know() -> None:
    judged_so = VerdictReached(
        CYCLE, 1, "REJECT", "so", math.inf, ArtifactId("v"), ArtifactId("c1"), ""
    )
    told = {"incumbent_bpb": math.nan, "vault_gap_bpb": -math.inf, "margin_bpb": 0.01}
    gate = WorkCompleted(CYCLE, 1, "gate", "r1/gate/0/c1", NODES[0], {}, {}, told)
    checkpoint = CheckpointCommitted(
        CYCLE, 1, "", ArtifactId("c1"), 1, 10, 100, 5, math.nan, is_final=True
    )
    live = PhaseProgress(CYCLE, 1, Phase.TRAIN, 0.0)
    live.advance("train", Progressed(1, 2, "steps", {"loss": math.nan, "lr": 0.1}), 1.0)
    over = RoundCommitted(CYCLE, 1, ArtifactId("c1"), "REJECT", "")
    shown = document(started(), checkpoint, gate, judged_so, over, live=live.to_plain(1.0))
    json.dumps(shown, allow_nan=False)
    (verdict,) = shown["verdicts"]
    assert (verdict["val_bpb"], verdict["incumbent_bpb"], verdict["margin_bpb"]) == (
        None,
        None,
        0.01,
    )
    assert (shown["loss"], shown["lr"], shown["val_bpb"]) == (None, 0.1, None)
