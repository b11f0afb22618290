"""Write docs/licences.md: the licence of everything that is installed with Jupiter.

    make licences    (--check: say whether the page is current; 1 where it isn't)

Reads what the packages that are installed here say of themselves. Owns which licences need no word
and the words on those that do; a package that asks for one and has none ends this with 1.
"""

import re
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

TARGET = Path(__file__).resolve().parent.parent / "docs" / "licences.md"
PACKAGE = "jupiterd"
EXTRAS = frozenset({"cpu", "serve", "parquet", "datasets"})

PERMISSIVE = re.compile(
    r"0BSD|Apache[- ]2(\.0)?( WITH LLVM-exception)?|Apache( 2\.0| Software) License"
    r"|BSD|BSD-[23]-Clause|BSD License|(The )?(BSD )?[23]-Clause( BSD)?( License)?"
    r"|BSL-1\.0|CC0-1\.0|CNRI-Python|ISC License|MIT(-0)?( License)?|PSF-2\.0|Zlib"
)
"""What asks for no more than its own text, as packages write it."""

EXPLAINED = {
    "certifi": "a list of root certificates, used as it is; MPL 2.0 asks for what was changed",
    "pathspec": "used as it is; MPL 2.0 asks for what was changed",
    "pypdfium2": "PDFium lies in it, under BSD and Apache 2.0; its parts are permissive",
    "tld": "the list of domains that trafilatura brings, used as it is",
    "tqdm": "used as it is; MPL 2.0 asks for what was changed",
    "zeroconf": "a library of its own, imported as it is and free to be replaced, as LGPL asks",
}
"""Package -> why its licence stands beside Jupiter's MIT, where that isn't plain."""

HEAD = """\
# Licences of what Jupiter stands on

Written by `make licences` (`scripts/licences.py`) out of what the installed packages say of
themselves, with the extras {extras} on Linux.

Jupiter is under the MIT licence and contains none of them: pip fetches each from its own source. On
Macs `mlx-metal` (MIT) takes the place of `mlx-cpu`. The usual build of torch for Linux brings
NVIDIA's CUDA libraries, which are under NVIDIA's own terms, and `triton` (MIT).

Jupiter brings general text along, in `config/general_text`, which shows what a model has forgotten.
All of it is in the public domain, and comes from packages of Debian:

- `us_state_papers.txt`: the Declaration of Independence and the Constitution of the United States
  (miscfiles): works of the US government;
- `devils_dictionary.txt`: of Ambrose Bierce's "The Devil's Dictionary", 1911 (dict-devil): the
  copyright has expired;
- `jargon_file.txt`: of the Jargon File 4.4.7, 29 December 2003 (dict-jargon): its authors placed it
  in the public domain;
- `sqlite_interface.txt`: of SQLite 3.40.1's `sqlite3.h` (libsqlite3-dev): its author disclaims
  copyright.

| package | licence | a word |
|---|---|---|
"""


def main() -> None:
    """Write the page, or check it."""
    packages = closure(PACKAGE, EXTRAS)
    if surprises := [name for name, licence in packages.items() if needs_word(name, licence)]:
        told = ", ".join(f"{name} ({packages[name]})" for name in surprises)
        sys.exit(
            f"licences: error: {told}\n\nhint: say in EXPLAINED why that will do, or do without"
        )
    page = HEAD.format(extras=", ".join(sorted(EXTRAS))) + "".join(rows(packages))
    if "--check" not in sys.argv:
        TARGET.write_text(page, encoding="utf-8")
        print(f"docs/{TARGET.name}: {len(packages)} packages")
    elif not TARGET.exists() or TARGET.read_text(encoding="utf-8") != page:
        sys.exit("licences: error: docs/licences.md is out of date\n\nhint: make licences")


def closure(name: str, extras: frozenset[str]) -> dict[str, str]:
    """Return package -> licence of all that `name` with `extras` needs here, without itself."""
    found: dict[str, str] = {}
    seen: set[tuple[str, frozenset[str]]] = set()
    waiting = [(name, extras)]
    while waiting:
        asked = waiting.pop()
        if asked in seen:
            continue
        seen.add(asked)
        package = distribution(asked[0])
        found[canonicalize_name(asked[0])] = licence_of(package)
        waiting += needs(package, asked[1])
    del found[canonicalize_name(name)]
    return dict(sorted(found.items()))


def needs(package: Distribution, extras: frozenset[str]) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield (name, extras) of what a package with these extras requires on this machine."""
    for line in package.requires or []:
        wanted = Requirement(line)
        marker = wanted.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in {"", *extras}):
            yield canonicalize_name(wanted.name), frozenset(wanted.extras)


def licence_of(package: Distribution) -> str:
    """Return the licence that a package names: as an expression, in words, or by its classifier."""
    told = package.metadata
    for key in ("License-Expression", "License"):
        if words := told.get_all(key):
            return words[0].partition("\n")[0]
    classes = [line for line in told.get_all("Classifier") or [] if line.startswith("License")]
    return classes[0].rpartition(" :: ")[2] if classes else "unknown"


def needs_word(name: str, licence: str) -> bool:
    """Say whether a licence asks for more than its text, and nobody has said why that will do."""
    choices = licence.split(" OR ")
    parts = [choice.split(" AND ") for choice in choices]
    is_plain = any(all(PERMISSIVE.fullmatch(each) for each in choice) for choice in parts)
    return not is_plain and name not in EXPLAINED


def rows(packages: dict[str, str]) -> Iterator[str]:
    """Yield the lines of the table."""
    for name, licence in packages.items():
        yield f"| {name} | {licence} | {EXPLAINED.get(name, '')} |\n".replace("|  |", "| |")


if __name__ == "__main__":
    main()
