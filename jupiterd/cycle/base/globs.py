"""Which names of files a glob matches: the same for whoever collects and whoever only looks.

Pure. Owns the form of globs. Doesn't know folders, or how names are found.
"""

import re
from functools import lru_cache


@lru_cache(maxsize=64)
def glob_pattern(glob: str) -> re.Pattern[str]:
    """Return what whole names must match: *, ?, [...], {a,b} stay within a part, ** doesn't."""
    parts = [_part_pattern(part) for part in glob.strip("/").split("/")]
    if glob.endswith("**"):
        parts[-1] = r".+/"
    return re.compile("".join(parts).removesuffix("/"), re.DOTALL)


def _part_pattern(part: str) -> str:
    if part == "**":
        return r"(?:[^/]+/)*"
    pieces: list[str] = []
    for piece in re.findall(r"\[!?\]?[^\]]*\]|\{[^{},]*(?:,[^{},]*)+\}|.", part, re.DOTALL):
        if piece.startswith("[") and piece.endswith("]") and len(piece) > 2:
            inner = piece[1:-1].replace("\\", r"\\")
            pieces.append(f"[^/{inner[1:]}]" if inner.startswith("!") else f"[{inner}]")
        elif piece.startswith("{") and len(piece) > 1:
            choices = map(re.escape, piece[1:-1].split(","))
            pieces.append(f"(?:{'|'.join(choices)})")
        else:
            pieces.append({"*": "[^/]*", "?": "[^/]"}.get(piece) or re.escape(piece))
    return "".join(pieces) + "/"
