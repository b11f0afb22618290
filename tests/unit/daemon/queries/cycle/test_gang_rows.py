from jupiterd.daemon.queries.cycle.cycle_document import gang_rows


def test_a_ranks_part_of_the_speed_is_its_part_of_the_batch():
    seats = [{"rank": 0, "tokens_per_s": 3000.0}, {"rank": 1, "tokens_per_s": 1000.0}]
    assert [row["share"] for row in gang_rows(seats)] == [0.75, 0.25]


def test_each_island_is_a_gang_of_its_own():
    seats = [
        {"rank": 0, "tokens_per_s": 10.0, "island": 1},
        {"rank": 0, "tokens_per_s": 30.0, "island": 2},
        {"rank": 1, "tokens_per_s": 10.0, "island": 2},
    ]
    assert [row["share"] for row in gang_rows(seats)] == [1.0, 0.75, 0.25]


def test_while_one_rank_has_told_nothing_no_share_is_known():
    seats = [{"rank": 0, "tokens_per_s": 10.0}, {"rank": 1, "tokens_per_s": None}, {"rank": 2}]
    assert [row["share"] for row in gang_rows(seats)] == [None] * 3


def test_a_rank_that_has_no_part_yet_is_known_to_have_none():
    seats = [{"rank": 0, "tokens_per_s": 10.0}, {"rank": 1, "tokens_per_s": 0.0}]
    assert [row["share"] for row in gang_rows(seats)] == [1.0, 0.0]
