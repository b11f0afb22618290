"""Writes a model folder as the one file that llama.cpp reads; of an adapter, with its base.

    python -m jupiterd.workers.serving.write_gguf FOLDER FILE

Owns the process. Doesn't know the format (`gguf_file`).
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from jupiterd.adapter_folder import base_beside
from jupiterd.gguf_file.write import write_gguf
from jupiterd.workers.adapters.write_merged import write_merged
from jupiterd.workers.mlx_folder import read_config
from jupiterd.workers.program_status import status_of


def write_file(folder: Path, to: Path) -> None:
    """Write the file; raises JupiterError where the folder can't be read."""
    if base_beside(folder) is None:
        write_gguf(folder, read_config(folder), to, "model")
        return
    with TemporaryDirectory(dir=to.parent, prefix="merged-", suffix=".tmp") as place:
        merged = Path(place) / "model"
        write_merged(folder, merged)
        write_gguf(merged, read_config(merged), to, "model")


if __name__ == "__main__":
    sys.exit(status_of(write_file))
