"""`jupiterctl cycle report`: one page that needs nothing else; text of others stays text."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from jupiterd.ctl.report.chart import MAX_POINTS, Interval, Series, interval_chart, line_chart
from jupiterd.ctl.report.html import element, text
from jupiterd.ctl.report.samples import choose
from jupiterd.cycle.base.drop_reason import DropReason
from jupiterd.daemon.runtime.settings import SERVE_PORT
from jupiterd.workers.data.clean.drops import Drops
from tests.support.ctl.documents import cycle
from tests.support.ctl.model_material import DETAILS, row, verdict_document
from tests.support.workers.data_material import function, real, synthetic, write

HOSTILE = "</pre><script src=https://evil.example/x.js>alert(1)</script>\x1b[2J\ud800"

REAL = [real(function(number)) for number in range(4)]
CHILD = replace(synthetic(function(50)), parents=(REAL[1].id,), template="faq")
REFUSED = replace(synthetic(f"# {HOSTILE[:-1]}\n"), parents=(REAL[2].id,))


@pytest.fixture
def folders(tmp_path):
    """What a round has kept, made and dropped."""
    drops = Drops()
    drops.add(REFUSED, DropReason.NEAR_DUPLICATE)
    drops.add(REAL[3], DropReason.TOO_SHORT)
    (tmp_path / "dropped").mkdir()
    drops.write(tmp_path / "dropped")
    return {
        "round": 2,
        "kept": [str(write(tmp_path / "kept", [*REAL[:3], CHILD]))],
        "dropped": [str(tmp_path / "dropped")],
        "samples": [str(write(tmp_path / "made", [CHILD, REFUSED]))],
        "parents": [str(write(tmp_path / "parents", REAL[1:3]))],
    }


def told(folder, samples, **more):
    judged = verdict_document(folder)
    rounds = [
        row(number, verdict_document=judged, completions=DETAILS["completions"], **more)
        | {"data": DETAILS["data"]}
        for number in (1, 2)
    ]
    shown = cycle("finished", title=HOSTILE) | {"domain": HOSTILE}
    for phase in shown["phases"]:
        phase |= {"in": 829, "out": 690, "dropped": {"too-short": 139}}
    return {
        "schema": "jupiter/v1",
        "report": {
            "cycle": shown,
            "started_at": "2026-01-01T00:00:00Z",
            "log": DETAILS["log"],
            "machines": DETAILS["machines"],
            "rounds": rounds,
            "samples": samples,
            "curve": None,
        },
    }


class Elements(HTMLParser):
    """Follows a page, and fails where an element isn't closed."""

    EMPTY = ("meta",)

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.attributes: dict[str, set[str]] = {}

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        for name, value in attrs:
            self.attributes.setdefault(name, set()).add(value or "")
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def parsed(page: str) -> Elements:
    elements = Elements()
    elements.feed(page)
    assert elements.open == []
    return elements


def test_a_page_has_everything_and_needs_nothing(daemon, ctl, folders, tmp_path):
    daemon.documents["report"] = told(tmp_path, folders, reason=HOSTILE)
    ran = ctl("cycle", "report", "--to", str(tmp_path / "r.html"))
    assert (ran.exit_code, ran.err) == (0, "")
    assert ran.out.startswith(f"{tmp_path}/r.html: ")
    page = (tmp_path / "r.html").read_text()
    elements = parsed(page)
    assert elements.seen >= {"svg", "table", "details", "mark", "pre"}
    assert "script" not in elements.seen
    assert not {"src", "onerror", "onload"} & elements.attributes.keys()
    (link,) = elements.attributes["href"]  # followed if somebody clicks, and by an anchor alone
    assert link.startswith(f"http://127.0.0.1:{SERVE_PORT}/?model=")
    assert link.endswith("%2F2")
    assert page.count("href=") == page.count("<a href=") == 1
    assert "url(" not in page
    assert "\x1b" not in page
    assert "prefers-color-scheme: dark" in page
    for words in (
        "829", "690", "139: too-short 139", "PSF-2.0", "near-duplicate", "what was made of it",
        "Chances of a wrong promotion", "xs):\n    return", "loss 1.500 at step 300 to 1.250",
    ):  # fmt: skip
        assert words in page, words


def test_a_phase_that_dropped_more_than_half_stands_above_the_phases(
    daemon, ctl, folders, tmp_path
):
    daemon.documents["report"] = told(tmp_path, folders)
    drop = {"round": 2, "told": "filter dropped 188 of 200 texts (94 %): few-letters 180"}
    daemon.documents["report"]["report"]["cycle"]["heavy_drops"] = [drop]
    assert ctl("cycle", "report", "--to", str(tmp_path / "r.html")).exit_code == 0
    page = (tmp_path / "r.html").read_text()
    parsed(page)
    assert f"attention: round 2 {drop['told']}" in page


def answers(number: int, count: int = 7, trouble: str | None = None):
    rows = [
        {"prompt": f"prompt {n} {HOSTILE}", "is_question": False, "base": f"old {n}",
         "incumbent": f"old {n}", "candidate": f"new {n} of {number}" if n else None}
        for n in range(count)
    ]  # fmt: skip
    models = {"base": "b" * 64, "incumbent": "b" * 64, "candidate": "c" * 64}
    return {"trouble": trouble, "models": models, "rows": rows}


def test_answers_stand_side_by_side_the_first_of_the_newest_round_unfolded(
    daemon, ctl, folders, tmp_path
):
    daemon.documents["report"] = told(tmp_path, folders)
    first, second = daemon.documents["report"]["report"]["rounds"]
    first["answers"], second["answers"] = answers(1), answers(2, trouble=HOSTILE)
    assert ctl("cycle", "report", "--to", str(tmp_path / "r.html")).exit_code == 0
    page = (tmp_path / "r.html").read_text()
    elements = parsed(page)
    assert "script" not in elements.seen
    shown = page[page.index("Side by side") :]
    shown = shown[: shown.index("</section>")]
    unfolded = re.sub(r"<details>.*?</details>", "", shown, flags=re.DOTALL)
    assert [f"new {n} of 2" in unfolded for n in range(1, 7)] == [True] * 4 + [False] * 2
    assert "new 6 of 2" in shown
    assert "2 further prompts" in shown
    assert "of 1" not in unfolded
    assert "new 6 of 1" in shown
    assert "base and incumbent bbbbbbbb" in unfolded
    assert unfolded.count("no answer") == 1
    assert "Round 2: answers are missing: " in unfolded
    assert "repeats itself" not in shown


def test_answers_that_repeat_themselves_are_counted_and_marked(daemon, ctl, folders, tmp_path):
    daemon.documents["report"] = told(tmp_path, folders)
    first, second = daemon.documents["report"]["report"]["rounds"]
    first["answers"], second["answers"] = answers(1), answers(2)
    second["answers"]["rows"][1]["candidate"] = "the cache and " * 9
    second["answers"]["rows"][3]["candidate"] = "```\n\n" * 30
    second["answers"]["rows"][2]["candidate"] = f"It ends.{chr(10) * 60}"
    assert ctl("cycle", "report", "--to", str(tmp_path / "r.html")).exit_code == 0
    page = (tmp_path / "r.html").read_text()
    shown = page[page.index("Side by side") :].split("</section>")[0]
    assert "themselves: 3 of 6 answers of candidate" in shown
    assert shown.count('<p class="soft">repeats itself</p>') == 2
    assert shown.count("<pre>It ends.</pre>") == 1
    assert shown.count("then blank lines alone") == 1
    assert shown.count("```") < 12, "of a loop the beginning is enough"


def test_the_domains_own_questions_stand_above_the_answers(daemon, ctl, folders, tmp_path):
    daemon.documents["report"] = told(tmp_path, folders)
    first, second = daemon.documents["report"]["report"]["rounds"]
    first["answers"], second["answers"] = answers(1), answers(2)
    second["own_questions"] = {"text": f"Your own questions: {HOSTILE}", "trouble": None}
    assert ctl("cycle", "report", "--to", str(tmp_path / "r.html")).exit_code == 0
    page = (tmp_path / "r.html").read_text()
    assert "script" not in parsed(page).seen
    assert "Round 2: Your own questions: " in page[page.index("Side by side") :]


def test_rounds_of_earlier_versions_have_no_answers(daemon, ctl, folders, tmp_path):
    daemon.documents["report"] = told(tmp_path, folders)
    first, _ = daemon.documents["report"]["report"]["rounds"]
    first["answers"] = answers(1, count=0)
    assert ctl("cycle", "report", "--to", str(tmp_path / "r.html")).exit_code == 0
    page = (tmp_path / "r.html").read_text()
    parsed(page)
    assert "Side by side" in page
    assert "<table" not in page[page.index("Side by side") :].split("</section>")[0]


def test_the_same_documents_make_the_same_page_again(daemon, ctl, folders, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    daemon.documents["report"] = told(tmp_path, folders)
    daemon.documents["report"]["report"]["cycle"]["domain"] = "python"
    ran = ctl("cycle", "report", "c0ffee", "-o", "json")
    assert json.loads(ran.out)["file"] == "python-c0ffee00.html"
    first = (tmp_path / "python-c0ffee00.html").read_bytes()
    ran = ctl("cycle", "report")
    assert ran.exit_code == 0
    assert ran.out.splitlines()[1:] == [
        "talk to its newest model: jupiterctl model chat c0ffee00/2"
    ]
    assert (tmp_path / "python-c0ffee00.html").read_bytes() == first


def test_a_cycle_of_which_nothing_is_known_yet_has_a_page_too(daemon, ctl, tmp_path):
    daemon.documents["report"] = told(tmp_path, None)
    daemon.documents["report"]["report"] |= {"rounds": [], "log": []}
    ran = ctl("cycle", "report", "--to", str(tmp_path / "r.html"))
    assert (ran.exit_code, "model chat" in ran.out) == (0, False)
    page = (tmp_path / "r.html").read_text()
    parsed(page)
    assert "No gate has decided yet." in page
    ran = ctl("cycle", "report", "--to", str(tmp_path / "nowhere" / "r.html"))
    assert ran.exit_code == 2
    assert "can't be written" in ran.err


def test_samples_are_shown_beside_what_they_were_made_of(folders):
    chosen = choose(folders)
    assert [(each.sample, each.parent) for each in chosen.retained] == [(CHILD, REAL[1])]
    (dropped,) = chosen.dropped
    assert (dropped.sample.id, dropped.parent, dropped.reason) == (
        REFUSED.id, REAL[2], "near-duplicate",
    )  # fmt: skip
    assert [(each.sample.id, each.reason) for each in chosen.dropped_real] == [
        (REAL[3].id, "too-short")
    ]


def test_samples_that_are_not_in_reach_or_damaged_are_no_reason_to_fail(folders, tmp_path):
    assert choose(None) is None
    assert choose({"round": 1}).retained == ()
    (tmp_path / "dropped" / "reasons.jsonl.zst").write_bytes(b"nonsense")
    assert choose(folders).is_readable is False


def test_text_of_others_stays_text():
    assert str(text(HOSTILE)).count("<") == 0
    shown = element("p", HOSTILE, title='"><script>')
    assert re.findall(r"<[^>]*>", shown) == ['<p title="&quot;&gt;&lt;script&gt;">', "</p>"]


def test_a_long_curve_is_thinned_and_what_is_no_number_left_out():
    points = [(float(n), float(n % 7)) for n in range(20_000)] + [(20_000.0, float("nan"))]
    drawn = str(line_chart("loss", "step", [Series("a", points), Series("b", [(1.0, 2.0)])]))
    parsed(drawn)
    assert drawn.count(" ", drawn.index('d="M'), drawn.index('class="line')) < 3 * MAX_POINTS
    assert "nan" not in drawn
    assert line_chart("loss", "step", [Series("a", [(1.0, float("inf"))])]) == ""


@pytest.mark.parametrize("value", [0.0, -3.0, 1e-9, 4e9])
def test_a_single_value_is_drawn(value):
    parsed(str(line_chart("t", "x", [Series("a", [(1.0, value)])])))
    parsed(str(interval_chart("t", "x", [Interval(1, value, value, value)], 0.005)))
    assert interval_chart("t", "x", [], 0.0) == ""


CURVE = {
    "run": "c0ffee", "round": 2, "islands": 0, "missing": [],
    "points": [[1, 3.5, 100, 0.0], [2, 3.25, 200, 1.0]], "validation": [[2, 3.0, 200, 1.0]],
}  # fmt: skip


@pytest.mark.parametrize(
    ("curve", "words"),
    [
        (CURVE, "Loss of each step of round 2"),
        (CURVE, "held out"),
        (CURVE | {"missing": ["nuc"]}, "Some of its steps were written by nuc, not in reach."),
        (CURVE | {"points": [], "validation": []}, "No curve of single steps is in reach."),
        (None, "No curve of single steps is in reach."),
    ],
)
def test_the_loss_of_each_step_is_drawn_with_the_round_that_it_is_of(
    daemon, ctl, folders, tmp_path, curve, words
):
    daemon.documents["report"] = told(tmp_path, folders)
    daemon.documents["report"]["report"]["curve"] = curve
    assert ctl("cycle", "report", "--to", str(tmp_path / "r.html")).exit_code == 0
    page = (tmp_path / "r.html").read_text()
    parsed(page)
    assert words in page
