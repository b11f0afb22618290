import subprocess
import sys
from pathlib import Path

import pytest

from jupiter_tui.main import run
from jupiter_tui.widgets.keys import KEYS, help_lines

ROOT = Path(__file__).parent.parent.parent


def _python(program: str) -> str:
    done = subprocess.run(
        (sys.executable, "-c", program), capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_without_a_terminal_it_says_so_and_what_to_do_instead(capsys):
    assert run([]) == 2
    assert capsys.readouterr().err == (
        "jupiter-tui: error: the dashboard needs a terminal, and this isn't one\n"
        "\n"
        "hint: jupiterctl status, or jupiterctl cycle watch, write lines instead\n"
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--refresh", "0"], "'--refresh'"),
        (["--refresh", "often"], "'often' is not a number"),
        (["--xyzzy"], "no such option"),
        (["cluster"], "unexpected extra argument"),
    ],
)
def test_a_wrong_command_line_is_one_line_and_a_hint(arguments, words, capsys):
    assert run(arguments) == 2
    error = capsys.readouterr().err.splitlines()
    assert error[0].startswith("jupiter-tui: error: ")
    assert words in error[0]
    assert error[1:] == ["", "hint: jupiter-tui --help"]


def test_help_names_every_option_and_key(capsys):
    assert run(["--help"]) == 0
    text = capsys.readouterr().out
    for word in ("--state-dir", "--readonly", "--ascii", "--refresh", "NO_COLOR", "q quit"):
        assert word in text


def test_help_is_shown_without_loading_what_draws():
    program = (
        "import sys; from jupiter_tui.main import run; run(['--help']); "
        "print(*sorted({'textual', 'rich', 'grpc', 'asyncio.runners'} & set(sys.modules)))"
    )
    assert _python(program).splitlines()[-1].strip() in {"", "asyncio.runners"}


@pytest.mark.parametrize("package", ["jupiterd.daemon.app.main", "jupiterd.ctl.main"])
def test_nobody_else_loads_the_dashboard(package):
    program = (
        f"import sys, {package}; "
        "print(*sorted({'textual', 'rich', 'jupiter_tui'} & set(sys.modules)))"
    )
    assert _python(program) == ""


def test_drawings_are_made_without_textual():
    program = (
        "import importlib, pkgutil, sys; import jupiter_tui.drawings as package\n"
        "for found in pkgutil.iter_modules(package.__path__, package.__name__ + '.'):\n"
        "    importlib.import_module(found.name)\n"
        "print('textual' in sys.modules)"
    )
    assert _python(program) == "False"


def test_the_readme_and_the_help_name_the_same_keys():
    readme = (ROOT / "README.md").read_text()
    for key in KEYS:
        names = " or ".join(f"`{name}`" for name in key.shown.split(" or "))
        assert f"| {names} | " in readme
        assert any(key.shown in text for text in help_lines())
