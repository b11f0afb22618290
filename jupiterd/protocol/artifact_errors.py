"""The errors of files: artifacts of the store, models, checkpoints.

Owns what can be wrong with their content, as `errors` passes it on. Doesn't know where any of it is
found out.
"""

from jupiterd.protocol.error_form import JupiterError


class CorruptArtifactError(JupiterError):
    """Bytes that don't match their hash, or a file whose content isn't what it should be."""

    code = "corrupt-artifact"
    grpc_status = "DATA_LOSS"
    default_hint = (
        "what Jupiter stores is fetched again from another node that has it; "
        "a file of your own must be written, or fetched, again"
    )


class BrokenModelError(CorruptArtifactError):
    """A folder holds no model, or only a part of one."""

    code = "broken-model"
    default_hint = (
        "a model's folder has config.json, its tokenizer and its weights as safetensors; "
        "fetch it again where a file is missing or cut off"
    )


class CorruptCheckpointError(CorruptArtifactError):
    """What training is to go on from is damaged, wherever it lies, or can't be read."""

    code = "corrupt-checkpoint"
    default_hint = "training goes on from the checkpoint before it"


class CorruptWeightsError(CorruptArtifactError):
    """The weights that a run is to begin with are damaged, or can't be read."""

    code = "corrupt-weights"
    is_permanent = True
    default_hint = "fetch or convert the model again, and start anew with its folder"


class UnknownModelError(CorruptArtifactError):
    """The engine has no such architecture; another one may."""

    code = "unknown-model"
    default_hint = "write engine: transformers below generation in the domain file"
