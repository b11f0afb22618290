"""No garbage is looked for in the meantime, and afterwards it is again, whatever has happened."""

import gc

import pytest

from jupiterd.gc_pause import collector_paused


def test_nothing_is_looked_for_in_the_meantime():
    with collector_paused():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_after_a_failure_garbage_is_looked_for_again():
    with pytest.raises(ValueError, match="no"), collector_paused():
        raise ValueError("no")
    assert gc.isenabled()


def test_whoever_had_it_off_has_it_off():
    gc.disable()
    try:
        with collector_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
