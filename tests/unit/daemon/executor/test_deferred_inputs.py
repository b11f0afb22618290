"""A source is collected without what the round before found, where that can't be had."""

from pathlib import Path

import pytest

from jupiterd.daemon.runtime.work_events import Finished, WorkOrder
from jupiterd.errors import NotFoundError
from jupiterd.ids import ArtifactId
from tests.support.daemon.two_nodes import serving

GONE = ArtifactId("0" * 64)


def order(source: Path, round_number: int, **inputs: ArtifactId) -> WorkOrder:
    params = {
        "source": {"kind": "folder", "path": str(source), "license": "MIT"},
        "holdout": {"salt": "s"},
        "language": "en",
        "fetched_at": "2026-01-01T00:00:00Z",
    }
    return WorkOrder(f"c0ffee00/r{round_number}/collect/0", 1, "collect", params, inputs)


@pytest.mark.full
@pytest.mark.parametrize("lost", ["train", "holdout", "state"])
async def test_a_round_goes_on_without_what_nobody_holds_any_more(
    tmp_path: Path, lost: str
) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    for number in range(8):
        (notes / f"{number}.md").write_text(f"text {number}")
    async with serving(tmp_path, "one", readable_folders=(tmp_path,)) as one:
        said = [event async for event in one.worker_runner.run(order(notes, 1))]
        assert isinstance(said[-1], Finished)
        first = said[-1].result
        parts = ("train", "holdout", "state")
        previous = {f"previous_{part}": first.outputs[part] for part in parts}
        previous[f"previous_{lost}"] = GONE
        said = [event async for event in one.worker_runner.run(order(notes, 2, **previous))]
        assert isinstance(said[-1], Finished)
        assert said[-1].result.counts == first.counts
        assert not any(one.state_dir.scratch.iterdir())


async def test_what_the_work_can_t_do_without_is_waited_for(tmp_path: Path) -> None:
    async with serving(tmp_path, "one", readable_folders=(tmp_path,)) as one:
        with pytest.raises(NotFoundError, match="no node that can be reached holds"):
            async for _ in one.worker_runner.run(order(tmp_path, 1, samples=GONE)):
                pass
