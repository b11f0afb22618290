"""`domain new --from`: a folder of one's own, looked at by the process that really does it."""

import os
import shutil
import sysconfig
import tempfile
from pathlib import Path

import pytest

from jupiterd.ctl.preflight import cycle_preflight, source_survey
from jupiterd.ctl.preflight.domain_of_place import _is_near, domain_of_place
from jupiterd.ctl.preflight.source_survey import survey_of
from jupiterd.cycle.domain.domain import parse_domain
from jupiterd.daemon.executor.named_paths import paths_of
from jupiterd.errors import EmptySourceError, NotFoundError, SourceUnreachableError, UsageError
from jupiterd.locations import config_folder
from tests.support.workers.local_site import page, serving

LIBRARY = Path(sysconfig.get_paths()["stdlib"])


@pytest.fixture
def here(tmp_path, monkeypatch, looked):
    """Work in an empty folder of one's own, where sources are really read."""
    monkeypatch.setattr(cycle_preflight, "survey_of", survey_of)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def modules(folder: Path, count: int) -> Path:
    folder.mkdir()
    found = [path for path in sorted(LIBRARY.glob("*.py")) if path.stat().st_size > 4_000]
    for path in found[:count]:
        shutil.copy(path, folder)
    return folder


def test_a_folder_becomes_a_short_file_that_can_be_judged_and_says_why(ctl, daemon, here):
    modules(here / "my code", 80)
    ran = ctl("domain", "new", "my_code", "--from", "my code")
    assert (ran.exit_code, ran.err) == (0, "")
    assert "can this be judged? yes: " in ran.out
    assert ran.out.endswith("start it: jupiterctl cycle start --domain my_code\n")
    text = (here / "my_code.yaml").read_text()
    assert len(text.splitlines()) <= 22
    domain = parse_domain(text, "my_code.yaml")
    (source,) = domain.data_sources
    assert (source.path, source.license) == (str(here / "my code"), "private")
    assert domain.language == "code:python"
    assert "can this be judged? yes: " in " ".join(text.replace("#", "").split())
    assert ctl("domain", "lint", "my_code").exit_code == 0
    assert ctl("cycle", "start", "--domain", "my_code").exit_code == 0


def computed_s() -> float:
    """Return what this process and its children had of the processors: clocks count others."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


@pytest.mark.full
@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_twelve_files_are_refused_within_seconds_and_told_what_would_help(ctl, daemon, here, more):
    modules(here / "few", 12)
    ran = ctl("domain", "new", "few", "--from", "few")
    assert ran.exit_code == 0
    assert "what would help: add text" in ran.out
    assert "start it" not in ran.out
    before_s = computed_s()
    ran = ctl("cycle", "start", "--domain", "few", *more)
    assert computed_s() - before_s < 5.0
    assert (ran.exit_code, daemon.executed) == (5, [])
    assert "a verdict needs at least 40" in ran.err
    assert "--without-verdict" in ran.err


def test_nothing_is_written_over_and_nothing_where_nothing_can_be_read(ctl, here):
    (here / "mine.yaml").write_text("mine")
    modules(here / "code", 3)
    assert ctl("domain", "new", "mine", "--from", "code").exit_code == 7
    assert (here / "mine.yaml").read_text() == "mine"
    (here / "empty").mkdir()
    ran = ctl("domain", "new", "other", "--from", "empty")
    assert ran.exit_code != 0
    assert not (here / "other.yaml").exists()
    assert ctl("domain", "new", "x", "--from", "code", "--from-template").exit_code == 2


@pytest.mark.parametrize(
    ("place", "error"),
    [("nowhere", NotFoundError), ("a.txt", UsageError), ("ftp://a.org/", UsageError)],
)
def test_what_nothing_can_be_read_from_is_refused(here, place, error):
    (here / "a.txt").write_text("text")
    with pytest.raises(error):
        domain_of_place("mine", place, "")


def test_a_folder_without_text_is_named(here):
    (here / "pictures").mkdir()
    (here / "pictures" / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0")
    with pytest.raises(EmptySourceError):
        domain_of_place("mine", "pictures", "en")


TICKET = (
    "The pump of the north hall moves the water to the tank whenever it is low. Then the keeper "
    "writes down how much there was and for how long it ran. At night nobody is there to look "
    "after it. So the town has to live with what the tank holds until the morning. This was the "
    "case for years. Most of the people who live here have never asked for another way."
)


def test_a_table_whose_text_has_another_name_names_its_columns_and_takes_the_one_that_is_said(
    ctl, daemon, here
):
    (here / "t").mkdir()
    (here / "t" / "tickets.csv").write_text(f"id,body\n7,{TICKET}\n")
    with pytest.raises(EmptySourceError) as caught:
        domain_of_place("tickets", "t", "en")
    assert "its fields: id, body" in caught.value.message
    assert "--field NAME" in caught.value.hint
    assert "field: NAME" in caught.value.hint
    ran = ctl("domain", "new", "tickets", "--from", "t/tickets.csv", "--field", "body")
    assert (ran.exit_code, ran.err) == (0, "")
    written = parse_domain((here / "tickets.yaml").read_text(), "tickets.yaml").data_sources[0]
    assert (written.kind, written.glob, written.field) == ("folder", "tickets.csv", "body")
    assert paths_of([written]) == (str(here / "t" / "tickets.csv"),), "nothing beside it is offered"
    refused = ctl("domain", "new", "x", "--from", "https://example.org/a/", "--field", "body")
    assert (refused.exit_code, "--field is said of tables" in refused.err) == (2, True)


LEAVING_A_FILE = "import tempfile; tempfile.mkstemp(prefix='left-')"


@pytest.mark.parametrize(
    ("program", "told"),
    [
        (f"{LEAVING_A_FILE}; raise MemoryError", source_survey.FAILED),
        (f"{LEAVING_A_FILE}; import time; time.sleep(60)", source_survey.TOOK_TOO_LONG),
    ],
)
def test_a_look_that_ends_badly_says_so_and_leaves_no_file(here, monkeypatch, program, told):
    monkeypatch.setattr(source_survey, "PROGRAM", ("-c", program))
    monkeypatch.setattr(source_survey, "SILENCE_TIMEOUT_S", 3.0)
    (here / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(here / "temporary"))
    monkeypatch.setenv("TMPDIR", str(here / "temporary"))
    domain = parse_domain((config_folder() / "domains" / "python.yaml").read_text(), "python.yaml")
    survey = survey_of(domain)
    assert {source.why_not for source in survey.sources} == {told}
    assert not list((here / "temporary").iterdir())


def test_who_looked_in_vain_asks_for_the_language_and_guesses_none(here, monkeypatch):
    monkeypatch.setattr(source_survey, "PROGRAM", ("-c", "raise MemoryError"))
    (here / "notas").mkdir()
    (here / "notas" / "a.md").write_text("Sobre el agua y el viento.")
    with pytest.raises(UsageError) as caught:
        domain_of_place("mine", "notas", "")
    assert "nobody knows what notas is written in" in caught.value.message
    assert "--language es" in caught.value.hint
    assert domain_of_place("mine", "notas", "es").domain.language == "es"


@pytest.mark.net
def test_a_site_is_asked_for_a_few_pages_and_counted_later(ctl, here):
    with serving() as site:
        site.put("/guide/index.html", page("Guide", "/guide/two.html"))
        site.put("/guide/two.html", page("Two"))
        ran = ctl("domain", "new", "guide", "--from", f"{site.url}/guide/index.html")
    assert ran.exit_code == 0, ran.err
    domain = parse_domain((here / "guide.yaml").read_text(), "guide.yaml")
    (source,) = domain.data_sources
    assert source.kind == "web"
    assert (source.within, source.allow_private_addresses) == ((f"{site.url}/guide/",), True)
    assert domain.language == "en"


def test_an_address_that_cannot_be_one_is_refused_in_a_line(ctl, here):
    ran = ctl("domain", "new", "mine", "--from", "http://[::1/")
    assert ran.exit_code == 2
    assert "is no address" in ran.err


@pytest.mark.parametrize("host", ["a..b", f"{'a' * 64}.org"])
def test_a_host_that_cannot_be_is_of_no_network(host):
    assert not _is_near(host)


def test_a_site_that_does_not_answer_is_named(here):
    with pytest.raises(SourceUnreachableError):
        domain_of_place("mine", "http://127.0.0.1:9/", "en")


def test_a_repository_is_one_by_its_ending_or_its_host(here, monkeypatch):
    from jupiterd.ctl.preflight import domain_of_place as module

    for url in ("https://git.example.org/a/b.git", "https://github.com/owner/project"):
        assert module._address(url)["kind"] == "git"
    assert module._address("https://github.com/owner")["kind"] == "web"
