"""Whether others may write into the folders above a state folder, and put another in its place.

Owns which of them aren't, as ssh's StrictModes has it. Folders that a group may write into are left
to their owner: on many systems each user has a group of their own. Doesn't know state folders.
"""

import os
import pwd
import stat
from pathlib import Path
from typing import Final

_UID_MAP: Final = Path("/proc/self/uid_map")
_OVERFLOW: Final = Path("/proc/sys/kernel/overflowuid")
_ALL_USERS: Final = ["0", "0", "4294967295"]


def unsafe_parent(folder: Path) -> tuple[str, str] | None:
    """Return why the first folder above isn't safe, and what mends it; None: all are safe.

    folder: a real path, which is there; its file system may have no rights
    """
    device, has_rights = folder.stat().st_dev, not folder.stat().st_mode & stat.S_IWOTH
    for parent in folder.parents:
        found = parent.stat()
        if found.st_uid not in (0, os.geteuid()) and not _is_unknown(found.st_uid):
            owner, own = user_name(found.st_uid), user_name(os.geteuid())
            return f"{parent} belongs to {owner}", f"sudo chown {own} {parent}"
        is_open = found.st_mode & stat.S_IWOTH and not found.st_mode & stat.S_ISVTX
        if is_open and (has_rights or found.st_dev != device):
            return f"everybody on this machine may write into {parent}", f"chmod o-w {parent}"
    return None


def user_name(user: int) -> str:
    """Return what people call a user."""
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"user {user}"


def _is_unknown(user: int) -> bool:
    """Say whether a number stands for all users outside a container, which it can't distinguish."""
    try:
        is_apart = _UID_MAP.read_text().split() != _ALL_USERS
        return is_apart and user == int(_OVERFLOW.read_text())
    except (OSError, ValueError):  # not Linux
        return False
