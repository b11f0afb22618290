"""Sources of a domain as they would be if they could be reached: the same form, text of our own.

Owns the moved sources and what lies in them. Names of files match each source's globs, pages look
as MediaWiki's do, entries as arXiv's, rows as those of Wikipedia's data set. No text is like
another, as a seed decides; whatever it is, each text is good, and says nothing twice.
"""

import html
import json
import os
import random
import re
import subprocess
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path
from pydoc_data.topics import topics

from jupiterd.cycle.base.globs import WantedNames
from jupiterd.cycle.domain.data_sources import (
    DataSource,
    FeedSource,
    GitSource,
    HuggingFaceSource,
    JsonlSource,
    PythonStdlibSource,
    WebSource,
)

PAGES = 40
"""Of each site, feed and data set."""
FILES = 10
"""Of each repository."""
LIBRARY_BYTES = 3 << 20
"""Of Python's library; whole, it takes half a minute."""

_SENTENCE = re.compile(r"(?<=[.] )[A-Z][A-Za-z ,;'()-]{50,160}[.](?= )")
_CHOICES = re.compile(r"\{([^{}]*)\}")


class English:
    """Sentences of the manual that comes with Python, in an order that makes no sense.

    For one text: none comes twice, which the rules against repetition would rightly mind.
    """

    def __init__(self, chance: random.Random) -> None:
        """Let chance decide about the order."""
        self._left = chance.sample(_ENGLISH, len(_ENGLISH))

    def sentences(self, number: int) -> str:
        """Return so many that weren't said before."""
        said, self._left = self._left[:number], self._left[number:]
        assert len(said) == number, "the manual has no more sentences"
        return " ".join(said)


def _manual() -> Iterator[str]:
    """Yield the manual's sentences: no heading stands in one, and no run of words in two."""
    seen: set[tuple[str, ...]] = set()
    for text in topics.values():
        for found in _SENTENCE.findall(" ".join(text.split())):
            words = found.lower().split()
            runs = {tuple(words[at : at + _RUN]) for at in range(max(1, len(words) - _RUN + 1))}
            if _UNDERLINE not in found and seen.isdisjoint(runs):
                seen |= runs
                yield found


_RUN = 5
"""Words: the shortest run that the rules against repetition count."""
_UNDERLINE = "---"
_ENGLISH = sorted(_manual())


def spanish(chance: random.Random, sentences: int) -> str:
    """Return sentences about places that don't exist."""

    def name() -> str:
        syllables = chance.choices(("al", "be", "ca", "do", "li", "mon", "ri", "ta", "val"), k=4)
        return "".join(syllables).capitalize()

    chosen = chance.sample(_SPANISH, sentences)
    return " ".join(each.format(name(), name(), name()) for each in chosen)


_SPANISH = (
    "El río {} nace en la sierra de {} y desemboca en el mar cerca de {}.",
    "La ciudad de {} fue fundada por los monjes de {} cuando reinaba {}.",
    "Según las crónicas de {}, la batalla se libró junto a los molinos de {}, no lejos de {}.",
    "El escritor {} nació en {} y pasó la mayor parte de su vida en {}.",
    "Entre {} y {} se extiende un valle muy fértil, que los vecinos llaman {}.",
    "La iglesia de {} conserva un retablo que pintó {} para el conde de {}.",
    "Hoy el ferrocarril une {} con {}, y una carretera lleva desde allí hasta {}.",
    "Los habitantes de {} hablan una lengua parecida a la de {}, aunque no a la de {}.",
    "En el museo de {} se guardan monedas, armas y vasijas halladas en {} y en {}.",
    "Su hermana {} se casó con un mercader de {}, que comerciaba con especias traídas de {}.",
    "Cada otoño llegan a la laguna de {} miles de aves desde {} y también desde {}.",
    "Aquel invierno la nieve cortó los pasos de {}, y nadie pudo viajar de {} a {}.",
    "Durante la guerra, el general {} mandó quemar los puentes de {} para defender {}.",
    "El clima de {} es más seco que el de {}, porque los montes de {} detienen las nubes.",
    "Una leyenda cuenta que el gigante {} arrojó una roca contra {} y que así nació {}.",
    "Los vinos de {} ganaron fama en el extranjero gracias a la familia {}, oriunda de {}.",
)


def moved(source: DataSource, folder: Path, site_url: str, seed: int) -> DataSource:
    """Return the source as it is, but for where it lies: below a folder, or on a local site."""
    chance = random.Random(f"{seed} {source.name}")
    match source:
        case GitSource():
            _write_repository(source, folder / source.name, chance)
            place = {"url": f"file://{folder / source.name}", "allow_private_addresses": True}
            return source.model_copy(update=place)
        case WebSource():
            urls = tuple(_on_site(url, site_url) for url in source.urls)
            within = tuple(_on_site(url, site_url) for url in source.within)
            place = {"urls": urls, "within": within, "max_pages": PAGES + len(urls)}
            return source.model_copy(update={**place, "delay_s": 0.0, **_NEAR})
        case FeedSource():
            urls = tuple(_on_site(url, site_url) for url in source.urls)
            return source.model_copy(update={"urls": urls, "delay_s": 0.0, **_NEAR})
        case HuggingFaceSource():
            told = source.model_dump(include=set(JsonlSource.model_fields) - {"kind", "path"})
            path = folder / f"{source.name}.jsonl"
            path.write_text("\n".join(_articles(chance)), encoding="utf-8")
            return JsonlSource(kind="jsonl", path=str(path), **told)
        case PythonStdlibSource():
            return source.model_copy(update={"max_bytes": LIBRARY_BYTES})
        case _:
            return source


_NEAR = {"allow_private_addresses": True}


def _on_site(url: str, site_url: str) -> str:
    return re.sub(r"^https?://([^/]+)", rf"{site_url}/\1", url)


def pages_of(source: DataSource, site_url: str, seed: int) -> Iterator[tuple[str, str, str]]:
    """Yield what lies on the local site for a moved source: path, body and its type."""
    chance = random.Random(f"{seed} {source.name} pages")
    if isinstance(source, FeedSource):
        for url in source.urls:
            yield url.removeprefix(site_url), _feed(chance), "application/atom+xml"
    elif isinstance(source, WebSource):
        below = [url.removeprefix(site_url) for url in source.urls]
        names = [f"{top}/Page_{number}" for number, top in enumerate(islice(cycle(below), PAGES))]
        for name in below:
            yield name, _contents_page(names, chance), "text/html"
        for name in names:
            yield name, _wiki_page(name.rpartition("/")[2], chance), "text/html"


def _contents_page(names: list[str], chance: random.Random) -> str:
    """Return a page that says something, too: nothing but links would rightly be left out."""
    links = ", ".join(f'<a href="{name}">{number}</a>' for number, name in enumerate(names))
    told = English(chance)
    paragraphs = "".join(f"<p>{told.sentences(5)}</p>" for _ in range(6))
    return f"<html><body><h1>Contents</h1>{paragraphs}<p>The pages: {links}.</p></body></html>"


def _wiki_page(title: str, chance: random.Random) -> str:
    """Return a page as MediaWiki shows it, formulas and all."""
    told = English(chance)
    tex = rf"{{\displaystyle K_{{a}}={{\frac {{[A_{{{chance.randrange(99)}}}]}}{{[HA]}}}}}}"
    formula = (
        '<span class="mwe-math-element"><span class="mwe-math-mathml-inline">'
        f'<math xmlns="http://www.w3.org/1998/Math/MathML" alttext="{tex}"><semantics><mi>K</mi>'
        f'<annotation encoding="application/x-tex">{tex}</annotation></semantics></math></span>'
        f'<img src="/svg/k" class="mwe-math-fallback-image-inline" alt="{tex}"></span>'
    )
    sections = "".join(
        f'<h2>Part {number}<span class="mw-editsection">[<a href="/edit">edit</a>]</span></h2>'
        f"<p>{told.sentences(4)} It is written {formula} where that is known.</p>"
        for number in range(4)
    )
    return f"""<!doctype html><html lang="en"><head><title>{title}</title></head><body>
<div id="mw-navigation"><ul><li><a href="/wiki/Main_Page">Main page</a></li></ul></div>
<div id="content"><h1>{title}</h1><div id="toc"><ul><li><a href="#p">1 Part</a></li></ul></div>
{sections}<table class="wikitable"><tr><th>Element</th><th>Z</th></tr><tr><td>Carbon</td><td>6</td>
</tr></table></div><div id="footer">Text is available under a licence.</div></body></html>"""


def _feed(chance: random.Random) -> str:
    entries = "".join(
        f"""<entry><id>oai:arXiv.org:2401.{number:05}v1</id><title>On bonds of kind {number}</title>
<updated>2026-01-01T00:00:00Z</updated>
<link href="https://arxiv.org/abs/2401.{number:05}" rel="alternate" type="text/html"/>
<summary>arXiv:2401.{number:05}v1 Announce Type: new
Abstract: {html.escape(English(chance).sentences(9))}</summary></entry>"""
        for number in range(PAGES)
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?><feed xmlns="http://www.w3.org/2005/Atom">'
        f"<title>physics.chem-ph</title>{entries}</feed>"
    )


def _articles(chance: random.Random) -> Iterator[str]:
    for number in range(PAGES):
        told = spanish(chance, 12).split(". ")
        paragraphs = [". ".join(told[at : at + 4]) + "." for at in range(0, 12, 4)]
        text = "\n\n".join([*paragraphs, "Véase también", "Referencias", "Enlaces externos"])
        url = f"https://es.wikipedia.org/wiki/Lugar_{number}"
        row = {"id": str(number), "url": url, "title": f"Lugar {number}", "text": text}
        yield json.dumps(row, ensure_ascii=False)


def _write_repository(source: GitSource, folder: Path, chance: random.Random) -> None:
    wanted = WantedNames(source.glob, source.exclude)
    names = [_name(source.glob, number, chance) for number in range(20 * FILES)]
    chosen = list(islice(dict.fromkeys(name for name in names if wanted.has(name)), FILES))
    assert len(chosen) == FILES, f"no {FILES} names match {source.glob} without {source.exclude}"
    for name in chosen:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_file(path, chance), encoding="utf-8")
    _git(folder, "init", "--quiet")
    _git(folder, "add", "--all")
    _git(folder, "commit", "--quiet", "--message", "files")


def _name(glob: str, number: int, chance: random.Random) -> str:
    while found := _CHOICES.search(glob):
        choice = chance.choice(found[1].split(","))
        glob = f"{glob[: found.start()]}{choice}{glob[found.end() :]}"
    return glob.replace("**", f"Part{chance.randrange(6)}").replace("*", f"File{number}")


def _file(path: Path, chance: random.Random) -> str:
    title = path.stem.replace("-", " ").capitalize()
    match path.suffix:
        case ".h" | ".cpp":
            return _cpp(chance)
        case ".py":
            return _python(English(chance), chance)
        case ".ipynb":
            return _notebook(title, chance)
        case ".md":
            told = English(chance)
            return f"# {title}\n\n" + "\n\n".join(_sections("##", "", told, chance))
        case _:
            line = "=" * len(title)
            return f"{line}\n{title}\n{line}\n\n" + "\n\n".join(
                _sections("", "-", English(chance), chance)
            )


def _sections(mark: str, underline: str, told: English, chance: random.Random) -> Iterator[str]:
    for number in range(4):
        heading = f"Part {number}"
        yield f"{mark} {heading}" if mark else f"{heading}\n{underline * len(heading)}"
        yield told.sentences(5)
        if mark:
            yield f"$$\nE_{{{chance.randrange(9)}}} = \\frac{{h c}}{{\\lambda}}\n$$"


def _notebook(title: str, chance: random.Random) -> str:
    told = English(chance)
    prose = [f"# {title}", *_sections("##", "", told, chance)]
    text = [{"cell_type": "markdown", "metadata": {}, "source": each} for each in prose]
    code = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    cells = [*text, {**code, "source": _python(told, chance)}]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def _word(chance: random.Random) -> str:
    return "".join(chance.choices(("ac", "bo", "der", "fi", "lun", "mer", "pol", "tis"), k=3))


def _python(told: English, chance: random.Random) -> str:
    return "import math\n\n\n" + "\n\n".join(
        f"def {_word(chance)}({(given := _word(chance))}):\n"
        f'    """{told.sentences(1)}"""\n'
        f"    {(found := _word(chance))} = {given} * {chance.randrange(99)}\n"
        f"    return math.{chance.choice(('sin', 'cos', 'sqrt'))}({found})\n"
        for _ in range(6)
    )


def _cpp(chance: random.Random) -> str:
    told = English(chance)
    functions = "\n\n".join(
        f"/** {told.sentences(1)} */\n"
        f"void U{_word(chance).title()}Component::{_word(chance).title()}(float {_word(chance)})\n"
        f"{{\n\tconst FVector {_word(chance)} = GetActorLocation() * {chance.random():.3f}f;\n"
        f"\tif (!IsValid({_word(chance)}))\n\t{{\n\t\treturn;\n\t}}\n"
        f"\t{_word(chance).title()}->Set{_word(chance).title()}({_word(chance)});\n}}"
        for _ in range(6)
    )
    return (
        "// Copyright of nobody. Licensed under the MIT License.\n\n#pragma once\n\n"
        f'#include "CoreMinimal.h"\n#include "{_word(chance).title()}.h"\n\n{functions}\n'
    )


def _git(folder: Path, *arguments: str) -> None:
    who = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_CONFIG_GLOBAL": "/dev/null"}
    committer = {"GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
    subprocess.run(
        ["git", *arguments], cwd=folder, env={**os.environ, **who, **committer}, check=True
    )
