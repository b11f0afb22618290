"""Too many passes over text of this machine are told before anything starts."""

from pathlib import Path

import pytest

from jupiterd.ctl.sources.text_passes import passes_lines

TOLD = {"batch_sequences": 4, "seq_len": 128}


def asked(path: Path, steps: int, **more: int) -> dict[str, object]:
    settings = {"max_steps": steps, **more}
    return {"source": {"kind": "folder", "path": str(path)}, "settings": settings}


def test_many_passes_over_little_text_are_told_with_their_number(tmp_path: Path):
    (tmp_path / "a.txt").write_text("word " * 600)
    (line,) = passes_lines(TOLD, asked(tmp_path, 100))
    assert line == (
        "It takes at least about 57 passes over the text; more than 16 over the same text are "
        "worthless (Muennighoff et al. 2023): take fewer steps, or more text"
    )


def test_a_batch_that_follows_from_the_text_is_taken_as_small_as_it_will_be(tmp_path: Path):
    (tmp_path / "a.txt").write_text("word " * 600)
    (line,) = passes_lines(
        TOLD | {"batch_sequences": 32, "least_batch_sequences": 4}, asked(tmp_path, 100)
    )
    assert "at least about 57 passes" in line


def test_epochs_that_end_before_the_steps_do_are_the_passes(tmp_path: Path):
    (tmp_path / "a.txt").write_text("word " * 600)
    assert passes_lines(TOLD, asked(tmp_path, 100, epochs=2)) == []
    (line,) = passes_lines(TOLD, asked(tmp_path, 100, epochs=20))
    assert "at least about 20 passes" in line


@pytest.mark.parametrize("name", ["b.jsonl.gz", "b.PARQUET", "b.epub"])
def test_nothing_is_told_where_a_file_may_hold_more_text_than_bytes(tmp_path: Path, name: str):
    (tmp_path / "a.txt").write_text("word " * 600)
    (tmp_path / name).write_bytes(b"packed")
    assert passes_lines(TOLD, asked(tmp_path, 100)) == []


def test_nothing_is_told_of_what_can_t_be_looked_at(tmp_path: Path):
    too_long = tmp_path / ("a" * 300)
    with pytest.raises(OSError, match="too long"):
        too_long.is_file()
    assert passes_lines(TOLD, asked(too_long, 100)) == []


def test_nothing_is_told_of_few_passes_or_of_what_nobody_knows(tmp_path: Path):
    assert passes_lines(TOLD, asked(tmp_path, 100)) == []
    (tmp_path / "a.txt").write_text("word " * 600)
    assert passes_lines(TOLD, asked(tmp_path, 20)) == []
    assert passes_lines(TOLD, {"data": "letters", "settings": {"max_steps": 10_000}}) == []
    assert passes_lines({}, asked(tmp_path, 100)) == []
