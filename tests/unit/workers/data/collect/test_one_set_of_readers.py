"""A folder gives the same text to a data set as to a domain, and says what it leaves out."""

import gzip
import io
import json
from dataclasses import replace

import pytest

from jupiterd.cycle.base.work_item import Phase
from jupiterd.cycle.domain.data_sources import FolderSource, JsonlSource
from jupiterd.cycle.rounds.phase_summary import summarise
from jupiterd.errors import EmptySourceError
from jupiterd.workers.data.collect import collect_source as collecting
from jupiterd.workers.data.collect.text_files import TextFiles
from jupiterd.workers.data.collectors.folder import Folder
from jupiterd.workers.data.collectors.jsonl import Jsonl
from jupiterd.workers.data.extract import encodings
from jupiterd.workers.data.extract.extraction import Extractor
from jupiterd.workers.data.skips import SkipCounts, SkipReason, UnreadableError
from jupiterd.workers.data.tables.table_rows import json_lines, json_list
from tests.support.workers.collecting import PARAMS, collect, skipped, texts_in
from tests.support.workers.local_site import page
from tests.unit.workers.data.extract.test_extraction import pdf


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "mis docs técnicos"
    root.mkdir()
    (root / "a.html").write_text(page("A page"))
    (root / "b.csv").write_text('id;text\n1;"first; row"\n2;\n3;third row\n')
    (root / "c.json").write_text(json.dumps([{"text": "listed"}, {"other": 1}]))
    (root / "d.jsonl.gz").write_bytes(
        gzip.compress(
            b'{"text": "one"},\n{"text": ["two"]}\n{"text": "half \\ud83d"}\nno json\n'
            b'{"text": "five"}\n'
        )
    )
    (root / "e.pdf").write_bytes(pdf())
    (root / "f.txt").write_bytes("Año, señal y corazón".encode("cp1252"))
    (root / "g.txt.gz").write_bytes(gzip.compress(b"packed text"))
    (root / "h.json").write_text('{"setting": 1}')
    (root / "i.md").write_bytes(b"\x89PNG\0\0\0\rIHDR")
    return root


READ = ["first; row", "third row", "listed", "one", "five", "Hello from a page"]
PLAIN = ["Año, señal y corazón", "packed text", '{"setting": 1}']
LEFT_OUT = {
    "b.csv#2": "empty",
    "c.json#2": "no_field",
    "d.jsonl.gz#2": "no_field",
    "d.jsonl.gz#3": "not_text",
    "d.jsonl.gz#4": "broken",
    "i.md": "not_text",
}


def test_a_data_set_takes_the_text_out_of_every_form(folder):
    skips = SkipCounts()
    with Extractor() as extractor:
        files = TextFiles(folder, "text", extractor, skips)
        first, *others = (each.text for each in files.documents())
    assert first.startswith("# A page\n")
    assert others == [*READ, *PLAIN]
    assert skips.counts.total() == len(LEFT_OUT)
    assert files.skipped_rows == len(LEFT_OUT) - 1
    assert "its fields: text" in skips.details["no_field"] or "other" in skips.details["no_field"]


def test_a_domain_takes_the_same_and_names_what_it_leaves_out(folder, tmp_path):
    source = FolderSource(kind="folder", path=str(folder), license="MIT")
    counts = collect(Folder(source), tmp_path / "out")
    texts = texts_in(tmp_path / "out")
    others = [text for text in texts.values() if not text.startswith("# A page")]
    assert sorted(others) == sorted([*READ, *PLAIN])
    assert "folder:mis docs técnicos/d.jsonl.gz#5" in texts
    left = {uri.rpartition("/")[2]: why for uri, why in skipped(tmp_path / "out").items()}
    assert left == LEFT_OUT
    detail = summarise(Phase.COLLECT, counts)[2]
    assert (
        "left out 6 (no text field 2: folder:mis docs técnicos/c.json#2 (its fields: other), "
        in detail
    )


def test_used_and_left_out_are_what_was_seen(tmp_path):
    root = tmp_path / "notes"
    root.mkdir()
    for number in range(30):
        data = b"\x89PNG\0\0\0" if number % 3 == 0 else f"note {number}".encode()
        (root / f"{number:02}.md").write_bytes(data)
    (root / "big.md").write_bytes(b"x" * 5000)
    (root / "rows.jsonl").write_text('{"text": "row"}\n{"texts": "row"}\n')
    source = FolderSource(kind="folder", path=str(root), license="MIT", max_document_bytes=1024)
    counts = collect(Folder(source), tmp_path / "out")
    used = counts["documents"] + counts.get("holdout_documents", 0)
    assert (used, counts["skipped"]) == (21, 12)
    on_disk = sum(path.stat().st_size for path in root.iterdir())
    assert counts["used_bytes"] + counts["skipped_bytes"] == on_disk


def test_parquet_lies_among_other_files(tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pa.table({"id": [1, 2, 3], "text": ["one", "two", None]})
    parquet.write_table(table, tmp_path / "rows.parquet")
    with Extractor() as extractor:
        files = TextFiles(tmp_path, "text", extractor)
        assert [each.text for each in files.documents()] == ["one", "two"]
    assert files.skips.counts.total() == files.skipped_rows == 1


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ('{"replies": [], "id": 1}\n', "its fields: replies, id"),
        ('{"meta": {"body": "x"}, "id": 1}\n', "its fields: meta.body, id"),
        ("{'text': 'x'}\n", "line 1 isn't JSON: "),
        ("[1]\n", "line 1 is no object of JSON"),
    ],
)
def test_where_no_row_has_text_its_fields_or_fault_are_told(tmp_path, rows, told):
    (tmp_path / "rows.jsonl").write_text(rows)
    with Extractor() as extractor, pytest.raises(EmptySourceError) as caught:
        list(TextFiles(tmp_path, "text", extractor).documents())
    assert told in caught.value.message
    can_be_named = "fields" in told
    assert ("--field NAME" in caught.value.hint) is can_be_named


def test_a_field_within_another_is_named_with_a_dot(tmp_path):
    (tmp_path / "rows.jsonl").write_text('{"meta": {"body": "inner"}}\n')
    with Extractor() as extractor:
        (found,) = TextFiles(tmp_path, "meta.body", extractor).documents()
        assert found.text == "inner"


def test_a_text_whose_markup_takes_too_long_to_clean_is_left_out_and_named(tmp_path, monkeypatch):
    def give_up(_extraction):
        def clean(text, _form):
            if "endless" in text:
                raise UnreadableError(SkipReason.TIMED_OUT)
            return text

        return clean

    monkeypatch.setattr(collecting, "within_limits", give_up)
    root = tmp_path / "docs"
    root.mkdir()
    (root / "a.md").write_text("# An endless page\n")
    (root / "b.md").write_text("# Another page\n")
    source = FolderSource.model_validate({"kind": "folder", "path": str(root)})
    counts = collect(Folder(source), tmp_path / "out")
    assert texts_in(tmp_path / "out") == {"folder:docs/b.md": "# Another page\n"}
    assert skipped(tmp_path / "out") == {"folder:docs/a.md": "timed_out"}
    assert counts["skipped.timed_out"] == 1


def test_a_table_is_in_what_the_domains_language_is_written_in(tmp_path):
    root = tmp_path / "tables"
    root.mkdir()
    (root / "a.csv").write_bytes("id;text\n1;Árvíztűrő tükörfúrógép, őszi\n".encode("cp1250"))
    source = FolderSource(kind="folder", path=str(root), license="MIT")
    collect(Folder(source), tmp_path / "out", replace(PARAMS, language="hu"))
    assert list(texts_in(tmp_path / "out").values()) == ["Árvíztűrő tükörfúrógép, őszi"]


def test_rows_of_another_form_are_refused_with_what_to_write(tmp_path):
    (tmp_path / "rows.jsonl").write_text('{"instruction": "Add 1 and 2.", "output": "3"}\n')
    with Extractor() as extractor, pytest.raises(EmptySourceError) as caught:
        list(TextFiles(tmp_path, "text", extractor).documents())
    assert caught.value.message.endswith("has text in a field called text")
    assert "it has instruction and output: write instruction as prompt" in caught.value.hint


ROWS = [f"Año {number}: señal, corazón, mañana y camión. ¿Qué más?" for number in range(3)]
LINES = "".join(json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in ROWS)


@pytest.mark.parametrize(
    "written",
    [
        LINES.encode("utf-8-sig"),
        LINES.encode("utf-16"),
        LINES.encode("utf-16-le"),
        LINES.encode("utf-32"),
        LINES.encode("cp1252"),
        LINES.replace("\n", "\r\n").encode("cp1252"),
        LINES.replace("\n", "\r").encode(),
        LINES.replace("\n", "\r\n").encode("utf-16"),
        LINES.replace("\n", "\r").encode("utf-16"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_lines_of_json_are_read_however_they_are_written(tmp_path, written, packed):
    """By a data set, by a folder of a domain, and by a domain's source of tables."""
    root = tmp_path / "rows"
    root.mkdir()
    name, data = ("a.jsonl.gz", gzip.compress(written)) if packed else ("a.jsonl", written)
    (root / name).write_bytes(data)
    with Extractor() as extractor:
        files = TextFiles(root, "text", extractor, SkipCounts())
        assert [each.text for each in files.documents()] == ROWS
    sources = (
        Folder(FolderSource(kind="folder", path=str(root), license="MIT")),
        Jsonl(JsonlSource(kind="jsonl", path=str(root), license="MIT")),
    )
    for number, source in enumerate(sources):
        counts = collect(source, tmp_path / str(number))
        assert (counts["documents"], counts["skipped"]) == (len(ROWS), 0)
        assert sorted(texts_in(tmp_path / str(number)).values()) == ROWS


def test_a_list_of_rows_is_read_in_an_old_encoding_too():
    data = json.dumps([{"text": text} for text in ROWS], ensure_ascii=False).encode("cp1252")
    rows = json_list(data, "text", "es")
    assert rows is not None
    assert [row.fields["text"] for row in rows] == ROWS


def test_many_lines_of_an_old_encoding_cost_one_guess(monkeypatch):
    guesses = []
    monkeypatch.setattr(encodings, "from_bytes", lambda *_a, **_b: guesses.append(1) or [])
    line = json.dumps({"text": ROWS[0] * 3}, ensure_ascii=False) + "\n"
    stream = io.BytesIO((line * 100).encode("cp1252"))
    assert all(row.reason is None for row in json_lines(stream, 1 << 20, language="es"))
    assert len(guesses) == 1
