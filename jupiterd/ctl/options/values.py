"""The values that a shell completes for parameters: names of domains, nodes, models, ...

Owns which values belong to which parameter name. If the daemon doesn't answer within
ANSWER_TIMEOUT_S, there are no values, because the user waits at the key. Doesn't know any command.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.types import StringParamType

from jupiterd.ctl.invocation import Invocation

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

ANSWER_TIMEOUT_S = 1.0

Values = Callable[[Path], Iterable[str]]


class NameParamType(StringParamType):
    """A click parameter type for names: completes known names, and accepts any text."""

    def __init__(self, values: Values, paths: str = "") -> None:
        """Store a function that returns the names; `paths`: `dir` or `file` if it may be a path."""
        self._values = values
        self._paths = paths

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> "list[CompletionItem]":
        """Return the names that begin with the text; the shell completes paths."""
        from click.shell_completion import CompletionItem

        if self._paths and incomplete[:1] in {".", "/", "~"}:
            return [CompletionItem(incomplete, type=self._paths)]
        at = incomplete.rfind(",") + 1 if param.name == "nodes" else 0  # a list of names
        invocation = ctx.find_object(Invocation) or Invocation()
        try:
            values = list(self._values(invocation.state_dir))
        except Exception:  # noqa: BLE001 - a completion shows no errors
            values = []
        fitting = [each for each in values if each.startswith(incomplete[at:])]
        return [CompletionItem(incomplete[:at] + each) for each in dict.fromkeys(fitting)]


def complete_values(params: Iterable[click.Parameter]) -> None:
    """Set the type of a command's parameters whose names have values."""
    for param in params:
        if param.name in _OF and type(param.type) is StringParamType:
            param.type = _OF[param.name]


def _rows(state_dir: Path, noun: str, key: str = "") -> list[dict[str, Any]]:
    from jupiterd.client.question import answer_to

    document = answer_to(noun, state_dir, ANSWER_TIMEOUT_S) or {}
    return list(document.get(key or noun) or ())


def _domains(_: Path) -> Iterable[str]:
    from jupiterd.ctl.sources.domain_files import own_domains, shipped_domains

    return [*own_domains(), *shipped_domains()]


def _sizes(_: Path) -> Iterable[str]:
    from jupiterd.locations import config_folder

    return sorted(path.stem for path in (config_folder() / "models").glob("*.yaml"))


def _nodes(state_dir: Path) -> Iterable[str]:
    return [str(row["name"]) for row in _rows(state_dir, "status", "nodes")]


def _nodes_or_all(state_dir: Path) -> Iterable[str]:
    return ["all", *_nodes(state_dir)]


def _models(state_dir: Path) -> Iterable[str]:
    return [str(row["name"]) for row in _rows(state_dir, "models")]


def _served_models(state_dir: Path) -> Iterable[str]:
    return ["promoted", "base", *_models(state_dir)]


def _cycles(state_dir: Path) -> Iterable[str]:
    from jupiterd.ids import short

    return [short(str(row["id"])) for row in _rows(state_dir, "cycles")]


def _data(state_dir: Path) -> Iterable[str]:
    return [str(row["name"]) for row in _rows(state_dir, "data")]


def _languages(_: Path) -> Iterable[str]:
    from jupiterd.cycle.text_rules.languages import CODE, NATURAL, PROGRAMMING

    return [*sorted(NATURAL), *sorted(CODE + each for each in PROGRAMMING)]


def _none(_: Path) -> Iterable[str]:
    return ()


SERVED_MODEL = NameParamType(_served_models, "dir")
"""A model that is asked for an answer: two names more are known."""

_OF: Mapping[str, NameParamType] = {
    "beside": SERVED_MODEL,
    "domain": NameParamType(_domains, "file"),
    "size": NameParamType(_sizes),
    "node": NameParamType(_nodes),
    "nodes": NameParamType(_nodes_or_all),
    "model": NameParamType(_models, "dir"),
    "cycle": NameParamType(_cycles),
    "run": NameParamType(_data),
    "data": NameParamType(_data, "dir"),
    "language": NameParamType(_languages),
    "generator": NameParamType(_none, "dir"),
    "init": NameParamType(_none, "dir"),
    "source": NameParamType(_none, "dir"),
}
"""Name of a parameter -> its type."""
