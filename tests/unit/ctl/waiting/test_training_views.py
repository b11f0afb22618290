"""What `cycle status` and `train status` say of a training where they are asked for more."""

import pytest

from jupiterd.ctl.waiting.training_views import training_lines, view_lines
from tests.support.tui import training_documents as training


def views(*documents: dict) -> list[str]:
    return [line for whole in documents for line in view_lines(_named(whole))]


def _named(whole: dict) -> dict:
    return {name: view for name, view in whole.items() if name != "schema"}


def test_the_curve_is_told_in_a_few_rows_from_its_first_step_to_its_last():
    lines = views(training.curve())
    assert lines[1].split() == ["STEP", "LOSS", "HELD", "OUT", "TOKENS", "AFTER"]
    assert lines[-2].split()[2] == "2.7000", "beside the step that it was measured after"
    assert lines[2].split()[2] == "-"
    assert (lines[2].split()[0], lines[-2].split()[0]) == ("1", "477")
    assert len(lines) < 20
    assert lines[-1] == "held out: 2.7000 at step 477"


def test_without_held_out_text_a_curve_has_no_such_column():
    lines = views(training.curve(validation=[]))
    assert lines[1].split() == ["STEP", "LOSS", "TOKENS", "AFTER"]
    assert "held out" not in lines[-1]


def test_the_lowest_loss_on_held_out_text_is_told_where_it_is_not_the_last():
    lines = views(training.curve(validation=[[100, 2.5, 0, 0.0], [477, 2.7, 0, 0.0]]))
    assert lines[-1] == "held out: 2.7000 at step 477, lowest 2.5000 at step 100"


def test_exchanges_name_who_contributed_and_who_was_left_out():
    lines = views(training.outer_rounds())
    assert lines[1].startswith("STEP  OF STEPS  CONTRIBUTED")
    assert "2.0 MiB" in lines[2]
    assert "2 (missing)" in lines[3]


def test_checkpoints_name_who_has_them():
    text = "\n".join(views(training.checkpoints()))
    assert "2: node-2, node-3" in text
    assert "let go" in text


def test_what_a_model_writes_is_one_line_each():
    assert views(training.completions())[1:] == [
        "the model of round 1 (77777777) writes",
        "  def main(self):?    return self.name",
        "  import os os os os os os",
    ]


def test_a_running_training_tells_its_figures_and_who_does_how_much():
    seat = {"node": "a" * 32, "rank": 0, "device": "cpu", "tokens_per_s": 2500.0, "share": 0.625}
    run = {"loss": 5.5, "lr": 0.003, "grad_norm": 1.25, "tokens_per_s": 4e3, "mfu": None}
    lines = training_lines(run | {"gang": [seat]})
    assert lines[0] == "  loss 5.5000, lr 0.003, grad norm 1.250, tokens/s 4,000, MFU N/A"
    held_out = training_lines(run | {"gang": [seat], "held_out_loss": 6.25, "best_step": 1200})
    assert held_out[0].startswith("  loss 5.5000, held out 6.2500, best at step 1,200, lr 0.003")
    assert lines[2].split() == ["0", "aaaaaaaa", "cpu", "2,500", "62", "%"]
    named = training_lines(run | {"gang": [seat | {"name": "attic"}]})
    assert named[2].split()[:2] == ["0", "attic"]
    assert training_lines(run | {"gang": []}) == []


@pytest.mark.parametrize(
    ("every", "words"),
    [
        (1.0, "at most a step"),
        (12.0, "at most 12 steps"),
        (0.0, "all since the last checkpoint, as memory has no room for copies of the state"),
    ],
)
def test_a_machine_that_trains_alone_says_what_its_worker_s_death_costs(
    every: float, words: str
) -> None:
    phases = [{"phase": "prepare"}, {"phase": "train", "values": {"snapshot_every_steps": every}}]
    lines = training_lines({"gang": [{}], "phases": phases})
    assert f"  if its worker dies it loses {words}" in lines
    assert not any("dies" in line for line in training_lines({"gang": [{}], "phases": []}))


def test_a_running_training_says_whether_its_machines_encrypt_what_they_send():
    def second(encrypted: bool | None) -> str:
        return training_lines({"gang": [{}], "gang_encrypted": encrypted})[1]

    assert second(True).endswith("between the machines: encrypted")
    assert "not encrypted (--gang-encryption)" in second(False)
    assert "encrypted" not in second(None)
