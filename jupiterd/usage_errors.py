"""What click finds wrong with a command line, as one of our errors.

Owns its sentence and the hint, the same for every program. Doesn't know any command.
"""

import re

import click

from jupiterd.errors import UsageError

WITH_FORMS = "jupiterctl"
"""The program whose every command takes -o."""

OF_THE_DAEMON = (
    "it is for jupiterd, as it is started; here --state-dir DIR names whose daemon is asked, "
    "unless it is that of the usual state folder"
)

PLAIN_WORDS = {
    "is not a valid integer range": "is not a whole number",
    "is not a valid integer": "is not a whole number",
    "is not a valid float range": "is not a number",
    "is not a valid float": "is not a number",
}
"""What click says -> the same without the names of its types; longer ones first."""


def usage_error(error: click.ClickException, program: str) -> UsageError:
    """Return what `program` was told wrongly, with the name that may have been meant."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    path = context.command_path if context else program
    if isinstance(error, click.NoSuchOption) and program == WITH_FORMS and _is_form(error):
        return UsageError(_sentence(error.message), f"did you mean: {path} -o json")
    if isinstance(error, click.NoSuchOption) and program == WITH_FORMS and _is_daemons(error):
        return UsageError(_sentence(error.message), OF_THE_DAEMON)
    if isinstance(error, click.NoSuchCommand | click.NoSuchOption) and error.possibilities:
        return UsageError(
            _sentence(error.message), f"did you mean: {path} {error.possibilities[0]}"
        )
    meant = _value_meant(error)
    hint = f"did you mean: {meant}" if meant else f"{path} --help"
    return UsageError(_sentence(error.format_message()), hint)


def _is_daemons(error: click.NoSuchOption) -> bool:
    """Say whether it is an option with which a daemon is started, and not how one is found."""
    return error.option_name in {"--local", "--scope", "--peer"}


def _value_meant(error: click.ClickException) -> str:
    """Return which of the values that there are is nearest to the one that was given."""
    kind = getattr(getattr(error, "param", None), "type", None)
    given = re.match(r"'(.+)' is not one of ", error.message)
    if given is None or not isinstance(kind, click.Choice):
        return ""
    from difflib import get_close_matches  # for mistakes alone

    return next(iter(get_close_matches(given[1], list(map(str, kind.choices)), n=1)), "")


def _is_form(error: click.NoSuchOption) -> bool:
    """Say whether a form of output was meant, as many other programs name it."""
    from difflib import get_close_matches  # for mistakes alone

    return bool(get_close_matches(error.option_name, ("--json",), cutoff=0.8))


def _sentence(message: str) -> str:
    """Return click's message as our errors are written: small first letter, no full stop."""
    for words, plain in PLAIN_WORDS.items():
        message = message.replace(words, plain)
    return (message[:1].lower() + message[1:]).removesuffix(".")
