"""What a finished phase is told as."""

import json
import math

import pytest

from jupiterd.cycle.base.whole_counts import whole_count
from jupiterd.cycle.base.work_item import Phase
from jupiterd.cycle.rounds.phase_summary import summarise, total_counts


def test_counts_of_several_items_add_up() -> None:
    assert total_counts([{"a": 1, "b": 2}, {"a": 3}]) == {"a": 4, "b": 2}


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_counts_as_nothing(odd: float) -> None:
    names = "documents", "samples", "kept", "sequences", "steps", "texts", "scores", "gaps"
    counts = total_counts([dict.fromkeys([*names, "dropped", "dropped.stub"], odd), {"kept": 3}])
    assert counts["kept"] == 3
    for phase in Phase:
        told = json.dumps(summarise(phase, counts), allow_nan=False)
        assert "nan" not in told.lower()
        assert "inf" not in told.lower()
    assert summarise(Phase.EVALUATE, {"texts": 4, "scores": 4})[0] == 4, "of no document"
    assert whole_count({"a": odd, "b": 2.0}, "a") == 0
    assert whole_count({"b": 2.0}, "b") == 2


def test_collecting_tells_what_was_held_out() -> None:
    counts = {
        "documents": 600,
        "bytes": 9_000_000,
        "clusters": 160,
        "holdout_documents": 130,
        "holdout_clusters": 40,
    }
    count, unit, detail = summarise(Phase.COLLECT, counts)
    assert (count, unit) == (600, "documents")
    assert "9,000,000 bytes in 160 clusters; held out 130 documents in 40 clusters" in detail


def test_nothing_is_said_of_what_is_held_out_before_text_is_parted() -> None:
    _, _, detail = summarise(Phase.COLLECT, {"documents": 12, "bytes": 664_075})
    assert detail == "664,075 bytes"


def test_filtering_names_the_reasons_the_commonest_first() -> None:
    counts = {
        "kept": 7,
        "kept_real": 5,
        "kept_synthetic": 2,
        "dropped": 4,
        "dropped.duplicate": 1,
        "dropped.no-parse": 3,
    }
    _, _, detail = summarise(Phase.FILTER, counts)
    assert detail == "kept 5 real and 2 synthetic, dropped 4 (no-parse 3, duplicate 1)"


def test_counts_that_are_missing_are_nought() -> None:
    assert summarise(Phase.PACK, {})[0] == 0
    assert summarise(Phase.GATE, {"documents": 3})[:2] == (3, "documents")


def test_an_evaluation_counts_what_it_counted_while_it_ran() -> None:
    both = summarise(Phase.EVALUATE, {"documents": 65, "scores": 130})
    assert both == (
        130, "scores", "65 documents, each scored under candidate and incumbent",
    )  # fmt: skip
    alone = summarise(Phase.EVALUATE, {"documents": 65, "scores": 65})
    assert alone == (65, "scores", "65 documents, each scored under the candidate")
    written = summarise(Phase.EVALUATE, {"documents": 65, "scores": 65, "texts": 73})
    assert written[:2] == (73, "texts"), "eight of which were written"
    counts = {"documents": 65, "scores": 195, "gaps": 400}
    assert summarise(Phase.EVALUATE, counts)[2] == (
        "65 documents, each scored under candidate, incumbent and generator; "
        "asked 400 times which of several words fits a gap"
    )


def test_an_evaluation_of_an_older_version_is_told_in_documents() -> None:
    assert summarise(Phase.EVALUATE, {"documents": 65}) == (65, "documents", "")


def test_what_was_replaced_in_collected_text_is_told():
    counts = {"documents": 3, "bytes": 9, "removed.email": 4, "removed.token": 7}
    _, _, detail = summarise(Phase.COLLECT, counts)
    assert detail.endswith("; replaced in the text: token 7, email 4")


def test_why_documents_were_left_out_is_told_the_commonest_reason_first():
    reasons = {"too_large": 3, "robots": 7, "empty": 3, "broken": 1, "crashed": 2}
    counts = {"documents": 5, "skipped": 16} | {f"skipped.{k}": n for k, n in reasons.items()}
    _, _, detail = summarise(Phase.COLLECT, counts)
    assert detail.endswith(
        "; left out 16 (forbidden by robots.txt 7, empty 3, too large 3, crashed 2, broken 1)"
    )


def test_one_of_anything_is_told_without_an_s():
    counts = {"tokens": 1, "documents": 1, "holdout_documents": 1, "holdout_clusters": 1}
    _, _, detail = summarise(Phase.PACK, counts | {"other_files": 1})
    assert detail == (
        "1 document of 0 bytes, 0 different tokens; held out 1 document of 0 bytes, one whole "
        "folder, file or row; 1 other file beside them: images, style sheets and the like"
    )
