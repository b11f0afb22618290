"""Which names of files globs take and leave out: the same for whoever collects and whoever looks.

Pure. Owns the form of globs. Doesn't know folders, or how names are found.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

MAX_CHOICES = 256
"""Of one glob, whose braces are multiplied with each other."""

_CHOICE = re.compile(r"\{([^{},]*(?:,[^{},]*)+)\}")


class WantedNames:
    """The names that one glob matches and none of others does."""

    def __init__(self, glob: str, exclude: Sequence[str] = ()) -> None:
        """Take the glob, and those that count more.

        Raises:
            re.error: one of them has no meaning.
        """
        self._glob = glob_pattern(glob)
        self._parts = _most_parts(glob)
        self._exclude = [glob_pattern(each) for each in exclude]

    def has(self, name: str) -> bool:
        """Say whether a file of this name, relative to its source, is wanted."""
        if not self._glob.fullmatch(name):
            return False
        return not any(each.fullmatch(name) for each in self._exclude)

    def may_be_below(self, folder: str) -> bool:
        """Say whether the glob could match names below a folder, which is relative to its source.

        It is asked of how deep they would lie, and no more: a look that goes too far costs time.
        """
        return self._parts is None or folder.strip("/").count("/") + 2 <= self._parts


def _most_parts(glob: str) -> int | None:
    """Return how many parts a name has at the most that a glob matches; None: any number."""
    if "**" in glob or "[" in glob:  # a range such as [+-9] has the slash
        return None
    return max(each.strip("/").count("/") + 1 for each in _without_braces(glob))


def lone_name(glob: str) -> str:
    """Return the one name that a glob can match; empty: it may match several."""
    return "" if any(sign in glob for sign in "*?[{") else glob.strip("/")


@lru_cache(maxsize=64)
def glob_pattern(glob: str) -> re.Pattern[str]:
    """Return what whole names must match: *, ?, [...] stay within a part, ** and {a,b} don't."""
    return re.compile("|".join(map(_pattern, _without_braces(glob))), re.DOTALL)


def _without_braces(glob: str) -> list[str]:
    """Return the globs that one with {a,b} stands for; of very many choices it is one as it is."""
    globs = [glob]
    while any(map(_CHOICE.search, globs)):
        globs = [chosen for each in globs for chosen in _chosen(each)]
        if len(globs) > MAX_CHOICES:
            return [glob]
    return globs


def _chosen(glob: str) -> list[str]:
    found = _CHOICE.search(glob)
    if found is None:
        return [glob]
    before, behind = glob[: found.start()], glob[found.end() :]
    return [f"{before}{choice}{behind}" for choice in found[1].split(",")]


def _pattern(glob: str) -> str:
    parts = [_part_pattern(part) for part in glob.strip("/").split("/")]
    if glob.endswith("**"):
        parts[-1] = r".+/"
    return "".join(parts).removesuffix("/")


def _part_pattern(part: str) -> str:
    if part == "**":
        return r"(?:[^/]+/)*"
    pieces: list[str] = []
    for piece in re.findall(r"\[!?\]?[^\]]*\]|.", part, re.DOTALL):
        if piece.startswith("[") and piece.endswith("]") and len(piece) > 2:
            inner = piece[1:-1].replace("\\", r"\\")
            pieces.append(f"[^/{inner[1:]}]" if inner.startswith("!") else f"[{inner}]")
        else:
            pieces.append({"*": "[^/]*", "?": "[^/]"}.get(piece) or re.escape(piece))
    return "".join(pieces) + "/"
