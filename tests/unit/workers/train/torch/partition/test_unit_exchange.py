"""What ranks send each other of a unit, over gloo."""

from collections.abc import Sequence

import numpy as np
import pytest
import torch

from jupiterd.cycle.training.partition.partition_layout import Unit
from jupiterd.workers.train.torch.partition.unit_exchange import UnitExchange
from jupiterd.workers.train.torch.process_group import ProcessGroup
from tests.support.workers.cut.torch_ranks import on_ranks

pytestmark = [pytest.mark.net, pytest.mark.timeout(120)]

TRIALS = 40
Cut = tuple[int, tuple[int, ...]]


def some_cuts(seed: int, ranks: int) -> list[Cut]:
    """Return sizes of units, and parts of ranks, of which some have none."""
    chance = np.random.default_rng(seed)
    found: list[Cut] = []
    while len(found) < TRIALS:
        parts = tuple(map(int, chance.integers(0, 4, ranks) * chance.integers(0, 100, ranks)))
        if sum(parts):
            found.append((int(chance.integers(1, 5000)), parts))
    return found


def given_by(rank: int, trial: int, size: int) -> torch.Tensor:
    """Return what a rank has of a unit."""
    return torch.randn(size, generator=torch.Generator().manual_seed(1000 * rank + trial))


def exchange(group: ProcessGroup, cuts: Sequence[Cut]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the sum of our stretch, and the whole unit, of each cut."""
    exchanged, found = UnitExchange(group), []
    for trial, (size, parts) in enumerate(cuts):
        bounds = Unit(0, {"it": size}).bounds(parts)
        own = slice(*bounds[group.rank : group.rank + 2])
        gradients = given_by(group.rank, trial, size)
        weights = torch.full((size,), torch.nan)
        weights[own] = given_by(0, trial, size)[own]
        summing = exchanged.sum_up(bounds, gradients)
        exchanged.gather(bounds, weights, weights[own]).wait()
        found.append((summing.total().numpy().copy(), weights.numpy()))
        exchanged.give_back(summing)
    return found


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_each_rank_gets_its_stretch_of_the_sum_and_all_get_the_whole(ranks: int, seed: int):
    cuts = some_cuts(seed, ranks)
    by_rank = on_ranks(ranks, exchange, cuts)
    for trial, (size, parts) in enumerate(cuts):
        bounds = Unit(0, {"it": size}).bounds(parts)
        wanted = given_by(0, trial, size)
        for rank in range(1, ranks):
            wanted = wanted + given_by(rank, trial, size)
        for rank, found in enumerate(by_rank):
            total, whole = found[trial]
            own = slice(*bounds[rank : rank + 2])
            assert np.array_equal(total, wanted[own]), "added up in the order of the ranks"
            assert np.array_equal(whole, given_by(0, trial, size)), parts
