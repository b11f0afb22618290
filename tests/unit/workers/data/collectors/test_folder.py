"""Collecting a folder: which files, what becomes of those that mean harm, and a worker's death."""

import os
import subprocess
from dataclasses import replace
from pathlib import PurePath

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jupiterd.cycle.base.globs import WantedNames, glob_pattern, lone_name
from jupiterd.cycle.base.work_item import Phase
from jupiterd.cycle.domain.data_sources import FolderSource
from jupiterd.cycle.rounds.phase_summary import summarise
from jupiterd.errors import DiskFullError
from jupiterd.processor_limits import usable_cores
from jupiterd.protocol.frames import Progressed
from jupiterd.workers.__main__ import translate
from jupiterd.workers.data.collectors.files import Walk
from jupiterd.workers.data.collectors.folder import Folder
from jupiterd.workers.data.extract.extraction import Extractor
from jupiterd.workers.samples import sample_file
from tests.support.workers.collecting import (
    PARAMS,
    collect,
    killed_again_and_again,
    samples_in,
    skipped,
    texts_in,
    visit_of,
)
from tests.support.workers.data_material import files_of
from tests.support.workers.local_site import page
from tests.unit.workers.data.extract.test_extraction import HELLO, pdf


def source(root, **changes):
    return FolderSource(kind="folder", path=str(root), license="MIT", **changes)


def gather(root, output, before=None, **changes):
    return collect(Folder(source(root, **changes)), output, before=before)


@pytest.fixture
def notes(tmp_path):
    root = tmp_path / "notes"
    root.mkdir()
    return root


def test_text_pages_and_pdfs_are_read_by_their_endings(notes, tmp_path):
    (notes / "a.md").write_text("# A note")
    (notes / "b.HTML").write_text(page("A page"))
    (notes / "c.pdf").write_bytes(pdf())
    gather(notes, tmp_path / "out")
    texts = {uri.rpartition("/")[2]: text for uri, text in texts_in(tmp_path / "out").items()}
    assert texts["a.md"] == "# A note"
    assert texts["b.HTML"].startswith("# A page\n")
    assert texts["c.pdf"] == "Hello from a page"
    extractors = [sample.extractor.partition("@")[0] for sample in samples_in(tmp_path / "out")]
    assert extractors == ["", "trafilatura", "pypdfium2"]


def test_images_and_style_sheets_of_pages_are_no_documents_that_were_left_out(notes, tmp_path):
    (notes / "site" / "static").mkdir(parents=True)
    (notes / "site" / "a.html").write_text(page("A page"))
    for name in ("site/a.png", "site/a.svg", "site/static/a.css", "site/static/a.js", "a.woff2"):
        (notes / name).write_text("no document at all")
    (notes / "program").mkdir()
    (notes / "program" / "a.js").write_text("function pump(water) { return water; }\n")
    counts = gather(notes, tmp_path / "out")
    assert (counts["documents"], counts["skipped"], counts["other_files"]) == (2, 0, 5)
    read = sum(file.stat().st_size for file in notes.rglob("*") if file.is_file())
    assert counts["used_bytes"] + counts["skipped_bytes"] == read
    assert "5 other files beside them" in summarise(Phase.COLLECT, counts)[2]


def test_pages_above_a_folder_make_no_style_sheet_of_the_code_in_it(notes, tmp_path):
    (notes.parent / "bookmarks.html").write_text(page("Bookmarks"))
    (notes / "a.js").write_text("function pump(water) { return water; }\n")
    counts = gather(notes, tmp_path / "out")
    assert (counts["documents"], counts.get("other_files", 0)) == (1, 0)


def test_the_bad_ones_are_left_out_and_the_rest_goes_on(notes, tmp_path):
    (tmp_path / "secret.md").write_text("secret")
    (notes / "good.md").write_text("good")
    (notes / "good.pdf").write_bytes(pdf())
    (notes / "picture.md").write_bytes(b"\x89PNG\0\0\0\rIHDR")
    (notes / "out.md").symlink_to(tmp_path / "secret.md")
    (notes / "outside").symlink_to(tmp_path)
    (notes / "circle").symlink_to(notes)
    (notes / "gone.md").symlink_to(notes / "nowhere")
    (notes / "broken.pdf").write_bytes(pdf(HELLO)[:200])
    with (notes / "huge.html").open("wb") as file:
        file.truncate(2 << 30)  # two GiB, most of it a hole
    os.mkfifo(notes / "pipe.md")
    (notes / "odd.md").write_text("odd")
    (notes / "odd.md").rename(notes / os.fsdecode(b"\xff\xfe.md"))
    counts = gather(notes, tmp_path / "out")
    names = {uri.removeprefix("folder:notes/") for uri in texts_in(tmp_path / "out")}
    assert names == {"good.md", "good.pdf", "\\xff\\xfe.md"}
    reasons = {uri.removeprefix("folder:notes/"): why for uri, why in
               skipped(tmp_path / "out").items()}  # fmt: skip
    assert reasons == {
        "picture.md": "not_text",
        "out.md": "leads_out",
        "outside": "leads_out",
        "broken.pdf": "broken",
        "huge.html": "too_large",
        "gone.md": "no_file",
        "pipe.md": "no_file",
    }
    assert counts["skipped"] == 7
    assert "secret" not in texts_in(tmp_path / "out").values()


def test_what_lies_at_a_purged_address_isn_t_read(notes, tmp_path):
    (notes / "old").mkdir()
    (notes / "old" / "a.md").symlink_to(notes / "b.md")
    (notes / "b.md").write_text("b")
    gather(notes, tmp_path / "before")
    (notes / "old" / "broken.pdf").write_bytes(pdf(HELLO)[:200])
    params = replace(PARAMS, purged=("folder:notes/old", "folder:notes/b"))
    counts = collect(Folder(source(notes)), tmp_path / "out", params, before=tmp_path / "before")
    assert texts_in(tmp_path / "out") == {"folder:notes/b.md": "b"}
    assert (counts["skipped.purged"], counts["left_out:folder:notes/old"]) == (2, 2)
    assert "skipped.broken" not in counts  # nobody has tried


def test_a_great_many_files_are_bounded(notes, tmp_path):
    for number in range(300):
        (notes / f"{number:03}.md").write_text(f"note {number}")
    counts = gather(notes, tmp_path / "out", max_files=100)
    assert counts["documents"] == 100
    assert skipped(tmp_path / "out") == {"folder:notes/100.md": "too_many"}
    counts = gather(notes, tmp_path / "bytes", max_bytes=1024)
    assert counts["documents"] == 142
    assert counts["skipped.over_budget"] == 158


def test_a_folder_deeper_than_pythons_stack_is_walked(notes, tmp_path):
    deep = notes
    for _ in range(1200):
        deep = deep / "d"
        deep.mkdir()
    (deep / "x.md").write_text("deep")
    gather(notes, tmp_path / "out")
    subprocess.run(["rm", "-rf", str(notes)], check=True)  # Python's own way isn't so deep
    assert list(texts_in(tmp_path / "out").values()) == ["deep"]


def test_a_folder_that_vanishes_half_way_gives_what_was_read(notes, tmp_path):
    many = 20 + 4 * usable_cores()  # so many of them are begun ahead
    for number in range(many):
        (notes / f"{number:03}.md").write_text(f"note {number}")

    def vanish(number, _total, _unit):
        if number == 6:
            notes.rename(tmp_path / "moved")

    counts = collect(Folder(source(notes)), tmp_path / "out", progress=vanish)
    assert counts["documents"] == 6 + 4 * usable_cores()
    assert counts["documents"] + counts["skipped.vanished"] == many


def test_the_order_is_that_of_the_names_whatever_the_disk_says(notes, tmp_path):
    names = ["b.md", "a.md", "a/z.md", "a-b.md", "B/c.md", "a/b/c.md", "a0.md"]
    for name in names:
        (notes / name).parent.mkdir(parents=True, exist_ok=True)
        (notes / name).write_text(name)
    with visit_of(tmp_path) as visit:
        seen = [found.text for found in Folder(source(notes)).documents(visit)]
    assert seen == sorted(names)


PIECES = st.lists(
    st.sampled_from(["a", "b", ".", "*", "?", "[ab]", "[!a]", "a*", "[", "]", "^"]), max_size=4
).map("".join)


@given(
    parts=st.lists(PIECES.filter(lambda p: p.strip(".")), min_size=1, max_size=3),
    name=st.lists(st.text("ab.c", min_size=1, max_size=4), min_size=1, max_size=3),
)
def test_a_glob_means_what_it_means_to_pathlib(parts, name):
    if "[]" in "".join(parts) or any("[!]" in part or part.count("[") > 1 for part in parts):
        return
    path = "/".join(name)
    if not all(part.strip(".") for part in name):
        return
    expected = len(parts) == len(name) and PurePath(path).match("/".join(parts))
    assert bool(glob_pattern("/".join(parts)).fullmatch(path)) == bool(expected)


@pytest.mark.parametrize(
    ("glob", "yes", "no"),
    [
        ("**/*.py", ["a.py", "x/a.py", "x/y/a.py"], ["a.pyc", "x/a.md"]),
        ("src/**/*.md", ["src/a.md", "src/x/y/a.md"], ["a.md", "lib/src/a.md"]),
        ("**/*", ["a", "x/y/z"], []),
        ("docs/**", ["docs/a", "docs/x/y"], ["docs", "other/docs/a"]),
        ("*.{md}", ["a.{md}"], ["a.md"]),
        ("{src/lib,docs}/**/*.{h,md}", ["src/lib/a.h", "docs/x/b.md"], ["src/a.h", "docs/b.rst"]),
        ("{a,{b,c}}.md", ["a.md", "b.md", "c.md"], ["d.md"]),
        ("**/*.{h,cpp}", ["a.h", "x/a.cpp"], ["a.hpp", "a.{h,cpp}", "x/a.c"]),
    ],
)
def test_two_stars_stand_for_any_folders(glob, yes, no):
    pattern = glob_pattern(glob)
    assert [name for name in yes if not pattern.fullmatch(name)] == []
    assert [name for name in no if pattern.fullmatch(name)] == []


def test_a_folder_leaves_out_what_it_excludes(notes, tmp_path):
    for name in ("a.md", "old/b.md"):
        (notes / name).parent.mkdir(exist_ok=True)
        (notes / name).write_text("note")
    gather(notes, tmp_path / "out", exclude=("old/**",))
    assert [uri.rpartition("/")[2] for uri in texts_in(tmp_path / "out")] == ["a.md"]


def test_excluded_names_are_left_out_of_what_a_glob_takes():
    wanted = WantedNames("src/**/*.{h,cpp}", ["**/ThirdParty/**", "src/gen_*.h"])
    names = ["src/a.h", "src/ThirdParty/b.h", "src/x/ThirdParty/y/c.cpp", "src/gen_a.h", "src/d.md"]
    assert [name for name in names if wanted.has(name)] == ["src/a.h"]


def test_no_folder_is_looked_at_in_which_nothing_can_be_wanted(notes, tmp_path, monkeypatch):
    (notes / "deep" / "er").mkdir(parents=True)
    for name in ("rows.csv", "other.csv", "deep/rows.csv"):
        (notes / name).write_text("text\na note\n")
    (notes / "out").symlink_to(tmp_path)
    seen, scan = [], os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: seen.append(os.fspath(path)) or scan(path))
    names = Walk(notes, WantedNames("rows.csv"), lambda name, _: seen.append(name)).names()
    assert ([*names], seen) == (["rows.csv"], [str(notes)])
    names = Walk(notes, WantedNames("*/*.csv"), lambda *_: None).names()
    assert [*names] == ["deep/rows.csv"]
    assert f"{notes}/deep/er" not in [path.rstrip("/") for path in seen]


@given(st.text("ab/*?{,}", max_size=8), st.text("ab/", max_size=6))
@example("a[+-9]b", "a/b")
def test_a_folder_that_holds_a_wanted_name_is_looked_at(glob: str, name: str):
    wanted = WantedNames(glob)
    if wanted.has(name) and "//" not in name and not name.startswith("/"):
        folders = [name[:end] for end, sign in enumerate(name) if sign == "/"]
        assert all(map(wanted.may_be_below, folders))
    if (only := lone_name(glob)) and wanted.has(name):
        assert name == only


def test_an_unchanged_file_keeps_its_sample_and_is_not_parsed_again(notes, tmp_path, monkeypatch):
    (notes / "a.pdf").write_bytes(pdf())
    (notes / "b.md").write_text("note")
    gather(notes, tmp_path / "one")
    (notes / "b.md").write_text("note, changed")
    asked, ask = [], Extractor._request
    monkeypatch.setattr(
        Extractor, "_request", lambda self, order: asked.append(order["name"]) or ask(self, order)
    )
    gather(notes, tmp_path / "two", before=tmp_path / "one")
    assert asked == ["b.md"]
    before, after = samples_in(tmp_path / "one"), samples_in(tmp_path / "two")
    assert after[0] == before[0]
    assert [sample.text for sample in after] == ["Hello from a page", "note, changed"]


def test_a_second_run_of_the_same_gives_the_same_bytes(notes, tmp_path):
    for number in range(30):
        (notes / f"{number}.md").write_text(f"note {number}")
    gather(notes, tmp_path / "one")
    gather(notes, tmp_path / "two", before=tmp_path / "one")
    for name in ("documents", "state", "skipped"):
        assert files_of(tmp_path / "one" / name) == files_of(tmp_path / "two" / name)


def test_a_full_disk_is_told_as_such(notes, tmp_path, monkeypatch):
    (notes / "a.md").write_text("note")

    def full(_writer, _line):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(sample_file.SampleWriter, "write", full)
    with pytest.raises(OSError, match="No space left") as caught:
        gather(notes, tmp_path / "out")
    assert isinstance(translate(caught.value, "collect"), DiskFullError)


@pytest.mark.full
def test_a_worker_that_is_killed_and_started_again_goes_on_and_ends_the_same(notes, tmp_path):
    for number in range(40):
        (notes / f"{number:02}.html").write_text(page(f"Page {number}"))
    gather(notes, tmp_path / "undisturbed")
    params = {
        "source": source(notes, name="mine").model_dump(mode="json"),
        "language": "en",
        "fetched_at": "2026-01-02T03:04:05Z",
    }

    def strike(number, frames):
        told = frames[-1]  # in mid work, each time further on
        return number < 5 and isinstance(told, Progressed) and told.done > 6 * number

    last = killed_again_and_again(params, tmp_path, strike)
    assert files_of(last / "documents") == files_of(tmp_path / "undisturbed" / "documents")
