import platform
from dataclasses import replace

import pytest

from jupiterd.cycle.data.lineage import text_hash
from jupiterd.cycle.data.split import in_holdout, part_of
from jupiterd.cycle.domain.data_sources import FolderSource, PythonStdlibSource
from jupiterd.errors import EmptySourceError
from jupiterd.protocol.frames import TaskFailed, TaskFinished
from jupiterd.workers.data.collect.collect_source import CollectParams
from jupiterd.workers.data.collectors import folder
from jupiterd.workers.data.collectors.files import read_within
from jupiterd.workers.data.collectors.folder import Folder
from jupiterd.workers.data.collectors.python_stdlib import PythonStdlib
from jupiterd.workers.samples.sample_file import read_samples
from tests.support.workers.collecting import collect, skipped, visit_of
from tests.support.workers.data_material import FETCHED_AT, files_of, run_worker

PARAMS = CollectParams(0.5, "salt", "code:python", FETCHED_AT)


def uris_of(collector, tmp_path):
    with visit_of(tmp_path) as visit:
        return {found.uri: found.cluster_id for found in collector.documents(visit)}


def library(root, packages=12):
    """Make a small standard library."""
    for number in range(packages):
        package = root / f"package{number}"
        (package / "test").mkdir(parents=True)
        (package / "__init__.py").write_text("")
        (package / "core.py").write_text(f"VALUE = {number}\n")
        (package / "test" / "test_core.py").write_text("assert True\n")
        (root / f"module{number}.py").write_text(f"NAME = 'module{number}'\n")
    (root / "site-packages" / "torch").mkdir(parents=True)
    (root / "site-packages" / "torch" / "huge.py").write_text("x = 1\n")
    (root / "_sysconfigdata_linux.py").write_text("PREFIX = '/somewhere/here'\n")
    (root / "picture.py").write_bytes(b"\x89PNG\0\0\0\rIHDR")
    (root / "binary.py").write_bytes(b"x\0y")
    return PythonStdlib(PythonStdlibSource(kind="python_stdlib"), root, "3.11.7")


def samples_of(folder):
    return list(read_samples(folder / "train")), list(read_samples(folder / "holdout"))


def test_whole_clusters_fall_on_one_side_and_nothing_is_lost(tmp_path):
    counts = collect(library(tmp_path / "lib"), tmp_path / "out", PARAMS)
    train, holdout = samples_of(tmp_path / "out")
    assert not {s.cluster_id for s in train} & {s.cluster_id for s in holdout}
    assert all(in_holdout(s.cluster_id, "salt", 0.5) for s in holdout)
    assert len(train) + len(holdout) == 24
    assert counts == {
        "documents": len(train),
        "holdout_documents": len(holdout),
        "bytes": sum(len(s.text) for s in train),
        "holdout_bytes": sum(len(s.text) for s in holdout),
        "clusters": len({s.cluster_id for s in train}),
        "holdout_clusters": len({s.cluster_id for s in holdout}),
        "skipped": 14,
        "skipped.empty": 12,
        "skipped.not_text": 2,
        "first skipped empty: python-stdlib:3.11.7/package0/__init__.py": 1,
        "first skipped not_text: python-stdlib:3.11.7/binary.py": 1,
        "used_bytes": sum(len(s.text) for s in train + holdout),
        "skipped_bytes": len(b"\x89PNG\0\0\0\rIHDR") + len(b"x\0y"),
    }


def test_tests_installed_packages_and_the_builds_own_paths_are_left_out(tmp_path):
    uris = uris_of(library(tmp_path / "lib"), tmp_path)
    assert "python-stdlib:3.11.7/package3/core.py" in uris
    assert not [uri for uri in uris if "test" in uri or "torch" in uri or "sysconfig" in uri]


def test_a_sample_carries_where_it_comes_from(tmp_path):
    collect(library(tmp_path / "lib"), tmp_path / "out", PARAMS)
    train, holdout = samples_of(tmp_path / "out")
    (sample,) = [s for s in train + holdout if s.source_uri.endswith("/module3.py")]
    assert sample.source_uri == "python-stdlib:3.11.7/module3.py"
    assert sample.id == text_hash("NAME = 'module3'\n")
    assert (sample.cluster_id, sample.license, sample.revision) == ("module3", "PSF-2.0", "3.11.7")
    assert (sample.collector, sample.fetched_at) == ("python_stdlib@3", FETCHED_AT)


def test_doing_it_again_gives_the_same_bytes(tmp_path):
    source = library(tmp_path / "lib")
    collect(source, tmp_path / "a", PARAMS)
    collect(source, tmp_path / "b", PARAMS)
    assert files_of(tmp_path / "a") == files_of(tmp_path / "b")


def test_progress_ends_at_the_number_of_files(tmp_path):
    seen = []
    source = Folder(folder_of(tmp_path, {"a.txt": "x", "b.txt": "y"}))
    collect(source, tmp_path / "out", PARAMS, lambda *reading: seen.append(reading))
    assert seen == [(1, 0, "files"), (2, 0, "files"), (2, 2, "files")]


def test_secrets_and_personal_data_never_reach_the_disk(tmp_path):
    token = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
    text = f"Write to jane@corp.org, or from 8.8.8.8 with {token}.\n"
    files = {f"book{number}/a.md": f"{number} {text}" for number in range(20)}
    counts = collect(Folder(folder_of(tmp_path, files)), tmp_path / "out", PARAMS)
    train, holdout = samples_of(tmp_path / "out")
    assert train
    assert holdout
    for sample in train + holdout:
        assert not [secret for secret in ("jane", "8.8.8.8", token) if secret in sample.text]
        assert sample.id == text_hash(sample.text)
    removed = {name: count for name, count in counts.items() if name.startswith("removed.")}
    assert removed == {"removed.email": 20, "removed.ip-address": 20, "removed.token": 20}


def folder_of(tmp_path, files, glob="**/*"):
    root = tmp_path / "notes"
    root.mkdir()
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return FolderSource(kind="folder", path=str(root), license="MIT", glob=glob)


def test_a_folders_clusters_are_its_topmost_folders(tmp_path):
    files = {"book/one.md": "1", "book/deep/two.md": "2", "lone.md": "3", "book/x.txt": "4"}
    source = Folder(folder_of(tmp_path, files, "**/*.md"))
    assert uris_of(source, tmp_path) == {
        "folder:notes/book/one.md": "book",
        "folder:notes/book/deep/two.md": "book",
        "folder:notes/lone.md": "lone",
    }


def test_hidden_files_and_links_that_lead_out_are_left_out(tmp_path):
    (tmp_path / "secret.md").write_text("secret")
    source = folder_of(tmp_path, {"a.md": "1", ".git/b.md": "2"})
    (tmp_path / "notes" / "link.md").symlink_to(tmp_path / "secret.md")
    (tmp_path / "notes" / "loop.md").symlink_to("loop.md")
    assert list(uris_of(Folder(source), tmp_path).values()) == ["a"]


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"a.md": " \n"}, "has no text that can be used: empty 1"),
        ({"a.md": "\0", "b.md": ""}, "has no text that can be used: not text 1, empty 1"),
        ({}, "has no file, page or row that the source asks for"),
    ],
)
def test_a_source_with_nothing_in_it_is_named_and_says_why(tmp_path, files, reason):
    with pytest.raises(EmptySourceError, match=f"the folder {tmp_path}/notes {reason}"):
        collect(Folder(folder_of(tmp_path, files)), tmp_path / "out", PARAMS)


def test_a_file_that_vanishes_or_cannot_be_read_is_skipped(tmp_path, monkeypatch):
    source = Folder(folder_of(tmp_path, {"a.md": "text", "b.md": "text", "c.md": "text too"}))

    def vanish(path, max_bytes):
        if path.name == "b.md":  # it was listed
            path.unlink(missing_ok=True)
        return read_within(path, max_bytes)

    monkeypatch.setattr(folder, "read_within", vanish)
    counts = collect(source, tmp_path / "out", PARAMS)
    assert (counts["documents"] + counts["holdout_documents"], counts["skipped"]) == (2, 1)
    assert skipped(tmp_path / "out") == {"folder:notes/b.md": "vanished"}


class _Ahead:
    """Notes what it is to begin ahead with."""

    read_ahead = 4

    def __init__(self, extraction):
        self.begun: list[str] = []
        self.read = extraction.read

    def begin(self, _form, _data, name):
        self.begun.append(name)


def test_lists_of_rows_are_not_begun_ahead_as_texts(tmp_path):
    files = {"a.md": "text", "rows.json": '[{"text": "one"}, {"text": "two"}]'}
    source = Folder(folder_of(tmp_path, files))
    with visit_of(tmp_path) as visit:
        ahead = _Ahead(visit.extraction)
        found = list(source.documents(replace(visit, extraction=ahead)))
    assert [document.text for document in found] == ["text", "one", "two"]
    assert ahead.begun == ["a.md"]


def test_a_folder_that_is_not_there_says_so(tmp_path):
    source = FolderSource(kind="folder", path=str(tmp_path / "gone"), license="MIT")
    with pytest.raises(EmptySourceError, match="is no folder on any machine"):
        collect(Folder(source), tmp_path / "out", PARAMS)


def task_params(source, policy=None):
    return {
        "source": source,
        "holdout": {"fraction": 0.2, "salt": "s", "min_documents": 10, "min_clusters": 5},
        "language": "code:python",
        "license_policy": policy or {},
        "fetched_at": FETCHED_AT,
    }


@pytest.mark.full
def test_the_worker_collects_this_interpreters_own_library(tmp_path):
    end = run_worker("collect", task_params({"kind": "python_stdlib"}), {}, tmp_path)
    assert isinstance(end, TaskFinished)
    assert set(end.outputs) == {"train", "holdout", "state", "skipped"}
    assert end.counts["documents"] > 300
    assert end.counts["holdout_documents"] >= 20
    sample = next(iter(read_samples(tmp_path / "train")))
    assert sample.source_uri.startswith(f"python-stdlib:{platform.python_version()}/")


def test_the_worker_refuses_a_licence_that_the_policy_does_not_permit(tmp_path):
    params = task_params({"kind": "python_stdlib"}, {"allow": ["MIT"], "unknown": "deny"})
    end = run_worker("collect", params, {}, tmp_path)
    assert isinstance(end, TaskFailed)
    assert (end.code, end.message) == (
        "invalid-domain",
        "the domain's license_policy doesn't permit PSF-2.0",
    )


def test_held_out_text_says_which_part_it_is_for(tmp_path):
    params = replace(PARAMS, dev=0.4, vault=0.3)
    collect(library(tmp_path / "lib", packages=40), tmp_path / "out", params)
    train, holdout = samples_of(tmp_path / "out")
    assert {sample.split for sample in train} == {"train"}
    assert {sample.split for sample in holdout} == {"dev", "gate", "vault"}
    for sample in holdout:
        assert sample.split == part_of(sample.cluster_id, "salt", 0.5, 0.4, 0.3)
