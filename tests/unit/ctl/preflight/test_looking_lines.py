"""While sources are looked at, people at a terminal see how far it is, and nobody else anything."""

import sys

import pytest

from jupiterd.ctl.output.console import Console
from jupiterd.ctl.preflight import source_survey
from jupiterd.ctl.preflight.looking_lines import Looking, looking_line
from jupiterd.ctl.preflight.source_survey import survey_of
from jupiterd.cycle.domain.domain import parse_domain
from jupiterd.locations import config_folder


@pytest.fixture
def shown(monkeypatch, capsys):
    """Return what is written while a look says something at each of these seconds."""

    def show(output, *passed_s, is_terminal=True):
        monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal, raising=False)
        monkeypatch.setenv("TERM", "xterm")
        times = iter([0.0, *passed_s])
        with Looking(Console(output), lambda: next(times)) as told:
            for number, _ in enumerate(passed_s):
                told(f"{number * 1000} 4800 read")
        return capsys.readouterr()

    return show


def test_a_short_look_needs_no_words(shown):
    assert shown("table", 0.2, 0.9) == ("", "")


def test_a_longer_one_tells_rising_counts_on_standard_error_and_takes_them_away(shown):
    out, err = shown("table", 0.5, 1.2, 2.4)
    assert out == ""
    lines = err.split("\r\x1b[K")
    assert lines == [
        "",
        "looking at the sources: read 1,000 of 4,800 (1 s)",
        "looking at the sources: read 2,000 of 4,800 (2 s)",
        "",
    ]


def test_programs_and_pipes_are_told_nothing(shown):
    assert shown("json", 2.0) == ("", "")
    assert shown("table", 2.0, is_terminal=False) == ("", "")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("", "looking at the sources"),
        ("something else went wrong", "looking at the sources"),
        ("12 0 read", "looking at the sources: read 12"),
        ("80 400 judged", "looking at the sources: judged 80 of 400"),
    ],
)
def test_what_a_look_says_becomes_a_sentence(line, told):
    assert looking_line(line) == told


@pytest.mark.full
def test_a_real_look_says_how_many_it_has_read_and_judged(monkeypatch):
    monkeypatch.setattr(source_survey, "REPORT_EVERY_S", 0.01)
    heard = []
    domain = parse_domain((config_folder() / "domains" / "python.yaml").read_text(), "python.yaml")
    survey_of(domain, heard.append)
    counts = {unit: [int(line.split()[0]) for line in heard if line.endswith(unit)]
              for unit in ("read", "judged")}  # fmt: skip
    assert counts["judged"]
    assert all(found == sorted(found) for found in counts.values())
    assert counts["judged"][-1] > counts["judged"][0]
