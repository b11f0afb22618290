"""A look at what a data set would hold out comes to what the task itself does."""

from itertools import count

from jupiterd.cycle.runs.run_settings import DataSettings
from jupiterd.workers.data.pack.prepare_dataset import prepare
from jupiterd.workers.data.survey import split_preview
from jupiterd.workers.data.survey.split_preview import held_out_ahead
from tests.support.workers.chat_material import chat_tokenizer, pair, write_rows


def folder(tmp_path):
    root = tmp_path / "texts"
    for number in range(60):
        (root / f"part{number % 12}").mkdir(parents=True, exist_ok=True)
        text = " ".join(f"word{number}{place}" for place in range(80))
        (root / f"part{number % 12}" / f"{number}.txt").write_text(text)
    return {"kind": "folder", "path": str(root), "vocab_size": 300}


def test_as_much_is_foretold_as_is_held_out(tmp_path):
    source = folder(tmp_path)
    found = held_out_ahead({"source": source, "within_s": 60.0})
    counts = prepare(DataSettings.parse(source), None, tmp_path / "out")
    assert found["documents"] == counts["holdout_documents"] > 0
    assert (found["bytes"], found["clusters"]) == (
        counts["holdout_bytes"], counts["holdout_clusters"]
    )  # fmt: skip
    assert (found["read"], found["is_whole"]) == (60, True)
    assert all(name.startswith("part") for name in found["names"])


def test_conversations_are_foretold_as_they_are_held_out(tmp_path):
    given = chat_tokenizer(tmp_path / "given")
    rows = [{"messages": pair({"prompt": f"What is {n}?", "completion": f"{n * n}"})}
            for n in range(60)]  # fmt: skip
    source = {
        "kind": "folder",
        "path": str(write_rows(tmp_path / "rows.jsonl", rows)),
        "holdout": 0.2,
    }
    found = held_out_ahead({"source": source, "within_s": 60.0})
    counts = prepare(DataSettings.parse(source), given, tmp_path / "out")
    assert (found["form"], found["read"]) == ("messages", 60)
    assert found["documents"] == counts["holdout_documents"] > 0
    mixed = write_rows(tmp_path / "mixed.jsonl", [*rows, {"text": "It is 1."}])
    refused = held_out_ahead({"source": {**source, "path": str(mixed)}, "within_s": 60.0})
    assert "line 61 of mixed.jsonl has text" in refused["why_not"]


def test_a_look_that_has_no_time_left_says_so(tmp_path, monkeypatch):
    seconds = count()
    monkeypatch.setattr(split_preview.time, "monotonic", lambda: float(next(seconds)))
    found = held_out_ahead({"source": folder(tmp_path), "within_s": 19.0})
    assert 0 < found["read"] < 60
    assert not found["is_whole"]


def test_a_folder_without_text_is_told_as_such(tmp_path):
    (tmp_path / "a.md").write_bytes(b"\x89PNG\0\0\0\rIHDR")
    found = held_out_ahead({"source": {"kind": "folder", "path": str(tmp_path)}, "within_s": 9.0})
    assert "has no text" in found["why_not"]
    assert (found["code"], "pdf" in found["hint"]) == ("empty-source", True)


def test_a_look_for_any_text_ends_with_the_first_one(tmp_path):
    found = held_out_ahead({"source": folder(tmp_path), "within_s": 60.0, "most_texts": 1})
    assert (found["read"], found["is_whole"]) == (1, False)
