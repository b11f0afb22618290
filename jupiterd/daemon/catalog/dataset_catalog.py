"""The data sets that a cluster has made, or is making, as people know them.

Owns finding one by what people call it, and the form of a name. Doesn't know what is in them.
"""

import re
from collections.abc import Iterator, Sequence

from jupiterd.cluster.facts.facts import DataRequested, WorkCompleted
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.ledger.state import State
from jupiterd.cluster.values.run_names import Named, is_round_name, meant
from jupiterd.errors import ConflictError, NotFoundError, UsageError
from jupiterd.ids import CycleId, short

MAX_NAME_CHARACTERS = 64
NAMED = 5
"""Number of data sets that the error of an unknown name lists."""

LIST = "jupiterctl data list shows them"


REMOVED = "removed by a person"
"""Why a run that makes a data set is stopped whose data set nobody wants to see any more."""


def data_sets(state: State) -> Iterator[tuple[CycleState, DataRequested]]:
    """Yield every run that makes a data set, the newest first, without those that were removed."""
    runs = sorted(state.cycles.values(), key=lambda run: run.start_order, reverse=True)
    for run in runs:
        if run.requested is not None and run.wanted_reason != REMOVED:
            yield run, run.requested


def find_data(state: State, wanted: str) -> tuple[DataRequested, WorkCompleted]:
    """Return the data set of that name, or whose run's or shards' id begins so, ready to be used.

    Raises:
        NotFoundError: there is none.
        ConflictError: it isn't ready.
        UsageError: several ids begin so.
    """
    known = [named_data(run, requested) for run, requested in data_sets(state)]
    found = meant(known, wanted) if wanted else []
    ready = [
        (requested, prepared) for run, requested in found if (prepared := run.prepared) is not None
    ]
    if ready:
        return ready[0]
    if not found:
        prepared = [each.name for each in known if each.thing[0].prepared is not None]
        raise _unknown(wanted, prepared)
    run, requested = found[0]
    if run.failed is not None:
        raise ConflictError(
            f"the data set {requested.name} was never made: {run.failed.message}", run.failed.hint
        )
    if run.has_nothing_to_do:
        again = "jupiterctl data prepare with the same name makes it"
        raise ConflictError(f"the data set {requested.name} was stopped before it was made", again)
    raise ConflictError(f"the data set {requested.name} isn't ready yet", LIST)


def _unknown(wanted: str, names: Sequence[str]) -> NotFoundError:
    """Return the error of a name that no data set has; it names those that were made."""
    newest = list(dict.fromkeys(filter(None, names)))
    shown = ", ".join(newest[:NAMED]) + (" and more" if len(newest) > NAMED else "")
    there_are = f"there are {shown}" if len(newest) > 1 else f"there is {shown}"
    what = f"no data set is called {wanted}; {there_are if newest else 'none was made yet'}"
    of_a_round = f"a cycle's round: jupiterctl data export {wanted} --to FILE, then --data FILE"
    return NotFoundError(what, of_a_round if is_round_name(wanted) else LIST)


def named_data(
    run: CycleState, requested: DataRequested
) -> Named[tuple[CycleState, DataRequested]]:
    """Return what people call a data set."""
    prepared = run.prepared
    ids = [requested.cycle, *([prepared.outputs["shards"]] if prepared else [])]
    return Named((run, requested), requested.name, ids)


def check_name(name: str) -> str:
    """Return a name that can also be a folder's; raises UsageError for others."""
    if not re.fullmatch(rf"[\w][\w.-]{{0,{MAX_NAME_CHARACTERS - 1}}}", name):
        raise UsageError(
            f"a data set's name has 1 to {MAX_NAME_CHARACTERS} letters, digits, . - and _",
            "choose one with --name",
        )
    return name


def title(run: CycleId, name: str) -> str:
    """Return how a run is spoken of."""
    return f"{name} ({short(run)})"
