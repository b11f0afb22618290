import pytest

from jupiterd.cluster.facts import CheckpointCommitted
from jupiterd.cluster.progress_tree import Progress, ProgressTree, progress_key
from tests.unit.cluster.building import NODES, checkpoint, round_over


def tree_of(*facts: Progress) -> ProgressTree:
    tree = ProgressTree()
    for index, fact in enumerate(facts, 1):
        tree.apply(fact, (1, NODES[0], "u", index))
    return tree


def names(facts: tuple[Progress, ...]) -> list[str]:
    return [
        fact.artifact if isinstance(fact, CheckpointCommitted) else f"[{fact.round}]"
        for fact in facts
    ]


def test_an_empty_tree_has_no_line() -> None:
    assert tree_of().line() == ()
    assert tree_of().branches() == ()


def test_a_round_hangs_between_its_last_checkpoint_and_the_next_rounds_first() -> None:
    facts = [
        checkpoint("k1"),
        checkpoint("k2", "k1", tokens=200),
        round_over("k2"),
        checkpoint("k3", "k2", 2, tokens=300),
        round_over("k3", 2),
    ]
    assert names(tree_of(*facts).line()) == ["k1", "k2", "[1]", "k3", "[2]"]
    assert names(tree_of(*reversed(facts)).line()) == ["k1", "k2", "[1]", "k3", "[2]"]


def test_more_rounds_beat_more_tokens_and_more_tokens_beat_the_hash() -> None:
    tree = tree_of(
        checkpoint("k1", tokens=10),
        round_over("k1"),
        checkpoint("x1", tokens=900),
        checkpoint("y1", tokens=800),
    )
    assert names(tree.line()) == ["k1", "[1]"]
    assert names(tree.branches()) == ["x1", "y1"]


def test_equal_leaves_are_told_apart_by_their_hash() -> None:
    assert names(tree_of(checkpoint("k1"), checkpoint("k2")).line()) == ["k2"]


def test_the_next_round_stays_on_the_line_that_was_shown_before_it() -> None:
    rivals = [round_over("k1", promoted="m1"), round_over("k1")]
    tree = tree_of(checkpoint("k1"), *rivals)
    shown = tree.line()
    tree.apply(checkpoint("k2", "k1", 2), (2, NODES[0], "u", 1))
    assert tree.line()[:-1] == shown
    (other,) = tree.branches()
    assert other in rivals
    assert other not in shown


def test_progress_whose_parent_is_unknown_waits_outside_the_tree() -> None:
    tree = tree_of(checkpoint("k1"), checkpoint("k3", "k2"), round_over("k9"))
    assert names(tree.line()) == ["k1"]
    assert tree.branches() == ()
    tree.apply(checkpoint("k2", "k1"), (1, NODES[0], "u", 9))
    assert names(tree.line()) == ["k1", "k2", "k3"]


@pytest.mark.parametrize(
    "stray",
    [
        checkpoint("k2", "k1", round_number=2),
        checkpoint("k2", "", round_number=2),
        round_over("k1", round_number=2),
    ],
)
def test_rounds_have_no_gaps(stray: Progress) -> None:
    assert names(tree_of(checkpoint("k1"), stray).line()) == ["k1"]


def test_weights_committed_again_as_final_are_final() -> None:
    first, final = checkpoint("k1"), checkpoint("k1", is_final=True)
    assert tree_of(first, final).line() == (final,)
    assert tree_of(final, first).line() == (final,)


def test_one_round_committed_twice_with_the_same_words_is_one_round() -> None:
    assert tree_of(checkpoint("k1"), round_over("k1"), round_over("k1")).branches() == ()


@pytest.mark.parametrize("loop", [checkpoint("k1", "k1"), checkpoint("", "")])
def test_a_checkpoint_that_names_itself_is_never_on_the_line(loop: CheckpointCommitted) -> None:
    assert tree_of(loop).line() == ()


def test_checkpoints_are_known_by_their_artifact_and_rounds_by_what_they_say() -> None:
    assert progress_key(checkpoint("k1")) == "k1"
    assert progress_key(round_over("k1")) == progress_key(round_over("k1"))
    assert progress_key(round_over("k1")) != progress_key(round_over("k1", promoted="m"))
