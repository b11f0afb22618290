"""The images, as far as can be told without an engine; the entry point runs for real."""

import json
import os
import re
import runpy
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from jupiterd.ctl.main import COMMANDS
from jupiterd.daemon.runtime.settings import Settings
from tests.docs.command_lines import trouble
from tests.docs.pages import ROOT, blocks
from tests.docs.test_commands import parses
from tests.support.daemons.surroundings import own_network

FOLDER = ROOT / "installers" / "docker"
DOCKERFILE = FOLDER / "Dockerfile"
ENTRYPOINT = FOLDER / "entrypoint.py"
BIN = Path(sys.executable).parent
COMPOSE = YAML(typ="safe").load((FOLDER / "compose.yaml").read_text())
SERVICES = COMPOSE["services"]
WITH_GPUS = YAML(typ="safe").load((FOLDER / "compose.gpu.yaml").read_text())["services"]
RULES = runpy.run_path(str(ENTRYPOINT))
TIMEOUT_S = 60

KEYS = {
    "network_mode", "restart", "stop_grace_period", "environment", "volumes", "shm_size",
    "cap_drop", "security_opt", "image", "build",
}  # fmt: skip
"""Of a service, as Compose's specification names them; another one is a slip of the pen."""


@dataclass(frozen=True)
class Step:
    """One instruction of the Dockerfile."""

    stage: str
    word: str
    rest: str


def steps() -> list[Step]:
    """Return the instructions, continued lines joined."""
    text = re.sub(r"^#.*\n", "", DOCKERFILE.read_text(), flags=re.MULTILINE)
    found: list[Step] = []
    stage = ""
    for line in text.replace("\\\n", " ").splitlines():
        if not line.strip():
            continue
        word, rest = line.split(maxsplit=1)
        stage = rest.rpartition(" AS ")[2] if word == "FROM" else stage
        found.append(Step(stage, word, rest))
    return found


STEPS = steps()


def of(word: str) -> list[Step]:
    return [step for step in STEPS if step.word == word]


def line_of_stages(target: str) -> list[str]:
    """Return the stages that a target is built upon, itself the last."""
    bases = {step.stage: step.rest.split()[0] for step in of("FROM")}
    line = [target]
    while bases.get(line[0]) in bases:
        line.insert(0, bases[line[0]])
    return line


@pytest.mark.parametrize("step", of("COPY"), ids=lambda step: step.rest)
def test_everything_that_is_copied_is_there_and_not_left_out(step):
    words = [word for word in step.rest.split() if not word.startswith("--")]
    if "--from=" in step.rest:
        assert re.search(r"--from=(\S+)", step.rest)[1] in {other.stage for other in STEPS}
        return
    for source in words[:-1]:
        assert (ROOT / source).exists()
        assert source in let_in(), f"{source} is left out by Dockerfile.dockerignore"


def let_in() -> list[str]:
    lines = (FOLDER / "Dockerfile.dockerignore").read_text().splitlines()
    assert "*" in lines
    return [line[1:] for line in lines if line.startswith("!")]


def test_nothing_is_let_in_that_nobody_copies():
    copied = " ".join(step.rest for step in of("COPY"))
    assert [path for path in let_in() if path not in copied] == []


@pytest.mark.parametrize("step", of("RUN"), ids=lambda step: step.rest[:40])
def test_every_step_is_shell(step):
    assert parses(re.sub(r"--mount=\S+", "", step.rest))


@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_an_image_runs_as_a_user_without_rights_and_looks_after_its_health(target):
    line = line_of_stages(target)
    mine = [step for step in STEPS if step.stage in line]
    users = [step.rest for step in mine if step.word == "USER"]
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", users[-1])
    [health] = [step.rest for step in mine if step.word == "HEALTHCHECK"]
    command = json.loads(health[health.index("[") :])
    assert command == ["jupiterctl", "status", "--check", "--node", "self"]
    assert trouble(command) == ""
    assert "libopenblas0-pthread" in " ".join(step.rest for step in mine)


def test_the_installer_understands_what_an_image_asks_of_it(tmp_path):
    asked = [words for step in of("RUN") for words in installs(step.rest)]
    assert [words[words.index("--extra") + 1] for words in asked] == ["cpu", "nvidia"]
    for words in asked:
        here = [word.replace("/source", str(ROOT)).replace("/opt", str(tmp_path)) for word in words]
        done = subprocess.run(
            ["sh", ROOT / "installers" / "install.sh", "--dry-run", *here],
            capture_output=True,
            text=True,
            env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
            timeout=TIMEOUT_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert f"programs     {tmp_path}/bin" in done.stdout
        assert f"environment  {tmp_path}/share/jupiter/environment" in done.stdout


def test_the_programs_of_an_image_lie_where_its_path_and_its_entry_point_look():
    environment = "/opt/share/jupiter/environment/bin/python"
    assert ENTRYPOINT.read_text().startswith(f"#!{environment}\n")
    assert sum(f"{environment} -m pip" in step.rest for step in of("RUN")) == 2
    assert of("ENV")[0].rest.startswith("PATH=/opt/bin:$PATH")


def installs(shell: str) -> Iterator[list[str]]:
    for part in shell.split("&&"):
        if "install.sh" in part:
            words = shlex.split(part)
            yield words[words.index("installers/install.sh") + 1 :]


def test_variables_of_image_and_services_are_settings():
    known = {f"JUPITER_{name.upper()}" for name in Settings.__dataclass_fields__}
    image = re.findall(r"\b(JUPITER_[A-Z_]+)=", " ".join(step.rest for step in of("ENV")))
    assert image == ["JUPITER_STATE_DIR"]
    for service in SERVICES.values():
        ours = {name for name in service["environment"] if name.startswith("JUPITER_")}
        assert ours <= known


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_is_on_the_hosts_network_with_its_state_on_a_volume(name):
    service = SERVICES[name]
    assert set(service) <= KEYS
    assert service["network_mode"] == "host"
    assert service["build"]["target"] in {step.stage for step in STEPS}
    build = (FOLDER / service["build"]["context"]).resolve()
    assert build / service["build"]["dockerfile"] == DOCKERFILE
    volumes = dict(volume.rsplit(":", 1) for volume in service["volumes"][:2])
    assert set(volumes) == set(COMPOSE["volumes"])
    kept = json.loads(of("VOLUME")[0].rest)
    assert list(volumes.values()) == kept
    state = next(s.rest for s in of("ENV")).split("JUPITER_STATE_DIR=")[1].split()[0]
    assert state == volumes["jupiter-state"]


def test_compose_needs_no_profile_and_reads_folders_of_the_host():
    [(name, service)] = SERVICES.items()
    assert name == "jupiter"
    folders = dict(re.findall(r"\$\{(\w+):-\./\w+\}:(/\w+)", " ".join(service["volumes"])))
    assert folders == {
        "JUPITER_DATA": "/data",
        "JUPITER_MODELS": "/models",
        "JUPITER_SCRIPTS": "/scripts",
    }
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    assert {f"/installers/docker{folder}/" for folder in folders.values()} <= set(ignored)
    made = " ".join(step.rest for step in of("RUN"))
    assert all(f" {folder}" in made for folder in folders.values())


def test_gpus_are_asked_for_by_the_file_beside_alone():
    assert set(WITH_GPUS) == set(SERVICES)
    [service] = WITH_GPUS.values()
    assert set(service) == {"image", "build", "deploy"}
    assert service["build"] == {"target": "cuda"}
    [device] = service["deploy"]["resources"]["reservations"]["devices"]
    assert device == {"driver": "nvidia", "count": "all", "capabilities": ["gpu"]}


@pytest.mark.parametrize("page", ["docs/guides/docker.md", "docs/es/guides/docker.md"])
def test_the_guide_names_the_service_and_files_that_there_are(page):
    shell = "\n".join(block.text for block in blocks(ROOT / page))
    assert set(re.findall(r"(?:run --rm|exec) (\S+)", shell)) == set(SERVICES)
    assert "--profile" not in shell
    [files] = re.findall(r"COMPOSE_FILE=(\S+)", shell)
    assert all((FOLDER / name).exists() for name in files.split(":"))


def test_the_entry_point_knows_real_commands():
    assert set(COMMANDS) >= RULES["ALONE"]
    for words in RULES["ORDERING"]:
        assert trouble(["jupiterctl", *words, "--wait"], whole=False) == ""


@pytest.mark.parametrize(
    ("line", "needs"),
    [
        ("jupiterd --peer 10.0.0.1", False),
        ("nvidia-smi", False),
        ("jupiterctl monitor", False),
        ("jupiterctl train start --help", False),
        ("jupiterctl", False),
        ("jupiterctl status", True),
        ("jupiterctl -o json cycle status", True),
        ("jupiter-tui", True),
    ],
)
def test_a_daemon_is_started_for_what_asks_one(line, needs):
    assert RULES["needs_daemon"](line.split()) is needs


def test_a_container_stays_until_the_work_that_it_ordered_is_done():
    def waiting(line: str) -> str:
        return " ".join(RULES["waiting"](line.split()))

    assert (
        waiting("jupiterctl train start --data /data")
        == "jupiterctl train start --data /data --wait"
    )
    for line in (
        "jupiterctl cycle start --wait",
        "jupiterctl cycle start --dry-run",
        "jupiterctl status",
    ):
        assert waiting(line) == line


@pytest.fixture
def container(tmp_path: Path) -> Iterator[tuple[list[str], dict[str, str]]]:
    """Return (what a command begins with, its environment) for a container's volume and network."""
    environment = os.environ | {
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "JUPITER_STATE_DIR": str(tmp_path / "state"),
        "JUPITER_LOCAL": "true",
        "JUPITER_PORT": "0",
    }
    with own_network() as prefix:
        yield [*prefix, sys.executable, str(ENTRYPOINT)], environment


def test_a_command_alone_gets_a_daemon_that_a_second_one_shares_and_that_ends_with_it(
    container, tmp_path
):
    begin, environment = container
    with subprocess.Popen(
        [*begin, "jupiterctl", "events", "-f"], stdout=subprocess.PIPE, env=environment
    ) as first:
        assert first.stdout is not None
        assert first.stdout.readline()  # the daemon leads by now
        pid = int((tmp_path / "state" / "lock").read_text())
        second = subprocess.run(
            [*begin, "jupiterctl", "status", "--check"],
            capture_output=True,
            text=True,
            env=environment,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert second.returncode == 0, second.stderr
        assert "led by" in second.stdout
        assert int((tmp_path / "state" / "lock").read_text()) == pid
        first.send_signal(signal.SIGTERM)
        assert first.wait(TIMEOUT_S) == 128 + signal.SIGTERM
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_container_that_is_ended_while_its_daemon_starts_ends_it_in_silence(tmp_path):
    for name, does in (
        ("jupiterctl", "exit 3"),
        ("jupiterd", f"echo $$ > {tmp_path}/began; exec sleep 100"),
    ):
        (tmp_path / name).write_text(f"#!/bin/sh\n{does}\n")
        (tmp_path / name).chmod(0o755)
    os.mkfifo(tmp_path / "began")
    with subprocess.Popen(
        [sys.executable, ENTRYPOINT, "jupiterctl", "status"],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={"PATH": f"{tmp_path}:{os.defpath}"},
    ) as ran:
        pid = int((tmp_path / "began").read_text())
        ran.send_signal(signal.SIGINT)
        assert ran.communicate(timeout=TIMEOUT_S)[1] == b""
    assert ran.returncode == 128 + signal.SIGINT
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_program_that_is_not_there_is_told_in_one_line():
    ran = subprocess.run(
        [sys.executable, ENTRYPOINT, "nvidia-smy"], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (
        127,
        "jupiter: error: nvidia-smy can't be run: No such file or directory\n",
    )


def test_what_is_no_command_of_ours_is_run_as_it_is(container):
    begin, environment = container
    ran = subprocess.run(
        [*begin, "sh", "-c", "echo as it is; exit 3"],
        capture_output=True,
        text=True,
        env=environment,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (3, "as it is\n")
