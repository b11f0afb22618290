"""The only writer to standard output and standard error.

Owns the output formats, lines that replace each other on a terminal, and the format of errors. Data
goes to standard output, everything else to standard error. Doesn't know any command.
"""

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TextIO

import click

from jupiterd.ctl.invocation import Invocation
from jupiterd.document_schema import with_finite_numbers
from jupiterd.errors import JupiterError, UsageError

_CLEAR_LINE = "\r\x1b[K"

_ESCAPES = {code: f"\\u{code:04x}" for code in range(0x7F, 0xA0)}


class Console:
    """The output of one run of a command."""

    def __init__(self, output: str = "table", invocation: Invocation | None = None) -> None:
        self.output, self._invocation = output, invocation or Invocation()
        self._has_passing_line = False
        self._has_passing_notice = False

    @classmethod
    def of(cls, invocation: Invocation) -> "Console":
        """Return a console with the requested output format."""
        return cls(invocation.output, invocation)

    @property
    def is_table(self) -> bool:
        """Return whether people read the output, rather than programs."""
        return self.output == "table"

    @property
    def can_ask(self) -> bool:
        """Return whether the output is a terminal at which somebody can answer a question."""
        return self.is_table and _can_ask()

    @property
    def is_terminal(self) -> bool:
        """Return whether people read the output at a terminal."""
        return self.is_table and _is_terminal(sys.stdout)

    @property
    def can_draw(self) -> bool:
        """Return whether the output goes to a terminal that can show more than ASCII."""
        encoding = (sys.stdout.encoding or "").lower().replace("-", "")
        return self.is_terminal and encoding == "utf8"

    @property
    def columns(self) -> int:
        """Return how many columns the output may take; 80 where there is no terminal."""
        return _terminal_columns()

    def show(
        self,
        document: Mapping[str, Any],
        as_lines: Callable[[], Sequence[str]],
        *,
        is_quoted: bool = False,
    ) -> None:
        """Print the document as JSON, or as lines for people.

        is_quoted: the lines are other people's text, so commands in them aren't completed.
        """
        if self.is_table:
            for line in as_lines():
                self.line(line, is_quoted=is_quoted)
        elif self.output == "json":
            self.line(_json(document, indent=2), is_quoted=True)
        else:
            self.line(_json(document, separators=(",", ":")), is_quoted=True)

    def show_list(
        self, document: Mapping[str, Any], rows: str, as_lines: Callable[[], Sequence[str]]
    ) -> None:
        """Print a document with a list; with -o jsonl, each row is a separate line.

        rows: the document's key of the list
        """
        if self.output != "jsonl":
            self.show(document, as_lines)
            return
        for row in document.get(rows) or ():
            self.show({"schema": document.get("schema"), **row}, list)

    def line(self, text: str, *, is_quoted: bool = False) -> None:
        """Print a line that isn't replaced; commands in it reach the daemon that this one asks.

        is_quoted: it is other people's text, or for programs, and stays as it is
        """
        self.settle()
        sys.stdout.write(f"{text if is_quoted else self._invocation.typeable(text)}\n")
        sys.stdout.flush()

    def passing_line(self, text: str) -> None:
        """Print a line that the next one replaces on a terminal; elsewhere it stays."""
        if not _is_terminal(sys.stdout):
            self.line(text)
            return
        width = _terminal_columns() - 1
        sys.stdout.write(_CLEAR_LINE + self._invocation.typeable(text)[:width])
        sys.stdout.flush()
        self._has_passing_line = True

    def settle(self) -> None:
        """Erase passing lines, so that something else can be written."""
        if self._has_passing_line:
            sys.stdout.write(_CLEAR_LINE)
            sys.stdout.flush()
            self._has_passing_line = False
        if self._has_passing_notice:
            sys.stderr.write(_CLEAR_LINE)
            sys.stderr.flush()
            self._has_passing_notice = False

    def notice(self, text: str) -> None:
        """Print a notice, which isn't data, to standard error."""
        self.settle()
        sys.stderr.write(f"jupiterctl: {self._invocation.typeable(text)}\n")

    def error(self, error: JupiterError) -> None:
        """Print an error to standard error: the message, an empty line, the hint."""
        self.settle()
        said = self._invocation.typeable(f"{error.message}\n\nhint: {error.hint}")
        sys.stderr.write(f"jupiterctl: error: {said}\n")

    @property
    def can_pass(self) -> bool:
        """Return whether notices that replace each other can be shown."""
        return self.is_table and _is_terminal(sys.stderr)

    def passing_notice(self, text: str) -> None:
        """Show a notice that is erased later, on a terminal; elsewhere, print nothing."""
        if self.can_pass:
            sys.stderr.write(_CLEAR_LINE + text[: _terminal_columns() - 1])
            sys.stderr.flush()
            self._has_passing_notice = True

    def confirm(self, question: str, invocation: Invocation) -> None:
        """Ask on a terminal, unless --yes or --dry-run was given; raise click.Abort at a no."""
        if not (invocation.is_confirmed or invocation.is_dry_run) and _can_ask():
            click.confirm(question, abort=True, err=True)

    def require_consent(self, question: str, invocation: Invocation) -> None:
        """Ask before something irreversible; without a terminal, require --yes.

        Asks nothing with --dry-run. Raises UsageError without a terminal and --yes, and click.Abort
        at a no.
        """
        if invocation.is_dry_run:
            return
        if not invocation.is_confirmed and not _can_ask():
            raise UsageError(question, "without a terminal, say so with --yes")
        self.confirm(question, invocation)

    def require_comparison(self, question: str) -> None:
        """Ask whether both machines show the same words; raise click.Abort at a no.

        Raises:
            UsageError: there is no terminal to ask at.
        """
        if not _can_ask():
            hint = 'without a terminal, say which with --words "...", or compare none with --yes'
            raise UsageError(question, hint)
        click.confirm(question, abort=True, err=True)


def notice(text: str) -> None:
    """Print a notice to the console of the running command; do nothing outside of a command."""
    context = click.get_current_context(silent=True)
    invocation = context.find_object(Invocation) if context else None
    if text and invocation is not None:
        Console.of(invocation).notice(text)


def _json(document: Mapping[str, Any], **form: Any) -> str:
    """Return strict JSON, without the infinities that a daemon of another version may send.

    Control characters are escaped, also those that JSON would let through to a terminal.
    """
    try:
        text = json.dumps(document, ensure_ascii=False, allow_nan=False, **form)
    except ValueError:
        text = json.dumps(with_finite_numbers({**document}), ensure_ascii=False, **form)
    return text if text.isascii() and "\x7f" not in text else text.translate(_ESCAPES)


def _can_ask() -> bool:
    return sys.stdin.isatty() and _is_terminal(sys.stderr)


def _terminal_columns() -> int:
    import shutil  # slow to import

    return shutil.get_terminal_size().columns


def _is_terminal(stream: TextIO) -> bool:
    return stream.isatty() and os.environ.get("TERM") != "dumb"
