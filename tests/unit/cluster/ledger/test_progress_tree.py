import pytest

from jupiterd.cluster.facts.facts import CheckpointCommitted
from jupiterd.cluster.ledger.progress_tree import Progress, ProgressTree, progress_key
from tests.support.cluster.building import NODES, checkpoint, round_over


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
    assert tree_of().canonical_branch() == ()
    assert tree_of().other_leaves() == ()


def test_a_round_hangs_between_its_last_checkpoint_and_the_next_rounds_first() -> None:
    facts = [
        checkpoint("k1"),
        checkpoint("k2", "k1", tokens=200),
        round_over("k2"),
        checkpoint("k3", "k2", 2, tokens=300),
        round_over("k3", 2),
    ]
    assert names(tree_of(*facts).canonical_branch()) == ["k1", "k2", "[1]", "k3", "[2]"]
    assert names(tree_of(*reversed(facts)).canonical_branch()) == ["k1", "k2", "[1]", "k3", "[2]"]


def test_more_rounds_beat_more_tokens_and_more_tokens_beat_the_hash() -> None:
    tree = tree_of(
        checkpoint("k1", tokens=10),
        round_over("k1"),
        checkpoint("x1", tokens=900),
        checkpoint("y1", tokens=800),
    )
    assert names(tree.canonical_branch()) == ["k1", "[1]"]
    assert names(tree.other_leaves()) == ["x1", "y1"]


def test_equal_leaves_are_told_apart_by_their_hash() -> None:
    assert names(tree_of(checkpoint("k1"), checkpoint("k2")).canonical_branch()) == ["k2"]


def test_the_next_round_stays_on_the_line_that_was_shown_before_it() -> None:
    rivals = [round_over("k1", promoted="m1"), round_over("k1")]
    tree = tree_of(checkpoint("k1"), *rivals)
    shown = tree.canonical_branch()
    tree.apply(checkpoint("k2", "k1", 2), (2, NODES[0], "u", 1))
    assert tree.canonical_branch()[:-1] == shown
    (other,) = tree.other_leaves()
    assert other in rivals
    assert other not in shown


def test_progress_whose_parent_is_unknown_waits_outside_the_tree() -> None:
    tree = tree_of(checkpoint("k1"), checkpoint("k3", "k2"), round_over("k9"))
    assert names(tree.canonical_branch()) == ["k1"]
    assert tree.other_leaves() == ()
    tree.apply(checkpoint("k2", "k1"), (1, NODES[0], "u", 9))
    assert names(tree.canonical_branch()) == ["k1", "k2", "k3"]


@pytest.mark.parametrize(
    "stray",
    [
        checkpoint("k2", "k1", round_number=2),
        checkpoint("k2", "", round_number=2),
        round_over("k1", round_number=2),
    ],
)
def test_rounds_have_no_gaps(stray: Progress) -> None:
    assert names(tree_of(checkpoint("k1"), stray).canonical_branch()) == ["k1"]


def test_weights_committed_again_as_final_are_final() -> None:
    first, final = checkpoint("k1"), checkpoint("k1", is_final=True)
    assert tree_of(first, final).canonical_branch() == (final,)
    assert tree_of(final, first).canonical_branch() == (final,)


def test_one_round_committed_twice_with_the_same_words_is_one_round() -> None:
    assert tree_of(checkpoint("k1"), round_over("k1"), round_over("k1")).other_leaves() == ()


@pytest.mark.parametrize("loop", [checkpoint("k1", "k1"), checkpoint("", "")])
def test_a_checkpoint_that_names_itself_is_never_on_the_line(loop: CheckpointCommitted) -> None:
    assert tree_of(loop).canonical_branch() == ()


def test_checkpoints_are_known_by_their_artifact_and_rounds_by_what_they_say() -> None:
    assert progress_key(checkpoint("k1")) == "k1"
    assert progress_key(round_over("k1")) == progress_key(round_over("k1"))
    assert progress_key(round_over("k1")) != progress_key(round_over("k1", promoted="m"))


def test_a_pinned_leaf_is_canonical_however_light_it_is() -> None:
    tree = tree_of(checkpoint("k1"), round_over("k1"), checkpoint("x1", tokens=900))
    tree.pin("x1")
    assert names(tree.canonical_branch()) == ["x1"]
    assert names(tree.other_leaves()) == ["[1]"]
    tree.pin("")
    assert names(tree.canonical_branch()) == ["k1", "[1]"]


def test_of_those_that_descend_from_the_pinned_leaf_the_heaviest_is_canonical() -> None:
    tree = tree_of(
        checkpoint("k1"),
        round_over("k1"),
        checkpoint("x1", tokens=10),
        checkpoint("x2", "x1", tokens=20),
        checkpoint("y2", "x1", tokens=30),
    )
    tree.pin("x1")
    assert names(tree.canonical_branch()) == ["x1", "y2"]
    assert names(tree.other_leaves()) == ["x2", "[1]"]
    assert [leaf.is_pinned for leaf in tree.leaves()] == [True, True, False]


@pytest.mark.parametrize("unknown", ["k9", "k3"])
def test_a_pin_on_a_leaf_that_has_no_place_waits_for_it(unknown: str) -> None:
    tree = tree_of(checkpoint("k1"), checkpoint("x1", tokens=900), checkpoint("k3", "k2"))
    tree.pin(unknown)
    assert names(tree.canonical_branch()) == ["x1"]
    assert not any(leaf.is_pinned for leaf in tree.leaves())
    tree.apply(checkpoint("k2", "k1"), (1, NODES[0], "u", 9))
    tree.apply(checkpoint("k9", "k3"), (1, NODES[0], "u", 10))
    assert names(tree.canonical_branch())[:3] == ["k1", "k2", "k3"]


def test_what_follows_a_pinned_commit_hangs_below_it_and_not_below_its_rival() -> None:
    rivals = sorted([round_over("k1", promoted="m1"), round_over("k1")], key=progress_key)
    tree = tree_of(checkpoint("k1"), *rivals, checkpoint("k2", "k1", 2))
    assert tree.canonical_branch()[1] == rivals[1]
    tree.pin(progress_key(rivals[0]))
    assert tree.canonical_branch() == (checkpoint("k1"), rivals[0], checkpoint("k2", "k1", 2))
    assert tree.other_leaves() == (rivals[1],)


def test_a_leaf_tells_what_is_on_its_line_and_which_entry_brought_it() -> None:
    tree = tree_of(checkpoint("k1"), round_over("k1"), checkpoint("k2", "k1", 2, tokens=300))
    (leaf,) = tree.leaves()
    assert (leaf.key, leaf.rounds, leaf.checkpoint.tokens) == ("k2", 1, 300)
    assert leaf.order == (1, NODES[0], "u", 3)


def suspended(tree: ProgressTree, *missing: str) -> list[str]:
    tree.park(frozenset(missing))
    return names(tree.canonical_branch())


LINE = (checkpoint("k1"), checkpoint("k2", "k1", tokens=200), round_over("k2"))


def test_a_parked_leaf_does_not_compete_and_what_it_hangs_below_does() -> None:
    tree = tree_of(*LINE)
    assert suspended(tree, "k2") == ["k1"]
    assert [(leaf.key, leaf.is_suspended) for leaf in tree.leaves()] == [
        ("k1", False),
        (progress_key(LINE[2]), True),
    ]
    assert suspended(tree) == ["k1", "k2", "[1]"]
    assert not any(leaf.is_suspended for leaf in tree.leaves())


def test_the_next_best_line_counts_in_place_of_a_parked_one() -> None:
    tree = tree_of(*LINE, checkpoint("x2", "k1", tokens=150))
    assert suspended(tree, "k2") == ["k1", "x2"]
    assert names(tree.other_leaves()) == ["[1]"]


def test_a_line_that_leads_on_through_a_missing_checkpoint_competes() -> None:
    tree = tree_of(*LINE, checkpoint("k3", "k2", 2, tokens=300))
    assert suspended(tree, "k1", "k2") == ["k1", "k2", "[1]", "k3"]
    assert suspended(tree, "k2", "k3") == ["k1"]


def test_where_everything_is_parked_no_line_counts_and_nothing_fails() -> None:
    tree = tree_of(*LINE)
    assert suspended(tree, "k1", "k2", "never heard of") == []
    assert tree.leaf_without(frozenset({"k1", "k2"})) is None
    assert [leaf.is_suspended for leaf in tree.leaves()] == [True]


def test_a_pinned_leaf_that_is_parked_pins_nothing_meanwhile() -> None:
    tree = tree_of(*LINE, checkpoint("x1", tokens=900))
    tree.pin("x1")
    assert names(tree.canonical_branch()) == ["x1"]
    assert suspended(tree, "x1") == ["k1", "k2", "[1]"]


def test_what_would_lead_without_a_checkpoint_is_told_without_parking_it() -> None:
    tree = tree_of(*LINE)
    instead = tree.leaf_without(frozenset({"k2"}))
    assert instead is not None
    assert instead.key == "k1"
    assert names(tree.canonical_branch()) == ["k1", "k2", "[1]"]
