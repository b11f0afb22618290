"""Why a large model had better begin with an open base model."""

from jupiterd.cycle.runs.init_advice import advice


def test_a_small_model_needs_no_base() -> None:
    assert advice(114_000_000, 10_000.0) == []


def test_a_large_one_is_weeks_against_days() -> None:
    (line,) = advice(537_500_000, 2_900.0)
    assert line == (
        "Recommended: --init FOLDER|ORG/NAME, an open base model: from scratch about 10.8 billion "
        "tokens (6 weeks); from a base a tenth or less, 1.1 billion tokens (4.3 days)"
    )


def test_where_nobody_knows_how_fast_it_goes_tokens_alone_are_told() -> None:
    (line,) = advice(1_016_000_000, 0.0)
    assert line.endswith(
        "from scratch about 20.3 billion tokens; from a base a tenth or less, 2.0 billion tokens"
    )
