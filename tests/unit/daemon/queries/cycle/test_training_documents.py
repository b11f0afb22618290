"""What a node tells of a training beside its status: its curve, its exchanges, its checkpoints."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from jupiterd.cluster.facts.facts import RoundCommitted
from jupiterd.errors import NotFoundError
from jupiterd.ids import ArtifactId, NodeId
from tests.support.cluster.building import CYCLE, started
from tests.support.daemon.shown import shown
from tests.support.daemon.two_nodes import found, serving
from tests.unit.daemon.queries.cycle.test_cycle_document import attempt, checkpoint


def write_curve(curves: Path, *steps: int, of_round: int = 1) -> None:
    folder = curves / CYCLE[:8]
    folder.mkdir(parents=True)
    lines = [
        {
            "step": step,
            "round": of_round,
            "tokens": 100 * step,
            "at_s": 50.0 + step,
            "loss": 8.0 / step,
        }
        for step in steps
    ]
    lines.append({"step": steps[-1], "round": of_round, "tokens": 7, "at_s": 60.0, "val_loss": 2.5})
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "metrics.jsonl").write_text(text)


async def test_the_curve_begins_with_the_first_step(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        mine = replace(attempt(1), gang=(one.identity.node_id,))
        await found(one, facts=(started(), mine))
        write_curve(one.state_dir.curves, 1, 2, 4)
        told = (await shown(one, f"curve/{CYCLE}"))["curve"]
        assert told["points"] == [[1, 8.0, 100, 0.0], [2, 4.0, 200, 1.0], [4, 2.0, 400, 3.0]]
        assert told["validation"] == [[4, 2.5, 7, 9.0]]
        assert (told["round"], told["missing"]) == (1, [])


async def test_a_node_that_is_away_is_missing_in_the_curve(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await found(one, facts=(started(), replace(attempt(1), gang=(NodeId("c" * 32),))))
        told = (await shown(one, f"curve/{CYCLE}"))["curve"]
        assert (told["points"], told["missing"]) == ([], ["cccccccc"])


async def test_a_report_never_draws_an_older_round_into_the_newest(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        mine, away = (one.identity.node_id,), (NodeId("c" * 32),)
        of_first, of_second = (
            replace(attempt(1), gang=mine),
            replace(attempt(2), gang=away, round=2),
        )
        last = checkpoint("k1", 4, final=True)
        over = RoundCommitted(CYCLE, 1, last.artifact, "HOLD", "")
        await found(one, facts=(started(2), of_first, last, over, of_second))
        write_curve(one.state_dir.curves, 1, 2, 4)
        told = (await shown(one, "report"))["report"]["curve"]
        assert (told["round"], told["points"], told["missing"]) == (2, [], ["cccccccc"])


async def test_a_report_draws_the_newest_round_that_trained(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        mine = replace(attempt(1), gang=(one.identity.node_id,))
        last = checkpoint("k1", 4, final=True)
        over = RoundCommitted(CYCLE, 1, last.artifact, "HOLD", "")
        await found(one, facts=(started(2), mine, last, over))
        write_curve(one.state_dir.curves, 1, 2, 4)
        told = (await shown(one, "report"))["report"]["curve"]
        assert (told["round"], [point[0] for point in told["points"]]) == (1, [1, 2, 4])


async def test_checkpoints_are_told_with_who_holds_them(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        (tmp_path / "made").mkdir()
        (tmp_path / "made" / "weights").write_bytes(b"1")
        held = one.artifact_cache.store.ingest(tmp_path / "made")
        facts = (
            started(),
            replace(checkpoint("", 100), artifact=held),
            replace(checkpoint("", 200, held), artifact=ArtifactId("9" * 64)),
        )
        await found(one, facts=facts)
        rows = (await shown(one, f"checkpoints/{CYCLE}"))["checkpoints"]["rows"]
        assert [(row["step"], row["copies"]) for row in rows] == [(200, []), (100, ["one"])]


async def test_before_anything_was_done_there_is_nothing_to_tell(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await found(one, facts=(started(),))
        assert (await shown(one, f"outer_rounds/{CYCLE}"))["outer_rounds"]["steps"] == []
        assert (await shown(one, f"completions/{CYCLE}"))["completions"]["samples"] == []
        for noun in ("curve", "checkpoints", "outer_rounds", "completions"):
            with pytest.raises(NotFoundError, match="no training"):
                await shown(one, f"{noun}/{'e' * 16}")
