"""The first magnitudes of DoRA: the lengths of the rows of the matrices that it stands beside.

Owns computing them, in float64 on every engine alike. Doesn't know engines.
"""

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from jupiterd.cycle.training.adapters.adapter import MAGNITUDE, tensor_name
from jupiterd.workers.training_engine import Tensors

_WEIGHT = ".weight"


def first_magnitude(
    tensor: str, weights: Tensors, names: Collection[str], turned: Collection[str]
) -> tuple[str, NDArray[np.float32]] | None:
    """Return the magnitude that begins with a frozen tensor, float32[outputs], after its name.

    Args:
        tensor: its name as transformers has it.
        weights: of the frozen model; only a tensor that a magnitude begins with is read.
        names: of the adapter's tensors; None is returned where no magnitude is among them.
        turned: paths of the modules whose matrix is [inputs, outputs].
    """
    module = tensor.removesuffix(_WEIGHT)
    name = tensor_name(module, MAGNITUDE)
    if not tensor.endswith(_WEIGHT) or name not in names:
        return None
    values = weights[tensor]
    rows = values.T if module in turned else values
    squares = np.einsum("ij,ij->i", rows, rows, dtype=np.float64, casting="safe")
    return name, np.sqrt(squares).astype(np.float32)
