"""Commands of Jupiter in the strings of its own code, such as hints, and whether they exist.

Owns finding them, as far as a string goes: what fills a hole of it is known to nobody here. Its own
docstrings are read where click shows them.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click

from tests.docs.command_lines import PROGRAMS

HOLE = "\0"
"""What stands in a text for a value that is filled in."""

_BEGINS = re.compile(rf"(?<![\w./-])({'|'.join(PROGRAMS)}) (?=\S)")
_ENDS = re.compile(r"[;|&\n]|, | \(|\) |: |\. ")
"""After these something else than the command is told."""
_VERBS = {"gives", "of"}
"""What sentences say of jupiterctl itself."""

_OPTION = re.compile(r"--[a-z][a-z-]*")


def texts_of(source: str) -> Iterator[tuple[int, str]]:
    """Yield each text of some code with its line, docstrings of commands among them."""
    tree = ast.parse(source)
    hidden = set(_docstrings_of_no_command(tree))
    hidden |= {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)
             for part in node.values}  # fmt: skip
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield node.lineno, "".join(map(_part, node.values))
        elif isinstance(node, ast.Constant) and id(node) not in hidden:
            yield node.lineno, node.value if isinstance(node.value, str) else ""


def _part(node: ast.expr) -> str:
    return str(node.value) if isinstance(node, ast.Constant) else HOLE


_OWNERS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def _docstrings_of_no_command(tree: ast.AST) -> Iterator[int]:
    """Yield the ids of texts that stand for themselves, but those that click shows as help."""
    for node in ast.walk(tree):
        is_shown = isinstance(node, ast.FunctionDef) and any(
            "command" in ast.unparse(each) or "group" in ast.unparse(each)
            for each in node.decorator_list
        )
        for below in ast.iter_child_nodes(node):
            if isinstance(below, ast.Expr) and not (isinstance(node, _OWNERS) and is_shown):
                yield id(below.value)


def spoken(text: str) -> Iterator[list[str]]:
    """Yield each command that a text names, as words: up to where it speaks of something else."""
    for found in _BEGINS.finditer(text):
        rest = text[found.end() :]
        end = _ENDS.search(rest + " ")
        words = rest[: end.start() if end else None].split()
        yield [found[1], *(word.strip("'\"`,.:)") for word in words)]


def missing(words: list[str]) -> str:
    """Return what a command names that its program hasn't; empty where it has all of it."""
    command, options, rest = PROGRAMS[words[0]], set[str](), list(_until_foreign(words[1:]))
    called = ""
    while True:
        options |= {name for each in command.params for name in (*each.opts, *each.secondary_opts)}
        if not isinstance(command, click.Group):
            break
        rest = _without_options(command, rest)
        if not rest or _is_open(rest[0]) or rest[0] in _VERBS:
            break
        below = command.get_command(click.Context(command), rest[0])
        if below is None and (words[0] != "jupiterctl" or called == "launch"):
            return ""  # "jupiterd answers", or "launch python": no command that lacks
        if below is None:
            return f"no command {rest[0]!r} in: {' '.join(words)}".replace(HOLE, "{}")
        command, called, rest = below, rest[0], rest[1:]
    if isinstance(command, click.Group):
        return ""
    known = options | {"--help", "--yes"}
    asked = [found[0] for word in rest if (found := _OPTION.match(word))]
    wrong = [option for option in asked if option not in known]
    return f"no option {wrong[0]} in: {' '.join(words)}".replace(HOLE, "{}") if wrong else ""


def _without_options(group: click.Group, words: list[str]) -> list[str]:
    """Return what follows the options that stand before a command."""
    flags = {name for each in group.params if getattr(each, "is_flag", False) for name in each.opts}
    while words and words[0].startswith("-"):
        words = words[1 if words[0] in flags or "=" in words[0] else 2 :]
    return words


def _until_foreign(words: list[str]) -> Iterator[str]:
    """Yield the words that are this program's own: after `--` another one's follow."""
    for word in words:
        if word == "--":
            return
        yield word


def _is_open(word: str) -> bool:
    """Say whether a word is none that is typed so: a hole, a name in capitals, dots."""
    return not word or HOLE in word or not word[0].isalpha() or word.isupper()


def speaking_code(root: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each file of the product that may name a command."""
    for path in sorted([*root.glob("jupiterd/**/*.py"), *root.glob("jupiter_tui/**/*.py")]):
        if _BEGINS.search(source := path.read_text("utf-8")):
            yield str(path.relative_to(root)), source
