"""Which text of a folder becomes documents."""

import gzip
import json
import os

import pytest
import zstandard

from jupiterd.errors import EmptySourceError
from jupiterd.workers.data.collect import text_files
from jupiterd.workers.data.collect.text_files import TextFiles
from jupiterd.workers.data.extract.extraction import Extractor


@pytest.fixture(scope="module", autouse=True)
def extractor():
    with Extractor() as found:
        _SHARED.append(found)
        yield found


_SHARED: list[Extractor] = []


def text_files_of(path, field="text"):
    return TextFiles(path, field, _SHARED[-1])


def documents(path, field="text"):
    return [each.text for each in text_files_of(path, field).documents()]


def rows(*texts, field="text"):
    return "".join(json.dumps({"id": n, field: text}) + "\n" for n, text in enumerate(texts))


def test_each_file_is_a_document_in_the_order_of_their_names(tmp_path):
    (tmp_path / "b.txt").write_text("second")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "deep.md").write_text("first")
    (tmp_path / "c.py").write_text("print('third')")
    assert documents(tmp_path) == ["first", "second", "print('third')"]


def test_a_single_file_will_do(tmp_path):
    (tmp_path / "letter.txt").write_text("dear all")
    assert documents(tmp_path / "letter.txt") == ["dear all"]


@pytest.mark.parametrize("packed", ["", ".gz", ".zst"])
def test_each_line_of_a_table_is_a_document(tmp_path, packed):
    data = rows("one", "  ", "two").encode()
    pack = {"": bytes, ".gz": gzip.compress, ".zst": zstandard.ZstdCompressor().compress}[packed]
    (tmp_path / f"table.jsonl{packed}").write_bytes(pack(data))
    assert documents(tmp_path) == ["one", "two"]


def test_the_text_may_lie_in_another_field(tmp_path):
    (tmp_path / "table.jsonl").write_text(rows("one", field="content"))
    assert documents(tmp_path, "content") == ["one"]
    with pytest.raises(
        EmptySourceError,
        match="no row of its tables has text in a field called text; its fields: id, content",
    ):
        documents(tmp_path)


def test_hidden_files_and_links_that_lead_out_are_left_alone(tmp_path):
    (tmp_path / "secret").write_text("not yours")
    inside = tmp_path / "texts"
    (inside / ".git").mkdir(parents=True)
    (inside / ".git" / "config").write_text("hidden")
    (inside / "out.txt").symlink_to(tmp_path / "secret")
    (inside / "in.txt").write_text("yours")
    files = text_files_of(inside)
    assert [each.text for each in files.documents()] == ["yours"]
    assert files.skips.firsts == {"leads_out": "out.txt"}


def test_what_cannot_be_listed_or_is_empty_is_counted_too(tmp_path, monkeypatch):
    (tmp_path / "empty.txt").touch()
    (tmp_path / "closed").mkdir()
    (tmp_path / "good.txt").write_text("text")
    scan = os.scandir

    def refuses(folder):
        if folder.name == "closed":
            raise PermissionError
        return scan(folder)

    monkeypatch.setattr("jupiterd.workers.data.collectors.files.os.scandir", refuses)
    files = text_files_of(tmp_path)
    assert [each.text for each in files.documents()] == ["text"]
    assert files.skips.firsts == {"empty": "empty.txt", "unreadable": "closed/"}


def test_a_folder_of_hidden_files_is_not_called_empty(tmp_path):
    (tmp_path / ".notes.txt").write_text("hidden")
    with pytest.raises(EmptySourceError, match="has only hidden files"):
        documents(tmp_path)


def test_rows_that_are_no_json_are_not_told_to_name_a_field(tmp_path):
    (tmp_path / "odd.jsonl").write_text("{'text': 'one'}\n")
    with pytest.raises(EmptySourceError, match="line 1 isn't JSON") as told:
        documents(tmp_path)
    assert "--field" not in told.value.hint


def test_what_is_no_text_is_skipped_and_counted(tmp_path):
    (tmp_path / "noise.txt").write_bytes(bytes(range(256)))
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\0\0")
    (tmp_path / "broken.jsonl.gz").write_bytes(gzip.compress(rows("one").encode())[:-12])
    (tmp_path / "good.txt").write_text("text")
    (tmp_path / "odd.jsonl").write_text("no json\n[]\n" + rows("two"))
    files = text_files_of(tmp_path)
    assert [each.text for each in files.documents()] == ["text", "two"]
    assert files.skips.firsts == {
        "broken": "broken.jsonl.gz",
        "not_text": "noise.txt",
    }
    assert (files.skips.counts.total(), files.skipped_rows) == (4, 2)
    assert files.skips.other_files == 1
    assert files.skips.seen_bytes == sum(path.stat().st_size for path in tmp_path.iterdir())


def test_a_long_file_is_cut_where_lines_end_and_nothing_is_lost(tmp_path, monkeypatch):
    monkeypatch.setattr(text_files, "PIECE_BYTES", 64)
    text = "".join(f"line {number} with \u00e9\u20ac\U0001f600\n" for number in range(50))
    (tmp_path / "long.txt").write_text(text)
    pieces = documents(tmp_path)
    assert len(pieces) > 10
    assert "".join(pieces) == text
    assert all(piece.endswith("\n") for piece in pieces)


@pytest.mark.parametrize("length", range(60, 70))
def test_a_line_without_end_is_cut_between_characters(tmp_path, monkeypatch, length):
    monkeypatch.setattr(text_files, "PIECE_BYTES", 64)
    text = "x" * (length % 4) + "\U0001f600" * length
    (tmp_path / "long.txt").write_text(text)
    assert "".join(documents(tmp_path)) == text


def test_a_folder_that_is_missing_empty_or_without_text_is_told_in_a_line(tmp_path):
    with pytest.raises(EmptySourceError, match="there is no folder or file"):
        documents(tmp_path / "nowhere")
    with pytest.raises(EmptySourceError, match="is empty"):
        documents(tmp_path)
    (tmp_path / "picture.png").write_bytes(b"\xff\xfe\0")
    (tmp_path / "blank.txt").write_text("  \n")
    with pytest.raises(
        EmptySourceError, match=r"none of its files \(2\) can be read: .*empty 1, such as blank.txt"
    ):
        documents(tmp_path)
