"""Rules of the house that no linter knows."""

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

from jupiterd import errors
from jupiterd.errors import BY_CODE, ExitCode, JupiterError

ROOT = Path(__file__).parent.parent.parent
PACKAGES = ("jupiterd", "jupiter_tui", "scripts")
MODULES = sorted(
    path
    for package in PACKAGES
    for path in (ROOT / package).rglob("*.py")
    if "rpc" not in path.relative_to(ROOT).parts
)

MAX_LINES = 500
FRONT_DOORS = {"main", "app", "server", "node", "wiring", "__main__"}
MAX_FRONT_DOOR_LINES = 250
MAX_MODULES = 25
VAGUE = {"utils", "util", "helpers", "helper", "common", "misc", "manager", "managers"}

GRPC_STATUSES = {
    "UNKNOWN", "INVALID_ARGUMENT", "UNAVAILABLE", "DEADLINE_EXCEEDED", "PERMISSION_DENIED",
    "NOT_FOUND", "FAILED_PRECONDITION", "DATA_LOSS", "RESOURCE_EXHAUSTED", "ABORTED",
}  # fmt: skip


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        (sys.executable, *arguments), cwd=ROOT, capture_output=True, text=True, check=False
    )


def test_no_module_is_over_500_lines_and_no_front_door_over_250():
    sizes = {path: len(path.read_text().splitlines()) for path in MODULES}
    caps = {
        path: MAX_FRONT_DOOR_LINES if path.stem in FRONT_DOORS else MAX_LINES for path in MODULES
    }
    assert {str(path): size for path, size in sizes.items() if size > caps[path]} == {}


def _folders(*roots: str) -> set[Path]:
    return {path.parent for root in roots for path in (ROOT / root).rglob("*.py")} - {
        ROOT / "jupiterd" / "rpc"
    }


def test_no_folder_holds_more_than_25_modules():
    folders = _folders("jupiterd", "jupiter_tui", "tests")
    counts = {
        path: sum(1 for each in path.glob("*.py") if each.stem != "__init__") for path in folders
    }
    assert len(folders) > 100
    assert {str(path): count for path, count in counts.items() if count > MAX_MODULES} == {}


def test_no_package_imports_a_module():
    """What is imported stands in one place: the module that owns it."""
    packages = [path / "__init__.py" for path in _folders("jupiterd", "jupiter_tui")]
    assert all(path.is_file() for path in packages)
    importing = [path for path in packages if _imports(path)]
    assert importing == []


def _imports(path: Path) -> list[ast.stmt]:
    tree = ast.walk(ast.parse(path.read_text()))
    return [node for node in tree if isinstance(node, ast.Import | ast.ImportFrom)]


def test_no_module_has_a_name_that_says_nothing():
    vague = [path for path in MODULES if VAGUE & set(path.stem.split("_"))]
    assert vague == []


def test_the_schema_of_documents_is_named_in_one_place():
    naming = [path.name for path in MODULES if '= "jupiter/v1"' in path.read_text()]
    assert naming == ["document_schema.py"]


def test_no_module_asks_pythons_own_table_of_address_ranges():
    """It differs from one patch release to the next; ours is `address_ranges`."""
    kinds = "private|global|loopback|link_local|multicast|reserved|unspecified"
    texts = {path.name: path.read_text() for path in MODULES}
    asked = re.compile(rf"(?<!address_ranges)\.is_({kinds})\b")
    assert [name for name, t in texts.items() if "import ipaddress" in t and asked.search(t)] == []


def test_every_module_says_what_it_owns():
    silent = [path for path in MODULES if not path.read_text().lstrip().startswith('"""')]
    assert silent == []


@pytest.mark.parametrize("error", BY_CODE.values(), ids=lambda error: error.__name__)
def test_every_error_has_a_code_a_hint_and_an_explanation(error: type[JupiterError]):
    assert error.code == error.code.lower()
    assert error.default_hint
    assert not error.default_hint.endswith(".")
    assert inspect.getdoc(error)
    assert error.grpc_status in GRPC_STATUSES
    assert error.exit_code is not ExitCode.OK
    assert error("what").hint == error.default_hint
    assert error("what", "do this").hint == "do this"


def test_no_two_errors_share_a_code():
    def tree(kind: type[JupiterError]) -> list[type[JupiterError]]:
        return [kind, *(below for child in kind.__subclasses__() for below in tree(child))]

    ours = [kind for kind in tree(JupiterError) if kind.__module__.startswith("jupiterd")]
    assert len({kind.code for kind in ours}) == len(ours)
    form, *named = ours
    assert form.__module__ == "jupiterd.protocol.error_form"
    parts = {
        "jupiterd.errors",
        "jupiterd.protocol.artifact_errors",
        "jupiterd.protocol.serving_errors",
    }
    assert {kind.__module__ for kind in named} == parts
    assert all(getattr(errors, kind.__name__) is kind for kind in named)


def _imported_by(package: str, forbidden: tuple[str, ...]) -> str:
    """Return which of `forbidden` a fresh interpreter holds after importing a whole package."""
    program = (
        "import importlib, pkgutil, sys\n"
        f"package = importlib.import_module({package!r})\n"
        "for found in pkgutil.walk_packages(package.__path__, package.__name__ + '.'):\n"
        "    if not found.name.endswith('__main__'):\n"
        "        importlib.import_module(found.name)\n"
        f"print(*sorted(set({forbidden!r}) & set(sys.modules)))\n"
    )
    done = _run("-c", program)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


MACHINE_LEARNING = ("torch", "mlx", "mlx_lm", "transformers", "tokenizers", "safetensors", "numpy")


@pytest.mark.parametrize(
    ("package", "forbidden"),
    [
        ("jupiterd.ctl", (*MACHINE_LEARNING, "textual", "zeroconf", "psutil", "jupiterd.daemon")),
        ("jupiterd.client", (*MACHINE_LEARNING, "textual", "zeroconf", "psutil", "click")),
        ("jupiterd.daemon", (*MACHINE_LEARNING, "textual")),
    ],
)
def test_nothing_heavy_comes_along(package: str, forbidden: tuple[str, ...]):
    assert _imported_by(package, forbidden) == ""


def test_the_generated_code_is_current():
    done = _run("scripts/generate_rpc.py", "--check")
    assert done.returncode == 0, done.stderr


def test_every_path_imports_only_what_its_floor_allows():
    program = (
        "import sys; from importlinter.cli import lint_imports; "
        "sys.exit(lint_imports(no_cache=True))"
    )
    done = _run("-c", program)
    assert done.returncode == 0, done.stdout
