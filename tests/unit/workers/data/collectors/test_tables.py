"""Collecting rows: JSON lines, packed or not, and Parquet where its library is installed."""

import gzip
import json
import os
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
import zstandard

from jupiterd.cycle.base.licenses import LicensePolicy
from jupiterd.cycle.domain.data_sources import JsonlSource, ParquetSource
from jupiterd.errors import EmptySourceError, MissingExtraError
from jupiterd.path_text import path_text
from jupiterd.workers.data.collect.collect_source import CollectParams
from jupiterd.workers.data.collectors.jsonl import Jsonl
from jupiterd.workers.data.collectors.parquet import Parquet
from jupiterd.workers.data.skips import SkipReason
from jupiterd.workers.data.tables import parquet_file
from jupiterd.workers.data.tables.isolated_tables import TableLimits, rows_apart
from tests.support.workers.collecting import PARAMS, collect, samples_in, skipped, texts_in

ROWS = [
    {"text": "one", "license": "MIT", "site": "a.example", "url": "https://a.example/1"},
    {"text": "two", "license": "CC-BY-4.0", "site": "a.example", "url": "https://a.example/2"},
    {"text": "three", "site": "b.example"},
]
PACK = {"": bytes, ".gz": gzip.compress, ".zst": zstandard.ZstdCompressor().compress}


def lines(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def jsonl(path, **changes):
    fields = {"license": "MIT", **changes}
    return Jsonl(JsonlSource(kind="jsonl", path=str(path), **fields))


@pytest.mark.parametrize("packed", PACK)
def test_each_line_is_a_document(tmp_path, packed):
    (tmp_path / f"rows.jsonl{packed}").write_bytes(PACK[packed](lines(*ROWS)))
    collect(jsonl(tmp_path / f"rows.jsonl{packed}"), tmp_path / "out")
    assert texts_in(tmp_path / "out") == {
        f"jsonl:rows.jsonl{packed}#1": "one",
        f"jsonl:rows.jsonl{packed}#2": "two",
        f"jsonl:rows.jsonl{packed}#3": "three",
    }


def test_rows_of_code_stay_as_they_are(tmp_path):
    code = Path(shlex.__file__).read_text()
    (tmp_path / "rows.jsonl").write_bytes(lines({"text": code}))
    collect(
        jsonl(tmp_path / "rows.jsonl"), tmp_path / "out", replace(PARAMS, language="code:python")
    )
    (sample,) = samples_in(tmp_path / "out")
    assert sample.text == code
    assert sample.document_kind == "code:python"


def test_a_row_says_itself_where_it_comes_from_and_under_which_licence(tmp_path):
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "a.jsonl").write_bytes(lines(*ROWS))
    (tmp_path / "rows" / "readme.txt").write_text("no rows")
    fields = {"license_field": "license", "cluster_field": "site", "uri_field": "url"}
    collect(jsonl(tmp_path / "rows", license="Apache-2.0", **fields), tmp_path / "out")
    found = [(s.source_uri, s.license, s.cluster_id) for s in samples_in(tmp_path / "out")]
    assert found == [
        ("https://a.example/1#1", "MIT", "a.example"),
        ("https://a.example/2#2", "CC-BY-4.0", "a.example"),
        ("jsonl:rows/a.jsonl#3", "Apache-2.0", "b.example"),
    ]


def test_rows_that_the_policy_does_not_permit_are_left_out(tmp_path):
    (tmp_path / "rows.jsonl").write_bytes(lines(*ROWS))
    policy = LicensePolicy(allow=("MIT",))
    params = CollectParams(0.5, "salt", "en", "now", "mine", policy)
    source = jsonl(tmp_path / "rows.jsonl", license="unknown", license_field="license")
    counts = collect(source, tmp_path / "out", params)
    assert list(texts_in(tmp_path / "out").values()) == ["one"]
    assert counts["skipped.license"] == 2
    warned = CollectParams(0.5, "salt", "en", "now", "mine", LicensePolicy(unknown="warn"))
    counts = collect(source, tmp_path / "warned", warned)
    assert (counts["skipped"], counts["unknown_license"]) == (0, 1)


def test_rows_that_say_nothing_or_nonsense_are_left_out(tmp_path):
    text = (
        b'{"text": 5}\n[1]\n{"text"\n\n' + b"[" * 100_000 + b"\n"
        b'{"text": "\\ud800 half a character"}\n\xff\xfe{}\n{"text": "good"}\n{"other": "x"}'
    )
    (tmp_path / "rows.jsonl").write_bytes(text)
    collect(jsonl(tmp_path / "rows.jsonl"), tmp_path / "out")
    assert list(texts_in(tmp_path / "out").values()) == ["good"]
    reasons = {uri.rpartition("#")[2]: why for uri, why in skipped(tmp_path / "out").items()}
    assert reasons == {
        "1": "no_field", "2": "broken", "3": "broken", "4": "empty", "5": "broken", "6": "not_text",
        "7": "not_text", "9": "no_field",
    }  # fmt: skip


@pytest.mark.full
@pytest.mark.parametrize("packed", [".gz", ".zst"])
def test_a_packed_bomb_is_unpacked_no_further_than_the_bound(tmp_path, packed):
    bomb = b'{"text": "first"}\n' + bytes(300 << 20)
    (tmp_path / f"bomb.jsonl{packed}").write_bytes(PACK[packed](bomb))
    source = jsonl(tmp_path / f"bomb.jsonl{packed}", max_bytes=10 << 20, max_document_bytes=1 << 20)
    collect(source, tmp_path / "out")
    assert list(texts_in(tmp_path / "out").values()) == ["first"]
    assert list(skipped(tmp_path / "out").values()) == ["too_large", "over_budget"]


def test_the_bytes_of_all_files_are_bounded_together(tmp_path):
    (tmp_path / "rows").mkdir()
    for name in "abcd":
        rows = lines(*({"text": f"{name} {number}", "rest": "x" * 600} for number in range(2)))
        (tmp_path / "rows" / f"{name}.jsonl").write_bytes(rows)
    collect(jsonl(tmp_path / "rows", max_bytes=1500), tmp_path / "out")
    assert list(texts_in(tmp_path / "out").values()) == ["a 0", "a 1", "b 0"]
    beyond = ("b.jsonl#2", "c.jsonl", "d.jsonl")
    assert skipped(tmp_path / "out") == {f"jsonl:rows/{n}": "over_budget" for n in beyond}


def test_a_line_that_is_too_long_costs_the_others_nothing(tmp_path):
    rows = [{"text": "before"}, {"text": "x" * 5000}, {"text": "after"}]
    (tmp_path / "rows.jsonl").write_bytes(lines(*rows))
    collect(jsonl(tmp_path / "rows.jsonl", max_document_bytes=2048), tmp_path / "out")
    assert list(texts_in(tmp_path / "out").values()) == ["before", "after"]
    assert list(skipped(tmp_path / "out").values()) == ["too_large"]


def test_a_packed_file_that_is_cut_off_gives_what_it_has(tmp_path):
    noise = [{"text": f"row {number} {number * 7919 % 1000}"} for number in range(5000)]
    (tmp_path / "cut.jsonl.gz").write_bytes(gzip.compress(lines(*noise))[:-200])
    collect(jsonl(tmp_path / "cut.jsonl.gz"), tmp_path / "out")
    assert 1000 < len(texts_in(tmp_path / "out")) < 5000
    assert "broken" in skipped(tmp_path / "out").values()


def test_rows_are_bounded(tmp_path):
    (tmp_path / "rows.jsonl").write_bytes(lines(*({"text": f"row {n}"} for n in range(50))))
    counts = collect(jsonl(tmp_path / "rows.jsonl", max_documents=10), tmp_path / "out")
    assert len(texts_in(tmp_path / "out")) == 10
    assert counts["skipped.too_many"] == 1


def test_rows_that_did_not_change_keep_their_samples(tmp_path):
    (tmp_path / "rows.jsonl").write_bytes(lines(*ROWS))
    collect(jsonl(tmp_path / "rows.jsonl"), tmp_path / "one")
    (tmp_path / "rows.jsonl").write_bytes(lines(*ROWS, {"text": "four"}))
    later = CollectParams(**{**vars(PARAMS), "fetched_at": "2027-01-01T00:00:00Z"})
    collect(jsonl(tmp_path / "rows.jsonl"), tmp_path / "two", later, before=tmp_path / "one")
    when = {sample.text: sample.fetched_at[:4] for sample in samples_in(tmp_path / "two")}
    assert when == {"one": "2026", "two": "2026", "three": "2026", "four": "2027"}


def test_a_table_that_is_not_there_says_so(tmp_path):
    with pytest.raises(EmptySourceError, match="there is no file or folder"):
        collect(jsonl(tmp_path / "gone.jsonl"), tmp_path / "out")


def test_a_table_may_lie_below_a_name_that_is_not_utf_8(tmp_path):
    root = tmp_path / os.fsdecode(b"filas-\xf1")
    with pytest.raises(EmptySourceError) as caught:
        collect(jsonl(path_text(root)), tmp_path / "none")
    assert r"filas-\xf1 on this" in caught.value.message
    root.mkdir()
    (root / "a.jsonl").write_bytes(lines(*ROWS))
    (root / "out.jsonl").symlink_to(Path("/etc/hostname"))
    collector = jsonl(path_text(root))
    collector.name.encode()
    collect(collector, tmp_path / "out")
    assert r"jsonl:filas-\xf1/a.jsonl#1" in texts_in(tmp_path / "out")
    assert skipped(tmp_path / "out") == {r"filas-\xf1/out.jsonl": "leads_out"}


def test_parquet_is_read_or_its_library_asked_for(tmp_path):
    source = ParquetSource(
        kind="parquet", path=str(tmp_path / "rows.parquet"), license="MIT", uri_field="url"
    )
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ModuleNotFoundError:
        with pytest.raises(MissingExtraError, match="need the package pyarrow") as caught:
            collect(Parquet(source), tmp_path / "out")
        assert f"{shlex.quote(sys.executable)} -m pip install pyarrow" in caught.value.hint
        return
    rows = [{name: row.get(name) for name in ("text", "url")} for row in ROWS]
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "rows.parquet")
    collect(Parquet(source), tmp_path / "out")
    assert texts_in(tmp_path / "out") == {
        "https://a.example/1#1": "one",
        "https://a.example/2#2": "two",
        "parquet:rows.parquet#3": "three",
    }
    (tmp_path / "rows.parquet").write_bytes(b"PAR1 nonsense")
    with pytest.raises(EmptySourceError, match="broken 1"):
        collect(Parquet(source), tmp_path / "broken")


def test_a_table_in_a_form_that_its_library_does_not_know_is_left_out(monkeypatch):
    class ArrowNotImplementedError(NotImplementedError):
        """As it is in pyarrow: no OSError, and no ValueError."""

    def unknown(_path):
        raise ArrowNotImplementedError("an unknown codec")

    library, parquet = ModuleType("pyarrow"), ModuleType("pyarrow.parquet")
    parquet.__dict__["ParquetFile"] = unknown
    library.__dict__["parquet"] = parquet
    monkeypatch.setitem(sys.modules, library.__name__, library)
    monkeypatch.setitem(sys.modules, parquet.__name__, parquet)
    assert list(parquet_file.rows(Path("rows.parquet"), ["text"])) == [SkipReason.BROKEN]


def write_bomb(path, characters, rows):
    """Write a table of one text again and again, which packs to next to nothing."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    texts = pa.DictionaryArray.from_arrays([0] * rows, ["a" * characters])
    parquet.write_table(pa.table({"text": texts}), path, compression="zstd")
    assert path.stat().st_size < 100_000


def test_a_table_that_unpacks_to_any_size_costs_its_bounds_and_no_more(tmp_path):
    write_bomb(tmp_path / "rows.parquet", 2 << 20, 1000)
    source = ParquetSource(
        kind="parquet", path=str(tmp_path), license="MIT", max_bytes=10 << 20,
        max_document_bytes=1 << 20,
    )  # fmt: skip
    (tmp_path / "whole.parquet").symlink_to("rows.parquet")
    with pytest.raises(EmptySourceError, match="too large 10, over budget 2"):
        collect(Parquet(source), tmp_path / "out")


@pytest.mark.full
def test_a_table_that_fills_the_memory_costs_nothing_but_itself(tmp_path):
    (tmp_path / "rows").mkdir()
    write_bomb(tmp_path / "rows" / "a.parquet", 64 << 20, 16)
    write_bomb(tmp_path / "rows" / "b.parquet", 5, 1)
    source = ParquetSource(kind="parquet", path=str(tmp_path / "rows"), license="MIT")
    collect(Parquet(source, TableLimits(memory_bytes=600 << 20)), tmp_path / "out")
    assert texts_in(tmp_path / "out") == {"parquet:rows/b.parquet#1": "aaaaa"}
    assert skipped(tmp_path / "out") == {"parquet:rows/a.parquet#1": "out_of_memory"}


def fake_process(monkeypatch, body):
    """Let a process run in the reader's place."""
    script = f"import os, signal, time; {body}"
    real = subprocess.Popen
    monkeypatch.setattr(
        subprocess, "Popen", lambda _command, **named: real([sys.executable, "-c", script], **named)
    )


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("os.kill(os.getpid(), signal.SIGSEGV)", "crashed"),
        ("os.abort()", "out_of_memory"),
        ("os.write(0, bytes([0] * 8 + [9]))", "crashed"),
        ("time.sleep(60)", "timed_out"),
    ],
)
def test_a_reader_that_dies_or_stands_still_says_what_of(monkeypatch, body, reason):
    fake_process(monkeypatch, body)
    limits = TableLimits(silence_s=0.2 if reason == "timed_out" else 30.0)
    assert list(rows_apart("parquet", {"path": "x"}, ["text"], limits)) == [reason]
