"""Generate jupiterd/rpc from proto/; with --check, say whether the committed code is current.

Owns the call of the protocol compiler. Knows nothing of what the messages mean.
"""

import argparse
import filecmp
import shutil
import sys
import tempfile
from pathlib import Path

from grpc_tools import protoc  # pyright: ignore[reportMissingTypeStubs]

ROOT = Path(__file__).resolve().parent.parent
PROTO = ROOT / "proto"
OUT = ROOT / "jupiterd" / "rpc"


def generate(target: Path) -> None:
    """Write the Python code of every .proto file into `target`, with imports from jupiterd.rpc."""
    sources = sorted(str(path.relative_to(PROTO)) for path in PROTO.rglob("*.proto"))
    with tempfile.TemporaryDirectory() as scratch:
        outputs = [f"--{kind}_out={scratch}" for kind in ("python", "pyi", "grpc_python")]
        if protoc.main(["protoc", f"-I{PROTO}", *outputs, *sources]) != 0:
            sys.exit(1)
        target.mkdir(parents=True, exist_ok=True)
        for made in Path(scratch).rglob("*.py*"):
            text = made.read_text().replace("from jupiter.v1 import", "from jupiterd.rpc import")
            (target / made.name).write_text(text)
    (target / "__init__.py").write_text(
        '"""Generated from proto/ by scripts/generate_rpc.py; never edited."""\n'
    )


def main() -> None:
    """Generate in place, or compare with --check."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="change nothing; exit 1 when out of date"
    )
    if not parser.parse_args().check:
        shutil.rmtree(OUT, ignore_errors=True)
        generate(OUT)
        return
    with tempfile.TemporaryDirectory() as fresh:
        generate(Path(fresh))
        names = sorted(path.name for path in Path(fresh).iterdir())
        _, different, missing = filecmp.cmpfiles(fresh, OUT, names, shallow=False)
    if different or missing:
        sys.exit(f"jupiterd/rpc is out of date: {', '.join(different + missing)}\nhint: make proto")
    sys.stdout.write("jupiterd/rpc is current\n")


if __name__ == "__main__":
    main()
