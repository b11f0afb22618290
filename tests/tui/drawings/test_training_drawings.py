"""What the Training screen says, without any terminal."""

from functools import partial

import pytest

from jupiter_tui.drawings.bits_per_byte import CANDIDATE, INCUMBENT, THRESHOLD, bits, scored
from jupiter_tui.drawings.checkpoints import checkpoints
from jupiter_tui.drawings.completions import NONE_YET, completions
from jupiter_tui.drawings.gang import gang
from jupiter_tui.drawings.loss import loss
from jupiter_tui.drawings.outer_rounds import outer_rounds
from jupiter_tui.drawings.primitives.lines import Tone, in_ascii
from jupiter_tui.drawings.primitives.plot import MARK
from jupiter_tui.drawings.readings import readings
from jupiter_tui.model.loss_view import Axis, Look
from jupiter_tui.model.scene import Scene
from jupiter_tui.model.view import fold_other
from jupiterd.client.watch import Delta, Link, LinkChanged, Snapshot
from tests.support.tui import training_documents as training
from tests.support.tui.documents import RECORDED, cycle, of, scene, status

LIVE = LinkChanged(Link.LIVE)


def whole(*changes, **options) -> Scene:
    """The scene of a training of which everything is told."""
    shown = scene(LIVE, Snapshot(RECORDED), *changes, **options)
    view = shown.view
    for noun, message in training.told():
        view = fold_other(view, noun, message)
    return Scene(view, shown.moment, shown.options)


def text(drawing, shown: Scene, width: int = 60, height: int = 13) -> list[str]:
    return ["".join(cell.text for cell in line).rstrip() for line in drawing(shown, width, height)]


def tone(drawing, shown: Scene, words: str, width: int = 60) -> Tone:
    cells = [cell for line in drawing(shown, width, 13) for cell in line]
    return next(cell.tone for cell in cells if words in cell.text)


def test_the_loss_is_shown_from_the_first_step_with_what_was_held_out():
    lines = text(partial(loss, Look()), whole(), 80)
    assert len(lines) == 13
    assert "held out 2.700" in lines[0]
    assert any(MARK in line for line in lines[1:])
    assert lines[-1].split()[:2] == ["step", "1"]


@pytest.mark.parametrize(
    ("axis", "first", "last"),
    [(Axis.TOKENS, "8.19 k tokens", "3.91 M tokens"), (Axis.TIME, "0.0 s", "2 min 29 s")],
)
def test_the_loss_goes_along_tokens_or_time(axis: Axis, first: str, last: str):
    below = text(partial(loss, Look(axis)), whole(), 80)[-1].strip()
    assert below.startswith(first)
    assert below.endswith(last)


def test_where_nobody_noted_the_time_that_is_said_and_nothing_drawn():
    rows = [[step, 2.0, None, None] for step in (1, 2, 3)]
    shown = scene(LIVE, Snapshot(RECORDED))
    told = Snapshot(training.with_points(rows))
    view = fold_other(shown.view, f"curve/{training.RUN}", told)
    lines = text(partial(loss, Look(Axis.TIME)), Scene(view, shown.moment, shown.options))
    assert "nobody noted the time" in lines[1]


def test_a_part_of_the_curve_that_is_out_of_reach_is_named():
    shown = scene(LIVE, Snapshot(RECORDED))
    told = Snapshot(training.curve(missing=["node-9"]))
    view = fold_other(shown.view, f"curve/{training.RUN}", told)
    assert (
        "without node-9" in text(partial(loss, Look()), Scene(view, shown.moment, shown.options))[0]
    )


def test_the_figures_stand_side_by_side_where_there_is_room():
    shown = whole(training.with_shares())
    wide, narrow = (text(partial(readings, Look()), shown, width) for width in (60, 40))
    assert "lr         0.003           grad norm  1.315" in wide
    assert "lr         0.003" in narrow
    assert "MFU        31.2 %" in narrow
    assert "held out   2.7000" in narrow


def test_the_step_with_the_lowest_loss_on_held_out_text_stands_beside_that_loss():
    told = Delta({"cycle": cycle(held_out_loss=2.71, best_step=1234)})
    assert "held out   2.7000  best 1,234" in text(partial(readings, Look()), whole(told), 40)


def test_a_share_of_a_peak_that_nobody_knows_is_not_zero():
    lines = text(partial(readings, Look()), of(status(cycle=cycle(mfu=None, lr=None))), 40)
    assert "MFU        N/A" in lines
    assert "lr         N/A" in lines
    assert not any(line.startswith("MFU: ") for line in lines)


def test_the_gang_shows_what_each_machine_does_and_its_share_of_the_batch():
    lines = text(gang, whole(training.with_shares()), 44)
    assert [line.split() for line in lines[1:]] == [
        ["node-2", "2,500", "██████░░░░", "62", "%"],
        ["node-3", "1,500", "████░░░░░░", "38", "%"],
    ]


def test_a_machine_with_several_ranks_is_one_row():
    seats = [
        {"node": training.NODES[0], "rank": rank, "device": f"cuda:{rank}", "engine": "torch/nccl",
         "tokens_per_s": 100.0, "share": 0.5, "pid": 7}
        for rank in (0, 1)
    ]  # fmt: skip
    lines = text(gang, of(status(cycle=cycle(gang=seats))), 90)
    assert len(lines) == 2
    assert {"200", "100", "cuda:0", "+1"} <= set(lines[1].split())


def test_speeds_that_nobody_told_are_not_zero():
    lines = text(gang, of(RECORDED), 44)
    assert [line.split()[1:] for line in lines[1:]] == [["N/A", "N/A"]] * 2


def test_islands_show_what_each_does_and_how_their_exchanges_went():
    lines = text(outer_rounds, whole(training.of_islands()), 110)
    assert lines[0].startswith("island 1  in        step 271, 1,000 tokens/s")
    assert lines[3].split() == [
        "3", "1,", "2", "nobody", "11", "s", "2,", "9.5", "s", "2.0", "MiB", "20",
    ]  # fmt: skip
    assert lines[4].split()[:4] == ["2", "1", "2", "(missing)"]
    assert "N/A" in lines[4]
    assert tone(outer_rounds, whole(training.of_islands()), "missing", 110) is Tone.WARN


def test_where_one_gang_trains_there_are_no_islands():
    assert outer_rounds(whole(), 110, 13) == ()


def test_the_threshold_stands_left_of_the_incumbent_and_the_candidate_left_of_both():
    (row, *_rest) = text(bits, whole(training.with_shares()), 70)
    assert row.index(CANDIDATE) < row.index(THRESHOLD) < row.index(INCUMBENT)
    assert tone(bits, whole(training.with_shares()), CANDIDATE) is Tone.GOOD


def test_the_threshold_is_the_incumbent_less_the_margin():
    verdict = {"val_bpb": 2.0, "incumbent_bpb": 2.5, "lower_bound_bpb": 0.25, "margin_bpb": 0.125}
    assert scored(verdict) == (2.0, 2.25, 2.375, 2.5)
    assert scored({"val_bpb": 2.0, "incumbent_bpb": 2.5}) == (2.0, None, None, 2.5)
    assert scored({"val_bpb": None, "incumbent_bpb": 2.5}) is None


def test_a_round_that_was_not_compared_says_so():
    verdicts = [*RECORDED["cycle"]["verdicts"], {"round": 2, "verdict": "ABSTAIN"}]
    lines = text(bits, of(status(cycle=cycle(verdicts=verdicts))), 70)
    assert lines[0].split() == ["round", "2", "ABSTAIN", "not", "compared"]
    assert "no candidate" in text(bits, of(status(cycle=cycle(verdicts=[]))), 70)[0]


def test_checkpoints_say_who_has_them_and_which_have_too_few_copies():
    lines = text(checkpoints, whole(), 80)
    assert lines[1].split()[:4] == ["400", "b1b1b1b1", "1:", "node-2"]
    assert lines[-1].strip() == "3 older ones, one node doesn't answer"
    assert tone(checkpoints, whole(), "1: node-2", 80) is Tone.WARN
    assert tone(checkpoints, whole(), "let go", 80) is Tone.FAINT


def test_what_the_model_writes_is_told_apart_from_what_it_was_given():
    shown = whole()
    assert "> def main(self): ⏎     return self.name" in text(completions, shown)
    assert tone(completions, shown, "def main(") is Tone.NOTE
    assert tone(completions, shown, "repeats itself") is Tone.WARN
    assert text(completions, of(RECORDED)) == [NONE_YET]


def test_every_sign_has_a_likeness_in_ascii():
    shown = whole(training.of_islands(), is_ascii=True)
    drawings = (partial(loss, Look()), gang, bits, checkpoints, completions, outer_rounds)
    written = "".join(line for drawing in drawings for line in text(drawing, shown, 90))
    assert "?" not in in_ascii(written)
