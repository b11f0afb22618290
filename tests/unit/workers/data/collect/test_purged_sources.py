"""A source that was purged by name: it isn't gone to, and the round has empty folders of it."""

from pathlib import Path

from jupiterd.protocol.frames import TaskFinished
from jupiterd.workers.data.collect.previous_round import PreviousRound
from jupiterd.workers.samples.sample_file import read_all
from tests.support.workers.collecting import skipped
from tests.support.workers.data_material import FETCHED_AT, real, run_worker, write


def collected(tmp_path: Path, source: str, purged: list[str]):
    tmp_path.mkdir(exist_ok=True)
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("a text of the folder\n")
    given = {"kind": "folder", "name": source, "path": str(tmp_path / "texts"), "license": "MIT"}
    params = {
        "source": given,
        "language": "en",
        "license_policy": {"allow": ["PSF-2.0"]} if purged == ["docs"] else {},
        "fetched_at": FETCHED_AT,
        "purged": purged,
    }
    before = {"previous_documents": write(tmp_path / "before", [real("of the round before")])}
    return run_worker("collect", params, before, tmp_path / "out")


def test_nothing_is_read_of_a_purged_source_and_every_output_is_there(tmp_path: Path) -> None:
    end = collected(tmp_path, "docs", ["docs"])
    assert isinstance(end, TaskFinished), end
    assert end.counts == {"not_collected:docs": 1}
    folders = {name: tmp_path / "out" / place for name, place in end.outputs.items()}
    assert sorted(folders) == ["documents", "skipped", "state"]
    assert list(read_all([folders["documents"]])) == []
    assert skipped(tmp_path / "out") == {}


def test_the_next_round_can_begin_from_there(tmp_path: Path) -> None:
    collected(tmp_path, "docs", ["docs"])
    out = tmp_path / "out"
    previous = PreviousRound(tmp_path / "index", [out / "documents"], out / "state")
    assert (previous.count, list(previous.state())) == (0, [])
    previous.close()


def test_a_source_of_which_addresses_are_purged_is_read_but_for_those(tmp_path: Path) -> None:
    for place, expected in (("folder:texts/old", 1), ("folder:texts", 0)):
        end = collected(tmp_path / str(expected), "docs", [place, "other"])
        assert isinstance(end, TaskFinished), end
        assert end.counts["documents"] == expected
        assert end.counts.get(f"left_out:{place}", 0) == 1 - expected
