"""The work of training an adapter on one token, in floating point operations.

Owns counting it. Pure. Doesn't know tensors or devices. Frozen weights have no gradient: they cost
the forward pass, and above the first adapter the way back through them, 4 operations a parameter in
place of 6. What DoRA computes once for each micro batch, the lengths of rows, isn't counted.
"""

import math

from jupiterd.cycle.training.adapters.adapter import AdapterOptions, module_of, place_in_layer
from jupiterd.cycle.training.adapters.adapter_size import shapes_of_adapter
from jupiterd.cycle.training.architectures import matrix_parameters
from jupiterd.cycle.training.plan import ModelShape


def adapter_flops(shape: ModelShape, options: AdapterOptions) -> int:
    """Return the operations of training on one token, counted as `memory.flops_per_token` does.

    Raises:
        UsageError: the model has none of the matrices that are asked for.
    """
    sizes = shapes_of_adapter(shape, options)
    lowest = min(place_in_layer(module_of(name)[0])[0] for name in sizes)
    passed_back = shape.layers - lowest
    frozen = matrix_parameters(shape) // shape.layers
    scores = 4 * shape.heads * shape.head_dim * shape.seq_len
    forward = shape.layers * (2 * frozen + scores)
    backward = passed_back * (2 * frozen + 2 * scores)
    output = 4 * shape.vocab_size * shape.hidden
    own = 6 * sum(math.prod(size) for size in sizes.values())
    return forward + backward + output + own
