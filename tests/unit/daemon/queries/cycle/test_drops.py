"""Where what a round left out lies."""

from dataclasses import replace
from pathlib import Path

import pytest

from jupiterd.errors import NotFoundError, UsageError
from jupiterd.ids import ArtifactId
from tests.support.cluster.building import started, work_done
from tests.support.daemon.shown import shown
from tests.support.daemon.two_nodes import found, serving

AWAY = ArtifactId("9" * 64)


async def test_the_folders_of_each_phase_are_named_with_who_has_what_is_not_here(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, "one") as one:
        (tmp_path / "made").mkdir()
        (tmp_path / "made" / "samples").write_text("dropped")
        here = one.artifact_cache.store.ingest(tmp_path / "made")
        own = one.identity.node_id
        batch = replace(
            work_done("r1/filter/1", own), outputs={"clean": AWAY, "dropped": AWAY}, counts={}
        )
        counts = {"kept": 1.0, "dropped": 2.0, "dropped.symbols": 2.0}
        united = replace(
            work_done("r1/filter/0", own), outputs={"kept": AWAY, "dropped": here}, counts=counts
        )
        collected = replace(
            work_done("r1/collect/0", own),
            phase="collect",
            outputs={"train": here, "skipped": AWAY},
            counts={"documents": 3.0, "skipped": 1.0, "skipped.not_text": 1.0},
        )
        await found(one, facts=(started(), collected, batch, united))
        told = (await shown(one, "drops/python/1"))["drops"]
        assert told == (await shown(one, "drops"))["drops"]
        assert (told["round"], told["domain"]) == (1, "python")
        of_collect, of_generate, of_filter = told["phases"]
        assert of_collect["dropped"] == {"not_text": 1}
        assert (of_collect["folders"], of_collect["missing"]) == ([], ["one"])
        assert (of_generate["folders"], of_generate["in"]) == ([], None)
        path = str(one.artifact_cache.store.path(here))
        assert of_filter["folders"] == [{"name": "dropped", "path": path}]
        assert (of_filter["in"], of_filter["out"], of_filter["missing"]) == (3, 1, [])


async def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await found(one, facts=(started(),))
        for noun, kind, why in (
            ("drops", NotFoundError, "no phase of the cycle has ended yet"),
            ("drops//7", NotFoundError, "no phase of round 7 has ended yet"),
            ("drops/python/x", UsageError, "x is no round"),
            ("drops/cooking", NotFoundError, "there is no cycle cooking"),
        ):
            with pytest.raises(kind, match=why):
                await shown(one, noun)
