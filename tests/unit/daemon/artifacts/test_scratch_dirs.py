"""The folders in which work is found again after its worker was killed."""

import os
from dataclasses import replace
from pathlib import Path

from jupiterd.daemon.artifacts.scratch_dirs import (
    ABANDONED_S,
    remove_scratch,
    remove_stale,
    scratch_of,
)
from jupiterd.daemon.runtime.work_events import Finished, WorkOrder
from jupiterd.errors import JupiterError, SourceUnreachableError
from jupiterd.ids import ArtifactId
from tests.support.daemon.two_nodes import serving


def order(item: str = "r1/collect/0", term: int = 1) -> WorkOrder:
    return WorkOrder(f"c0ffee00/{item}", term, "collect", {}, {})


def made(folder: Path, age_s: float = 0.0) -> Path:
    folder.mkdir(parents=True)
    (folder / "crawl.db").write_text("pages")
    for path in (folder / "crawl.db", folder):
        now_s = path.stat().st_mtime
        os.utime(path, (now_s - age_s, now_s - age_s))
    return folder


def test_an_item_has_one_folder_whoever_orders_it(tmp_path: Path) -> None:
    assert scratch_of(tmp_path, order()) == scratch_of(tmp_path, order(term=9))
    assert scratch_of(tmp_path, order()) != scratch_of(tmp_path, order("r1/collect/1"))
    assert scratch_of(tmp_path, order("../../../etc")).parent == tmp_path


def test_an_item_with_other_inputs_begins_anew(tmp_path: Path) -> None:
    one = {"previous_state": ArtifactId("a" * 64), "previous_train": ArtifactId("b" * 64)}
    other = one | {"previous_state": ArtifactId("c" * 64)}
    folders = [scratch_of(tmp_path, replace(order(), inputs=inputs)) for inputs in (one, other)]
    assert len({scratch_of(tmp_path, order()), *folders}) == 3
    turned = dict(reversed(one.items()))
    assert scratch_of(tmp_path, replace(order(), inputs=turned)) == folders[0]


def test_a_finished_item_leaves_nothing(tmp_path: Path) -> None:
    folder = made(scratch_of(tmp_path, order()))
    remove_scratch(tmp_path, order("r1/collect/1"))
    assert folder.exists()
    remove_scratch(tmp_path, order())
    remove_scratch(tmp_path, order())
    assert not folder.exists()


def test_what_nobody_came_back_to_for_a_week_is_removed(tmp_path: Path) -> None:
    old = made(tmp_path / "old", ABANDONED_S + 60)
    young = made(tmp_path / "young", ABANDONED_S - 3600)
    busy = made(tmp_path / "busy", ABANDONED_S + 60)
    (busy / "crawl.db").write_text("more pages")
    remove_stale(tmp_path)
    assert (old.exists(), young.exists(), busy.exists()) == (False, True, True)


async def test_a_worker_finds_its_folder_again_until_the_item_is_finished(tmp_path: Path) -> None:
    """The first try fails, for the folder isn't there; the second one finds what it left."""
    notes = tmp_path / "notes"
    params = {
        "source": {"kind": "web", "urls": ["http://127.0.0.1:9/"], "allow_private_addresses": True},
        "holdout": {"salt": "s"},
        "language": "en",
        "fetched_at": "2026-01-01T00:00:00Z",
    }
    async with serving(tmp_path, "one", readable_folders=(tmp_path,)) as one:
        folder = scratch_of(one.state_dir.scratch, order())
        failing = WorkOrder(order().id, 1, "collect", params, {})
        failed: JupiterError | None = None
        try:
            async for _ in one.worker_runner.run(failing):
                pass
        except JupiterError as error:
            failed = error
        assert isinstance(failed, SourceUnreachableError)
        assert folder.is_dir()
        notes.mkdir()
        (notes / "a.md").write_text("text")
        params["source"] = {"kind": "folder", "path": str(notes), "license": "MIT"}
        working = WorkOrder(order().id, 2, "collect", params, {})
        said = [event async for event in one.worker_runner.run(working)]
        assert isinstance(said[-1], Finished)
        assert set(said[-1].result.outputs) == {"train", "holdout", "state", "skipped"}
        assert not folder.exists()


def test_a_file_that_goes_while_it_is_looked_at_takes_nothing_with_it(tmp_path: Path) -> None:
    (tmp_path / "busy").mkdir()
    (tmp_path / "busy" / "gone").symlink_to(tmp_path / "nothing")  # found, and then not there
    remove_stale(tmp_path)
    assert (tmp_path / "busy").exists()
