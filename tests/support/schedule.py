"""Which process runs which test next: beside tests with daemons, which wait, others compute.

Owns what each process is given. Doesn't know what the tests do; those with daemons come first.
"""

from itertools import pairwise
from pathlib import PurePath

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadGroupScheduling
from xdist.workermanage import WorkerController

WITH_DAEMONS = (("tests", "e2e"), ("tests", "network"))
"""The folders of tests each of which starts daemons, of which a few are enough in `make test`."""


def has_daemons(test: str) -> bool:
    """Say whether a test starts real daemons, by its id or its file."""
    folders = PurePath(test.partition("::")[0]).parent.parts
    return any(pair in WITH_DAEMONS for pair in pairwise(folders))


class Schedule(LoadGroupScheduling):
    """As many processes as there are cores begin with tests that compute, the others with daemons'.

    Whoever finds none of a kind any more helps with the other.
    """

    def __init__(self, config: pytest.Config, log: Producer, computing: int) -> None:
        super().__init__(config, log)
        self._computing = {f"gw{number}" for number in range(computing)}

    def mark_test_complete(
        self, node: WorkerController, item_index: int, duration: float = 0
    ) -> None:
        """Forget a unit of tests once all of it is run.

        Whatever a process was ever given is looked through after each test: with ten thousand of
        them that took seconds of a core.
        """
        given = self.assigned_work[node]
        unit = self._split_scope(self.registered_collections[node][item_index])
        if unit not in given:  # one test may be reported in several parts
            return
        super().mark_test_complete(node, item_index, duration)
        if all(given[unit].values()):
            del given[unit]

    def _assign_work_unit(self, node: WorkerController) -> None:
        if node.gateway.id in self._computing:
            self._begin_with_one_that_computes()
        super()._assign_work_unit(node)

    def _begin_with_one_that_computes(self) -> None:
        units = self.workqueue.items()
        computes = next((name for name, tests in units if not _of_daemons(tests)), None)
        if computes is not None:
            self.workqueue.move_to_end(computes, last=False)

    def _reschedule(self, node: WorkerController) -> None:
        """Let one test wait behind one with daemons, which takes minutes; behind others, two."""
        pending = [tests for tests in self.assigned_work[node].values() if not all(tests.values())]
        is_long = len(pending) > 1 and any(_of_daemons(tests) for tests in pending)
        if node.shutting_down or not self.workqueue or not is_long:
            super()._reschedule(node)


def _of_daemons(tests: dict[str, bool]) -> bool:
    return has_daemons(next(iter(tests)))
