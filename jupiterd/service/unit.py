"""The unit files by which systemd runs jupiterd.

Owns every line of them. Pure: doesn't know whether systemd is here, or where the files go.

What is left out is left out for the GPUs: PrivateDevices= hides them; DeviceAllow=, and
ProtectClock= by way of it, would allow nothing but what they name; MemoryDenyWriteExecute= stops
compilers that write code at run time; PrivateTmp= would hide from the daemons of other users which
GPU is taken (see `gang/device_locks`).
"""

from collections.abc import Iterator
from pathlib import Path

from jupiterd.locations import STATE_DIR_VARIABLE
from jupiterd.service.asked import SYSTEM_STATE_DIR, SYSTEM_USER, Asked, Scope

NAME = "jupiterd.service"
FOLDER_NAME = "jupiter"

WATCHDOG_S = 60
"""A loop that has done nothing for so long is stuck: machines that swap stand still for less."""

STOP_S = 45
"""To finish the running step and save it; where that takes longer, the daemon says so."""

MADE = "# Made by `jupiterd service install`, which writes it anew and keeps no change of yours."

_BOTH_SANDBOXES = (
    "NoNewPrivileges=yes",
    "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK",
    "SystemCallArchitectures=native",
    "LockPersonality=yes",
    "RestrictRealtime=yes",
    "RestrictSUIDSGID=yes",
)
"""What needs no rights and no namespaces, so that a user's own systemd can do it, too."""

_SYSTEM_SANDBOX = (
    "CapabilityBoundingSet=",
    "AmbientCapabilities=",
    "ProtectSystem=strict",
    "ProtectHome=read-only",
    "ProtectKernelTunables=yes",
    "ProtectKernelModules=yes",
    "ProtectKernelLogs=yes",
    "ProtectControlGroups=yes",
    "ProtectHostname=yes",
    "RestrictNamespaces=yes",
    "SystemCallFilter=~@mount @swap @reboot @module @raw-io @obsolete @cpu-emulation",
    "SystemCallErrorNumber=EPERM",
)


def unit_text(asked: Asked) -> str:
    """Return the unit file of a service."""
    is_system = asked.scope is Scope.SYSTEM
    parts = (
        (MADE,),
        ("[Unit]", *_unit(is_system=is_system)),
        ("[Service]", *_service(asked), *_where(asked), *_sandbox(asked)),
        ("[Install]", f"WantedBy={'multi-user' if is_system else 'default'}.target"),
    )
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def sysusers_text() -> str:
    """Return what makes systemd-sysusers add the user of the system unit.

    The groups are those which some distributions leave a GPU to.
    """
    lines = (
        f'u {SYSTEM_USER} - "Jupiter" {SYSTEM_STATE_DIR}',
        *(f"m {SYSTEM_USER} {group}" for group in ("video", "render")),
    )
    return "\n".join(lines) + "\n"


def state_dir_in(unit: str) -> Path | None:
    """Return the state folder that a unit file of ours names; None where it names none."""
    for line in unit.splitlines():
        name, is_set, value = line.strip().partition("=")
        if name == "Environment" and is_set and STATE_DIR_VARIABLE in value:
            path = value.strip('"').partition("=")[2]
            return Path(path.replace('\\"', '"').replace("\\\\", "\\").replace("%%", "%"))
    return None


def _unit(*, is_system: bool) -> Iterator[str]:
    yield "Description=Jupiter, one cluster out of the machines you own"
    if is_system:  # it starts without a network, too, and finds one that comes later
        yield "After=network.target network-online.target"
    yield "StartLimitIntervalSec=600"
    yield "StartLimitBurst=20"


def _service(asked: Asked) -> Iterator[str]:
    yield "Type=notify"
    yield "NotifyAccess=main"
    yield "# Without a screen nobody else makes /dev/nvidia-uvm; `+` leaves it its own rights."
    yield "ExecStartPre=+-/usr/bin/nvidia-modprobe -c 0 -u"
    yield f"ExecStart={' '.join(map(_word, (*asked.program, *asked.arguments)))}"
    yield "Restart=on-failure"
    yield "RestartSec=5s"
    yield "# A wrong setting stays wrong, and a newer version's state too new."
    yield "RestartPreventExitStatus=2 5"
    yield f"WatchdogSec={WATCHDOG_S}s"
    yield "# The daemon itself stops its workers, after their step; it says when that takes longer."
    yield "# Scripts of jupiterctl launch outlive it, each with a keeper that ends by itself."
    yield "KillMode=process"
    yield f"TimeoutStopSec={STOP_S}s"
    yield "# A worker that needs too much memory ends alone."
    yield "OOMPolicy=continue"


def _where(asked: Asked) -> Iterator[str]:
    """Yield whom it runs as, and the folders that it has."""
    is_system = asked.scope is Scope.SYSTEM
    if is_system:
        yield "CPUWeight=1000"
        yield "LimitMEMLOCK=infinity"
        yield "UMask=0077"
        yield f"User={asked.user}"
    yield f"RuntimeDirectory={FOLDER_NAME}"
    yield "RuntimeDirectoryMode=0700"
    yield f"WorkingDirectory=%t/{FOLDER_NAME}"
    if is_system:
        yield f"CacheDirectory={FOLDER_NAME}"
        yield "CacheDirectoryMode=0700"
        yield "# Where libraries keep what they have compiled."
        yield f"Environment=HOME=%C/{FOLDER_NAME}"
    if is_system and asked.state_dir == SYSTEM_STATE_DIR:
        yield f"StateDirectory={FOLDER_NAME}"
        yield "StateDirectoryMode=0700"
    if asked.state_dir is not None:
        yield f"Environment={_quoted(f'{STATE_DIR_VARIABLE}={asked.state_dir}')}"


def _sandbox(asked: Asked) -> Iterator[str]:
    yield from _BOTH_SANDBOXES
    if asked.scope is Scope.SYSTEM:
        yield from _SYSTEM_SANDBOX
        yield "# Which GPU is taken is told to all daemons of the machine in there."
        yield "ReadWritePaths=/tmp"
        if asked.state_dir not in (None, SYSTEM_STATE_DIR):
            yield f"ReadWritePaths={_quoted(str(asked.state_dir))}"


def _word(text: str) -> str:
    """Return a word of a command line: systemd replaces what begins with % or $ in one."""
    return _quoted(text.replace("$", "$$"))


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    is_plain = escaped == text.replace("%", "%%") and not set(text) & set(" \t;'")
    return escaped if is_plain and text else f'"{escaped}"'
