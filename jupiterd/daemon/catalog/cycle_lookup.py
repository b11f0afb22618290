"""Which cycle people mean: by its domain, its id, or the beginning of one.

Owns finding it among all that the ledger knows, ended or not. Pure: it is handed the state. Doesn't
know what is done with it.
"""

from operator import itemgetter

from jupiterd.cluster.facts.facts import CycleStarted
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.ledger.state import State
from jupiterd.cluster.values.run_names import Named, meant
from jupiterd.errors import NotFoundError

Begun = tuple[CycleState, CycleStarted]


def newest_first(state: State) -> list[Begun]:
    """Return every cycle, the one that was started last first."""
    found = [(each, each.started) for each in state.cycles.values() if each.started is not None]
    ranked = sorted(
        ((cycle.start_order, cycle, begun) for cycle, begun in found), key=itemgetter(0)
    )
    return [(cycle, begun) for _, cycle, begun in reversed(ranked)]


def cycles_called(known: list[Begun], wanted: str) -> list[Begun]:
    """Return those of these that are called so, in their order; all where nothing is said.

    Raises:
        UsageError: different ids begin so.
    """
    named = [Named(pair, pair[1].domain, [pair[1].cycle]) for pair in known]
    return meant(named, wanted) if wanted else known


def meant_cycle(state: State, wanted: str, *, first_going_on: bool = False) -> Begun:
    """Return the cycle that is called so, the newest of several; the newest where none is named.

    first_going_on: one that runs, or is paused, comes before newer ones.

    Raises:
        NotFoundError: there is none.
        UsageError: different ids begin so.
    """
    known = newest_first(state)
    if first_going_on:
        known = sorted(known, key=lambda pair: not pair[0].goes_on)
    if found := cycles_called(known, wanted):
        return found[0]
    what = f"there is no cycle {wanted}" if wanted else "no cycle has been started"
    raise NotFoundError(what, "jupiterctl cycle list shows all")
