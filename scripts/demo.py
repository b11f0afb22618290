"""Three daemons on this machine, one cluster, one real cycle of two rounds: `make demo`.

Owns the stage: it starts the daemons, runs jupiterctl as a user would, and stops what it started.
Everything shown comes from the daemons; nothing is prepared. With `--engine hybrid` two islands
train each round, one on MLX, the other, of two nodes, on torch; the rounds are shorter then.
"""

import argparse
import asyncio
import contextlib
import fcntl
import os
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
STAGE = ROOT / ".demo"
BEFORE = ROOT / ".demo-before"
LOCK = ROOT / ".demo.lock"
NAMES = ("node-1", "node-2", "node-3")
ELECT_TIMEOUT_S = 30.0
SCOPE = f"demo-{secrets.token_hex(4)}"
"""Keeps the demo's daemons among themselves: another cluster on this machine isn't met."""
PROMPTS = (
    "def read_lines(path):\n    ",
    "class Queue:\n    def __init__(self",
    "import os\nimport sys\n\ndef main():\n    ",
)

HYBRID = "hybrid"
ISLANDS = f"mlx:{NAMES[0]} torch:{NAMES[1]},{NAMES[2]}"
SYNC_EVERY = "40"
HYBRID_STEPS = 320
"""Of a round: MLX on a CPU is slow."""

Views = dict[str, Mapping[str, Any] | None]
"""Each daemon's status, or None where it doesn't answer."""


def main() -> int:
    """Play the demo, unless one is running here, and return its exit status."""
    options = read_options()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    with alone_here():
        return play(options)


@contextlib.contextmanager
def alone_here() -> Generator[None]:
    """Keep another demo in this folder from taking the stage of one that runs."""
    with LOCK.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            sys.exit(
                "demo: error: a demo is running in this folder\n\nhint: stop it with Ctrl-C first"
            )
        yield


def play(options: argparse.Namespace) -> int:
    """Play the demo on an empty stage and return its exit status."""
    clear_stage()
    began_s = time.monotonic()
    daemons = [start_daemon(name) for name in NAMES]
    try:
        show_meeting(daemons)
        met_s = time.monotonic()
        status = run_cycle(options)
        cycle_s = time.monotonic()
        if status == 0:
            show_completions()
        show_times(began_s, met_s, cycle_s)
    except KeyboardInterrupt:
        print("\nstopping")
        status = 130
    finally:
        stop(daemons)
    print(last_line(is_interrupted=status == 130, has_model=has_model()))
    if status == 0:
        print("\n".join(conversation_lines()))
    return status


def last_line(*, is_interrupted: bool, has_model: bool) -> str:
    """Return what is so once nothing of the demo runs any more."""
    ended = "the cycle ended with them, unfinished" if is_interrupted else ""
    left = "logs and the model stay" if has_model else "logs stay (no model was made yet)"
    return "; ".join(filter(None, ["all daemons are stopped", ended, f"{left} in .demo/"]))


def conversation_lines() -> list[str]:
    """Return the commands that start a daemon again, and a conversation with its model."""
    node = f"--state-dir .demo/{NAMES[0]}"
    return [
        "talk to the model, in two terminals:",
        f"  .venv/bin/jupiterd --local --scope {SCOPE} --port 0 {node}",
        f"  .venv/bin/jupiterctl {node} model chat",
    ]


def has_model() -> bool:
    """Say whether a folder of a model lies on the stage."""
    return any(STAGE.glob("*/runs/**/*.safetensors"))


def clear_stage() -> None:
    """Make an empty stage; what the last demo left there is kept until the one after this."""
    if STAGE.exists():
        shutil.rmtree(BEFORE, ignore_errors=True)
        STAGE.rename(BEFORE)
        print(f"the last demo's logs and model are in {BEFORE.name}/ now, until the next demo")
    STAGE.mkdir()


def read_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--domain", default="python")
    parser.add_argument("--size", default="1m")
    parser.add_argument("--rounds", default="2")
    parser.add_argument("--engine", default="auto", choices=("auto", "torch", "mlx", HYBRID))
    parser.add_argument("--tui", action="store_true", help="show the cycle in the dashboard")
    return parser.parse_args()


def start_daemon(name: str) -> subprocess.Popen[bytes]:
    """Start one jupiterd of its own state folder and port, on the loopback interface."""
    log = (STAGE / f"{name}.log").open("wb")
    print(f"starting {name}  (log: .demo/{name}.log)", flush=True)
    return subprocess.Popen(
        [
            BIN / "jupiterd",
            *("--local", "--port", "0", "--name", name, "--state-dir", STAGE / name),
            *("--scope", SCOPE, "--threads", "1"),  # three nodes share this machine's cores
        ],
        stdout=log,
        stderr=log,
        start_new_session=True,  # Ctrl-C is ours to handle: we stop the daemons in order
    )


def show_meeting(daemons: list[subprocess.Popen[bytes]]) -> None:
    """Show the nodes finding each other and electing a leader."""
    began_s = time.monotonic()
    shown = ""
    while time.monotonic() - began_s < ELECT_TIMEOUT_S:
        for name, daemon in zip(NAMES, daemons, strict=True):
            if daemon.poll() is not None:
                sys.exit(
                    f"{name} ended early; its log says:\n{(STAGE / f'{name}.log').read_text()}"
                )
        views = asyncio.run(look())
        line = "  ".join(
            f"{name} sees {view['cluster']['nodes_alive']}" if view else f"{name} is starting"
            for name, view in views.items()
        )
        if line != shown:
            print(f"{time.monotonic() - began_s:5.1f} s  {line}", flush=True)
            shown = line
        if is_one_cluster(views):
            return print_cluster(views[NAMES[0]] or {})
        time.sleep(0.3)  # noqa: TID251 - a demo looks at the world as a person would
    print_trouble(asyncio.run(look()))
    sys.exit(f"the daemons didn't become one cluster in {ELECT_TIMEOUT_S:.0f} s; see .demo/*.log")


async def look() -> Views:
    """Return the status of each daemon, or None where it doesn't answer yet."""
    from jupiterd.client.channel import ControlChannel
    from jupiterd.errors import JupiterError

    views: Views = {}
    for name in NAMES:
        try:
            async with ControlChannel(STAGE / name) as channel:
                views[name] = await channel.status("status")
        except JupiterError:
            views[name] = None
    return views


def is_one_cluster(views: Views) -> bool:
    """Say whether all agree on one cluster, one leader and everybody's role."""
    known = [view for view in views.values() if view]
    return (
        len(known) == len(NAMES)
        and len({view["cluster"]["id"] for view in known}) == 1
        and len({view["cluster"]["leader"] for view in known} - {None}) == 1
        and all(view["cluster"]["leader"] for view in known)
        and all(view["cluster"]["nodes_alive"] == len(NAMES) for view in known)
        and all(len({n["role"] for n in view["nodes"]} - {"idle"}) == 2 for view in known)
    )


def print_trouble(views: Views) -> None:
    """Print what each daemon says is wrong: its cluster, whom it sees, its health."""
    from jupiterd.ctl.diagnose.status import cluster_line, health_lines

    for name, view in views.items():
        lines = [f"cluster  {cluster_line(view)}", *health_lines(view)] if view else ["no answer"]
        print("\n  ".join([f"{name}:", *lines]), flush=True)


def print_cluster(view: Mapping[str, Any]) -> None:
    """Print the cluster as one node sees it."""
    names = {node["id"]: node["name"] for node in view["nodes"]}
    cluster = view["cluster"]
    print(
        f"one cluster: {cluster['id'][:8]}, leader {names[cluster['leader']]}, "
        f"term {cluster['term']}"
    )
    for node in view["nodes"]:
        print(f"  {node['name']}  {node['role']:<9}  {node['reason']}")


def run_cycle(options: argparse.Namespace) -> int:
    """Run the cycle with jupiterctl, which shows it as it goes."""
    command = ["jupiterctl", "--state-dir", str(STAGE / NAMES[0]), "cycle", "start"]
    command += ["--size", options.size, "--rounds", options.rounds]
    if options.engine == HYBRID:
        command += ["--domain", str(short_domain(options.domain)), "--islands", ISLANDS]
        command += ["--sync-every", SYNC_EVERY]
    else:
        command += ["--domain", options.domain]
    if options.engine not in ("auto", HYBRID):
        command += ["--engine", options.engine]
    wait = [] if options.tui else ["--wait"]
    status = run(command + wait)
    if not status and options.engine == HYBRID and not options.tui:
        show_digests()
    if status or not options.tui:
        return status
    show_dashboard()
    watch = [*command[:3], "cycle", "watch"]
    return carried_out(watch)


def short_domain(name: str) -> Path:
    """Write a copy of a domain that comes with Jupiter, with shorter rounds; return the file."""
    text = (ROOT / "config" / "domains" / f"{name}.yaml").read_text(encoding="utf-8")
    file = STAGE / f"{name}.yaml"
    file.write_text(f"{text.rstrip()}\ntraining: {{steps: {HYBRID_STEPS}}}\n", encoding="utf-8")
    return file


def run(command: list[str]) -> int:
    """Show a command as a person would type it, run it, and return its exit status."""
    words = [part.replace(f"{ROOT}/", "") for part in command]
    print("$ " + shlex.join(words), flush=True)
    return carried_out(command)


def carried_out(command: list[str]) -> int:
    """Run a command in a group of its own, and return its exit status.

    Ctrl-C ends it with the demo: it would say that the work goes on, and nothing does. It asks
    nothing: a terminal stops whoever reads from it in another group than the one in front.
    """
    program = [BIN / command[0], *command[1:]]
    given = subprocess.DEVNULL
    return subprocess.run(program, check=False, process_group=0, stdin=given).returncode


def show_digests() -> None:
    """Show what the first ranks of the islands say of their weights after each exchange."""
    print("\nthe weights after each exchange, as the islands of each round have hashed them:")
    logs = [(name, log) for name in NAMES for log in (STAGE / name / "logs").glob("*-0-train*.log")]
    for name, log in sorted(logs, key=lambda found: found[1].stat().st_mtime):
        engine = "MLX" if "mlx" in log.name else "torch"
        told = [line for line in log.read_text().splitlines() if "| Digest " in line]
        lines = [line for line in told if "| Ways 0 |" not in line]  # the first merge nothing
        digests = " ".join(line.rpartition(" ")[2][:8] for line in lines)
        print(f"  {engine:<6} on {name}  {digests}")


def show_dashboard() -> None:
    """Show the dashboard until it is quit, or the cycle has ended."""
    dashboard = subprocess.Popen([BIN / "jupiter-tui", "--state-dir", STAGE / NAMES[0]])
    try:
        while dashboard.poll() is None and not has_ended():
            with contextlib.suppress(subprocess.TimeoutExpired):
                dashboard.wait(1)
    finally:
        dashboard.terminate()
        dashboard.wait()


def has_ended() -> bool:
    """Say whether the first node knows the cycle to be over."""
    view = asyncio.run(look())[NAMES[0]]
    return ((view or {}).get("cycle") or {}).get("state") in {"finished", "failed", "stopped"}


def show_completions() -> None:
    """Let the model complete three prompts."""
    folder = document().get("model")
    if folder is None:
        return
    print("\nthe model completes three prompts:")
    for prompt, completion in zip(PROMPTS, asyncio.run(complete(folder)), strict=True):
        print("-" * 60)
        print(f"{prompt}\033[1m{completion}\033[0m" if sys.stdout.isatty() else prompt + completion)
    print("-" * 60)


async def complete(folder: str) -> list[str]:
    """Run the prompts through a worker process, as the cluster does its own work."""
    from jupiterd.processes.environment import worker_environment
    from jupiterd.processes.process import start_worker
    from jupiterd.protocol.frames import RunTask, TaskFinished

    output = STAGE / "completions"
    output.mkdir(exist_ok=True)
    params = {"prompts": list(PROMPTS), "max_tokens": 60, "temperature": 0.6, "seed": 1}
    order = RunTask("prompt", params, {"model": folder}, str(output))
    async with start_worker(
        order, worker_environment("prompt", params), STAGE / "completions.log"
    ) as worker:
        async for frame in worker.frames():
            if isinstance(frame, TaskFinished):
                return [str(frame.summary[f"completion.{n}"]) for n in range(len(PROMPTS))]
    return []


def show_times(began_s: float, met_s: float, trained_s: float) -> None:
    """Print where the time went."""
    print("\nwhere the time went:")
    print(f"  {'start and elect':<26}{met_s - began_s:7.1f} s")
    for phase in document().get("phases", []):
        if phase["elapsed_s"]:
            name = f"round {phase['round']} {phase['phase']}"
            print(f"  {name:<26}{phase['elapsed_s']:7.1f} s")
    print(f"  {'cycle, all in all':<26}{trained_s - met_s:7.1f} s")
    print(f"  {'demo, all in all':<26}{time.monotonic() - began_s:7.1f} s")


def document() -> Mapping[str, Any]:
    """Return what the first node tells of the cycle."""
    return (asyncio.run(look())[NAMES[0]] or {}).get("cycle") or {}


def stop(daemons: list[subprocess.Popen[bytes]]) -> None:
    """End what was started: gracefully, then for certain."""
    for daemon in daemons:
        daemon.terminate()
    for daemon in daemons:
        try:
            daemon.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(daemon.pid, signal.SIGKILL)
            daemon.wait()


if __name__ == "__main__":
    sys.exit(main())
