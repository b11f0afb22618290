"""The request of a `jupiterctl launch` command line: what runs, where, and with which Python.

Owns reading the options. Doesn't know whether other machines can run it (`places`), or how it runs
(`run`).
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from jupiterd.ctl.launch.engine_guess import EngineGuess, guess_engine, imports_of, own_files
from jupiterd.ctl.launch.interpreter import Interpreter, choose_interpreter, with_interpreter
from jupiterd.ctl.launch.nearby_files import nearby_files
from jupiterd.ctl.launch.options.life import life_of
from jupiterd.ctl.launch.options.ports import open_ports_of
from jupiterd.ctl.launch.program import CommandLine, read_program
from jupiterd.ctl.launch.working_folder import WorkingFolder, working_folder
from jupiterd.errors import UsageError
from jupiterd.processes.script_plan import PortRange, threads_of
from jupiterd.processes.scripts.by_machine import Devices, PerNode
from jupiterd.processes.scripts.folder_map import FolderMap
from jupiterd.processes.scripts.variables import telling
from jupiterd.protocol.commands.script_commands import PrepareLaunch

AUTO: Final = "auto"
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class LaunchRequest:
    """What the command line requests, and what this machine adds before anything runs."""

    program: CommandLine
    interpreter: Interpreter | None
    """None: the command doesn't start with a Python."""
    engine: EngineGuess
    folder: Path
    files: tuple[str, ...]
    """The script and the files that it imports, relative to the folder."""
    nearby: tuple[str, ...]
    """Further files that it may load while it runs, relative to the folder."""
    nodes: str
    """The machines, as typed; empty: this machine."""
    per_node: str
    devices: tuple[str, ...]
    folder_map: tuple[str, ...]
    master_port: int
    variables: Mapping[str, str]
    """Environment variables for every process."""
    may_differ: bool
    is_verbose: bool
    travelling: WorkingFolder | None = None
    """The files that are sent to other machines; None: nothing is sent."""
    cut_timeout_s: int = 60
    """Seconds without a message from a machine before the launch fails."""
    max_restarts: int = 0
    is_detached: bool = False
    open_ports: tuple[PortRange, ...] = ()
    """Ports at which any host may reach the script."""

    @property
    def argv(self) -> tuple[str, ...]:
        """Return the command as it runs on this machine."""
        return self.program.argv

    @property
    def processes(self) -> int:
        """Return the number of processes for a launch on this machine alone; 0: the default."""
        numbers = PerNode.parse(self.per_node).numbers
        if len(numbers) > 1:
            raise UsageError(
                f"--per-node {self.per_node} is for several machines",
                "name them with --nodes, such as --nodes all",
            )
        return numbers[0] if numbers else 0

    def question(self, environment: Mapping[str, str]) -> PrepareLaunch:
        """Return the command for the daemon; `environment`: the shell's variables."""
        has_own_python = self.interpreter is not None and self.interpreter.is_own
        inherited = telling(environment) | {"PATH": environment.get("PATH", os.defpath)}
        return PrepareLaunch(
            nodes=self.nodes,
            per_node=self.per_node,
            devices=tuple(self.devices),
            engine=self.engine.engine,
            program="" if has_own_python else self.argv[0],
            folder="" if self.travelling else str(self.folder),
            script="" if self.travelling else self.program.script,
            files=() if self.travelling else (*self.files, *self.nearby),
            folder_map=tuple(self.folder_map),
            environment=inherited,
        )


def read_request(
    argv: Sequence[str], options: Mapping[str, Any], environment: Mapping[str, str]
) -> LaunchRequest:
    """Return the request of a command line; `options`: option name -> value.

    environment: the shell's variables

    Raises:
        UsageError: an option, the script or the Python isn't valid.
    """
    folder = _folder(str(options["chdir"]))
    nodes, per_node = _machines(str(options["nodes"]), str(options["per_node"]))
    Devices.parse(options["devices"])
    FolderMap.parse(options["folder_map"])
    program = read_program(argv, folder)
    travelling = _travelling(folder, nodes, options)
    if travelling is not None:
        program = _below(program, folder)
    interpreter = choose_interpreter(str(options["python"]), program, Path.cwd(), environment)
    program = with_interpreter(program, interpreter)
    imports = imports_of(program, folder, program.argv[0])
    wanted_engine = str(options["engine"])
    is_guessed = wanted_engine == AUTO
    files = tuple(own_files(imports, folder))
    is_compared = bool(nodes) and travelling is None and not options["allow_differences"]
    nearby = nearby_files(folder, program.argv, files) if is_compared else ()
    threads = threads_of(options["threads"]) if options["threads"] else {}
    variables = {**threads, **parsed_variables(options["variables"], environment)}
    if nodes:
        _check_text((*program.argv, str(folder), program.script, *files, *variables.values()))
    return LaunchRequest(
        program=program,
        interpreter=interpreter,
        engine=guess_engine(imports, folder)
        if is_guessed
        else EngineGuess(wanted_engine, f"--engine {wanted_engine}"),
        folder=folder,
        files=files,
        nearby=nearby,
        nodes=nodes,
        per_node=per_node,
        devices=tuple(options["devices"]),
        folder_map=tuple(options["folder_map"]),
        master_port=options["master_port"] or 0,
        variables=variables,
        may_differ=bool(options["allow_differences"]),
        is_verbose=bool(options["verbose"]),
        travelling=travelling,
        open_ports=open_ports_of(options["open_ports"]),
        **life_of(options),
    )


def parsed_variables(given: Sequence[str], environment: Mapping[str, str]) -> dict[str, str]:
    """Return variables from NAME=VALUE, or NAME for the shell's value; raise UsageError."""
    found: dict[str, str] = {}
    for text in given:
        name, sign, value = text.partition("=")
        if not _NAME.fullmatch(name):
            raise UsageError(f"--env {name} is no variable", "such as --env NCCL_DEBUG=INFO")
        if not sign and name not in environment:
            raise UsageError(
                f"--env {name}: this shell has no variable of that name",
                f"export it first, or give its value: --env {name}=VALUE",
            )
        found[name] = value if sign else environment[name]
    return found


def _check_text(words: Sequence[str]) -> None:
    """Raise UsageError for a text that can't be sent to other machines because it isn't UTF-8."""
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError as error:
            raise UsageError(
                f"{word!r} isn't UTF-8, and can't be sent to other machines",
                "name it otherwise, or run it on this machine alone, without --nodes",
            ) from error


def _folder(named: str) -> Path:
    folder = Path(os.path.normpath(Path.cwd() / Path(named).expanduser()))
    if not folder.is_dir():
        raise UsageError(f"--chdir {named}: there is no such folder", f"this is {Path.cwd()}")
    return folder


def _travelling(folder: Path, nodes: str, options: Mapping[str, Any]) -> WorkingFolder | None:
    if not options["ship"]:
        return None
    if not nodes:
        raise UsageError(
            "--ship brings the folder to other machines, and none is named", "such as --nodes all"
        )
    return working_folder(folder, options["ship_also"], options["ship_limit"])


def _below(program: CommandLine, folder: Path) -> CommandLine:
    """Make the script's path relative to the folder, which lies elsewhere on other machines."""
    if not program.script:
        return program
    script = Path(program.script)
    if not script.is_relative_to(folder):
        raise UsageError(
            f"{script} lies outside {folder}, which travels", "name that folder: --chdir DIR"
        )
    relative = script.relative_to(folder).as_posix()
    argv = tuple(
        relative if os.path.normpath(folder / argument) == str(script) else argument
        for argument in program.argv
    )
    return replace(program, argv=argv)


def _machines(nodes: str, per_node: str) -> tuple[str, str]:
    """Return machines and processes; numbers get the names if there are as many of both."""
    parsed = PerNode.parse(per_node)
    if parsed.by_name and not nodes:
        return ",".join(parsed.by_name), per_node
    named = [part.strip() for part in nodes.split(",") if part.strip()]
    if len(parsed.numbers) == len(named) > 1:
        pairs = zip(named, parsed.numbers, strict=True)
        return nodes, ",".join(f"{name}={number}" for name, number in pairs)
    return nodes, per_node
