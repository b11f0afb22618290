"""A look at sources: real files, read by a cycle's own readers and judged by its rules."""

import json
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import pytest

from jupiterd.cycle.domain.survey import Survey
from jupiterd.cycle.domain.survey_lines import is_hopeless, language_help, source_line
from jupiterd.cycle.holdout.holdout_rules import HoldoutRules
from jupiterd.cycle.holdout.verdict_forecast import verdict_forecast
from jupiterd.cycle.text_rules.document_kind import DocumentForm, DocumentKind
from jupiterd.workers.data.collect.cleaned_document import once, within_limits
from jupiterd.workers.data.extract.extraction import ExtractionLimits, Extractor
from jupiterd.workers.data.skips import SkipReason, UnreadableError
from jupiterd.workers.data.survey import survey_sample, survey_verdicts
from jupiterd.workers.data.survey import survey_sources as survey_module
from jupiterd.workers.data.survey.survey_sources import FAR, NO_TIME_LEFT, survey
from jupiterd.workers.data.survey.survey_verdicts import LEAST_JUDGED, NO_TIME

LIBRARY = Path(sysconfig.get_paths()["stdlib"])
RULES = {
    "language": "code:python",
    "license_policy": {},
    "rules_off": [],
    "holdout": {"salt": "salt"},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make a folder of forty real modules in four folders, a copy of one, and no text."""
    modules = [path for path in sorted(LIBRARY.glob("*.py")) if path.stat().st_size > 4_000]
    for number, path in enumerate(modules[:40]):
        (tmp_path / f"part{number % 4}").mkdir(exist_ok=True)
        shutil.copy(path, tmp_path / f"part{number % 4}")
    shutil.copy(modules[0], tmp_path / "part1" / "copied.py")
    (tmp_path / "part1" / "picture.py").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0")
    return tmp_path


def looked(*sources: dict, language: str = "code:python", within_s: float = 60.0) -> Survey:
    rules = RULES | {"language": language}
    return survey({"sources": list(sources), "rules": rules, "within_s": within_s})


def of_folder(path: Path) -> dict:
    return {"kind": "folder", "name": "mine", "path": str(path)}


def test_text_in_another_language_than_was_said_is_told_with_what_to_write(tmp_path):
    for number in range(12):
        page = f"# Bomba {number}\n\nLa bomba {number} mueve el agua de un lugar a otro. " * 6
        more = (
            f"Cuando la presi\u00f3n baja a {number}, se abre la v\u00e1lvula y el agua sale. " * 6
        )
        (tmp_path / f"{number}.md").write_text(page + more, encoding="utf-8")
    found = looked(of_folder(tmp_path), language="en")
    assert (found.language, found.other_language) == ("en", "es")
    assert language_help(found) == "say language: es, for most of it isn't in en"
    assert Survey.from_plain(found.to_plain()) == found
    assert not language_help(looked(of_folder(tmp_path), language="es"))


def test_every_file_is_counted_and_judged(folder):
    found = looked(of_folder(folder))
    (source,) = found.sources
    assert (source.found, source.read, source.is_whole) == (42, 42, True)
    assert source.kept == source.documents
    assert source.kept + sum(source.dropped.values()) == source.found
    assert source.dropped["near-duplicate"] == 1
    assert 30 <= source.kept <= 40
    assert source.kinds == {"code:python": source.kept}
    sizes = sum(path.stat().st_size for path in folder.rglob("*.py"))
    assert 0.5 * sizes < source.bytes < sizes
    assert found.found.documents == source.kept + 1, "a copy is trained on beside the other"


def test_no_language_is_told_where_nothing_was_read(tmp_path):
    (tmp_path / "a.md").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0")
    assert looked(of_folder(tmp_path), language="").language == ""


def test_the_language_is_told_from_the_text(folder):
    assert looked(of_folder(folder), language="").language == "code:python"


def test_of_many_files_some_are_read_and_the_rest_is_taken_to_be_alike(folder, monkeypatch):
    whole = looked(of_folder(folder))
    monkeypatch.setattr(survey_sample, "MOST_READ", 15)
    found = looked(of_folder(folder))
    (source,) = found.sources
    assert (source.found, source.is_whole) == (42, False)
    assert 15 <= source.read < 42
    assert source.documents == pytest.approx(whole.sources[0].documents, abs=8)
    assert found.documents == pytest.approx(whole.documents, abs=8)


def test_a_few_files_of_many_promise_what_all_of_them_do(tmp_path, monkeypatch):
    """Beside text lie files in folders of their own, each with an ending of its own and too short:
    they must not be taken for ten folders by which the gate could count."""
    modules = [path for path in sorted(LIBRARY.glob("*.py")) if 4e3 < path.stat().st_size < 15e3]
    (tmp_path / "doc").mkdir()
    for number, path in enumerate(modules[:70]):
        shutil.copy(path, tmp_path / "doc")
        base = tmp_path / f"base{number % 10}"
        base.mkdir(exist_ok=True)
        (base / f"index.of-{path.stem}").write_text("x = 1\n")
    whole = looked(of_folder(tmp_path))
    monkeypatch.setattr(survey_sample, "MOST_READ", 40)
    part = looked(of_folder(tmp_path))
    assert part.sources[0].read == 40 < whole.sources[0].read
    assert (len(part.other_cases), len(whole.other_cases)) == (2, 0)
    seen, foretold = (verdict_forecast(each.counts, HoldoutRules("s")) for each in (whole, part))
    assert foretold.first_bpb == pytest.approx(seen.first_bpb, rel=0.3)
    gates = [case.gate_documents for case in part.counts.cases]
    assert min(gates) <= seen.gate_documents <= max(gates)


def test_pages_that_lie_there_in_two_formats_are_foretold_once(tmp_path, monkeypatch):
    modules = [path for path in sorted(LIBRARY.glob("*.py")) if path.stat().st_size > 4_000]
    for path in modules[:40]:
        shutil.copy(path, tmp_path)
        shutil.copy(path, tmp_path / f"{path.stem}.pyi")
    monkeypatch.setattr(survey_sample, "MOST_READ", 16)
    (source,) = looked(of_folder(tmp_path)).sources
    assert source.read <= 18
    assert source.dropped["near-duplicate"] >= 6
    assert source.documents == pytest.approx(40, abs=8)


def test_parts_that_are_numbered_are_no_formats_of_one_page():
    assert survey_sample.page_of("a/add.html") == survey_sample.page_of("a/add.txt.gz") == "a/add"
    for name in ("part.00001", "log.1", "log.1.gz"):
        assert survey_sample.page_of(name) == name.removesuffix(".gz")


def test_without_any_time_some_are_read_all_the_same_and_nothing_is_made_up(folder, monkeypatch):
    (source,) = looked(of_folder(folder), within_s=0.0).sources
    assert (source.found, source.read) == (42, LEAST_JUDGED)
    monkeypatch.setattr(survey_verdicts, "LEAST_JUDGED", 0)
    (folder / "part1" / "picture.py").unlink()
    found = looked(of_folder(folder), within_s=0.0)
    assert found.sources[0].why_not == NO_TIME
    assert not is_hopeless(found, verdict_forecast(found.counts, HoldoutRules("s")))


def test_markup_that_takes_too_long_costs_its_own_document_alone(tmp_path, monkeypatch):
    page = "# Pump\n\nThe pump of the north hall moves the water to the tank when it is low. " * 4
    for number in range(3):
        (tmp_path / f"{number}.md").write_text(f"{number} {page}")
    (tmp_path / "large.md").write_text(page * 100)
    with Extractor(ExtractionLimits(wall_s=0.001, tries=1)) as hasty:
        clean = within_limits(hasty)
        monkeypatch.setattr(survey_module, "within_limits", lambda _: clean)
        (source,) = looked(of_folder(tmp_path), language="en").sources
    assert source.read == 4
    assert source.dropped["timed_out"] == 1
    assert [name.rpartition("/")[2] for name in source.slow] == ["large.md"]
    assert "took too long to look at: folder:" in source_line(source)
    assert sum(source.dropped.values()) + source.kept == 4


def test_large_files_wait_for_the_next_look_once_time_is_up_and_the_others_tell_the_language(
    tmp_path,
):
    page = "The pump of the north hall moves the water to the tank when it is low. "
    for number in range(9):
        (tmp_path / f"{number}.txt").write_text(f"{page * 4}It was built in the year {number}.\n")
    (tmp_path / "book.txt").write_text(page * 4000)
    found = looked(of_folder(tmp_path), language="", within_s=0.0)
    (source,) = found.sources
    assert (source.found, source.read, found.language) == (10, 9, "en")


def test_each_text_is_cleaned_once_however_often_it_is_asked_for():
    asked = []

    def clean(text, form):
        asked.append(text)
        if text == "slow":
            raise UnreadableError(SkipReason.TIMED_OUT)
        return text.upper()

    form, cleaned = DocumentForm(DocumentKind.DOCUMENTATION, "markdown"), once(clean)
    assert [cleaned("a", form), cleaned("a", form)] == ["A", "A"]
    for _ in range(2):
        with pytest.raises(UnreadableError):
            cleaned("slow", form)
    assert asked == ["a", "slow"]


def test_it_ends_in_time(folder):
    for number in range(30):
        shutil.copytree(folder / "part0", folder / f"copy{number}" / "deep")
    began_s = time.monotonic()
    looked(of_folder(folder), within_s=2.0)
    assert time.monotonic() - began_s < 6.0


def test_what_is_far_away_is_not_asked(folder):
    site = {"kind": "web", "name": "site", "urls": ["https://docs.example.org/"]}
    remote = {
        "kind": "git",
        "name": "git",
        "url": "https://git.example.org/a.git",
        "license": "MIT",
    }
    one, two, three = looked(site, remote, of_folder(folder)).sources
    assert (one.why_not, two.why_not, three.why_not) == (FAR, FAR, "")


def test_a_folder_that_is_not_here_is_named(tmp_path):
    (source,) = looked(of_folder(tmp_path / "gone")).sources
    assert "gone is no folder" in source.why_not


def test_rows_are_read_until_time_is_up(tmp_path):
    text = (LIBRARY / "argparse.py").read_text()
    rows = [{"text": f"{text[:3000]}\n# {number}"} for number in range(5)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    table = {"kind": "jsonl", "name": "rows", "path": str(tmp_path), "license": "MIT"}
    (source,) = looked(table).sources
    assert (source.found, source.read, source.is_at_least) == (5, 5, False)


@pytest.mark.full
def test_it_runs_as_a_process_of_its_own(folder):
    request = {"sources": [of_folder(folder)], "rules": RULES, "within_s": 60.0}
    done = subprocess.run(
        [sys.executable, "-P", "-m", "jupiterd.workers.data.survey.survey_sources"],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    found = Survey.from_plain(json.loads(done.stdout))
    assert found.sources[0].found == 42
    assert Survey.from_plain(found.to_plain()) == found


def test_rows_of_code_are_judged_as_they_are(tmp_path):
    modules = [
        path for path in sorted(LIBRARY.glob("*.py")) if 4_000 < path.stat().st_size < 40_000
    ]
    rows = [json.dumps({"text": path.read_text(errors="replace")}) for path in modules[:20]]
    (tmp_path / "rows.jsonl").write_text("\n".join(rows))
    source = {"kind": "jsonl", "name": "mine", "path": str(tmp_path), "license": "MIT"}
    (found,) = looked(source).sources
    assert "unparsable" not in found.dropped


def test_a_repository_whose_turn_comes_too_late_is_named_and_not_cloned(tmp_path):
    sources = [{"kind": "git", "url": f"file://{tmp_path}/{n}", "license": "MIT"} for n in range(9)]
    rules = RULES | {"language": "en"}
    began_s = time.monotonic()
    found = survey({"sources": sources, "rules": rules, "within_s": 0.0})
    assert {source.why_not for source in found.sources} == {NO_TIME_LEFT}
    assert time.monotonic() - began_s < 9.0  # each would have had a second at least
