"""Prose to be judged: made documents, good ones and ones bad in each way, and this machine's own.

The made ones depend on nothing but the seed. The real ones are manuals, licences and notes: text
that people wrote, as it lies here and with its lines joined into paragraphs as on a web page.
"""

import gzip
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from pydoc_data.topics import topics

_COMMON = (  # noqa: SIM905 - read as a text
    "the of and to in a is that it was for on with as by be at this have from or had not but what "
    "all were when we there can an your which their said if do will each about how up out them "
    "then she many some so these would other into has more her two like him see time could no make "
    "than first been its who now people my made over did down only way find use may water long "
    "little very after words called just where most know get through back much before go good new"
).split()
_BEGINNINGS = ("br", "cl", "dr", "fl", "gr", "pl", "st", "tr", *"bcdfghlmnprstvw")
_MIDDLES = ("ai", "ea", "ou", *"aeiou")
_ENDS = ("ll", "nd", "rk", "st", "ng", "rn", "ver", "ton", "ing", "age", "ment", *"tnmrsld")
REAL_FOLDERS = ("/usr/share/doc", "/usr/share/vim", "/usr/share/common-licenses")
_TEXT_NAME = re.compile(r"(copyright|README.*|NEWS.*|.*\.(txt|md|rst)|[A-Z]+-[0-9.]+)(\.gz)?")
_MAX_REAL_BYTES = 200_000


@dataclass(frozen=True)
class Document:
    """A text, and how it came about."""

    id: str
    text: str


def made(count: int, seed: int) -> Iterator[Document]:
    """Yield documents, half of them good, the others bad in one way each."""
    chance = random.Random(seed)
    lexicon = _lexicon(chance)
    ways = tuple(_BAD)
    for number in range(count):
        way = ways[number // 2 % len(ways)] if number % 2 else "good"
        text = _page(chance, lexicon, chance.randint(4, 40))
        yield Document(
            f"{way}-{number}", text if way == "good" else _BAD[way](chance, lexicon, text)
        )


def near_twins(count: int, seed: int) -> Iterator[Document]:
    """Yield pages in threes: a page, a copy with few words changed, and one with many changed.

    Of 100 words few is one, which leaves about 90 % of the runs of five, and many is twenty, which
    leaves about 20 %: at the bound itself, 72 %, MinHash draws lots, and another one draws others.
    """
    chance = random.Random(seed)
    lexicon = _lexicon(chance)
    for number in range(0, count, 3):
        text = _page(chance, lexicon, 12)
        yield Document(f"own-{number}", text)
        yield Document(f"twin-{number}", _changed(chance, text, 0.01))
        yield Document(f"cousin-{number}", _changed(chance, text, 0.2))


def real() -> Iterator[Document]:
    """Yield the English text of this machine, as it is and with its lines joined."""
    for name, text in _found():
        yield Document(name, text)
        joined = re.sub(r"(?<=\S)\n[ \t]*(?=[a-z(])", " ", text)
        if joined != text:
            yield Document(f"{name} (joined)", joined)


def _found() -> Iterator[tuple[str, str]]:
    yield from ((f"topics/{name}", text) for name, text in sorted(topics.items()))
    for folder in REAL_FOLDERS:
        for path in sorted(Path(folder).rglob("*")):
            if _TEXT_NAME.fullmatch(path.name) and path.is_file() and not path.is_symlink():
                text = _read(path)
                if text.strip():
                    yield str(path), text


def _read(path: Path) -> str:
    data = path.read_bytes()
    if path.suffix == ".gz":
        data = gzip.decompress(data)
    return data[:_MAX_REAL_BYTES].decode("utf-8", "ignore")


def _lexicon(chance: random.Random) -> list[str]:
    """Return words, the commonest first."""
    rare = {_word(chance) for _ in range(8000)}
    return [*_COMMON, *sorted(rare, key=lambda word: chance.random())]


def _word(chance: random.Random) -> str:
    syllables = chance.choice((1, 2, 2, 3))
    begun = "".join(chance.choice(_BEGINNINGS) + chance.choice(_MIDDLES) for _ in range(syllables))
    return begun + chance.choice(_ENDS)


def _sentence(chance: random.Random, lexicon: list[str]) -> str:
    # A paretovariate draws ranks as often as they are used in languages.
    words = [
        lexicon[min(int(chance.paretovariate(0.6)) - 1, len(lexicon) - 1)]
        if chance.random() < 0.6
        else chance.choice(lexicon)
        for _ in range(chance.randint(6, 24))
    ]
    if chance.random() < 0.3:
        words[len(words) // 2] += ","
    if chance.random() < 0.1:
        words[-1] = f"{chance.randint(2, 2000)}"
    if chance.random() < 0.1:
        words[1] = chance.choice(("don't", "it's", "they're", "(perhaps)", '"so"', "well-known"))
    return " ".join(words).capitalize() + chance.choice("....!?")


def _page(chance: random.Random, lexicon: list[str], sentences: int) -> str:
    lines: list[str] = []
    while sentences > 0:
        taken = min(sentences, chance.randint(1, 6))
        lines.append(" ".join(_sentence(chance, lexicon) for _ in range(taken)))
        sentences -= taken
    return chance.choice(("\n", "\n\n")).join(lines)


def _changed(chance: random.Random, text: str, share: float) -> str:
    """Return the text with that share of its words changed."""
    words = text.split(" ")
    for _ in range(int(share * len(words))):
        words[chance.randrange(len(words))] = _word(chance)
    return " ".join(words)


Bad = Callable[[random.Random, list[str], str], str]


def _share(chance: random.Random) -> float:
    """Return how much of a document is bad: on both sides of the thresholds."""
    return chance.choice((0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.6))


def _some_lines(chance: random.Random, text: str, change: Callable[[str], str]) -> str:
    share = _share(chance)
    return "\n".join(change(x) if chance.random() < share else x for x in text.split("\n"))


def _repeat(text: str, piece: str, share: float) -> str:
    return f"{text} {piece * max(2, int(share * len(text) / len(piece)))}"


_BAD: dict[str, Bad] = {
    "short": lambda c, _, text: " ".join(text.split()[: c.randint(10, 90)]) + ".",
    "lines": lambda c, _, text: "\n".join(
        [*text.split("\n"), *[text.split("\n")[0]] * max(1, int(_share(c) * text.count("\n")))]
    ),
    "paragraphs": lambda c, _, text: "\n\n".join([text] * c.randint(1, 3)),
    "phrase": lambda c, words, text: _repeat(text, f"{c.choice(words)} now. ", _share(c)),
    "clause": lambda c, words, text: _repeat(text, _sentence(c, words) + " ", _share(c)),
    "long words": lambda c, words, text: re.sub(
        r"\w{5,}", lambda found: found[0] * c.choice((1, 3)), text
    ),
    "short words": lambda c, _, text: re.sub(
        r"\w{3,}", lambda found: found[0][: c.randint(1, 4)], text
    ),
    "hashes": lambda c, _, text: f"{text} " + "# " * int(_share(c) * 0.5 * len(text.split())),
    "ellipses": lambda c, _, text: _some_lines(c, text, lambda line: line + "..."),
    "bullets": lambda c, _, text: "\n".join(
        ("- " if c.random() < 0.95 else "") + line for line in re.split(r"(?<=[.!?]) ", text)
    ),
    "numbers": lambda c, _, text: re.sub(
        r"\w+", lambda found: found[0] if c.random() < 0.75 else "17", text
    ),
    "no stop words": lambda c, words, text: " ".join(
        c.choice(words[200:]) + c.choice(("", "", "", ".")) for _ in text.split()
    ),
    "no full stops": lambda c, _, text: _some_lines(c, text, lambda line: line.rstrip(".!?")),
    "few sentences": lambda c, _, text: (
        " ".join(
            re.split(r"(?<=[.!?]) ", text.replace(".", ",").replace("!", ",").replace("?", ","))
        )
        + ". " * c.randint(0, 1)
        + "They said so. " * c.randint(0, 5)
    ),
    "menu": lambda c, words, text: (
        "\n".join(c.choice(words) for _ in range(int(_share(c) * 80))) + "\n" + text
    ),
    "braces": lambda c, _, text: text.replace(". ", ". {x} ", 1),
    "lorem": lambda c, _, text: text.replace(". ", ". Lorem ipsum dolor. ", 1),
    "policy": lambda c, _, text: _some_lines(c, text, lambda line: f"Privacy policy. {line}"),
    "script": lambda c, _, text: _some_lines(c, text, lambda line: f"Enable JavaScript. {line}"),
    "wide": lambda c, _, text: _some_lines(c, text, lambda line: "x" * 1001 + line),
}
