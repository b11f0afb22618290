"""`jupiterctl data samples`: what a phase has kept and dropped."""

import json

from tests.tui.test_cycles_screen import REVIEW


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
