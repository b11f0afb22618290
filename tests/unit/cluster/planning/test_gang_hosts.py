"""Which addresses a gang's ranks may be connected to from."""

from jupiterd.cluster.planning.gang_hosts import MAX_HOSTS_OF_ONE, gang_hosts


def test_all_that_members_have_and_each_once() -> None:
    members = [("10.0.0.1", ["10.0.0.1", "fe80::1%eth0"]), ("10.0.0.2", ["::ffff:10.0.0.2"])]
    assert gang_hosts(members) == ("10.0.0.1", "10.0.0.2", "fe80::1")


def test_nobody_is_shut_out_where_a_member_does_not_say_what_it_has() -> None:
    known = ("10.0.0.1", ["10.0.0.1"])
    assert gang_hosts([known, ("10.0.0.2", [])]) == ()
    assert gang_hosts([known, ("10.0.0.2", ["elsewhere.example"])]) == ()
    assert gang_hosts([known, ("10.0.0.2", ["10.0.0.2"] * (MAX_HOSTS_OF_ONE + 1))]) == ()


def test_nor_where_there_are_more_than_can_be_told_apart() -> None:
    crowd = [
        (f"10.0.{number}.1", [f"10.0.{number}.{each}" for each in range(30)])
        for number in range(14)
    ]
    assert len(gang_hosts(crowd[:13])) == 13 * 30
    assert gang_hosts(crowd) == ()
