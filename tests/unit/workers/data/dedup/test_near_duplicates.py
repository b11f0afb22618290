import random
import subprocess
import sys

from jupiterd.workers.data.dedup.near_duplicates import NearDuplicates
from tests.support.cycle.prose import word


def words(chance, count):
    return [word(chance.randrange(10**6)) for _ in range(count)]


def changed(chance, text, share):
    """Return the words with that share of them replaced."""
    found = list(text)
    for place in chance.sample(range(len(found)), int(share * len(found))):
        found[place] = word(chance.randrange(10**6)) + "x"
    return found


def groups(texts, *, is_code=False):
    index = NearDuplicates(is_code=is_code)
    for text in texts:
        index.add(text)
    return index.groups()


def test_nearly_equal_texts_are_found_and_others_are_not(seed):
    chance = random.Random(seed)
    texts = [words(chance, 300) for _ in range(200)]
    near = [changed(chance, text, 0.01) for text in texts]  # about 90 % of the runs are the same
    far = [changed(chance, text, 0.2) for text in texts]  # about 20 %
    found = groups([" ".join(text) for text in (*texts, *near, *far)])
    recalled = sum(found[200 + number] == number for number in range(200))
    mistaken = sum(found[400 + number] != 400 + number for number in range(200))
    # Of 200 pairs 0.05 are missed and 0.006 found in the mean: more than that many are in one seed
    # of some millions.
    assert recalled >= 197
    assert mistaken <= 2
    assert found[:200] == list(range(200))


def test_groups_do_not_depend_on_the_order(seed):
    chance = random.Random(seed)
    texts = [words(chance, 60) for _ in range(40)]
    texts += [changed(chance, text, 0.05) for text in texts]
    expected = {frozenset(group) for group in _members(texts, range(len(texts)))}
    order = chance.sample(range(len(texts)), len(texts))
    assert {frozenset(group) for group in _members(texts, order)} == expected


def _members(texts, order):
    found = groups([" ".join(texts[number]) for number in order])
    by_root = {}
    for place, root in enumerate(found):
        by_root.setdefault(root, []).append(order[place])
    return by_root.values()


def test_numbers_and_marks_play_a_part_in_code_alone():
    first = "The shop opened at 9 in 1999, and sold 12 loaves of bread to 30 people on that day."
    second = "the shop opened at 8 in 2001 and sold 15 loaves of bread to 99 people on that day"
    assert groups([first, second]) == [0, 0]
    assert groups([first, second], is_code=True) == [0, 1]


def test_texts_of_a_few_words_are_near_to_none():
    assert groups(["", "", "one two three four", "one two three four"]) == [0, 1, 2, 3]


def test_what_is_near_to_one_is_near_to_all_of_its_group():
    assert groups(["a b c d e f g", "x y z", "A, b c d e f g!", "a b c d e f g"]) == [0, 1, 0, 0]


def test_another_process_finds_the_same():
    code = (
        "from jupiterd.workers.data.dedup.near_duplicates import _bands\n"
        "print(list(_bands(['one two three four five', 'two three four five six'])))"
    )
    told = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(told) == 1
