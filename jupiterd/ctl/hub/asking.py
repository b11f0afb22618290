"""Exceptions of the Hugging Face hub's library, translated into JupiterErrors with hints.

Owns the messages. Doesn't know what was requested. The library's versions use different HTTP
clients, so this module recognises HTTP errors by their attributes, not by their classes.
"""

from collections.abc import Generator
from contextlib import contextmanager

from jupiterd.ctl.hub.names import HubName
from jupiterd.cycle.base.key_hosts import is_private_connection
from jupiterd.errors import (
    DiskFullError,
    JupiterError,
    MissingExtraError,
    NotFoundError,
    RefusedError,
    SourceUnreachableError,
    UsageError,
)
from jupiterd.store.disk import is_no_room

TOO_OFTEN = 429
_DENIED = frozenset({401, 403})


def check_library() -> None:
    """Load the hub's library and turn off its progress bars and log messages.

    Sends no token to a mirror whose connection isn't encrypted.

    Raises:
        MissingExtraError: the library isn't installed.
    """
    try:
        from huggingface_hub import constants
        from huggingface_hub.utils import disable_progress_bars, logging
    except ModuleNotFoundError as error:
        raise MissingExtraError("models of Hugging Face need its library") from error
    if not is_private_connection(constants.ENDPOINT):
        constants.HF_HUB_DISABLE_IMPLICIT_TOKEN = True
    disable_progress_bars()
    logging.set_verbosity_error()


@contextmanager
def asking(name: HubName) -> Generator[None]:
    """Translate the exceptions that the library raises in the block into JupiterErrors.

    Raises:
        NotFoundError: the hub has no such model, data set or revision.
        RefusedError: it isn't public, the token has no access, or the hub has disabled it.
        SourceUnreachableError: the hub can't be reached, or HF_HUB_OFFLINE forbids it.
        DiskFullError: the disk of the cache is full.
        UsageError: the cache can't be written.
    """
    try:
        yield
    except JupiterError:
        raise
    except Exception as error:
        raise _translated(name, error) from error


def is_no_answer(error: SourceUnreachableError) -> bool:
    """Return whether an error of `asking` means that the hub didn't answer this machine.

    Another machine may be able to reach the hub then. False if the hub answered with an error, or
    if HF_HUB_OFFLINE forbids requests.
    """
    from huggingface_hub.errors import LocalEntryNotFoundError, OfflineModeIsEnabled

    cause = error.__cause__
    is_unwanted = isinstance(cause, OfflineModeIsEnabled | LocalEntryNotFoundError)
    return not is_unwanted and getattr(cause, "response", None) is None


def _translated(name: HubName, error: Exception) -> JupiterError:
    from huggingface_hub.errors import (
        DisabledRepoError,
        GatedRepoError,
        LocalEntryNotFoundError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    cause = error.__cause__
    if isinstance(error, LocalEntryNotFoundError) and isinstance(cause, Exception):
        return _translated(name, cause)
    for kind, error_of in (
        (GatedRepoError, _gated),  # a subclass of RepositoryNotFoundError: it comes first
        (RepositoryNotFoundError, _unknown),
        (RevisionNotFoundError, _without_revision),
        (DisabledRepoError, _closed),
        ((OfflineModeIsEnabled, LocalEntryNotFoundError), _offline),
    ):
        if isinstance(error, kind):
            return error_of(name)
    return _by_status(name, error) or _of_system(name, error)


def _look_it_up(name: HubName) -> str:
    return f"look its name up at huggingface.co/{'datasets' if name.is_data_set else 'models'}"


def _offline(name: HubName) -> SourceUnreachableError:
    """Return the error for HF_HUB_OFFLINE, if the cache doesn't hold the whole model."""
    if name.is_data_set:
        return SourceUnreachableError(
            f"HF_HUB_OFFLINE forbids to ask the hub for the data set {name}",
            "unset HF_HUB_OFFLINE, or give a folder or file with text",
        )
    return SourceUnreachableError(
        f"the model {name} isn't whole in the cache of this machine, and HF_HUB_OFFLINE forbids "
        "to ask the hub",
        f"unset HF_HUB_OFFLINE, or fetch it where there is a network: hf download {name.repository}"
        + (f" --revision {name.revision}" if name.revision else ""),
    )


def _gated(name: HubName) -> RefusedError:
    how = "with the account of your token" if _has_token() else "and show a token: hf auth login"
    return RefusedError(
        f"the {name.noun} {name} is open to those alone who have agreed to its terms",
        f"agree at {name.page}, {how} (or set HF_TOKEN)",
    )


def _unknown(name: HubName) -> NotFoundError:
    private = "your token may not see it" if _has_token() else "a private one needs HF_TOKEN"
    return NotFoundError(
        f"there is neither a folder {name.repository} on this machine, nor such a {name.noun} on "
        "the hub",
        f"{_look_it_up(name)}; {private}",
    )


def _without_revision(name: HubName) -> NotFoundError:
    return NotFoundError(
        f"the {name.noun} {name.repository} has no revision {name.revision or 'main'}",
        f"name a branch, a tag or a commit of it: {name.repository}@main",
    )


def _closed(name: HubName) -> RefusedError:
    return RefusedError(
        f"the hub has closed the {name.noun} {name} to everybody", _look_it_up(name)
    )


def _has_token() -> bool:
    from huggingface_hub import get_token

    return get_token() is not None


def _by_status(name: HubName, error: Exception) -> JupiterError | None:
    """Return the error for an HTTP status without a library exception; None: there is no status."""
    response = getattr(error, "response", None)
    status = int(getattr(response, "status_code", 0))
    if status == TOO_OFTEN:
        after = str(getattr(response, "headers", {}).get("Retry-After", ""))
        wait = f"try again in {after} s" if after.isdecimal() else "try again in some minutes"
        more = "" if _has_token() else "; it lets those ask more often who show a token (HF_TOKEN)"
        return SourceUnreachableError(
            f"the hub was asked too often for now: HTTP {status}", wait + more
        )
    if status in _DENIED:
        return RefusedError(
            f"the hub doesn't show {name} to this token: HTTP {status}",
            "look at its rights at huggingface.co/settings/tokens (HF_TOKEN, hf auth whoami)",
        )
    if status:
        return SourceUnreachableError(
            f"the hub has no answer about {name} just now: HTTP {status}",
            "try again in some minutes",
        )
    return None


def _of_system(name: HubName, error: Exception) -> JupiterError:
    reason = (str(error).splitlines() or [""])[0] or type(error).__name__
    if isinstance(error, OSError) and is_no_room(error):
        return DiskFullError(
            f"there is no room for the {name.noun} {name} on the disk of the cache"
        )
    if isinstance(error, PermissionError):
        return UsageError(
            f"the cache can't be written: {error.filename or reason}", "name another: HF_HOME=DIR"
        )
    return SourceUnreachableError(
        f"there is no folder {name.repository} on this machine, and the hub can't be asked: "
        f"{reason}",
        "check this machine's path to it, HF_ENDPOINT and HTTPS_PROXY; or give a "
        + ("folder or file with text" if name.is_data_set else "model's folder"),
    )
