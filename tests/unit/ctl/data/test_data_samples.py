"""`jupiterctl data samples`: what a phase has kept and dropped."""

import json

import pytest

from jupiterd.cycle.base.drop_reason import DropReason
from jupiterd.cycle.text_rules.judgement import Judgement
from jupiterd.workers.data.clean.drops import Drops
from jupiterd.workers.data.skips import SkipLog, SkipReason
from tests.support.workers.data_material import function, real
from tests.tui.screens.test_cycles_screen import REVIEW


def test_what_was_kept_and_dropped_is_shown_with_the_reasons(daemon, ctl):
    daemon.documents["review"] = {"schema": "jupiter/v1", **REVIEW}
    shown = ctl("data", "samples", "--round", "2", "--phase", "filter")
    assert (shown.exit_code, shown.err) == (0, "")
    assert "kept?[2J text" in shown.out
    assert "generated 69" in shown.out
    as_json = ctl("data", "samples", "3f2a91bc", "-o", "json")
    assert json.loads(as_json.out) == daemon.documents["review"]


def test_a_round_without_its_phase_is_refused(ctl):
    refused = ctl("data", "samples", "--round", "2")
    assert refused.exit_code == 2
    assert "go together" in refused.err


SHORT = [real(f"# note {number}\n") for number in range(5)]
LISTED = real(function(7) + "\x1b[2J")


@pytest.fixture
def left_out(daemon, tmp_path):
    """A round whose reader left a file out, and whose filters dropped six texts."""
    drops = Drops()
    for sample in SHORT:
        drops.add(sample, DropReason.TOO_SHORT)
    drops.add(LISTED, DropReason.LIST)
    (tmp_path / "dropped").mkdir()
    drops.write(tmp_path / "dropped")
    with SkipLog(tmp_path / "skipped") as skips:
        skips.add("notes/photo.jpg", SkipReason.NOT_TEXT, detail="it begins as JPEG\x1b")
    nothing = {"in": None, "out": None, "dropped": {}, "folders": [], "missing": []}
    daemon.documents["drops"] = {
        "schema": "jupiter/v1",
        "drops": {
            "cycle": "c0ffee0000000001", "domain": "python", "round": 1,
            "phases": [
                nothing | {
                    "phase": "collect", "in": 8, "out": 7, "dropped": {"not_text": 1},
                    "folders": [{"name": "skipped", "path": str(tmp_path / "skipped")}],
                },
                nothing | {"phase": "generate"},
                nothing | {
                    "phase": "filter", "in": 7, "out": 1, "dropped": {"too-short": 5, "list": 1},
                    "folders": [{"name": "dropped", "path": str(tmp_path / "dropped")}],
                    "missing": ["nuc"],
                },
            ],
        },
    }  # fmt: skip
    return daemon


def test_what_a_round_left_out_is_shown_by_reason(left_out, ctl):
    shown = ctl("data", "samples", "--dropped")
    assert (shown.exit_code, shown.err) == (0, "")
    lines = shown.out.splitlines()
    assert lines[:3] == [
        "round 1 collect: left out 1 of 8",
        "  not text 1:",
        "    notes/photo.jpg (it begins as JPEG?)",
    ]  # fmt: skip
    assert "round 1 filter: left out 6 of 7" in lines
    assert "  too-short 5:" in lines
    assert sum("note " in line for line in lines) == 3, "a few of each"
    assert "\x1b" not in shown.out
    assert lines[-1] == "  the rest lies on nuc, not in reach"


def test_of_one_reason_all_that_were_kept_are_shown(left_out, ctl):
    shown = ctl("data", "samples", "--dropped", "--reason", "too-short")
    assert shown.out.count("note ") == 5
    assert "list" not in shown.out
    told = json.loads(ctl("data", "samples", "--dropped", "-o", "json").out)
    (*_, filtered) = told["drops"]["phases"]
    assert {row["id"] for row in filtered["samples"]} == {each.id for each in [*SHORT, LISTED]}


def test_a_reason_that_there_was_not_is_refused_with_those_that_there_were(left_out, ctl):
    refused = ctl("data", "samples", "--dropped", "--reason", "symbols")
    assert refused.exit_code != 0
    assert "nothing of round 1 was left out for symbols" in refused.err
    assert "list, not_text, too-short" in refused.err
    assert ctl("data", "samples", "--reason", "symbols").exit_code == 2


def test_a_damaged_folder_says_so_and_hides_no_other(left_out, ctl, tmp_path):
    (tmp_path / "dropped" / "reasons.jsonl.zst").write_bytes(b"nonsense")
    shown = ctl("data", "samples", "--dropped").out
    assert "dropped is damaged" in shown
    assert "notes/photo.jpg" in shown


def test_a_sample_is_shown_with_the_limit_that_it_missed(left_out, ctl, tmp_path):
    drops = Drops()
    for reason, measure, value, limit in (
        (DropReason.FEW_LETTERS, "letters", 0.41234567, 0.6),
        (DropReason.SYMBOLS, "symbols", 0.3, 0.1),
    ):
        judged = Judgement(reason, {}, measure, value, limit)
        drops.add(real(f"a text with {reason}"), reason, judged)
    drops.write(tmp_path / "dropped")
    shown = ctl("data", "samples", "--dropped", "--phase", "filter").out
    assert "(letters 0.4123, at least 0.6): a text with few-letters" in shown
    assert "(symbols 0.3, at most 0.1): a text with symbols" in shown
    assert "photo" not in shown
    told = json.loads(ctl("data", "samples", "--dropped", "-o", "json").out)
    (first, _) = told["drops"]["phases"][2]["samples"]
    assert (first["measure"], first["value"], first["limit"]) == ("letters", 0.4123, 0.6)
