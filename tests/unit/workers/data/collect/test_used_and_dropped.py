"""Whatever bytes a file holds: what is used and what is left out of it are what was seen."""

import gzip
import os
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jupiterd.cycle.data.instruction_rows import RowForm
from jupiterd.cycle.domain.data_sources import FolderSource
from jupiterd.errors import EmptySourceError, UsageError
from jupiterd.workers.data.collect.text_files import TextFiles
from jupiterd.workers.data.collectors.folder import Folder
from jupiterd.workers.data.extract.extraction import Extractor
from jupiterd.workers.data.instruction.conversation_files import conversations
from jupiterd.workers.data.skips import SkipCounts, SkipReason
from jupiterd.workers.data.tables.csv_records import records
from tests.support.workers.collecting import collect, skipped, texts_in

PIECES = [
    b"text", b"id", b"one", b'"', b",", b";", b"\t", b"|", b"\n", b"\r\n", b"\r", b"\0", b" ",
    b"{", b"}", b"[", b"]", b'{"text": "one"}\n', b'{"text": 5}\n', b'{"id": 1}', b"text,id\n",
    b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\xff\xfe\0\0", "A\u00f1o".encode("cp1252"),
    "\u65e5\u672c".encode(), "te\u00dft\n".encode("utf-16"), "text,id\none,1\n".encode("utf-16-le"),
]  # fmt: skip
contents = st.lists(st.sampled_from(PIECES) | st.binary(max_size=8), max_size=40).map(b"".join)

ROWS = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".jsonl.gz", ".csv.gz")
TEXTS = (".txt", ".md", ".py", "", ".txt.gz")
WHOLE = (".html", ".ipynb", ".tex", ".pdf", ".docx", ".odt", ".epub")


@pytest.fixture(scope="module")
def extractor() -> Iterator[Extractor]:
    with Extractor() as found:
        yield found


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files")


def read(file: Path, extractor: Extractor) -> tuple[int, SkipCounts]:
    """How many documents a file holds, and what was counted."""
    skips, number = SkipCounts(), 0
    try:
        for _ in TextFiles(file, "text", extractor, skips).documents():
            number += 1
    except EmptySourceError:
        assert skips.counts
    return number, skips


def write(place: Path, name: str, data: bytes) -> Path:
    file = place / name
    file.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return file


def check(skips: SkipCounts, seen: int) -> None:
    assert skips.used_bytes + skips.skipped_bytes == seen
    assert skips.firsts.keys() == skips.counts.keys(), "each reason has a first name"


@pytest.mark.parametrize("ending", [*ROWS, *TEXTS])
@settings(max_examples=25)
@given(data=contents)
@example(data=b"")
@example(data=b"text\n")
@example(data=b'text,id\n"never closed\nnor here\n')
@example(data="text;id\n日本;1\n".encode("utf-16"))
def test_of_rows_and_texts(place: Path, extractor: Extractor, ending: str, data: bytes):
    _, skips = read(write(place, f"file{ending}", data), extractor)
    check(skips, len(data))


@pytest.mark.parametrize("ending", WHOLE)
@settings(max_examples=3)
@given(data=contents)
def test_of_what_is_read_as_a_whole(place: Path, extractor: Extractor, ending: str, data: bytes):
    _, skips = read(write(place, f"file{ending}", data), extractor)
    check(skips, len(data))


@settings(max_examples=50)
@given(rows=st.lists(st.sampled_from(['{"text": "a"}', '{"id": 1}', "", "no json", "[1]"])))
def test_each_line_is_used_or_dropped_once(place: Path, extractor: Extractor, rows: list[str]):
    found, skips = read(
        write(place, "rows.jsonl", "".join(f"{r}\n" for r in rows).encode()), extractor
    )
    assert found == rows.count('{"text": "a"}')
    assert found + skips.counts.total() == max(1, len(rows)), "one without rows is named, too"


@settings(max_examples=50)
@given(
    rows=st.lists(
        st.sampled_from(["a,1", '"a\nb",1', '"a, b",1', "a,1,", "a", "a,1,c", "a, b, c"])
    ),
    delimiter=st.sampled_from(",;\t|"),
    mark=st.sampled_from(["", "\ufeff"]),
)
def test_each_record_is_used_or_dropped_once(
    place: Path, extractor: Extractor, rows: list[str], delimiter: str, mark: str
):
    text = mark + "text,id\n" + "".join(f"{row}\n" for row in rows)
    data = text.replace(",", delimiter).encode()
    found, skips = read(write(place, "rows.csv", data), extractor)
    wrong = sum(row in ("a,1,c", "a, b, c") for row in rows)
    assert found == len(rows) - wrong
    assert skips.counts[SkipReason.BROKEN] == wrong
    check(skips, len(data))


@settings(max_examples=20)
@given(data=contents)
def test_of_conversations(place: Path, data: bytes):
    skips = SkipCounts()
    folder = place / "talk"
    folder.mkdir(exist_ok=True)
    write(folder, "rows.jsonl", data)
    write(folder, "README", b"beside")
    try:
        assert [*conversations(folder, RowForm.MESSAGES, skips)]
    except (EmptySourceError, UsageError) as error:
        if isinstance(error, UsageError):  # rows of another form end it
            return
    check(skips, len(data) + len(b"beside"))


def test_cells_beyond_the_header_are_told_and_empty_ones_are_none():
    found = [*records("id;text\n1;a; b\n2;c;;\n3\n4;d\n")]
    assert [record.cells.get("text") for record in found] == [None, "c", None, "d"]
    assert "row 1 has 3 cells, and the header names 2" in found[0].fault
    assert [record.fault for record in found[1:]] == ["", "", ""]


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ("text,text\na,b\n", {"text": "a", "text (2)": "b"}),
        ("text\na, b; c\n", {"text": "a, b; c"}),
        ("text;n\na, b, c;1\n", {"text": "a, b, c", "n": "1"}),
        ("text\tn\na, b\t1\n", {"text": "a, b", "n": "1"}),
        ('\n\ntext,n\n"two\nlines ""quoted""",1\n', {"text": 'two\nlines "quoted"', "n": "1"}),
    ],
)
def test_a_header_says_how_records_are_cut(text: str, cells: dict[str, str]):
    (record,) = records(text)
    assert (record.cells, record.fault) == (cells, "")


def test_a_parquet_file_without_the_field_names_its_columns(tmp_path: Path, extractor: Extractor):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = {"content": ["a", "b", "c"], "text": ["x", None, " "]}
    parquet.write_table(pyarrow.table(columns), tmp_path / "rows.parquet")
    found, skips = read(tmp_path / "rows.parquet", extractor)
    assert (found, skips.counts) == (1, {"no_field": 1, "empty": 1})
    parquet.write_table(pyarrow.table({"content": ["a", "b"]}), tmp_path / "other.parquet")
    found, skips = read(tmp_path / "other.parquet", extractor)
    assert (found, skips.counts) == (0, {"no_field": 2})
    assert skips.details[SkipReason.NO_FIELD] == "its fields: content"


def test_a_quote_that_is_never_closed_takes_its_own_record_alone_with_a_word():
    *whole, last = records('text,n\nfine,1\n5" disk,2\n"open,3\nsome,4\n')
    assert [record.cells["n"] for record in whole] == ["1", "2"]
    assert "row 3 begins with a quote that is never closed" in last.fault


@pytest.mark.parametrize("last", ['5" disk,4\n', '\n\n5" disk,4', '"two\nlines",4"'])
def test_a_sign_of_inches_at_the_end_of_a_text_opens_nothing(last: str):
    *_, record = records(f"text,n\nfine,1\n{last}")
    assert record.fault == ""
    assert record.cells["n"].startswith("4")


def odd_folder(root: Path) -> int:
    """Fill a folder with what is no file, and names of any bytes; return the bytes of its files."""
    root.mkdir()
    files = {
        b"a \xff\xfe.txt": b"one", b"wide.txt": "A\u00f1o, two".encode("utf-16"),
        b"latin.txt": "se\u00f1al, coraz\u00f3n y a\u00f1o".encode("latin-1"), b"empty.txt": b"",
        b"line\nbreak.txt": b"three", b"long.txt": b"x" * 300_000, b"pic.png": b"\x89PNG",
        b"rows.jsonl": b'{"text": "four"}\n{"content": "five"}\n',
    }  # fmt: skip
    for name, data in files.items():
        (root / os.fsdecode(name)).write_bytes(data)
    os.mkfifo(root / "pipe.txt")
    with socket.socket(socket.AF_UNIX) as listening:
        os.chdir(root)
        listening.bind("socket.txt")
    (root / "gone.txt").symlink_to(root / "nowhere")
    (root / "out.txt").symlink_to("/etc/hostname")
    (root / "round").symlink_to(root)
    return sum(map(len, files.values()))


NO_FILES = {"pipe.txt", "socket.txt", "gone.txt"}


def test_a_folder_of_odd_things_hangs_nobody_and_each_is_counted(
    tmp_path: Path, extractor: Extractor, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    seen = odd_folder(tmp_path / "odd")
    skips = SkipCounts()
    texts = [
        each.text for each in TextFiles(tmp_path / "odd", "text", extractor, skips).documents()
    ]
    assert {"one", "A\u00f1o, two", "se\u00f1al, coraz\u00f3n y a\u00f1o", "three", "four"} <= {
        *texts
    }
    assert skips.counts == {"no_file": 3, "leads_out": 1, "empty": 1, "no_field": 1}
    assert skips.other_files == 1
    check(skips, seen)


def test_a_domain_counts_the_same_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    seen = odd_folder(tmp_path / "odd")
    source = FolderSource(kind="folder", path=str(tmp_path / "odd"), license="MIT")
    counts = collect(Folder(source), tmp_path / "out")
    assert len(texts_in(tmp_path / "out")) == 6
    names = {re.split("[:/]", uri)[-1]: why for uri, why in skipped(tmp_path / "out").items()}
    assert {name for name, why in names.items() if why == "no_file"} == NO_FILES
    assert counts["used_bytes"] + counts["skipped_bytes"] == seen
