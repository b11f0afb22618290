"""Parameters of a torch model that others take the place of.

Owns finding all of their places. Doesn't know where the others lie.
"""

from collections.abc import Mapping

from torch import nn


def replace_parameters(model: nn.Module, others: Mapping[int, nn.Parameter]) -> None:
    """Put other parameters into the places of a model's own, tied ones into all of them.

    others: id of a parameter -> what stands in its place
    """
    for module in list(model.modules()):
        for name, parameter in list(module.named_parameters(recurse=False, remove_duplicate=False)):
            setattr(module, name, others[id(parameter)])
