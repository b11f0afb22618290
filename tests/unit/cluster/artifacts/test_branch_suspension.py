"""How long a checkpoint has been missing."""

from jupiterd.cluster.artifacts.branch_suspension import PARK_AFTER_S, Absences
from jupiterd.ids import CycleId

ONE, OTHER = CycleId("1" * 16), CycleId("2" * 16)


def test_it_counts_after_a_minute_without_a_gap() -> None:
    absences = Absences()
    assert not absences.is_over(5.0, ONE, "k1")
    assert not absences.is_over(5.0 + PARK_AFTER_S - 1, ONE, "k1")
    assert absences.is_over(5.0 + PARK_AFTER_S, ONE, "k1")


def test_a_checkpoint_that_was_there_in_between_begins_anew() -> None:
    absences = Absences()
    absences.is_over(0.0, ONE, "k1")
    absences.found(ONE)
    assert not absences.is_over(PARK_AFTER_S, ONE, "k1")


def test_another_checkpoint_begins_anew_and_another_cycle_counts_by_itself() -> None:
    absences = Absences()
    absences.is_over(0.0, ONE, "k1")
    absences.is_over(0.0, OTHER, "k1")
    assert not absences.is_over(PARK_AFTER_S, ONE, "k2")
    assert absences.is_over(PARK_AFTER_S, OTHER, "k1")
