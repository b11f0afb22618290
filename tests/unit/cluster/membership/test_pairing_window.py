"""The pairing window closes by itself."""

from jupiterd.cluster.membership.pairing_window import OPEN_S, PairingWindow


def test_a_window_that_was_opened_is_over_after_ten_minutes() -> None:
    window = PairingWindow()
    assert not window.is_over(100.0, 1, is_open=True)
    assert not window.is_over(99.9 + OPEN_S, 1, is_open=True)
    assert window.is_over(100.0 + OPEN_S, 1, is_open=True)


def test_opening_it_again_gives_ten_minutes_more() -> None:
    window = PairingWindow()
    window.is_over(100.0, 1, is_open=True)
    assert not window.is_over(100.0 + OPEN_S, 2, is_open=True)
    assert window.is_over(100.0 + 2 * OPEN_S, 2, is_open=True)


def test_what_is_left_of_a_window_counts_from_when_the_leader_saw_it() -> None:
    window = PairingWindow()
    assert window.left_s(50.0, 1) == OPEN_S
    window.is_over(100.0, 1, is_open=True)
    assert window.left_s(160.0, 1) == OPEN_S - 60
    assert window.left_s(100.0 + 2 * OPEN_S, 1) == 0.0
    assert window.left_s(160.0, 2) == OPEN_S


def test_a_cluster_that_has_never_worked_stays_open() -> None:
    window = PairingWindow()
    assert not window.is_over(0.0, 0, is_open=True)
    assert not window.is_over(10 * OPEN_S, 0, is_open=True)


def test_a_closed_window_is_not_closed_again() -> None:
    window = PairingWindow()
    assert not window.is_over(0.0, 3, is_open=False)
    assert not window.is_over(10 * OPEN_S, 3, is_open=False)
