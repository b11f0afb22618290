"""A Python with everything Jupiter needs but the machine learning libraries.

Owns a virtual environment of links to the packages of the one that runs the tests.
"""

import subprocess
import sys
import sysconfig
from pathlib import Path

EXTRAS = ("torch", "functorch", "mlx", "transformers", "tokenizers", "safetensors", "numpy")


def bare_python(folder: Path) -> Path:
    """Make a virtual environment in `folder` and return its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    ours = Path(sysconfig.get_path("purelib"))
    theirs = folder / ours.relative_to(sys.prefix)
    for package in ours.iterdir():
        if not package.name.startswith(EXTRAS):
            (theirs / package.name).symlink_to(package)
    return folder / "bin" / "python"
