"""Every line of shell in the README and the quick start is run: here, or where the table says.

One daemon serves all of them. Settings come by variables, so that the lines stay as they are
written; what would take minutes is only ordered (`--dry-run`) here, and run whole elsewhere.
"""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, Block, blocks
from tests.support.daemons.surroundings import own_network
from tests.support.warm_program import JUPITERCTL, run_program

BIN = Path(sys.executable).parent
PAGES = (ROOT / "README.md", ROOT / "docs" / "quickstart.md")
TRIES = 200
TIMEOUT_S = 60
TEXT = "# A page\n\nThis is a sentence of a page, and there is another one behind it.\n" * 20


@dataclass(frozen=True)
class Here:
    """A line that is run by this test, beside a daemon."""

    more: str = ""
    """Put behind it."""
    shows: str = ""
    """What it must print."""


@dataclass(frozen=True)
class Elsewhere:
    """A line that this test doesn't run, why not, and who does."""

    why: str
    by: str
    """A file of the repository."""
    holds: str
    """What that file says in the place where it is run."""


DEMO = Elsewhere("takes minutes", "Makefile", "scripts/demo.py")
TERMINAL = Elsewhere("needs a terminal", "tests/support/tui/terminal.py", "jupiter-tui")
INSTALLER = Elsewhere("installs", "tests/install/test_script.py", "test_a_checkout_is_installed")
REMOVAL = Elsewhere("removes", "tests/install/test_script.py", '"--uninstall"')
CYCLE = Elsewhere("needs a cycle that has ended", "tests/e2e/cycle/test_cycle.py", '"explain"')

CHAT = "tests/unit/ctl/chat/test_at_a_terminal.py"
EXPORT = Elsewhere(
    "needs a model", "tests/unit/ctl/model/test_model.py", '"export", "python", "--to"'
)
FIRST = (
    "git clone REPOSITORY jupiter '&&' cd jupiter '&&' make setup '&&' "
    "export 'PATH=$PWD/.venv/bin:$PATH'"
)

DONE: dict[str, Here | Elsewhere] = {
    FIRST: Elsewhere("needs the repository's address", ".ci/run", "make test"),
    "make demo": DEMO,
    "make test": Elsewhere("is what runs this", ".ci/run", "make test"),
    "make setup": Elsewhere("installs", "Makefile", "test: setup"),
    "export 'PATH=$PWD/.venv/bin:$PATH'": Here(),
    "jupiterd --local": Elsewhere("is served by the same daemon", "scripts/demo.py", '"--local"'),
    "installers/install.sh": INSTALLER,
    "installers/install.sh --uninstall": REMOVAL,
    "jupiterd": Here(),
    "jupiterd --peer 192.168.1.20": Elsewhere(
        "speaks to another machine", "tests/network/test_no_multicast.py", "--peer"
    ),
    "jupiterd service install": Here("--print", "jupiterd"),
    "jupiterctl status": Here(shows="led by"),
    "jupiterctl doctor": Elsewhere(
        "looks at the machine that tests", "tests/network/test_doctor.py", '"doctor"'
    ),
    "jupiterctl cycle plan --domain python --rounds 2": Here(shows="round 1"),
    "jupiterctl cycle start --domain python --rounds 2 --wait": Here("--dry-run", "rounds: 2"),
    "jupiterctl cycle status": Here(shows="no cycle has been started"),
    "jupiterctl cycle explain": CYCLE,
    "jupiterctl model list": Here(shows="no model has been trained yet"),
    "jupiterctl train start --data ./texts --model 1m --seq-len 256 --max-steps 200 --wait": Here(
        "--dry-run", "max_steps"
    ),
    "jupiterctl model chat": Elsewhere("needs a model", CHAT, "chat_terminal(state_dir"),
    "jupiterctl model chat python/2 --beside base": Elsewhere("needs a model", CHAT, '"--beside"'),
    "jupiterctl model chat 'def fibonacci(n):'": Elsewhere("needs a model", CHAT, '"hi there"'),
    "jupiterctl model serve": Elsewhere(
        "needs a model", "tests/e2e/serving/test_endpoint_of_a_daemon.py", "served_command(daemon"
    ),
    "jupiterctl model eval python/2 --beside base": Elsewhere(
        "needs a model",
        "tests/unit/ctl/model/test_model_held_out.py",
        '"python/2", "--beside", "base"',
    ),
    "jupiterctl model export python --to ./my-model": EXPORT,
    "jupiter-tui": TERMINAL,
    "jupiter-tui --state-dir .demo/node-1": TERMINAL,
    "jupiterctl domain new my_field --from '~/my_documents'": Here(
        shows="my_field.yaml is written"
    ),
    "jupiterctl domain lint my_field": Here(shows="can this be judged? yes"),
    "jupiterctl cycle plan --domain my_field": Here(shows="verdict   yes"),
    "jupiterctl cycle start --domain my_field --rounds 2 --wait": Here("--dry-run", "rounds: 2"),
    "jupiterctl cycle start --domain my_field": Here("--dry-run", "my_field"),
}


def lines_of(block: Block) -> list[str]:
    """Return the commands of a block, without comments."""
    return [shlex.join(words) for line in block.text.splitlines() if (words := words_of(line))]


def words_of(line: str) -> list[str]:
    return shlex.split(line, comments=True)


WRITTEN = [
    line
    for page in PAGES
    for block in blocks(page)
    if block.language == "sh"
    for line in lines_of(block)
]


def test_every_line_is_in_the_table_and_none_too_many():
    assert set(WRITTEN) == set(DONE)


@pytest.mark.parametrize(
    "elsewhere",
    [how for how in DONE.values() if isinstance(how, Elsewhere)],
    ids=lambda how: how.by,
)
def test_what_is_run_elsewhere_is_run_there(elsewhere):
    assert elsewhere.holds in (ROOT / elsewhere.by).read_text()


@dataclass(frozen=True)
class Desk:
    """Where somebody sits who reads the pages."""

    folder: Path
    prefix: tuple[str, ...]
    environment: dict[str, str]

    def run(self, line: str) -> subprocess.CompletedProcess[str]:
        """Type a line; jupiterctl is forked while warm, where that can be."""
        words = shlex.split(line)
        if words[0] == JUPITERCTL.name:
            command = [*self.prefix, JUPITERCTL, *words[1:]]
            return run_program(command, TIMEOUT_S, self.folder, self.environment)
        return subprocess.run(
            [*self.prefix, "bash", "-ec", line],
            capture_output=True,
            text=True,
            cwd=self.folder,
            env=self.environment,
            timeout=TIMEOUT_S,
            check=False,
        )

    def is_led(self) -> bool:
        """Say whether the daemon has a leader by now: what changes something needs one."""
        return '"leader": "' in self.run("jupiterctl status -o json").stdout


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory, fork_server: None) -> Iterator[Desk]:
    """Return a folder with text in it, a daemon beside it, and the programs on the path."""
    folder = tmp_path_factory.mktemp("desk")
    home = folder / "home"
    (folder / "texts").mkdir()
    (folder / "texts" / "page.md").write_text(TEXT)
    (home / "my_documents").mkdir(parents=True)
    library = Path(sysconfig.get_paths()["stdlib"])
    for module in [path for path in library.glob("*.py") if path.stat().st_size > 4_000][:90]:
        shutil.copy(module, home / "my_documents")
    environment = os.environ | {
        "HOME": str(home),
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "JUPITER_STATE_DIR": str(folder / "state"),
        "JUPITER_LOCAL": "true",
        "JUPITER_PORT": "0",
    }
    with own_network() as prefix, (folder / "jupiterd.log").open("wb") as log:
        at = Desk(folder, tuple(prefix), environment)
        daemon = subprocess.Popen(
            [*prefix, "jupiterd"], stdout=log, stderr=log, cwd=folder, env=environment
        )
        try:
            assert any(at.is_led() for _ in range(TRIES))
            yield at
        finally:
            daemon.send_signal(signal.SIGTERM)
            daemon.wait(TIMEOUT_S)
    assert daemon.returncode == 0


@pytest.mark.full
@pytest.mark.timeout(240)  # six of the lines look at sources, for up to ten seconds each
def test_every_line_does_what_the_pages_say(desk):
    for line, how in DONE.items():
        if isinstance(how, Elsewhere) or line == "jupiterd":
            continue
        ran = desk.run(f"{line} {how.more}")
        assert ran.returncode == 0, f"{line}: {ran.stderr}"
        assert how.shows in ran.stdout, f"{line}: {ran.stdout}"
