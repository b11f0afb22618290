"""Writes a model folder as the one file that llama.cpp reads.

    python -m jupiterd.workers.serving.write_gguf FOLDER FILE

Owns the process: what hinders it is its last line of output, and its status is 1. Doesn't know the
format (`gguf_file`).
"""

import sys
from pathlib import Path

from jupiterd.errors import JupiterError
from jupiterd.gguf_file.write import write_gguf
from jupiterd.workers.mlx_folder import read_config


def main(folder: Path, to: Path) -> int:
    """Write the file; return the process's status."""
    try:
        write_gguf(folder, read_config(folder), to, "model")
    except (JupiterError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
