"""A torch model made from a shape: our own Qwen3, or any causal language model of transformers.

Owns the model's making, and one way to call either. Doesn't know training, nor files.
"""

from collections.abc import Generator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any, Protocol, cast

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.modules.module import register_module_parameter_registration_hook
from transformers import AutoModelForCausalLM, PreTrainedConfig
from transformers.activations import NewGELUActivation
from transformers.models.qwen3.configuration_qwen3 import Qwen3Config

from jupiterd.cycle.training.engine_options import ResolvedOptions
from jupiterd.cycle.training.plan import ModelShape
from jupiterd.errors import UsageError
from jupiterd.workers.train.architectures.torch_output import TorchOutputStep
from jupiterd.workers.train.first_weights import first_weights
from jupiterd.workers.train.model_config import model_config
from jupiterd.workers.train.torch.attention import (
    FlashAttention,
    TorchAttention,
    own_documents_mask,
)
from jupiterd.workers.train.torch.causal_mask import leave_out_causal_masks
from jupiterd.workers.train.torch.qwen3 import Qwen3, can_train
from jupiterd.workers.train.torch.torch_quantized import no_matrices

_HUGGING_FACE_NAMES = {"sdpa": "sdpa", "flash": "flash_attention_2"}


class CausalModel(Protocol):
    """What the loss needs of a model, beside its parameters."""

    config: PreTrainedConfig

    def bounds(self, documents: Tensor) -> Tensor:
        """Return what `hidden` takes, to keep documents apart; documents: [sequences, tokens]."""
        ...

    def hidden(self, ids: Tensor, bounds: Tensor | None = None) -> Tensor:
        """Return what the output layer is multiplied with, [sequences, tokens, width]."""
        ...

    @property
    def output_weight(self) -> Tensor:
        """Return the output layer's matrix, [vocabulary, width]."""
        ...

    @property
    def is_plain(self) -> bool:
        """Say whether logits are hidden states times that matrix, and no more."""
        ...

    def logits(self, hidden: Tensor) -> Tensor:
        """Return what the model makes of hidden states: [tokens, width] to [tokens, vocabulary]."""
        ...


class HuggingFaceModel(nn.Module):
    """A model of transformers, called as ours."""

    def __init__(self, inner: Any, *, has_flash: bool = False) -> None:  # noqa: ANN401 - untyped
        super().__init__()
        self.inner = inner
        self.has_flash = has_flash
        self.config: PreTrainedConfig = inner.config
        self._output = TorchOutputStep(inner)

    def bounds(self, documents: Tensor) -> Tensor:
        """Return the mask that transformers takes as it is, without making its own."""
        return own_documents_mask(documents)

    def hidden(self, ids: Tensor, bounds: Tensor | None = None) -> Tensor:
        """Return the last hidden states."""
        return self._output.hidden(ids, bounds)

    @property
    def output_weight(self) -> Tensor:
        """Return the output layer's matrix."""
        return self.inner.get_output_embeddings().weight

    @property
    def is_plain(self) -> bool:
        """Say whether logits are hidden states times that matrix, and no more."""
        return self._output.is_plain

    def logits(self, hidden: Tensor) -> Tensor:
        """Return what the model makes of hidden states: [tokens, width] to [tokens, vocabulary]."""
        return self._output.logits(hidden)


def make_model(
    shape: ModelShape, seed: int, end_token: int = 0, options: ResolvedOptions | None = None
) -> nn.Module:
    """Return a model (float32, CPU) whose weights depend on nothing but the shape and the seed.

    It is a LanguageModel, too.

    Raises:
        UsageError: transformers has no such model.
    """
    model = empty_model(shape, end_token, options)
    parameters = named_parameters(model)
    shapes = {name: tuple(parameter.shape) for name, parameter in parameters.items()}
    with torch.no_grad():
        for name, values in first_weights(shapes, seed).items():
            parameters[name].copy_(torch.from_numpy(values))
    return model


def empty_model(
    shape: ModelShape,
    end_token: int = 0,
    options: ResolvedOptions | None = None,
    *,
    without_matrices: bool = False,
) -> nn.Module:
    """Return the same before its weights are drawn; raises as `make_model`.

    without_matrices: they have no memory, as they will be quantized
    """
    making = no_matrices() if without_matrices else nullcontext()
    with torch.random.fork_rng(devices=[]), making:
        return _empty(model_config(shape, end_token), options)


def model_without_memory(shape: ModelShape, end_token: int, options: ResolvedOptions) -> nn.Module:
    """Return the same with parameters on torch's device "meta"; what isn't trained has values."""
    with torch.random.fork_rng(devices=[]), _parameters_without_memory():
        return _empty(model_config(shape, end_token), options, has_memory=False)


def named_parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    """Return the parameters by Hugging Face's names, tied ones once."""
    return dict(inner_model(model).named_parameters())


def inner_model(model: nn.Module) -> nn.Module:
    """Return the module whose parameters have Hugging Face's names."""
    return cast("nn.Module", model.inner) if isinstance(model, HuggingFaceModel) else model


def learn_used_rows(model: nn.Module) -> None:
    """Let a tied embedding's own gradient hold no rows but those of the tokens that were read.

    They are added to the output layer's gradient of the same matrix, which is there before them.
    With all rows, it would be a second matrix of nearly nothing but zeros for each micro batch.
    """
    tied = cast("CausalModel", model).output_weight
    for module in model.modules():
        if isinstance(module, nn.Embedding) and module.weight is tied:
            module.sparse = True


class LastLogits(nn.Module):
    """What a model says after a sequence, as a module: torch calls those with other parameters."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: Tensor) -> Tensor:
        """Return [vocabulary]; ids: [1, tokens]."""
        model = cast("CausalModel", self.model)
        return model.logits(model.hidden(ids)[0, -1:])[0]


def last_logits(model: nn.Module, ids: Tensor, parameters: Mapping[str, Tensor]) -> Tensor:
    """Return what a model says after a sequence, [vocabulary], with these parameters for its own.

    ids: [1, tokens]
    """
    prefix = "model.inner." if isinstance(model, HuggingFaceModel) else "model."
    given = {f"{prefix}{name}": values for name, values in parameters.items()}
    return functional_call(LastLogits(model), given, (ids,))


@contextmanager
def without_flash(model: nn.Module) -> Generator[None]:
    """Compute attention with torch's own kernels meanwhile: flash-attn's know no fp32."""
    if isinstance(model, Qwen3):
        with model.attending(TorchAttention()):
            yield
    elif isinstance(model, HuggingFaceModel) and model.has_flash:
        model.inner.set_attn_implementation(_HUGGING_FACE_NAMES["sdpa"])
        try:
            yield
        finally:
            model.inner.set_attn_implementation(_HUGGING_FACE_NAMES["flash"])
    else:
        yield


@contextmanager
def _parameters_without_memory() -> Generator[None]:
    """Take the memory of each parameter away as soon as a module has made it."""
    replaced: Any = _on_meta  # torch says that it returns nothing, and takes what it returns
    hook = register_module_parameter_registration_hook(replaced)
    try:
        yield
    finally:
        hook.remove()


def _on_meta(_module: nn.Module, _name: str, parameter: nn.Parameter | None) -> nn.Parameter | None:
    if parameter is None or parameter.is_meta:
        return parameter
    return nn.Parameter(parameter.to("meta"), requires_grad=parameter.requires_grad)


def _empty(
    config: PreTrainedConfig, options: ResolvedOptions | None, *, has_memory: bool = True
) -> nn.Module:
    attention = "sdpa" if options is None else options.attention
    checkpointing = options is not None and options.gradient_checkpointing
    if isinstance(config, Qwen3Config) and can_train(config):
        kernel = FlashAttention() if attention == "flash" else TorchAttention()
        return Qwen3(config, kernel, gradient_checkpointing=checkpointing, has_memory=has_memory)
    if options is not None and options.documents_apart and attention == "flash":
        reason = f"documents can't be kept apart in this {config.model_type} model with flash-attn"
        raise UsageError(reason, "choose attention: sdpa")
    inner = _of_transformers(config, attention, checkpointing=checkpointing)
    return HuggingFaceModel(inner, has_flash=attention == "flash")


def _of_transformers(config: PreTrainedConfig, attention: str, *, checkpointing: bool) -> Any:  # noqa: ANN401
    leave_out_causal_masks()
    make: Any = AutoModelForCausalLM.from_config
    fields = {"dtype": torch.float32, "trust_remote_code": False}
    try:
        inner = make(config, attn_implementation=_HUGGING_FACE_NAMES[attention], **fields)
    except ValueError as error:
        if attention == "flash":
            reason = f"a {config.model_type} model can't use flash-attn"
            raise UsageError(reason, "choose attention: sdpa") from error
        inner = make(config, attn_implementation="eager", **fields)
    if checkpointing:
        enable = getattr(inner, "activation_checkpointing_enable", None)
        (enable or inner.gradient_checkpointing_enable)()
    _use_one_kernel_for_gelu(inner)
    _learn_every_token(inner)
    return inner.train()


def _learn_every_token(inner: nn.Module) -> None:
    """Let the padding's vector learn as others do: it is the end mark's, and nothing is padded."""
    for module in inner.modules():
        if isinstance(module, nn.Embedding):
            module.padding_idx = None


def _use_one_kernel_for_gelu(inner: nn.Module) -> None:
    """Replace GPT-2's activation, which transformers writes out in eight operations."""
    for module in list(inner.modules()):
        for name, child in module.named_children():
            if isinstance(child, NewGELUActivation):
                setattr(module, name, nn.GELU(approximate="tanh"))
