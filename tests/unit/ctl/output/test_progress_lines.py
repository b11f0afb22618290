from jupiterd.ctl.output.phase_lines import phase_lines
from jupiterd.ctl.output.progress_lines import (
    RUNNING_INTERVAL_S,
    Line,
    PrintedProgress,
    cycle_summary,
    final_lines,
    next_lines,
    shown_values,
    verdict_lines,
)
from tests.support.ctl.documents import FINISHED, VERDICT, cycle, phase

TRAINING = {"unit": "steps", "total": 600, "rate": 6.0}


def _train(state, done, **more):
    return cycle(phases=[phase(1, "train", state, done=done, **TRAINING, **more)], events=[])


def test_a_phase_is_announced_then_counted_then_summed_up():
    shown, lines = next_lines(PrintedProgress(), _train("running", 0), 0.0)
    assert lines == [Line("round 1 train     started")]
    shown, lines = next_lines(shown, _train("running", 120, eta_s=80.0), 5.0)
    assert lines == [
        Line("round 1 train     120 of 600 steps, 6.00/s, 1 min 20 s left", is_passing=True)
    ]
    shown, lines = next_lines(shown, _train("done", 600, elapsed_s=100.0), 6.0)
    assert lines == [Line("round 1 train     done: 600 steps in 1 min 40 s (6.00/s)")]
    assert next_lines(shown, _train("done", 600, elapsed_s=100.0), 7.0)[1] == []


def test_a_phase_in_which_nothing_moves_promises_no_time():
    stalled = {"eta_s": None, "stalled_s": 45.0}
    shown, _ = next_lines(PrintedProgress(), _train("running", 0), 0.0)
    _, lines = next_lines(shown, _train("running", 120, **stalled), 5.0)
    assert lines[0].text.endswith("120 of 600 steps, 6.00/s, nothing new for 45 s")
    table = phase_lines(_train("running", 120, **stalled))
    assert "stalled for 45 s" in table[1]


def test_a_running_phase_gets_a_line_every_five_seconds_at_most():
    shown, _ = next_lines(PrintedProgress(), _train("running", 0), 0.0)
    printed = 0
    for step in range(1, 121):
        shown, lines = next_lines(shown, _train("running", step), step * 0.5)
        printed += len(lines)
    assert printed == 60 / RUNNING_INTERVAL_S


def test_that_a_phase_prepares_is_said_once_until_something_is_done():
    shown, _ = next_lines(PrintedProgress(), _train("running", 0), 0.0)
    told = []
    for second, done in [(5, 0), (10, 0), (15, 0), (20, 7)]:
        row = phase(1, "train", "running", done=done, unit="steps", total=0)
        shown, lines = next_lines(shown, cycle(phases=[row], events=[]), float(second))
        told += [line.text.removeprefix("round 1 train     ") for line in lines]
    assert told == ["preparing", "7 steps"]


def test_what_is_done_before_the_first_step_is_said_and_its_time_goes_on():
    shown, _ = next_lines(PrintedProgress(), _train("running", 0), 0.0)
    told = []
    stages = [
        {"stage": "importing", "elapsed_s": 4.0, "expected_s": None},
        {
            "stage": "trying_micro_batches",
            "detail": "32 of 64",
            "elapsed_s": 12.0,
            "expected_s": 20.0,
        },
        {"stage": "compiling", "elapsed_s": 7.4, "expected_s": 40.0},
        {"stage": "compiling", "elapsed_s": 12.4, "expected_s": 40.0},
        {"stage": "compiling", "elapsed_s": 75.0, "expected_s": 40.0},
    ]
    for number, preparing in enumerate(stages, 1):
        row = phase(1, "train", "running", done=0, unit="steps", total=0, preparing=preparing)
        shown, lines = next_lines(shown, cycle(phases=[row], events=[]), 5.0 * number)
        told += [line.text.removeprefix("round 1 train     ") for line in lines]
    assert told == [
        "importing libraries, 4 s",
        "trying micro batches: 32 of 64, 12 of about 20 s",
        "compiling, 7 of about 40 s",
        "compiling, 12 of about 40 s",
        "compiling, 1 min 15 s of about 40 s",
    ]


def test_a_training_that_goes_on_elsewhere_says_that_it_compiles_again():
    shown = PrintedProgress(started=frozenset({(1, "train")}))
    preparing = {"stage": "compiling", "elapsed_s": 2.0, "expected_s": None}
    _, lines = next_lines(shown, _train("running", 120, preparing=preparing), 5.0)
    assert lines[0].text.startswith("round 1 train     compiling, 2 s, 6.00/s")


def test_readings_are_written_with_their_names():
    shown = PrintedProgress(started=frozenset({(1, "train")}))
    values = {"loss": 4.12345, "tokens_per_s": 10240.4, "grad_norm": 0.5, "tokens": 99}
    _, lines = next_lines(shown, _train("running", 120, values=values), 5.0)
    assert lines[0].text.endswith("6.00/s, loss 4.123, 10,240 tokens/s, grad norm 0.5")


def test_a_speed_is_shown_with_what_was_predicted_of_it():
    shown = PrintedProgress(started=frozenset({(1, "train")}))
    values = {"tokens_per_s": 10240.4, "predicted_tokens_per_s": 11000.2, "loss": 4.0}
    _, lines = next_lines(shown, _train("running", 120, values=values), 5.0)
    assert lines[0].text.endswith("6.00/s, 10,240 tokens/s (11,000 predicted), loss 4.000")


def test_a_phase_that_stands_still_isn_t_told_again_and_again():
    shown, times = PrintedProgress(started=frozenset({(1, "train")})), []
    for now_s in range(0, 150, 5):
        values = {"tokens_per_s": 9000.0 / (now_s + 1)}  # it falls while nothing is done
        shown, lines = next_lines(shown, _train("running", 120, values=values), float(now_s))
        times += [now_s] * len(lines)
    assert times == [0, 60, 120]
    assert next_lines(shown, _train("running", 121), 150.0)[1], "once something is, at once"


def test_a_phase_that_was_too_quick_to_be_seen_is_summed_up_all_the_same():
    _, lines = next_lines(PrintedProgress(), _train("done", 600), 0.0)
    assert [line.text for line in lines] == ["round 1 train     done: 600 steps (6.00/s)"]


def test_a_phase_is_summed_up_once_it_is_certain_that_none_of_its_work_is_open():
    half = phase(1, "gate", "done", done=65, unit="documents", detail="1 small student trained")
    whole = half | {"detail": "4 small students trained"}
    for state in ("waiting", "running"):  # nobody leads; the new leader hasn't told of it yet
        _, lines = next_lines(
            PrintedProgress(), cycle(state=state, phases=[half], verdicts=[], events=[]), 0
        )
        assert not any("done" in line.text for line in lines)
    _, lines = next_lines(
        PrintedProgress(), cycle(phases=[whole], verdicts=[VERDICT], events=[]), 1.0
    )
    assert lines[0].text == "round 1 gate      done: 65 documents, 4 small students trained"


def test_a_skipped_phase_says_why():
    document = cycle(phases=[phase(1, "generate", "skipped", detail="no generator yet")], events=[])
    _, lines = next_lines(PrintedProgress(), document, 0.0)
    assert lines == [Line("round 1 generate  skipped: no generator yet")]


def test_a_phase_without_a_total_is_counted_alone():
    document = cycle(phases=[phase(1, "filter", "running", done=1234, unit="documents")], events=[])
    _, lines = next_lines(PrintedProgress(started=frozenset({(1, "filter")})), document, 9.0)
    assert lines[0].text == "round 1 filter    1,234 documents"


def test_a_verdict_comes_after_the_phases_of_its_round_and_before_the_next():
    document = cycle(
        phases=[phase(1, "gate", "done"), phase(2, "collect", "running")],
        verdicts=[VERDICT],
        events=[],
    )
    _, lines = next_lines(PrintedProgress(), document, 0.0)
    assert [line.text[:16] for line in lines] == [
        "round 1 gate    ",
        "round 1 verdict ",
        "round 1 verdict ",
        "round 2 collect ",
    ]


def test_a_verdict_shows_its_numbers_and_its_reason():
    assert verdict_lines(VERDICT) == [
        (
            "round 1 verdict   PROMOTE: 2.4012 bits per byte "
            "(order-2 byte model 3.0512, unigram 3.9000)"
        ),
        "round 1 verdict   better than the order-2 byte model by 0.65 +- 0.02 bits per byte",
    ]


def test_the_generator_is_shown_where_it_is_not_the_incumbent():
    numbers = {"incumbent_bpb": 2.5, "generator_bpb": 2.5, "byte_bpb": None, "unigram_bpb": None}
    shown = [verdict_lines(VERDICT | numbers | {"generator_bpb": each})[0] for each in (2.5, 2.4)]
    assert shown[0].endswith("(incumbent 2.5000)")
    assert shown[1].endswith("(incumbent 2.5000, generator 2.4000)")


def test_text_that_was_over_fitted_is_an_alarm():
    numbers = {"vault_gap_bpb": 0.03125, "vault_alarm": True}
    assert "ALARM: it saves 0.0312 bits" in verdict_lines(VERDICT | numbers)[-1]
    assert "ALARM" not in str(verdict_lines(VERDICT | numbers | {"vault_alarm": False}))


def test_a_verdict_without_numbers_is_shown():
    assert verdict_lines({"round": 2, "verdict": "ABSTAIN", "val_bpb": None}) == [
        "round 2 verdict   ABSTAIN: none bits per byte"
    ]


def test_events_and_verdicts_are_shown_once():
    document = cycle(phases=[], verdicts=[VERDICT])
    shown, lines = next_lines(PrintedProgress(), document, 0.0)
    assert len(lines) == 3
    assert next_lines(shown, document, 99.0)[1] == []


def test_an_event_with_an_earlier_number_is_shown_when_it_is_told():
    later = {"seq": 4000, "text": "island 2, attempt 4"}
    earlier = {"seq": 3000, "text": "island 1, attempt 3"}
    shown, lines = next_lines(PrintedProgress(), cycle(phases=[], events=[later]), 0.0)
    assert [line.text for line in lines] == ["island 2, attempt 4"]
    _, lines = next_lines(shown, cycle(phases=[], events=[earlier, later]), 1.0)
    assert [line.text for line in lines] == ["island 1, attempt 3"]


def test_a_missing_leader_is_mentioned_once_each_time():
    shown, lines = next_lines(PrintedProgress(), cycle("waiting", phases=[], events=[]), 0.0)
    assert "nobody leads" in lines[0].text
    shown, lines = next_lines(shown, cycle("waiting", phases=[], events=[]), 1.0)
    assert lines == []
    shown, lines = next_lines(shown, cycle("running", phases=[], events=[]), 2.0)
    _, lines = next_lines(shown, cycle("waiting", phases=[], events=[]), 3.0)
    assert len(lines) == 1


def test_the_last_lines():
    assert final_lines(FINISHED) == [
        (
            "next: jupiterctl cycle explain c0ffee00, jupiterctl model chat c0ffee00/1, "
            "jupiterctl model export c0ffee00/1 --to FOLDER"
        ),
        "verdict: PROMOTE",
        "val_bpb: 2.4012",
        "model: /state/runs/c0/m",
    ]
    assert final_lines(cycle()) == ["verdict: none", "val_bpb: none", "model: none"]


GIVEN = {"kind": "train", "bits_per_byte_before": 1.109, "best_bits_per_byte": 0.82}


def test_weights_that_were_given_are_compared_with_what_they_became():
    better = cycle(**GIVEN, bits_per_byte=0.83, ended_worse=False)
    assert final_lines(better)[:2] == [
        "held out: 0.8200 bits per byte, 1.1090 before training",
        "verdict: -",
    ]
    ruined = cycle(**GIVEN | {"best_bits_per_byte": 1.109}, bits_per_byte=4.67, ended_worse=True)
    ruined["best_step"] = 0
    assert final_lines(ruined)[:3] == [
        "held out: 1.1090 bits per byte, 1.1090 before training",
        "it ended worse than it began, at 4.6700: the model is the one that you gave",
        "verdict: WORSE",
    ]


def test_a_loss_that_ran_away_is_told_at_the_end():
    lines = final_lines(cycle(kind="train", val_bpb=19.83))
    assert lines[0].startswith("warning: its val_bpb of 19.8300 is worse than a coin for each bit")
    assert "lower --lr" in lines[0]
    assert not any("warning" in line for line in final_lines(cycle(kind="train", val_bpb=7.9)))


def test_a_phase_that_did_one_thing_ends_with_one():
    done = {"round": 1, "phase": "evaluate", "state": "done", "done": 1, "unit": "documents"}
    _, lines = next_lines(PrintedProgress(), cycle("finished", phases=[done], events=[]), 1.0)
    assert lines[0].text == "round 1 evaluate  done: 1 document"


def test_two_figures_of_held_out_text_are_told_apart_and_the_model_s_export_is_named():
    lines = final_lines(
        cycle(**GIVEN, val_bpb=0.98, domain="letters", model="/m", ended_worse=False)
    )
    assert lines[0].endswith(
        "(as training measures it, by sequences; val_bpb: all held-out text, once trained)"
    )
    assert lines[1] == (
        "next: jupiterctl model chat c0ffee00, jupiterctl model export c0ffee00 --to FOLDER"
    )
    assert lines[2:] == ["verdict: -", "val_bpb: 0.9800", "model: /m"]


def test_a_verdict_names_the_model_that_was_brought_and_what_was_forgotten():
    told = verdict_lines(VERDICT | {"base_bpb": 1.109, "forgetting": 0.0123})
    assert "the model that was brought 1.1090" in told[0]
    assert told[-1].endswith(
        "general text takes +1.2% bits per byte compared with the model that was brought"
    )


def test_the_last_lines_speak_of_the_last_round():
    hold = VERDICT | {"round": 2, "verdict": "HOLD", "val_bpb": 2.5}
    assert final_lines(FINISHED | {"verdicts": [VERDICT, hold]})[:3] == [
        (
            "next: jupiterctl cycle explain c0ffee00, jupiterctl model chat c0ffee00/2, "
            "jupiterctl model export c0ffee00/2 --to FOLDER"
        ),
        "verdict: HOLD",
        "val_bpb: 2.5000",
    ]


def test_a_cycle_in_one_line():
    assert cycle_summary(cycle()) == (
        "python (c0ffee00): running, round 1 of 2, train 120 of 600 steps"
    )
    assert cycle_summary(FINISHED) == (
        "python (c0ffee00): finished, PROMOTE at 2.4012 bits per byte"
    )


def test_what_only_the_machines_need_to_know_is_not_in_a_line():
    row = {"values": {"loss": 2.5, "rank_tokens_per_s": 99.0, "flops_per_token": 1e6}}
    assert shown_values(row) == ["loss 2.500"]
