"""How old what is wrong is."""

from jupiterd.cluster.health.health_ages import GRACE_S, HealthAges


def looked(*looks: tuple[float, str]) -> HealthAges:
    """Return the ages after looks at these times, each with the keys that held."""
    ages = HealthAges()
    for at_s, holding in looks:
        ages.look(at_s, holding.split())
    return ages


def test_it_gets_older_however_often_it_is_looked_at():
    assert looked((10.0, "gone")).age_s("gone", 10.0) == 0.0
    assert looked(*((10.0 + 2 * n, "gone") for n in range(50))).age_s("gone", 130.0) == 120.0


def test_what_nobody_has_looked_at_yet_is_new():
    assert looked((10.0, "gone")).age_s("alone", 90.0) == 0.0


def test_what_is_back_within_a_short_time_was_never_over():
    ages = looked((0.0, "gone"), (2.0, ""), (GRACE_S, "gone"))
    assert ages.age_s("gone", GRACE_S) == GRACE_S


def test_what_comes_back_later_begins_anew():
    back_s = GRACE_S + 1.0
    assert looked((0.0, "gone"), (2.0, ""), (back_s, "gone")).age_s("gone", back_s + 3.0) == 3.0
    assert looked((0.0, "gone"), (back_s, "gone")).age_s("gone", back_s) == 0.0, "unseen meanwhile"


def test_each_has_its_own_age_and_what_is_over_is_forgotten():
    ages = looked((0.0, "gone"), (80.0, "alone"), (100.0, "alone"))
    assert (ages.age_s("alone", 100.0), ages.age_s("gone", 100.0)) == (20.0, 0.0)
    assert ages._began_s.keys() == {"alone"}
