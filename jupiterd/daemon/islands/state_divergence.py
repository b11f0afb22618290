"""An island whose weights or momentum aren't those of the others is left out, and this is shown.

Owns whose states are compared, and what is said of it. Doesn't know who is taken for the one that
has drifted (`cycle.training.state_divergence`), or how such an island begins anew
(`island_reseed`).
"""

import logging
from collections.abc import Mapping

from jupiterd.cluster.facts.facts import OuterStepTaken
from jupiterd.cycle.islands.outer_orders import ADRIFT
from jupiterd.cycle.islands.outer_round import Closing
from jupiterd.cycle.training.state_divergence import adrift
from jupiterd.daemon.islands.model_mismatch import island_name
from jupiterd.daemon.leader.machines import Machines
from jupiterd.daemon.leader.progress_board import ProgressBoard
from jupiterd.daemon.leader.term import Term
from jupiterd.ids import CycleId
from jupiterd.protocol.training_values import PseudoGradient

log = logging.getLogger(__name__)


def without_drifted(
    term: Term,
    board: ProgressBoard,
    machines: Machines,
    newest: tuple[str, OuterStepTaken],
    closing: Closing,
    pseudo_gradients: Mapping[str, PseudoGradient],
) -> Closing:
    """Return how a round ends without those who have other weights or another momentum.

    newest: outer step, and its hash; who stood at another one is of another line, and what it had
        there is no fault
    """
    last, taken = newest
    run = taken.cycle
    digests = {
        island: pseudo_gradient.digest
        for island, pseudo_gradient in pseudo_gradients.items()
        if pseudo_gradient.stands_at == last
    }
    found = adrift(digests, closing.counted, taken.islands)
    for island in found:
        log.warning(
            "island_adrift", extra={"run": run, "island": island, "digest": digests[island].hex()}
        )
        name = island_name(term, machines, run, CycleId(island))
        board.explain(run, f"{name} is left out and begins anew: {ADRIFT}")
    return closing.without_adrift(found)
