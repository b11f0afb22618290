"""Which encoding bytes are in."""

import random

import pytest

from jupiterd.workers.data.extract.encodings import decoded
from jupiterd.workers.data.skips import SkipReason, UnreadableError

TEXTS = {
    "es": "Año, señal, corazón: ¿qué pasó mañana en la habitación? ",
    "fr": "L\u2019été dernier, où étiez-vous ? Ça m\u2019a coûté très cher. ",
    "de": "Übermäßig große Füße stören die Bäume, sagte der Jäger. ",
    "pl": "Zażółć gęślą jaźń, proszę o pomoc w tej sprawie. ",
    "ru": "Съешь ещё этих мягких булок, да выпей чаю. ",
    "ja": "吾輩は猫である。名前はまだ無い。カタカナもある。\n",
    "zh": "这是一个用来测试的中文段落。\n",
}  # fmt: skip
LEGACY = [
    ("es", "latin-1"), ("es", "cp1252"), ("fr", "cp1252"), ("de", "cp1252"), ("pl", "cp1250"),
    ("pl", "iso8859-2"), ("ru", "cp1251"), ("ru", "koi8-r"), ("ja", "shift_jis"),
    ("ja", "euc_jp"), ("zh", "gb18030"),
]  # fmt: skip


@pytest.mark.parametrize(("language", "encoding"), LEGACY)
@pytest.mark.parametrize("times", [1, 14, 800])
def test_text_of_the_domains_language_is_read(language, encoding, times):
    text = TEXTS[language] * times
    assert decoded(text.encode(encoding), language=language) == text


@pytest.mark.parametrize(("language", "encoding"), [pair for pair in LEGACY if pair[0] != "pl"])
def test_other_languages_are_told_by_their_letters(language, encoding):
    text = TEXTS[language] * 14
    assert decoded(text.encode(encoding), language="en") == text


@pytest.mark.parametrize("language", list(TEXTS))
@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"]
)
def test_unicode_needs_no_language(language, encoding):
    text = f"{TEXTS[language] * 3}\n"
    assert decoded(text.encode(encoding)) == text


FRENCH = (
    "L'été où la forêt brûla, l'évêque français goûta déjà très peu le maïs du château. "
    "Ça et là, un garçon naïf du même hôtel rêvait d'une île ; août finit plus bien petit."
)


@pytest.mark.parametrize("language", ["fr", "en", ""])
def test_a_line_of_french_in_windows_1252_is_that(language):
    print("seed 5")
    chance = random.Random(5)
    for words in range(6, 46):
        text = " ".join(chance.choice(FRENCH.split()) for _ in range(words)) + ".\n"
        assert decoded(text.encode("cp1252"), language=language) == text


def test_a_short_text_that_looks_odd_is_what_its_language_is_written_in():
    portuguese = "A ação não será concluída até amanhã, pois há muitas questões difíceis.\n"
    assert decoded(portuguese.encode("cp1252"), language="pt") == portuguese
    polish = "Zażółć gęślą jaźń. Łódź jest piękna, a źródło żółte; książę śpi.\n" * 3
    assert decoded(polish.encode("cp1250"), language="pl") == polish


def test_a_stray_byte_costs_one_character():
    book = "Un año de lluvia en la ciudad. ".encode() * 3000
    found = decoded(book + b"\xff" + book)
    assert len(found) == 2 * len(book.decode()) + 1
    assert found.count("\ufffd") == 1
    assert decoded(b"word " * 3000 + b"\0" + b"word " * 3000) == "word " * 6000


@pytest.mark.parametrize(
    ("charset", "encoding"),
    [("iso-8859-1", "cp1252"), ("utf-8", "cp1252"), ("nonsense", "cp1252"), ("shift_jis", "cp932")],
)
def test_what_the_sender_says_is_believed_where_the_bytes_agree(charset, encoding):
    text = TEXTS["ja" if encoding == "cp932" else "fr"] * 5
    assert decoded(text.encode(encoding), charset) == text


def test_utf_8_is_utf_8_whatever_its_sender_says():
    assert decoded("Año".encode(), "iso-8859-1") == "Año"


@pytest.mark.parametrize("size", [64, 1000, 100_000])
def test_noise_is_no_text(size):
    print("seed", size)
    with pytest.raises(UnreadableError) as caught:
        decoded(random.Random(size).randbytes(size))
    assert caught.value.reason == SkipReason.NOT_TEXT
