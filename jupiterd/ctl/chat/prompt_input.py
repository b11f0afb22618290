"""What a user types at a terminal: lines that can be edited, and those of earlier conversations.

Owns the standard library's readline, and the file of lines that is kept for the next time. Doesn't
know what a line means.
"""

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Self

from jupiterd.ctl.chat.slash_commands import completions
from jupiterd.ctl.chat.typed_text import QUOTES, TypedText
from jupiterd.errors import UsageError

HISTORY = "chat_history"
"""In the state folder; nobody else may read it."""

MOST_LINES = 1000
PROMPT, GOES_ON = ">>> ", "... "


class PromptInput:
    """The prompt of a conversation; a context, which keeps the lines at its end."""

    def __init__(self, state_dir: Path) -> None:
        self._file = state_dir / HISTORY
        self.is_literal = False
        """The last text was quoted."""

    def __enter__(self) -> Self:
        """Let lines be edited, and earlier ones be found with the arrow keys."""
        import readline  # loads a library that edits lines

        self._readline = readline
        readline.clear_history()
        for line in _earlier(self._file):
            readline.add_history(line)
        self._known = readline.get_current_history_length()
        readline.set_completer(_completion)
        readline.set_completer_delims(" \t\n")
        is_libedit = "libedit" in (readline.__doc__ or "")
        readline.parse_and_bind("bind ^I rl_complete" if is_libedit else "tab: complete")
        return self

    def __exit__(self, *_: object) -> None:
        """Keep the new lines, after those of others meanwhile; what can't be written is lost."""
        count = self._readline.get_current_history_length()
        new = [self._readline.get_history_item(n + 1) for n in range(self._known, count)]
        self._readline.set_completer(None)
        with suppress(OSError):
            _keep(self._file, [*_earlier(self._file), *new][-MOST_LINES:])

    def ask(self) -> str:
        """Return what the user typed next, which may have several lines.

        Raises:
            EOFError: Ctrl-D, at the beginning of a text.
            KeyboardInterrupt: Ctrl-C.
            UsageError: the terminal sends something else than UTF-8.
        """
        typed = TypedText()
        while True:
            try:
                text = typed.take(input(GOES_ON if typed.is_open else PROMPT))
            except UnicodeDecodeError as error:
                raise UsageError("what was typed isn't UTF-8", "export LC_ALL=C.UTF-8") from error
            except EOFError:
                if not typed.is_open:
                    raise
                text = typed.take(QUOTES) if typed.is_literal else typed.take("")
            if text is not None:
                self.is_literal = typed.is_literal
                return text


def _completion(begun: str, number: int) -> str | None:
    """Return the `number`th command that a word may become, as readline asks for it."""
    found = completions(begun)
    return f"{found[number]} " if number < len(found) else None


def _earlier(file: Path) -> list[str]:
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
        kept = [json.loads(line) for line in lines[-MOST_LINES:]]
    except (OSError, ValueError):  # there is none yet, or somebody else wrote it
        return []
    return [line for line in kept if isinstance(line, str) and "\0" not in line]


def _keep(file: Path, lines: list[str]) -> None:
    """Write the file anew, with rights for its user alone; JSON keeps lines that have several."""
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.writelines(f"{json.dumps(line)}\n" for line in lines)
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)
