"""What a round's candidate will be compared with, and what earlier verdicts measured of that.

Owns finding it in what is known of the rounds before. Doesn't know what follows (`paired_spread`).
"""

from jupiterd.cycle.base.work_item import Phase
from jupiterd.cycle.holdout.paired_spread import Comparison
from jupiterd.cycle.phases.view import RoundView

BESIDE_STUDENT, STANDARD_ERROR = "beside_student", "standard_error_bpb"
"""In the summary of a verdict."""


def comparison_of(view: RoundView) -> Comparison:
    """Return the comparison, with the spread that the last verdict of such a one measured.

    Held-out text is the same in all rounds, and so is its spread, nearly.
    """
    beside_student = bool(view.best_student or view.base)
    measured = (_measured(view, number, beside_student) for number in range(view.round - 1, 0, -1))
    error = next(filter(None, measured), 0.0)
    return Comparison(
        view.looks + 1, beside_student, error, beside_student and not view.best_student
    )


def _measured(view: RoundView, number: int, beside_student: bool) -> float:  # noqa: FBT001
    """Return the standard error in a round's verdict; 0 where it compared with somebody else."""
    begins = f"r{number}/{Phase.GATE}/"
    for item, result in view.completed.items():
        error = result.summary.get(STANDARD_ERROR)
        is_such = result.summary.get(BESIDE_STUDENT) is beside_student
        if item.startswith(begins) and is_such and error:
            return float(error)
    return 0.0
