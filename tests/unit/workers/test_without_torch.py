"""A process that only reads a tokenizer takes torch for not installed."""

import subprocess
import sys

ASKS = """
from importlib.util import find_spec
from jupiterd.workers.serving.without_torch import without_torch
assert find_spec("torch") is not None
without_torch()
print(find_spec("torch"))
import torch
"""


def test_torch_counts_as_not_installed() -> None:
    ran = subprocess.run([sys.executable, "-c", ASKS], capture_output=True, text=True, check=False)
    assert ran.stdout == "None\n"
    assert ran.stderr.rstrip().endswith("import of torch halted; None in sys.modules")
