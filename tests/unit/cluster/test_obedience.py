"""Orders of the past are refused."""

import pytest

from jupiterd.cluster.obedience import Obeyed
from jupiterd.errors import RefusedError


def test_the_highest_order_obeyed_never_goes_back() -> None:
    assert Obeyed().after(1, 1).after(1, 2).after(2, 2).after(2, 2) == Obeyed(2, 2)


@pytest.mark.parametrize(("term", "epoch"), [(2, 9), (3, 3), (0, 0), (2, 0)])
def test_a_lower_term_or_epoch_is_refused(term: int, epoch: int) -> None:
    with pytest.raises(RefusedError, match="after term 3, epoch 4"):
        Obeyed(3, 4).after(term, epoch)


def test_work_of_no_gang_leaves_the_epoch_as_it_is() -> None:
    assert Obeyed(3, 4).after(5, 0) == Obeyed(5, 4)


@pytest.mark.parametrize("obeyed", [Obeyed(), Obeyed(12, 34)])
def test_what_is_written_is_read_again(obeyed: Obeyed) -> None:
    assert Obeyed.parse(str(obeyed)) == obeyed
    assert Obeyed.parse("") == Obeyed()
