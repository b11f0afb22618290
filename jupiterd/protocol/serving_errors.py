"""The errors of served models.

Owns what can keep a request for text from being answered, as `errors` passes it on. Doesn't know
where any of them is raised, nor how HTTP tells them.
"""

from jupiterd.exit_codes import ExitCode
from jupiterd.protocol.error_form import JupiterError


class BusyError(JupiterError):
    """Nobody can answer a request now: all are at work, or devices belong to a training."""

    code = "busy"
    may_mend = True
    exit_code = ExitCode.REFUSED
    grpc_status = "RESOURCE_EXHAUSTED"
    default_hint = "try again in a few seconds, or let another machine serve the model, too"

    def __init__(self, message: str, hint: str = "", retry_after_s: float = 5.0) -> None:
        super().__init__(message, hint)
        self.retry_after_s = retry_after_s


class ModelNotServedError(JupiterError):
    """No model of that name answers here."""

    code = "model-not-served"
    may_mend = True
    exit_code = ExitCode.NOT_FOUND
    grpc_status = "NOT_FOUND"
    default_hint = "jupiterctl model list shows every model"


class PromptTooLongError(JupiterError):
    """A prompt, with what is to be written, is longer than the model's context."""

    code = "prompt-too-long"
    is_permanent = True
    exit_code = ExitCode.USAGE
    grpc_status = "INVALID_ARGUMENT"
    default_hint = "shorten the prompt, or ask for fewer tokens (max_tokens)"


class UnsupportedFieldError(JupiterError):
    """The engine of a model can't do what a field of the request asks for: its name comes first."""

    code = "unsupported-field"
    is_permanent = True
    exit_code = ExitCode.USAGE
    grpc_status = "INVALID_ARGUMENT"
    default_hint = "leave the field out"


class EngineLostError(JupiterError):
    """The engine that wrote an answer died, or the machine on which it runs."""

    code = "engine-lost"
    may_mend = True
    is_of_one_machine = True
    grpc_status = "ABORTED"
    default_hint = "ask again: another engine answers, or this one begins anew"
