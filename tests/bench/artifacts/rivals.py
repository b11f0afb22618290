"""scp and rsync on the same links, from one machine to one after another, where they are installed.

Owns starting their servers and asking them. Doesn't know what their times are compared with. Each
reads a file of chance bytes and writes it to where the stores lie.
"""

import asyncio
import contextlib
import os
import shutil
import sys
import tempfile
import time
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

from tests.support.network.lab import Host

PORT: Final = 2222
"""On a machine of our own nobody else has it."""

SEARCHED: Final = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"))
LIMIT_S: Final = 600.0

Command = tuple[str, ...]
Prepared = tuple[Command, Command]
"""What serves the file, and what fetches it; where it goes is added to that."""

_KNOCK: Final = """
import socket, sys, time
until_s = time.monotonic() + 10
while True:
    try:
        sys.exit(socket.create_connection((sys.argv[1], int(sys.argv[2]))).close())
    except OSError as error:
        if time.monotonic() > until_s:
            sys.exit(f"nothing serves on the port: {error}")
        time.sleep(0.02)
"""


async def told_of_rivals(hosts: Sequence[Host], size_bytes: int, limit_s: float, at: str) -> str:
    """Return what scp and rsync need, in seconds and in times of one link's limit, or why not."""
    told: list[str] = []
    for name, (needed, prepare) in RIVALS.items():
        missing = [program for program in needed if _found(program) is None]
        if missing:
            told.append(f"{name}: not run, for {' and '.join(missing)} isn't installed")
            continue
        try:
            took_s = await _one_after_another(hosts, size_bytes, at, prepare)
        except (OSError, TimeoutError) as error:
            told.append(f"{name}: failed: {error}")
        else:
            told.append(f"{name} to one after another {took_s:.2f} s ({took_s / limit_s:.2f}x)")
    return "; ".join(told)


def _found(program: str) -> str | None:
    return shutil.which(program, path=SEARCHED)


async def _one_after_another(
    hosts: Sequence[Host],
    size_bytes: int,
    at: str,
    prepare: Callable[[Path, str], Awaitable[Prepared]],
) -> float:
    with tempfile.TemporaryDirectory(prefix="jupiter-rival-", dir=at or None) as folder:
        scratch, (sender, *takers) = Path(folder), hosts
        _fill(scratch / "payload", size_bytes)
        serve, take = await prepare(scratch, sender.address)
        async with _serving(sender, serve):
            began_s = time.monotonic()
            for taker in takers:
                came = scratch / f"came{taker.number}"
                await _run(*taker.inside.prefix, *take, str(came))
                if came.stat().st_size != size_bytes:
                    raise OSError(f"{take[0]} brought {came.stat().st_size} bytes")
            return time.monotonic() - began_s


def _fill(path: Path, size_bytes: int) -> None:
    with path.open("wb") as file:
        for start in range(0, size_bytes, 1 << 24):
            file.write(os.urandom(min(1 << 24, size_bytes - start)))


@contextlib.asynccontextmanager
async def _serving(host: Host, command: Command) -> AsyncGenerator[None]:
    prefix = host.inside.prefix
    server = await asyncio.create_subprocess_exec(*prefix, *command, stdout=DEVNULL, stderr=DEVNULL)
    try:
        await _run(*prefix, sys.executable, "-c", _KNOCK, host.address, str(PORT))
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            server.terminate()
        await server.wait()


async def _run(*command: str) -> None:
    """Run to the end; raises OSError with the last line of its complaint."""
    done = await asyncio.create_subprocess_exec(*command, stdout=DEVNULL, stderr=PIPE)
    try:
        async with asyncio.timeout(LIMIT_S):
            _, complaint = await done.communicate()
    except TimeoutError:
        done.kill()
        await done.wait()
        raise
    if done.returncode:
        lines = complaint.decode(errors="replace").split("\n")
        raise OSError(" / ".join(line.strip() for line in lines if line.strip())[-300:])


async def _scp(scratch: Path, address: str) -> Prepared:
    """Prepare a server that knows one key, made for this, and listens on the sender alone."""
    for name in ("host", "own"):
        await _run(_path("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-f", str(scratch / name))
    rules = {
        "HostKey": scratch / "host",
        "AuthorizedKeysFile": scratch / "own.pub",
        "ListenAddress": address,
        "Port": PORT,
        "PidFile": "none",
        "StrictModes": "no",
        "UsePAM": "no",
        "PasswordAuthentication": "no",
        "PermitRootLogin": "prohibit-password",
        "Subsystem": "sftp internal-sftp",
    }
    config = scratch / "sshd_config"
    config.write_text("".join(f"{name} {value}\n" for name, value in rules.items()))
    trusting = ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "BatchMode=yes")
    options = [part for option in trusting for part in ("-o", option)]
    key = ("-q", "-F", "none", "-i", str(scratch / "own"), "-P", str(PORT))
    serve = (_path("sshd"), "-D", "-f", str(config))
    return serve, (_path("scp"), *key, *options, f"{address}:{scratch / 'payload'}")


async def _rsync(scratch: Path, address: str) -> Prepared:
    """Prepare rsync's own server, which encrypts nothing; whole files, for none are there yet."""
    config = scratch / "rsyncd.conf"
    own = f"uid = {os.getuid()}\ngid = {os.getgid()}\n"
    config.write_text(f"use chroot = no\n{own}[bench]\npath = {scratch}\nread only = yes\n")
    at = ("--address", address, "--port", str(PORT), "--config", str(config))
    serve = (_path("rsync"), "--daemon", "--no-detach", *at)
    return serve, (_path("rsync"), "--whole-file", f"rsync://{address}:{PORT}/bench/payload")


def _path(program: str) -> str:
    found = _found(program)
    assert found is not None, f"{program} isn't installed"
    return found


RIVALS: Final[dict[str, tuple[Command, Callable[[Path, str], Awaitable[Prepared]]]]] = {
    "scp": (("scp", "ssh", "ssh-keygen", "sshd"), _scp),
    "rsync": (("rsync",), _rsync),
}
