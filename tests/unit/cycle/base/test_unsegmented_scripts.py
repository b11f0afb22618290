import random
import time

import pytest

from jupiterd.cycle.base.drop_reason import DropReason
from jupiterd.cycle.base.unsegmented_scripts import (
    LETTERS_PER_WORD,
    WITHOUT_SENTENCE_MARKS,
    ZERO_WIDTH_SPACE,
    count_marked_sentences,
    estimated_words,
)
from jupiterd.cycle.domain.filters import judge_text
from jupiterd.cycle.text_rules.prose_rules import judge_prose

WORDS = {
    "zh": "人人 生而 自由 在 尊严 和 权利 上 一律 平等 他们 赋有 理性 良心 并应",
    "ja": "すべて の 人間 は 生まれ ながら 自由 で あり 尊厳 と 権利 について 平等 理性 良心",
    "th": "มนุษย์ ทั้งหลาย เกิด มา มี อิสระ และ เสมอภาค กัน ใน เกียรติ สิทธิ ต่าง เหตุผล มโนธรรม ควร ปฏิบัติ ต่อ",
    "lo": "ມະນຸດ ທຸກຄົນ ເກີດ ມາ ມີ ກຽດ ສັກສີ ສິດທິ ເສລີພາບ ແລະ ຄວາມ ສະເໝີ ພາບ ເຫດຜົນ ຄິດ ເຫັນ ອ້າຍ ນ້ອງ",
    "km": "មនុស្ស ទាំងអស់ កើតមក មាន សេរីភាព និង ភាព ស្មើ គ្នា ក្នុង សេចក្ដី ថ្លៃថ្នូរ សិទ្ធិ គ្រប់រូប ត្រូវ ប្រព្រឹត្ត",
    "my": "လူတိုင်း သည် တူညီ လွတ်လပ် သော ဂုဏ်သိက္ခာ ဖြင့် အခွင့်အရေး များ မွေးဖွား လာသူ ဖြစ် ဉာဏ် နှင့် စိတ် မေတ္တာ",
}
"""From the first article of the Universal Declaration of Human Rights, cut by hand."""

END = {"zh": "。", "ja": "。", "th": " ", "lo": " ", "km": "។ ", "my": "။ "}
IN_SENTENCE = 16

each_language = pytest.mark.parametrize("language", sorted(LETTERS_PER_WORD))
marked = pytest.mark.parametrize(
    "language", sorted(LETTERS_PER_WORD.keys() - WITHOUT_SENTENCE_MARKS)
)


def sentences(language, count, seed=1):
    chance = random.Random(seed)
    words = WORDS[language].split()
    return ["".join(chance.choices(words, k=IN_SENTENCE)) + END[language] for _ in range(count)]


def page(language, count=12):
    """Return three sentences in a line."""
    found = sentences(language, count)
    lines = ("".join(found[start : start + 3]).strip() for start in range(0, count, 3))
    return "\n".join(lines)


def verdict(text, language):
    return judge_prose(text, language).reason


@each_language
def test_prose_without_spaces_is_kept_and_was_dropped_by_the_rules_for_words(language):
    judgement = judge_prose(page(language), language)
    scores = judgement.scores
    assert judgement.reason is None
    assert scores["words_with_letter"] > 0.8
    assert "mean_word_chars" not in scores
    assert verdict(page(language), "de") is not None
    assert judge_text(page(language), language).reason is None


@each_language
def test_a_page_with_places_for_line_breaks_is_kept(language):
    broken = page(language)
    for word in WORDS[language].split():
        broken = broken.replace(word, f"{word}{ZERO_WIDTH_SPACE}")
    assert verdict(broken.replace(ZERO_WIDTH_SPACE * 2, ZERO_WIDTH_SPACE), language) is None


@each_language
def test_the_estimate_is_right_within_a_factor_of_two(language):
    found = estimated_words(page(language), language)
    assert 0.5 < found / (12 * IN_SENTENCE) < 2


@each_language
def test_fifty_words_are_asked_for_here_too(language):
    letter = WORDS[language][0]
    enough = letter * 50 * LETTERS_PER_WORD[language]
    assert verdict(enough, language) is not DropReason.TOO_SHORT
    assert verdict(enough[1:], language) is DropReason.TOO_SHORT


@each_language
@pytest.mark.parametrize(
    ("piece", "reason"),
    [
        ("#" * 60, DropReason.SYMBOLS),
        (" 7" * 150, DropReason.FEW_LETTERS),
        ("\n" * 150, DropReason.LIST),
    ],
    ids=["symbols", "numbers", "lines"],
)
def test_what_is_counted_for_each_word_is_bounded_here_too(language, piece, reason):
    assert verdict(page(language) + piece + sentences(language, 1)[0].strip(), language) is reason


@each_language
@pytest.mark.parametrize(
    ("piece", "reason"),
    [("lorem ipsum", DropReason.PLACEHOLDER), ("{x}", DropReason.CURLY_BRACKET)],
)
def test_the_rules_that_count_no_words_hold_here_too(language, piece, reason):
    line = sentences(language, 1, seed=2)[0].strip()
    assert verdict(f"{page(language)}\n{piece}{line}", language) is reason


@each_language
def test_a_phrase_that_comes_again_and_again_is_found(language):
    again = "".join(WORDS[language].split()[:8]) + END[language]
    assert verdict(page(language) + again * 20, language) is DropReason.REPEATED_PHRASES


@marked
@pytest.mark.parametrize(("count", "reason"), [(5, None), (4, DropReason.FEW_SENTENCES)])
def test_five_sentences_make_a_document_where_they_have_a_mark(language, count, reason):
    text = "".join(sentences(language, count)).strip()
    assert verdict(text, language) is reason


@pytest.mark.parametrize(
    ("line", "count"),
    [("", 0), ("一つ", 1), ("一つ。二つ。", 2), ("什么?!好。", 2), ("ស្រី។ ប្រុស។", 2), ("。。", 0)],
)
def test_sentences_are_counted_by_their_marks(line, count):
    assert count_marked_sentences(line) == count


@pytest.mark.parametrize("piece", ["人", "。", "人。", "人 ", "#", "ก่"])
def test_no_text_takes_longer_than_its_length(piece):
    began_s = time.process_time()
    verdict(piece * (100_000 // len(piece)), "zh")
    verdict(piece * (100_000 // len(piece)), "th")
    assert time.process_time() - began_s < 10.0
