"""Which prompts a cycle's models answer: the same ones as long as their text is held out."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cycle.data.lineage import Sample
from jupiterd.cycle.data.split import DEV, GATE, TRAIN, VAULT
from jupiterd.cycle.generation.asked_prompts import (
    MAX_PARTS,
    MAX_QUESTION_CHARS,
    PROMPTS,
    AskedPrompt,
    chosen_prompts,
)
from tests.support.workers.data_material import function, real


def held_out(count: int, split: str = DEV, first: int = 0) -> list[Sample]:
    """Return documents of clusters of five."""
    samples = [real(function(n), cluster=f"m{n // 5}") for n in range(first, first + count)]
    return [replace(each, split=split) for each in samples]


def conversation(*turns: tuple[str, str], first_answer: int = 0) -> Sample:
    said = tuple({"role": role, "content": content} for role, content in turns)
    text = "\n\n".join(content for _, content in turns)
    return replace(real(text), messages=said, first_answer=first_answer, split=DEV)


def test_only_development_text_is_asked_about():
    shown = [*held_out(30, GATE), *held_out(30, VAULT, 30), *held_out(30, TRAIN, 60)]
    assert chosen_prompts(shown, "", "c") == ()
    (prompt,) = chosen_prompts([*shown, *held_out(1, DEV, 90)], "", "c")
    assert function(90).startswith(prompt.text)
    assert len(prompt.text) < len(function(90))
    assert prompt.for_models().goes_on


@given(st.permutations(held_out(60)), st.text(max_size=8))
def test_the_cycle_decides_and_no_order_does(samples: list[Sample], cycle: str):
    chosen = chosen_prompts(samples, "", cycle)
    assert chosen == chosen_prompts(held_out(60), "", cycle)
    assert len({each.document for each in chosen}) == PROMPTS


def test_each_cycle_has_others_and_of_as_many_clusters_as_there_are():
    documents = held_out(60)
    of_cluster = {each.id: each.cluster_id for each in documents}
    first, second = (chosen_prompts(documents, "", cycle) for cycle in "ab")
    assert set(first) != set(second)
    assert len({of_cluster[each.document] for each in first}) == 12


def test_where_documents_are_few_their_later_parts_are_asked_about_too():
    long = [
        replace(real("\n\n".join(function(100 * n + m) for m in range(60)), f"m{n}"), split=DEV)
        for n in range(3)
    ]
    chosen = chosen_prompts(long, "", "c")
    assert len(chosen) == 3 * MAX_PARTS
    assert sum(sample.text.startswith(each.text) for sample in long for each in chosen[:3]) == 3
    assert all(any(each.text in sample.text for sample in long) for each in chosen)
    assert len({each.text for each in chosen}) == len(chosen)
    many = chosen_prompts([*long, *held_out(30)], "", "c")
    begins = [any(s.text.startswith(p.text) for s in [*long, *held_out(30)]) for p in many]
    assert begins == [True] * PROMPTS, "a document's own beginning comes first"
    assert chosen_prompts([*long, *held_out(30)], "", "c", chosen)[:15] == chosen


@given(st.sets(st.integers(0, 39), max_size=25), st.integers(0, 20))
def test_prompts_stay_as_long_as_their_text_is_held_out(gone: set[int], more: int):
    before = chosen_prompts(held_out(40), "", "c")
    left = [each for n, each in enumerate(held_out(40)) if n not in gone]
    now = chosen_prompts([*left, *held_out(more, DEV, 100)], "", "c", before)
    still = [each for each in before if each.document in {sample.id for sample in left}]
    assert list(now[: len(still)]) == still
    assert len(now) == min(PROMPTS, len(left) + more)
    assert len(set(now)) == len(now)


def test_what_an_earlier_round_says_of_a_prompt_is_not_believed():
    (true,) = chosen_prompts(held_out(1), "", "c")
    forged = [AskedPrompt(true.document, "something else"), AskedPrompt("f" * 64, "unknown")]
    assert chosen_prompts(held_out(1), "", "c", forged) == (true,)


def test_of_a_conversation_the_question_is_asked():
    said = conversation(("system", "be kind"), ("user", "What is bread?"), ("assistant", "Food."))
    (prompt,) = chosen_prompts([said], "", "c")
    assert (prompt.text, prompt.is_question) == ("What is bread?", True)
    assert not prompt.for_models().goes_on


def test_a_question_that_would_be_asked_in_part_is_left_out():
    longer = (("user", "And then?"), ("assistant", "Well."), ("user", "So?"), ("assistant", "Yes."))
    assert chosen_prompts([conversation(*longer, first_answer=3)], "", "c") == ()
    too_long = (("user", "x" * (MAX_QUESTION_CHARS + 1)), ("assistant", "Yes."))
    assert chosen_prompts([conversation(*too_long)], "", "c") == ()
    assert chosen_prompts([conversation(("user", "Alone?"))], "", "c") == ()
