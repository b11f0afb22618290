"""The unit files by which systemd runs jupiterd: a template, and what is filled into it.

Owns every line of them. Pure: doesn't know whether systemd is here, or where the files go.

What is left out is left out for the GPUs: PrivateDevices= hides them; DeviceAllow=, and
ProtectClock= by way of it, would allow nothing but what they name; MemoryDenyWriteExecute= stops
compilers that write code at run time; PrivateTmp= would hide from the daemons of other users which
GPU is taken (see `processes/device_locks`).
"""

from pathlib import Path

from jupiterd.locations import STATE_DIR_VARIABLE
from jupiterd.service.service_request import (
    SYSTEM_STATE_DIR,
    SYSTEM_USER,
    Scope,
    ServiceRequest,
)

NAME = "jupiterd.service"

WATCHDOG_S = 60
"""A loop that has done nothing for so long is stuck: machines that swap stand still for less."""

STOP_S = 45
"""To finish the running step and save it; where that takes longer, the daemon says so."""

_UNIT = """\
# Made by `jupiterd service install`, which writes it anew and keeps no change of yours.

[Unit]
Description=Jupiter, one cluster out of the machines you own
{after}StartLimitIntervalSec=600
StartLimitBurst=20

[Service]
Type=notify
NotifyAccess=main
# Without a screen nobody else makes /dev/nvidia-uvm; `+` leaves it its own rights.
ExecStartPre=+-/usr/bin/nvidia-modprobe -c 0 -u
ExecStart={command}
Restart=on-failure
RestartSec=5s
# A wrong setting stays wrong, and a newer version's state too new.
RestartPreventExitStatus=2 5
WatchdogSec={watchdog_s}s
# The daemon itself stops its workers, after their step; it says when that takes longer.
# Scripts of jupiterctl launch outlive it, each with a keeper that ends by itself.
KillMode=process
TimeoutStopSec={stop_s}s
# A worker that needs too much memory ends alone.
OOMPolicy=continue
{user}RuntimeDirectory=jupiter
RuntimeDirectoryMode=0700
WorkingDirectory=%t/jupiter
{folders}NoNewPrivileges=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
SystemCallArchitectures=native
LockPersonality=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
{sandbox}
[Install]
WantedBy={target}.target
"""
"""The sandbox of both needs no rights and no namespaces, so that a user's own systemd can do it."""

_AFTER = "After=network.target network-online.target\n"
"""It starts without a network, too, and finds one that comes later."""

_USER = """\
CPUWeight=1000
LimitMEMLOCK=infinity
UMask=0077
User={user}
"""

_CACHE = """\
CacheDirectory=jupiter
CacheDirectoryMode=0700
# Where libraries keep what they have compiled.
Environment=HOME=%C/jupiter
"""

_OWN_STATE = """\
StateDirectory=jupiter
StateDirectoryMode=0700
"""

_SANDBOX = """\
CapabilityBoundingSet=
AmbientCapabilities=
ProtectSystem=strict
ProtectHome=read-only
ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectKernelLogs=yes
ProtectControlGroups=yes
ProtectHostname=yes
RestrictNamespaces=yes
SystemCallFilter=~@mount @swap @reboot @module @raw-io @obsolete @cpu-emulation
SystemCallErrorNumber=EPERM
# Which GPU is taken is told to all daemons of the machine in there.
ReadWritePaths=/tmp
"""

_SYSUSERS = f"""\
u {SYSTEM_USER} - "Jupiter" {SYSTEM_STATE_DIR}
m {SYSTEM_USER} video
m {SYSTEM_USER} render
"""


def unit_text(request: ServiceRequest) -> str:
    """Return the unit file of a service; systemd.unit(5) and systemd.service(5) have its form."""
    is_system, folder = request.scope is Scope.SYSTEM, request.state_dir
    state = "" if folder is None else f"{STATE_DIR_VARIABLE}={folder}"
    environment = f"Environment={_quoted(state)}\n" if state else ""
    own_state = _OWN_STATE if folder == SYSTEM_STATE_DIR else ""
    writable = f"ReadWritePaths={_quoted(str(folder))}\n" if folder and not own_state else ""
    return _UNIT.format(
        after=_AFTER if is_system else "",
        command=" ".join(map(_word, (*request.program, *request.arguments))),
        watchdog_s=WATCHDOG_S,
        stop_s=STOP_S,
        user=_USER.format(user=request.user) if is_system else "",
        folders=(_CACHE + own_state if is_system else "") + environment,
        sandbox=_SANDBOX + writable if is_system else "",
        target="multi-user" if is_system else "default",
    )


def sysusers_text() -> str:
    """Return what makes systemd-sysusers add the user of the system unit; see sysusers.d(5).

    The groups are those which some distributions leave a GPU to.
    """
    return _SYSUSERS


def state_dir_in(unit: str) -> Path | None:
    """Return the state folder that a unit file of ours names; None where it names none."""
    for line in unit.splitlines():
        name, is_set, value = line.strip().partition("=")
        if name == "Environment" and is_set and STATE_DIR_VARIABLE in value:
            path = value.strip('"').partition("=")[2]
            return Path(path.replace('\\"', '"').replace("\\\\", "\\").replace("%%", "%"))
    return None


def _word(text: str) -> str:
    """Return a word of a command line: systemd replaces what begins with % or $ in one."""
    return _quoted(text.replace("$", "$$"))


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    is_plain = escaped == text.replace("%", "%%") and not set(text) & set(" \t;'")
    return escaped if is_plain and text else f'"{escaped}"'
