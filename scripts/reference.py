"""Write docs/reference: every command, setting, error and key, as the code itself has them.

The table of calls goes into docs/security.md, between its marks.

    make reference            writes the pages
    reference.py --check      changes nothing; exit 1 where a page is out of date

Owns the pages' form. Every word in them comes from where it is used: help texts, docstrings, hints.
"""

import argparse
import ast
import importlib
import inspect
import pkgutil
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import click

import jupiter_tui
from jupiter_tui.widgets.keys import MORE, Key
from jupiterd.cluster.health import health
from jupiterd.cluster.membership.call_rights import RIGHTS
from jupiterd.ctl import main as ctl
from jupiterd.daemon.app import main as daemon
from jupiterd.daemon.runtime import settings
from jupiterd.doctor import examination
from jupiterd.errors import BY_CODE, ExitCode, JupiterError

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "reference"
SECURITY = ROOT / "docs" / "security.md"
CALLS_BEGIN = "<!-- calls: made by scripts/reference.py: make reference -->"
CALLS_END = "<!-- end of calls -->"
COLUMNS = 90
MADE = "<!-- made by scripts/reference.py: make reference -->"


def commands_page() -> Iterator[str]:
    """Yield the help of every command of jupiterctl, and of jupiterd."""
    yield from _beginning("Commands", "What `--help` says of each, in one place.")
    for program, group in (("jupiterctl", ctl.cli), ("jupiterd", daemon.cli)):
        yield from _command(
            group, click.Context(group, info_name=program, **group.context_settings)
        )


def _command(command: click.Command, context: click.Context) -> Iterator[str]:
    context.terminal_width = context.max_content_width = COLUMNS
    yield from (f"## {context.command_path}", "", "```", *command.get_help(context).splitlines())
    yield from ("```", "")
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None and not below.hidden:
                yield from _command(below, click.Context(below, context, info_name=name))


def errors_page() -> Iterator[str]:
    """Yield every exit status, every error, every warning of the daemon and every check."""
    yield from _beginning("Errors", "What can go wrong, by its code, and what to do about it.")
    yield from ("## Exit statuses", "")
    meanings = _attribute_docs(ExitCode)
    yield from _table(
        ("status", "meaning"), [(int(code), meanings[code.name]) for code in ExitCode]
    )
    yield from ("## Errors", "", "As `jupiterctl: error: ...` or the failure of a cycle.", "")
    rows = [
        (f"`{code}`", int(error.exit_code), _meaning(error), error.default_hint)
        for code, error in sorted(BY_CODE.items())
    ]
    yield from _table(("code", "exit status", "meaning", "hint"), rows)
    yield from (
        "## Warnings",
        "",
        "Of `jupiterctl status`, as `health`, each with the time for which it has held.",
        "",
    )
    warnings = [
        (f"`{code}`", row.severity, row.title, row.hint) for code, row in health.TABLE.items()
    ]
    yield from _table(("code", "severity", "meaning", "hint"), warnings)
    yield from ("## Checks", "", "Of `jupiterctl doctor`; fixes depend on what is found.", "")
    checks = [(f"`{name}`", _looked_at(name)) for name in examination.CHECKS]
    yield from _table(("check", "what is looked at"), checks)


def _meaning(error: type[JupiterError]) -> str:
    return "Anything else." if error is JupiterError else _first_line(error)


def _looked_at(check: str) -> str:
    """Return the first line of the module that makes a check."""
    package = "jupiterd.doctor"
    for name in (check.replace("-", "_"), f"{check}_check", f"{check}_driver", "health"):
        if (ROOT / package.replace(".", "/") / f"{name}.py").exists():
            return _first_line(importlib.import_module(f"{package}.{name}"))
    raise LookupError(check)


def settings_page() -> Iterator[str]:
    """Yield every setting of the daemon."""
    said = "Of jupiterd: a flag, else a variable, else jupiter.yaml, else the default."
    yield from _beginning("Settings", said)
    flags = {option.name: option.opts[-1] for option in daemon.cli.params}
    meanings = _attribute_docs(settings.Settings)
    rows = [
        (
            f"`{each.name}`",
            f"`{flags[each.name]}`" if each.name in flags else "",
            f"`{settings.ENVIRONMENT_PREFIX}{each.name.upper()}`",
            _default(each.default),
            meanings[each.name],
        )
        for each in fields(settings.Settings)
    ]
    yield from _table(("in jupiter.yaml", "flag", "variable", "default", "meaning"), rows)


def _default(value: object) -> str:
    if value is MISSING:
        return "see its meaning"
    return "" if value in ("", ()) else f"`{value}`"


def keys_page() -> Iterator[str]:
    """Yield every key of the dashboard, by where it works."""
    yield from _beginning("Keys", "Of jupiter-tui. With --readonly those that change are missing.")
    for module in sorted(_modules(jupiter_tui), key=_is_screen):
        keys = list(dict.fromkeys(_keys_of(module)))
        if not keys:
            continue
        is_everywhere = module.__name__ == "jupiter_tui.widgets.keys"
        yield from (f"## {'Everywhere, or on lists' if is_everywhere else _screen(module)}", "")
        rows = [(f"`{key.shown}`", key.explanation, "yes" if key.changes else "") for key in keys]
        brought = [(f"`{shown}`", explanation, "") for shown, explanation in MORE]
        yield from _table(("key", "what it does", "changes"), rows + brought * is_everywhere)


def _is_screen(module: ModuleType) -> bool:
    return ".screens." in module.__name__


def _screen(module: ModuleType) -> str:
    return module.__name__.rpartition(".")[2].replace("_", " ").capitalize()


def _keys_of(module: ModuleType) -> Iterator[Key]:
    """Yield the keys that a module, or a class in it, names; not those that it imports."""
    is_keys = module.__name__ == "jupiter_tui.widgets.keys"
    held: list[object] = list(vars(module).values()) if is_keys else []
    classes = [c for c in vars(module).values() if inspect.isclass(c)]
    for each in classes:
        held += list(vars(each).values()) if each.__module__ == module.__name__ else []
    for value in held:
        if isinstance(value, Key):
            yield value
        elif isinstance(value, tuple):
            yield from (each for each in value if isinstance(each, Key))


def _modules(package: ModuleType) -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not found.name.endswith("__main__"):
            yield importlib.import_module(found.name)


def _beginning(title: str, said: str) -> Iterator[str]:
    yield from (f"# {title}", "", MADE, "", said, "")


def _table(headers: Sequence[str], rows: Sequence[Sequence[object]]) -> Iterator[str]:
    yield f"| {' | '.join(headers)} |"
    yield "|" + "---|" * len(headers)
    for row in rows:
        yield f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in row)} |"
    yield ""


def _first_line(thing: Any) -> str:  # noqa: ANN401 - a class or a module
    return (inspect.getdoc(thing) or "").partition("\n")[0]


def _attribute_docs(kind: type) -> Mapping[str, str]:
    """Return what stands below each attribute of a class, as one line."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    body = tree.body if isinstance(tree, ast.ClassDef) else []
    return {
        name: " ".join(str(below.value.value).split())
        for above, below in pairwise(body)
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
        for name in _assigned(above)
    }


def _assigned(statement: ast.stmt) -> list[str]:
    match statement:
        case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
            return [name]
        case _:
            return []


PAGES = {
    "commands.md": commands_page,
    "errors.md": errors_page,
    "settings.md": settings_page,
    "keys.md": keys_page,
}
"""Name of a page -> its lines."""


def security_page() -> str:
    """Return docs/security.md with who may call what, as the border and the services ask."""
    before, begin, rest = SECURITY.read_text(encoding="utf-8").partition(CALLS_BEGIN)
    _, end, after = rest.partition(CALLS_END)
    if not (begin and end):
        raise LookupError(f"{SECURITY} has no marks for the table of calls")
    rows = [(f"`{name}`", str(right.caller), right.said) for name, right in RIGHTS.items()]
    table = "\n".join(_table(("call", "who may", "with what"), rows))
    return f"{before}{begin}\n{table}{end}{after}"


def page(name: str) -> str:
    """Return a page's text."""
    return "\n".join(PAGES[name]()).rstrip() + "\n"


def stale() -> list[str]:
    """Return the pages that say something else than the code."""
    old = [name for name in PAGES if _written(name) != page(name)]
    return old + [SECURITY.name] * (SECURITY.read_text(encoding="utf-8") != security_page())


def _written(name: str) -> str:
    path = FOLDER / name
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def main() -> None:
    """Write the pages, or compare with --check."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 when stale")
    if parser.parse_args().check:
        if old := stale():
            sys.exit(f"out of date: {', '.join(old)}; run make reference")
        return
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in PAGES:
        (FOLDER / name).write_text(page(name), encoding="utf-8")
    SECURITY.write_text(security_page(), encoding="utf-8")


if __name__ == "__main__":
    main()
