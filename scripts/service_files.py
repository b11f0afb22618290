"""Write installers/systemd and installers/launchd: what `jupiterd service install` makes, to read.

    service_files.py            writes the files
    service_files.py --check    changes nothing; exit 1 where one is out of date

Owns which examples there are. Every line in them comes from jupiterd itself.
"""

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from jupiterd.service.property_list import property_list
from jupiterd.service.service_request import SYSTEM_STATE_DIR, SYSTEM_USER, Scope, ServiceRequest
from jupiterd.service.unit import sysusers_text, unit_text

FOLDER = Path(__file__).resolve().parent.parent / "installers"

MACHINE = ServiceRequest(
    scope=Scope.SYSTEM,
    program=("/usr/local/bin/jupiterd",),
    arguments=(),
    state_dir=SYSTEM_STATE_DIR,
    user=SYSTEM_USER,
    home=SYSTEM_STATE_DIR,
)
USER = replace(
    MACHINE, scope=Scope.USER, program=("/home/ada/.local/bin/jupiterd",), state_dir=None
)
MAC = replace(
    MACHINE,
    program=("/Users/ada/.local/bin/jupiterd",),
    state_dir=None,
    user="ada",
    home=Path("/Users/ada"),
)

FILES: Mapping[str, bytes] = {
    "systemd/system/jupiterd.service": unit_text(MACHINE).encode(),
    "systemd/user/jupiterd.service": unit_text(USER).encode(),
    "systemd/sysusers.d/jupiter.conf": sysusers_text().encode(),
    "launchd/daemon/jupiter.jupiterd.plist": property_list(MAC),
    "launchd/agent/jupiter.jupiterd.plist": property_list(replace(MAC, scope=Scope.USER)),
}
"""Where each lies below installers/."""


def main() -> int:
    """Write the files, or say which are out of date."""
    is_checking = "--check" in sys.argv[1:]
    old = [name for name, text in FILES.items() if _read(FOLDER / name) != text]
    for name in old:
        print(f"{name} {'is out of date: scripts/service_files.py' if is_checking else 'written'}")
        if not is_checking:
            (FOLDER / name).parent.mkdir(parents=True, exist_ok=True)
            (FOLDER / name).write_bytes(FILES[name])
    return int(is_checking and bool(old))


def _read(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


if __name__ == "__main__":
    sys.exit(main())
