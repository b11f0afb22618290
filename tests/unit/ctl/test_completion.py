"""What shells are told of the commands."""

import os
import subprocess
import sys

import pytest

from jupiterd.ctl.completion import VARIABLE
from jupiterd.ctl.main import COMMANDS
from jupiterd.ctl.sources.domain_files import shipped_domains
from tests.support.ctl.documents import STATUS

KEPT = ("JUPITER_STATE_DIR", "HOME")

ASK = (sys.executable, "-c", "import sys; from jupiterd.ctl.main import run; run([])")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_gets_its_script(ctl, shell: str):
    ran = ctl("completion", shell)
    assert (ran.exit_code, ran.err) == (0, "")
    assert f"{VARIABLE}={shell}_complete" in ran.out
    assert "jupiterctl" in ran.out


def test_another_shell_is_refused(ctl):
    assert ctl("completion", "tcsh").exit_code == 2


def asked(words: str, position: int, program: tuple[str, ...] = ASK) -> list[str]:
    """Return what may follow, as bash asks for it."""
    environment = {"COMP_WORDS": words, "COMP_CWORD": str(position), VARIABLE: "bash_complete"}
    environment |= {name: os.environ[name] for name in KEPT if name in os.environ}
    done = subprocess.run(
        program, env=environment, capture_output=True, text=True, check=False, timeout=30
    )
    assert done.returncode == 0, done.stderr
    return [line.partition(",")[2] for line in done.stdout.splitlines() if line]


def test_commands_verbs_and_options_are_completed():
    assert asked("jupiterctl ", 1) == list(COMMANDS)
    assert asked("jupiterctl mo", 1) == ["model", "monitor"]
    assert "approve" in asked("jupiterctl node ", 2)
    assert "--rounds" in asked("jupiterctl cycle start --r", 3)


def test_no_command_is_imported_to_complete_its_name():
    program = (
        "import atexit, sys; from jupiterd.ctl.main import run; "
        "atexit.register(lambda: print('plain,' + str('jupiterd.ctl.node.group' in sys.modules))); "
        "run([])"
    )
    assert asked("jupiterctl no", 1, (sys.executable, "-c", program)) == ["node", "False"]


def test_values_are_completed_where_nothing_need_be_asked():
    assert asked("jupiterctl cycle start --domain ", 4) == list(shipped_domains())
    assert "1m" in asked("jupiterctl cycle plan --size ", 4)
    assert asked("jupiterctl domain lint che", 3) == ["chemistry"]
    assert asked("jupiterctl domain new mine --language code:rus", 5) == ["code:rust"]


def test_a_domain_of_this_folder_comes_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text("version: 1\ndata_sources: []\n")
    (tmp_path / "other.yaml").write_text("services: {}\n")
    assert asked("jupiterctl cycle start --domain ", 4) == ["mine", *shipped_domains()]


def test_values_that_the_daemon_knows_are_completed(daemon, state_dir, monkeypatch):
    monkeypatch.setenv("JUPITER_STATE_DIR", str(state_dir))
    daemon.documents["cycles"] = {"schema": "jupiter/v1", "cycles": [{"id": "5dab00c0ffee0000"}]}
    daemon.documents["models"] = {"schema": "jupiter/v1", "models": [{"name": "python/2"}]}
    assert asked("jupiterctl model chat --beside ", 4) == ["promoted", "base", "python/2"]
    assert asked("jupiterctl model chat p", 3) == ["promoted", "python/2"]
    names = [node["name"] for node in STATUS["nodes"]]
    assert asked("jupiterctl node show ", 3) == names
    assert asked(f"jupiterctl train start --nodes {names[0]},", 4) == [
        f"{names[0]},{name}" for name in ("all", *names)
    ]
    assert asked("jupiterctl cycle pause ", 3) == ["5dab00c0"]
    assert asked("jupiterctl model show py", 3) == ["python/2"]


def test_without_a_daemon_no_value_is_known_and_nothing_is_said(state_dir, monkeypatch):
    monkeypatch.setenv("JUPITER_STATE_DIR", str(state_dir))
    assert asked("jupiterctl node show ", 3) == []
