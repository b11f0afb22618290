"""Writes a model folder as the one file that llama.cpp reads.

    python -m jupiterd.workers.serving.write_gguf FOLDER FILE

Owns the process: what hinders it is its last line of output, and its status is 1. Doesn't know the
format (`gguf_file`).
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from jupiterd.adapter_folder import base_beside
from jupiterd.errors import JupiterError
from jupiterd.gguf_file.write import write_gguf
from jupiterd.workers.adapters.write_merged import write_merged
from jupiterd.workers.mlx_folder import read_config


def main(folder: Path, to: Path) -> int:
    """Write the file; return the process's status."""
    try:
        if base_beside(folder) is None:
            write_gguf(folder, read_config(folder), to, "model")
            return 0
        with TemporaryDirectory(dir=to.parent, prefix="merged-", suffix=".tmp") as place:
            merged = Path(place) / "model"
            write_merged(folder, merged)
            write_gguf(merged, read_config(merged), to, "model")
    except (JupiterError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
