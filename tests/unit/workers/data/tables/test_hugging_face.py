"""Collecting a Hugging Face data set: from a hub on this machine, by the library itself."""

import gzip
import json
import socket
import subprocess
import sys
from dataclasses import replace
from types import ModuleType

import pytest

from jupiterd.cycle.domain.data_sources import HuggingFaceSource
from jupiterd.errors import (
    EmptySourceError,
    MissingExtraError,
    SourceUnreachableError,
    UsageError,
)
from jupiterd.workers.data.collectors import hugging_face as collector
from jupiterd.workers.data.collectors.hugging_face import HuggingFace
from jupiterd.workers.data.skips import SkipReason
from jupiterd.workers.data.tables import hugging_face
from tests.support.workers.collecting import PARAMS, collect, samples_in, skipped, texts_in
from tests.support.workers.local_hub import NAME, serving_hub

pytestmark = pytest.mark.timeout(180)  # the library alone takes a second to load, each time

ROWS = [{"text": f"row {number}", "url": f"https://a.example/{number}"} for number in range(3)]


READ = """
import json, sys
from jupiterd.workers.data.tables.table_process import batches_of_rows
texts = [row["text"] for rows in batches_of_rows(json.loads(sys.argv[1])) for row in rows]
print(json.dumps([texts, "torch" in sys.modules]))
"""


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def source(path=NAME, **changes):
    return HuggingFaceSource(kind="hugging_face", path=path, **{"license": "MIT", **changes})


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """Serve a data set on this machine in the hub's place."""
    pytest.importorskip("datasets", reason="the package datasets isn't installed")
    from huggingface_hub import constants

    with serving_hub() as served:
        monkeypatch.setattr(constants, "ENDPOINT", served.url)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setenv("HF_ENDPOINT", served.url)
        monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
        monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
        yield served


@pytest.mark.full
@pytest.mark.net
def test_a_data_set_is_read_at_its_newest_commit_and_again_once_there_is_another(hub, tmp_path):
    hub.files = {"data/train-0.jsonl": lines(ROWS[:2]), "data/train-1.jsonl": lines(ROWS[2:])}
    first = hub.commit
    collect(HuggingFace(source(uri_field="url")), tmp_path / "one")
    samples = samples_in(tmp_path / "one")
    assert [sample.text for sample in samples] == ["row 0", "row 1", "row 2"]
    assert samples[0].source_uri == "https://a.example/0#1"
    assert {sample.revision for sample in samples} == {first}

    hub.asked.clear()
    collect(HuggingFace(source(uri_field="url")), tmp_path / "two", before=tmp_path / "one")
    assert samples_in(tmp_path / "two") == samples
    assert not [path for path in hub.asked if "/resolve/" in path]

    hub.files["data/train-1.jsonl"] += lines([{"text": "row 3", "url": "https://a.example/3"}])
    collect(HuggingFace(source(uri_field="url")), tmp_path / "three", before=tmp_path / "two")
    assert len(samples_in(tmp_path / "three")) == 4

    hub.status, hub.code = 404, "RepoNotFound"  # it vanishes
    with pytest.raises(EmptySourceError, match="there is no data set"):
        collect(HuggingFace(source(uri_field="url")), tmp_path / "four", before=tmp_path / "three")


@pytest.mark.full
@pytest.mark.net
def test_a_file_that_cannot_be_read_costs_the_others_nothing(hub, tmp_path):
    hub.files = {
        "data/train-0.jsonl": lines(ROWS[:1]),
        "data/train-1.jsonl": b'{"text": "caf\xe9"}\n',
        "data/train-2.jsonl": lines([{"text": "x" * 5000}, *ROWS[1:]]),
        "data/train-3.jsonl": lines(ROWS),
    }
    hub.gone = {"data/train-3.jsonl"}
    collect(HuggingFace(source(max_document_bytes=2048)), tmp_path / "out")
    assert sorted(texts_in(tmp_path / "out").values()) == ["row 0", "row 1", "row 2"]
    reasons = {uri.rpartition("/")[2]: why for uri, why in skipped(tmp_path / "out").items()}
    assert reasons == {"2": "broken", "3": "too_large", "6": "vanished"}


@pytest.mark.full
@pytest.mark.net
def test_what_cannot_be_had_or_must_not_be_run_is_told_in_a_line(hub, tmp_path):
    def told(error, **changes):
        with pytest.raises(error) as caught:
            collect(HuggingFace(source(**changes)), tmp_path / str(len(list(tmp_path.iterdir()))))
        return caught.value.message

    hub.files = {"prose.py": b"import os"}
    assert "scripts are no longer supported" in told(UsageError)
    hub.files = {"train.jsonl.gz": gzip.compress(lines(ROWS))[:-5]}
    assert told(EmptySourceError).endswith("broken 1")
    hub.status, hub.code = 403, "GatedRepo"
    assert "who have agreed to its terms" in told(EmptySourceError)
    hub.status, hub.code = 503, ""
    assert "can't be had" in told(SourceUnreachableError)
    assert "there is no data set team/other" in told(EmptySourceError, path="team/other")


@pytest.mark.full
@pytest.mark.net
@pytest.mark.parametrize("files", [1, 5])
def test_parts_read_each_file_once_and_together_what_one_reads_alone(hub, tmp_path, files):
    texts = [[f"file {n}, row {row}" for row in range(n + 2)] for n in range(files)]
    hub.files = {
        f"data/train-{n}.jsonl": lines([{"text": text} for text in each])
        for n, each in enumerate(texts)
    }
    collect(HuggingFace(source()), tmp_path / "whole")
    found: list[str] = []
    for part in range(2):
        params = replace(PARAMS, may_be_empty=part > 0)
        counts = collect(HuggingFace(source(), (part, 2)), tmp_path / str(part), params)
        own = list(texts_in(tmp_path / str(part)).values())
        assert sorted(own) == sorted(text for each in texts[part::2] for text in each)
        assert counts["documents"] == len(own)
        found += own
    assert sorted(found) == sorted(texts_in(tmp_path / "whole").values())
    uris = [uri for part in range(2) for uri in texts_in(tmp_path / str(part))]
    assert len(set(uris)) == len(found)


@pytest.mark.full
def test_its_process_reads_rows_without_torch(tmp_path):
    pytest.importorskip("datasets", reason="the package datasets isn't installed")
    (tmp_path / "train.jsonl").write_bytes(lines(ROWS))
    order = {"kind": "hugging_face", "path": str(tmp_path), "subset": "", "split": "train"}
    order |= {"revision": "", "required": "", "fields": ["text"], "most": 100, "most_in_all": 1000}
    told = subprocess.run(
        [sys.executable, "-c", READ, json.dumps(order)], capture_output=True, text=True, check=True
    )
    assert json.loads(told.stdout) == [[row["text"] for row in ROWS], False]


@pytest.mark.full
@pytest.mark.net
def test_parts_have_a_share_of_the_rows_that_are_wanted(hub, tmp_path):
    hub.files = {
        f"data/train-{n}.jsonl": lines([{"text": f"{n}/{row}"} for row in range(10)])
        for n in range(3)
    }
    wanted = source(max_documents=12)
    kept = []
    for part in (0, 1):
        collect(HuggingFace(wanted, (part, 2)), tmp_path / str(part))
        kept.append(sorted(texts_in(tmp_path / str(part)).values()))
    assert kept == [[f"0/{row}" for row in range(8)], [f"1/{row}" for row in range(4)]]
    assert list(skipped(tmp_path / "1").values()) == ["too_many"]


@pytest.mark.full
@pytest.mark.net
def test_a_part_asks_what_has_changed_of_its_own_rows(hub, tmp_path):
    hub.files = {f"data/train-{n}.jsonl": lines([{"text": f"{n}"}]) for n in range(2)}
    collect(HuggingFace(source(), (1, 2)), tmp_path / "one")
    hub.asked.clear()
    collect(HuggingFace(source(), (1, 2)), tmp_path / "two", before=tmp_path / "one")
    assert samples_in(tmp_path / "two") == samples_in(tmp_path / "one")
    assert not [path for path in hub.asked if "/resolve/" in path]


@pytest.mark.full
@pytest.mark.net
def test_the_first_part_of_a_data_set_that_has_no_text_is_an_error(hub, tmp_path):
    hub.files = {"train.jsonl": lines([{"other": "no text"}])}
    with pytest.raises(EmptySourceError, match="has no text that can be used"):
        collect(HuggingFace(source(), (0, 4)), tmp_path / "out")


def test_it_needs_its_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtraError, match="need the package datasets"):
        next(hugging_face.rows("wikimedia/wikipedia", "", "train"))


@pytest.fixture
def no_hub(monkeypatch):
    """Let nobody answer in the hub's place."""
    from huggingface_hub import constants

    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = f"http://127.0.0.1:{closed.getsockname()[1]}"
    monkeypatch.setattr(constants, "ENDPOINT", address)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)


@pytest.mark.net
def test_a_hub_that_does_not_answer_is_waited_for(no_hub, tmp_path):
    with pytest.raises(SourceUnreachableError, match="a/b can't be had"):
        collect(HuggingFace(source("a/b")), tmp_path / "out")


class Stream:
    """A data set of one file that breaks off."""

    num_shards = 1

    def __init__(self, error):
        self._error = error

    def shard(self, _shards, _number):
        return self

    def __iter__(self):
        yield {"text": "one"}
        raise self._error


@pytest.mark.parametrize("client", ["httpx", "httpx2"])
def test_a_stream_that_breaks_off_is_waited_for(monkeypatch, client):
    library = pytest.importorskip(client)
    stream = Stream(library.ReadError("the connection was lost"))
    library_of_data = ModuleType("datasets")
    library_of_data.__dict__["load_dataset"] = lambda *_arguments, **_named: stream
    monkeypatch.setitem(sys.modules, "datasets", library_of_data)
    found = hugging_face.rows("a/b", "", "train")
    assert next(found) == {"text": "one"}
    with pytest.raises(SourceUnreachableError, match="the connection was lost"):
        next(found)


def test_a_stream_that_falls_silent_is_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(collector, "commit_of", lambda _path, _revision: "one")
    rows = iter([ROWS[0], SkipReason.TIMED_OUT])
    monkeypatch.setattr(collector, "rows_apart", lambda *_arguments: rows)
    with pytest.raises(SourceUnreachableError, match="sends nothing any more"):
        collect(HuggingFace(source()), tmp_path / "out")


def test_rows_of_one_page_are_all_kept_by_the_next_round_and_stay_together(tmp_path, monkeypatch):
    parts = [{"text": f"part {number}", "url": "https://a.example/long"} for number in range(5)]
    monkeypatch.setattr(collector, "commit_of", lambda _path, _revision: "one")
    monkeypatch.setattr(collector, "rows_apart", lambda *_arguments: iter(parts))
    collect(HuggingFace(source("a/b", uri_field="url")), tmp_path / "one")
    again = HuggingFace(source("a/b", uri_field="url"))
    collect(again, tmp_path / "two", before=tmp_path / "one")
    samples = samples_in(tmp_path / "two")
    assert [sample.text for sample in samples] == [row["text"] for row in parts]
    assert {sample.cluster_id for sample in samples} == {"https://a.example/long"}
