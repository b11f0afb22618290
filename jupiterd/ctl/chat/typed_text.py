"""A text of several lines out of what is typed line by line.

Pure. Owns the two ways to write one: between triple quotes, as with `ollama run`, and with a
backslash at the end of a line. Doesn't know where lines come from.
"""

QUOTES = '"""'


class TypedText:
    """The lines of one text."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._is_quoted = False
        self.is_literal = False
        """It was written between quotes: no command is looked for in it."""

    @property
    def is_open(self) -> bool:
        """Say whether another line is wanted."""
        return bool(self._lines) or self._is_quoted

    def take(self, line: str) -> str | None:
        """Take a line; return the whole text, or None if another line is wanted."""
        if not self.is_open and line.lstrip().startswith(QUOTES):
            self._is_quoted = self.is_literal = True
            line = line.lstrip().removeprefix(QUOTES)
            if not line and not self._lines:
                return None
        if self._is_quoted:
            return self._quoted(line)
        if line.endswith("\\"):
            self._lines.append(line[:-1])
            return None
        return self._whole(line)

    def _quoted(self, line: str) -> str | None:
        if not line.rstrip().endswith(QUOTES):
            self._lines.append(line)
            return None
        last = line.rstrip().removesuffix(QUOTES)
        return self._whole(*([last] if last else []))

    def _whole(self, *last: str) -> str:
        text = "\n".join([*self._lines, *last])
        self._lines, self._is_quoted = [], False
        return text
