import runpy
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_files_to_read_are_those_that_are_installed() -> None:
    made = runpy.run_path(str(ROOT / "scripts" / "service_files.py"))["FILES"]
    folder = ROOT / "installers"
    there = {
        str(path.relative_to(folder)): path.read_bytes()
        for kind in ("systemd", "launchd")
        for path in (folder / kind).rglob("*")
        if path.is_file()
    }
    assert there == made, "scripts/service_files.py writes them anew"
