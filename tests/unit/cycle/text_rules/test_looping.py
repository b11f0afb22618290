"""Whether a text goes round: as small models wrote them, and as people write lists and tables."""

import random
from pathlib import Path

import pytest

from jupiterd.cycle.text_rules.looping import is_blank_at_end, is_looping

ROOT = Path(__file__).parents[4]
SENSIBLE = "Something sensible comes first, of which nobody has said a word yet, and then: "


@pytest.mark.parametrize(
    "text",
    [
        "and so on " * 12,
        "\n" * 60,
        "os os os os os os",
        ".\n\n```python\n\n```" + "\n\n```" * 16,
        (
            " the `parser` and `parser` and `Shape` and `Shape` and `parser` and "
            "`parser` and `parser` and `Shape` and `parser` and `parser` and `parser` "
            "and `parser` and `Shape` and"
        ),
        (
            "The cache is a fast cache. The cache is a small cache. The cache is a good "
            "cache. The cache is a large cache. The cache is a"
        ),
        (
            "1. Install the package with pip.\n2. Install the package with\n   pip.\n3. "
            "Install the\npackage with pip.\n4. Install the package with pip.\n5. Install"
        ),
        (
            "version 1.0, version 1.1, version 1.2, version 1.3, version 1.4, version "
            "1.5, version 1.6, version 1.7, version 1.8, version 1.9, version 1.10"
        ),
        (
            "return self._value\n\n    def value(self):\n        return "
            "self._value\n\n    def values(self):\n        return self._value\n\n    def "
            "value(self):\n        return self._value\n\n    def "
            "the_value(self):\n        return self._value\n"
        ),
        "缓存保存页面。缓存保存了页面。缓存保存页面。缓存也保存页面。缓存保存页面。缓存保存页面。",
    ],
)
def test_a_text_that_says_the_same_over_and_over_loops(text: str):
    assert is_looping(text)


@pytest.mark.parametrize(
    "text", ["and so on " * 12, "\n" * 90, "the cache, the cached cache, " * 5]
)
def test_it_loops_whatever_sensible_it_began_with(text: str):
    assert is_looping(SENSIBLE + text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "the sum of all values that a queue ever held\n",
        ("It holds what was read last. It holds nothing else, and it forgets all of it at night."),
        (
            "| setting | default | meaning |\n| --- | --- | --- |\n| `size` | 8 | pages "
            "that are held |\n| `age` | 60 | seconds until one is dropped |\n| `path` | "
            "none | where they lie |\n"
        ),
        (
            "- Install the package.\n- Install its dependencies.\n- Start the server.\n- "
            "Open a page.\n- Read what it says.\n"
        ),
        (
            "Once upon a midnight dreary, while I pondered, weak and weary,\nOver many a "
            "quaint and curious volume of forgotten lore,\nWhile I nodded, nearly "
            "napping, suddenly there came a tapping,\nAs of some one gently rapping, "
            "rapping at my chamber door.\n"
        ),
        "缓存保存最近读取的页面, 服务器启动时它是空的。每分钟会删除最旧的内容, 以便腾出空间。",
    ],
)
def test_other_text_does_not(text: str):
    assert not is_looping(text)


def test_of_documentation_and_code_as_long_as_an_answer_hardly_any_loops():
    chance = random.Random(7)
    files = [*ROOT.glob("docs/*.md"), *ROOT.glob("jupiterd/cycle/**/*.py")]
    texts = [file.read_text(encoding="utf-8") for file in sorted(files)]
    pieces = [
        text[(start := chance.randrange(len(text) - chars)) : start + chars]
        for text in texts
        for chars in (200, 250, 600)
        for _ in range(4)
        if len(text) > chars
    ]
    looping = [piece for piece in pieces if is_looping(piece)]
    assert len(pieces) > 1500
    assert len(looping) < 0.015 * len(pieces), looping[:5]


def test_blank_lines_at_the_end_are_seen_as_such():
    assert is_blank_at_end(f"It ends.{chr(10) * 60}")
    assert is_blank_at_end("\n")
    assert not is_blank_at_end("")
    assert not is_blank_at_end("A sentence of some words.\n\n")
