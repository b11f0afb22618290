"""Why a large model had better begin with an open base model."""

from jupiterd.cycle.init_advice import advice


def test_a_small_model_needs_no_base() -> None:
    assert advice(114_000_000, 10_000.0, 2_000_000) == []


def test_a_large_one_is_weeks_against_days() -> None:
    (line,) = advice(537_500_000, 2_900.0, 500_000_000)
    assert "11 billion tokens are needed, 6 weeks here" in line.replace("  ", " ")
    assert line.endswith("from a base this cycle's 500.0 million tokens, 2.0 days")


def test_where_nobody_could_train_only_tokens_are_told() -> None:
    (line,) = advice(1_016_000_000, 0.0, 2_000_000_000)
    assert line.startswith("Recommended: --init")
    assert line.endswith("20 billion tokens are needed, and this cycle trains on 2.0 billion")
