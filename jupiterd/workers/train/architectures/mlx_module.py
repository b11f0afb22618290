"""mlx-lm's module of a configuration, and its parameters under transformers' names.

Owns making it and that way: mlx-lm's own `sanitize` turns what files hold into the module's
parameters, as a part of what is computed, so gradients come back under transformers' names and in
their shapes. Doesn't know losses, masks or training.
"""

from collections.abc import Collection, Mapping, Sequence
from copy import copy
from typing import Any

import mlx.core as mx
import numpy as np
from mlx import nn
from mlx.utils import tree_flatten, tree_unflatten
from mlx_lm.utils import _get_classes  # pyright: ignore[reportPrivateUsage]
from transformers import PreTrainedConfig

from jupiterd.errors import UsageError
from jupiterd.workers.train.architectures.mlx_corrections import correct
from jupiterd.workers.train.architectures.skeleton import Skeleton, is_converted, skeleton
from jupiterd.workers.train.model_config import config_fields

Arrays = Mapping[str, mx.array]

_HINT = "train it on torch: --engine torch"


class MlxModule:
    """A model of mlx-lm, called with parameters that have transformers' names."""

    def __init__(self, config: PreTrainedConfig) -> None:
        """Make it.

        Raises:
            UsageError: mlx-lm has no such model, or one with other parameters.
        """
        fields = config_fields(config)
        self.inner = _built(fields)
        correct(self.inner, fields)
        known = skeleton(config)
        self.shapes = known.shapes
        self.frozen = known.frozen
        self.matrices, self.turned = known.matrices, known.turned
        self._untouched = copy(self.inner)
        self._names = self._fitting_names(config, known)

    def parameters_of(self, weights: Arrays) -> Any:  # noqa: ANN401 - a tree of arrays
        """Return the module's own parameters; weights: by transformers' names."""
        # Some modules leave out their output layer when they see that there is none: only once.
        found = self._sanitized(copy(self._untouched), weights, self._names)
        return tree_unflatten(list(found.items()))

    def update(self, weights: Arrays) -> None:
        """Give the module these parameters."""
        self.inner.update(self.parameters_of(weights))

    def update_some(self, weights: Arrays) -> Sequence[str]:
        """Give the module some of its parameters; return the places of these."""
        found = self._sanitized(copy(self._untouched), weights, self._names)
        self.inner.update(tree_unflatten(list(found.items())))
        return list(found)

    def update_beside(self, weights: Arrays, places: Collection[str]) -> None:
        """Give the module all parameters but those of modules that have theirs already.

        weights: of all names, whatever stands for the others; places: paths of those modules
        """
        found = self._sanitized(copy(self._untouched), weights, self._names)
        mine = {n: v for n, v in found.items() if n.removesuffix(".weight") not in places}
        self.inner.update(tree_unflatten(list(mine.items())))

    def places_of(self, modules: Sequence[str]) -> dict[str, str]:
        """Return where mlx-lm has the modules that transformers has at these paths.

        Found by numbers: each module's matrix is filled with its own, and seen again.

        Raises:
            UsageError: mlx-lm has a module in other pieces.
        """
        numbers = {f"{path}.weight": number for number, path in enumerate(modules, 1)}
        marked = {
            name: mx.broadcast_to(mx.array(float(numbers.get(name, 0))), shape)
            for name, shape in self.shapes.items()
        }
        found = self._sanitized(copy(self._untouched), marked, self._names)
        seen = {int(np.array(values.reshape(-1)[0])): name for name, values in found.items()}
        places = {path: seen.get(number, "") for number, path in enumerate(modules, 1)}
        for path, place in places.items():
            if not place.endswith(".weight"):
                raise UsageError(f"MLX has no {path} of its own in this model", _HINT)
        return {path: place.removesuffix(".weight") for path, place in places.items()}

    def let_go(self) -> None:
        """Hold no parameters any more, until it is given some again."""
        self.let_go_of(list(dict(tree_flatten(self.inner.parameters()))))

    def let_go_of(self, places: Sequence[str]) -> None:
        """Hold no parameters at these places any more, until others are given."""
        none = mx.zeros(())
        self.inner.update(tree_unflatten([(place, none) for place in places]))

    def _sanitized(
        self,
        module: Any,  # noqa: ANN401 - mlx-lm's
        weights: Arrays,
        names: Mapping[str, str],
    ) -> dict[str, mx.array]:
        held = {
            names[name]: mx.stop_gradient(values) if name in self.frozen else values
            for name, values in weights.items()
        }
        sanitize = getattr(module, "sanitize", None)
        return dict(held if sanitize is None else sanitize(held))

    def _fitting_names(self, config: PreTrainedConfig, known: Skeleton) -> dict[str, str]:
        """Return the names by which mlx-lm finds every parameter its place.

        Some of its modules expect files as transformers writes them, some those of the hub, which
        leave out the body's name.
        """
        in_files = known.names_in_files() if is_converted(config) else {n: n for n in known.shapes}
        short = {name: held.removeprefix(known.prefix) for name, held in in_files.items()}
        empty = {name: mx.zeros(shape) for name, shape in known.shapes.items()}
        differing = ""
        for names in (in_files, short):
            tried = copy(self._untouched)
            places = _shapes(self._sanitized(tried, empty, names))
            wanted = _shapes(dict(tree_flatten(tried.parameters())))
            if places == wanted:
                self.inner = tried
                return names
            differing = _first_difference(places, wanted)
        raise UsageError(
            f"MLX has other parameters for this {config.model_type} model: {differing}", _HINT
        )


def _built(fields: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a module of mlx-lm
    kind = fields.get("model_type")
    try:
        model, arguments = _get_classes(dict(fields))
        module: nn.Module = model(arguments.from_dict(dict(fields)))
    except (ValueError, TypeError, KeyError, AttributeError, AssertionError, IndexError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise UsageError(f"MLX can't make this {kind} model: {reason}", _HINT) from error
    return module.train()


def _shapes(arrays: Arrays) -> dict[str, tuple[int, ...]]:
    return {name: tuple(values.shape) for name, values in arrays.items()}


def _first_difference(
    places: Mapping[str, tuple[int, ...]], wanted: Mapping[str, tuple[int, ...]]
) -> str:
    name = min(name for name, _ in places.items() ^ wanted.items())
    return f"{name} is {wanted.get(name)} there, and {places.get(name)} in transformers"
