"""Documents with what was made of them, in one training text."""

from dataclasses import replace

from jupiterd.cycle.data.lineage import Sample, text_hash
from jupiterd.cycle.templates.asking import ask, ends
from jupiterd.cycle.templates.pairs import PAIR_SHARE, origin, pair, pairs_among
from jupiterd.cycle.templates.passages import passages
from jupiterd.cycle.templates.texts import TEMPLATES

FAQ = TEMPLATES["faq"]
PARAGRAPH = "Bees dance to tell their sisters where flowers are. " * 6
MAX_CHARS = 400


def sample(text: str, **more: object) -> Sample:
    fields = {
        "id": text_hash(text), "text": text, "kind": "real", "depth": 0, "parents": (),
        "cluster_id": "bees", "source_uri": "folder:bees.txt", "revision": "", "license": "MIT",
        "collector": "test@1", "fetched_at": "2026-01-01T00:00:00Z", "language": "en",
    }  # fmt: skip
    return Sample(**{**fields, **more})


def document(number: int = 0) -> Sample:
    return sample("\n\n".join(f"{number}.{part} {PARAGRAPH}".strip() for part in range(3)))


def made_of(parent: Sample, number: int, text: str) -> Sample:
    return sample(
        text, kind="synthetic", depth=1, parents=(parent.id,), template="faq",
        sampler={"seed": 1, **origin(number, MAX_CHARS)},
    )  # fmt: skip


def test_a_pair_begins_as_a_base_model_is_asked_and_ends_where_it_is_to_end():
    parent = document()
    answer = made_of(parent, 1, "Why do bees dance?\nTo tell where flowers are.")
    text = pair(answer, parent)
    asked = ask(FAQ, passages(parent.text, MAX_CHARS)[1])
    assert text is not None
    assert text.startswith(asked.opening)
    written = text.removeprefix(asked.opening)
    assert written.startswith(answer.text)
    assert ends(FAQ, written)
    assert not ends(FAQ, answer.text)


def test_without_a_known_passage_there_is_no_pair():
    parent = document()
    answer = made_of(parent, 0, "An answer.")
    assert pair(replace(answer, sampler={"seed": 1}), parent) is None
    assert pair(made_of(parent, 99, "An answer."), parent) is None
    assert pair(replace(answer, template="complete_function"), parent) is None
    assert pairs_among([answer], 10**6) == {}  # its document was left out


def test_pairs_are_no_more_than_their_share_of_the_text():
    documents = [document(number) for number in range(40)]
    answers = [made_of(each, 0, f"Answer {n}. {PARAGRAPH}") for n, each in enumerate(documents)]
    total_bytes = sum(len(each.text.encode()) for each in (*documents, *answers))
    found = pairs_among([*documents, *answers], total_bytes)
    assert 0 < len(found) < len(answers)
    assert set(found) <= {each.id for each in answers}
    share = sum(len(text.encode()) for text in found.values()) / total_bytes
    assert PAIR_SHARE / 2 < share <= PAIR_SHARE
