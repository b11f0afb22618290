"""What is taken to be kept of documents that weren't read."""

from itertools import pairwise

import pytest

from jupiterd.cycle.data.retained_shares import (
    RARE,
    ReadDocument,
    UnreadCase,
    retained_shares,
    thinned,
)

KEPT, DROPPED = ReadDocument(".md", 10), ReadDocument(".md", 0)


def test_each_ending_has_its_share_and_rare_ones_are_taken_together():
    read = [KEPT] * 8 + [DROPPED] * 2 + [ReadDocument(".json", 0)] * 10
    read += [ReadDocument(".txt", 5), ReadDocument(".log", 0), ReadDocument(RARE, 0)]
    shares = retained_shares(read)
    assert (shares[".md"], shares[".json"]) == (0.8, 0.0)
    assert set(shares) == {".md", ".json", RARE}
    assert shares[RARE] == pytest.approx((1 + 9 / 23) / 4)


def test_an_ending_that_was_never_read_is_like_all_others():
    assert retained_shares([KEPT] * 8 + [DROPPED] * 2)[RARE] == 0.8


@pytest.mark.parametrize("of_ten", range(11))
def test_the_more_was_read_the_nearer_the_bounds_are(of_ten):
    widths: list[float] = []
    for many in (1, 10, 100):
        read = [KEPT] * (of_ten * many) + [DROPPED] * ((10 - of_ten) * many)
        fewest, likely, most = (
            retained_shares(read, case)[".md"]
            for case in (UnreadCase.FEWEST, UnreadCase.LIKELY, UnreadCase.MOST)
        )
        assert 0.0 <= fewest <= likely <= most <= 1.0
        widths.append(most - fewest)
    assert widths == sorted(widths, reverse=True)
    assert widths[0] < 0.4
    assert widths[-1] < 0.05


def test_the_rest_is_thinned_evenly():
    names = [".md"] * 100 + [".json"] * 100
    kept = thinned(names, {RARE: 0.5, ".md": 0.75, ".json": 0.0})
    assert len(kept) == 75
    assert all(position < 100 for position in kept)
    assert max(b - a for a, b in pairwise(kept)) <= 2


def test_rare_endings_share_what_is_kept_of_them():
    assert len(thinned([f".{n}" for n in range(20)], {RARE: 0.1})) == 2


def test_nothing_read_promises_nothing():
    assert thinned(["a", "b"], retained_shares([])) == []
