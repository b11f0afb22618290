"""Too many passes over text of this machine are told before anything starts."""

from pathlib import Path

from jupiterd.ctl.text_passes import passes_lines

TOLD = {"batch_sequences": 4, "seq_len": 128}


def asked(path: Path, steps: int) -> dict[str, object]:
    return {"source": {"kind": "folder", "path": str(path)}, "settings": {"max_steps": steps}}


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


def test_nothing_is_told_of_few_passes_or_of_what_nobody_knows(tmp_path: Path):
    assert passes_lines(TOLD, asked(tmp_path, 100)) == []
    (tmp_path / "a.txt").write_text("word " * 600)
    assert passes_lines(TOLD, asked(tmp_path, 20)) == []
    assert passes_lines(TOLD, {"data": "letters", "settings": {"max_steps": 10_000}}) == []
    assert passes_lines({}, asked(tmp_path, 100)) == []
