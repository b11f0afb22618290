import json
import shlex
import sys
from dataclasses import asdict, replace

import pytest

from jupiterd.ctl.data.data_export import write_export
from jupiterd.errors import ConflictError, CorruptArtifactError, MissingExtraError, UsageError
from jupiterd.workers.data.pack.pack_shards import PackParams, pack
from tests.support.workers.data_material import function, real, synthetic, write

REAL = [real(function(number), source="code") for number in range(30)]
DOCS = [real(function(number), source="docs") for number in range(30, 34)]
CHILD = replace(synthetic(function(50)), parents=(DOCS[0].id,))
TOO_MUCH = synthetic(function(51, body_lines=400))  # over the share, so it isn't packed
MANY = [*REAL, *DOCS, CHILD]


@pytest.fixture
def exported(tmp_path):
    """What a daemon names, of a round that was really packed."""
    halves = [MANY[:17], [*MANY[17:], TOO_MUCH]]
    folders = [write(tmp_path / f"kept{n}", half) for n, half in enumerate(halves)]
    pack(folders, None, tmp_path, PackParams(400, 16, 0.3, 1))
    return {
        "name": "python",
        "round": 1,
        "shards": str(tmp_path / "shards"),
        "samples": list(map(str, folders)),
        "purged": [],
    }


def test_the_samples_of_the_shards_are_written_with_their_provenance(exported, tmp_path):
    assert write_export(exported, "jsonl", tmp_path / "out.jsonl") == len(MANY)
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert rows == [json.loads(sample.to_json()) for sample in MANY]


def test_what_was_purged_since_is_left_out(exported, tmp_path):
    left = write_export({**exported, "purged": ["docs"]}, "jsonl", tmp_path / "out.jsonl")
    assert left == len(REAL)


def test_nothing_is_overwritten_and_nothing_half_is_left(exported, tmp_path):
    file = tmp_path / "mine.jsonl"
    file.write_text("mine")
    with pytest.raises(ConflictError):
        write_export(exported, "jsonl", file)
    assert file.read_text() == "mine"
    with pytest.raises(UsageError, match="can't be written"):
        write_export(exported, "jsonl", tmp_path / "nowhere" / "out.jsonl")
    damaged = tmp_path / "kept1" / "samples.jsonl.zst"
    damaged.write_bytes(damaged.read_bytes()[:-40])
    folder = tmp_path / "empty"
    folder.mkdir()
    with pytest.raises(CorruptArtifactError):
        write_export(exported, "jsonl", folder / "out.jsonl")
    assert list(folder.iterdir()) == []


def test_without_pyarrow_the_extra_is_named(exported, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(MissingExtraError) as caught:
        write_export(exported, "parquet", tmp_path / "out.parquet")
    assert caught.value.hint == f"{shlex.quote(sys.executable)} -m pip install 'jupiterd[parquet]'"
    assert not (tmp_path / "out.parquet").exists()


def test_a_parquet_file_has_the_same_rows(exported, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    assert write_export(exported, "parquet", tmp_path / "out.parquet") == len(MANY)
    rows = parquet.read_table(tmp_path / "out.parquet").to_pylist()
    wanted = [asdict(sample) for sample in MANY]
    for row, fields in zip(rows, wanted, strict=True):
        maps = {name: json.loads(row[name]) for name in ("sampler", "filter_scores", "messages")}
        lists = {"parents": tuple(row["parents"]), "messages": tuple(maps["messages"])}
        assert {**row, **maps, **lists} == fields


def test_the_command_asks_the_daemon_where_they_lie(daemon, ctl, exported, tmp_path):
    daemon.documents["export"] = {"schema": "jupiter/v1", "export": exported}
    ran = ctl("data", "export", "python/1", "--to", str(tmp_path / "o.jsonl"))
    assert (ran.exit_code, ran.err) == (0, "")
    assert ran.out == f"{tmp_path}/o.jsonl: {len(MANY)} samples of python, round 1\n"
    assert ctl("data", "export", "python/1", "--to", str(tmp_path / "o.jsonl")).exit_code == 7
    told = ctl("data", "export", "python/1", "--to", str(tmp_path / "p.jsonl"), "-o", "json").out
    said = {"file": str(tmp_path / "p.jsonl"), "format": "jsonl", "samples": len(MANY)}
    assert json.loads(told) == {"schema": "jupiter/v1", **said}
