"""What of a small data set is held out, however its texts are copies of each other."""

import random

from jupiterd.cycle.data.lineage import text_hash
from jupiterd.workers.data.collect.text_files import PlacedText
from jupiterd.workers.data.dedup.near_duplicates import NearDuplicates
from jupiterd.workers.data.pack.prepared_split import split_of

SETS, FRACTION = 300, 0.05
WORDS = [f"w{number}" for number in range(400)]


def drawn(chance: random.Random) -> list[PlacedText]:
    """Return a few texts in a few folders, some of which differ from others in a word."""
    texts: list[str] = []
    copies, folders = chance.choice((0.0, 0.2, 0.5, 0.8)), chance.randint(1, 8)
    for number in range(chance.randint(2, 40)):
        words = chance.choices(WORDS, k=60)
        if texts and chance.random() < copies:
            words = chance.choice(texts).split()
            words[chance.randrange(len(words))] = f"x{number}"
        texts.append(" ".join(words))
    return [
        PlacedText(text, ("top", f"f{chance.randrange(folders)}", f"{number}.txt"))
        for number, text in enumerate(texts)
    ]


def groups_of(documents: list[PlacedText]) -> list[int]:
    near = NearDuplicates(is_code=True)
    for document in documents:
        near.add(document.text)
    return list(near.groups())


def test_a_small_set_has_some_held_out_and_no_copy_of_it_is_trained_on(seed: int) -> None:
    chance, mostly_held = random.Random(seed), 0
    for number in range(SETS):
        documents = drawn(chance)
        groups, split = groups_of(documents), split_of(documents, FRACTION)
        is_held = [split.takes(document) for document in documents]
        pairs = list(zip(groups, is_held, strict=True))
        held, trained = (
            {group for group, is_in in pairs if is_in is side} for side in (True, False)
        )
        assert not held & trained, number
        assert trained, number
        assert held or len(trained) == 1, "all are copies of each other, or some is held out"
        mostly_held += sum(is_held) > len(documents) / 2
    assert mostly_held < SETS / 50, "of a small set most is trained on"


def test_what_was_held_out_is_known_again_by_its_text() -> None:
    documents = drawn(random.Random(1))
    split = split_of(documents, FRACTION)
    held = [document for document in documents if split.takes(document)]
    assert set(split.held_out) == {text_hash(document.text) for document in held}
