"""Take a picture of a conversation in a terminal, from a daemon whose models answer.

    .venv/bin/python scripts/chat_picture.py --state-dir DIR --model MODEL --ask QUESTION

Owns the size of the terminal, and drawing what stands on it as SVG. Nothing in it is prepared:
jupiterctl itself runs there, and a real model answers, always with the likeliest word.
"""

import argparse
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from tests.support.ctl.chat_terminal import LineScreen

ROOT = Path(__file__).resolve().parent.parent
COLUMNS, LINES = 92, 60
PROMPT = ">>> "
STYLES = {"2": "dim", "1": "bold"}
"""What jupiterctl writes -> what rich calls it."""


def main(arguments: list[str] | None = None) -> int:
    """Take the picture; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--state-dir", type=Path, required=True, help="of a running daemon")
    parser.add_argument("--model", default="promoted")
    parser.add_argument("--beside", default="", metavar="MODEL")
    parser.add_argument("--ask", action="append", required=True, metavar="QUESTION")
    parser.add_argument("--max-tokens", default="80", metavar="N")
    parser.add_argument(
        "--out", type=Path, default=ROOT / "docs" / "screenshots" / "conversation.svg"
    )
    options = parser.parse_args(arguments)
    sys.path.insert(0, str(ROOT))  # the terminal is the one of the tests
    options.out.write_text(drawn(conversation(options), called(options)), encoding="utf-8")
    print(f"wrote {options.out}")
    return 0


def called(options: argparse.Namespace) -> str:
    """Return the command as it is typed."""
    beside = f" --beside {options.beside}" if options.beside else ""
    return f"jupiterctl model chat {options.model}{beside}"


def conversation(options: argparse.Namespace) -> "LineScreen":
    """Type the questions, wait for each answer, and return the screen as it is then."""
    from tests.support.ctl.chat_terminal import chat_terminal

    beside = ("--beside", options.beside) if options.beside else ()
    sampling = ("--temperature", "0", "--max-tokens", options.max_tokens)
    words = (options.model, *beside, *sampling)
    size = {"columns": COLUMNS, "lines": LINES}
    with chat_terminal(options.state_dir.absolute(), *words, **size) as terminal:
        terminal.until(lambda shown: PROMPT in shown)
        for number, question in enumerate(options.ask, start=2):
            terminal.press(f"{question}\r".encode())
            terminal.until(lambda shown, count=number: shown.count(PROMPT) == count)
        return cast("LineScreen", terminal.screen)


def drawn(screen: "LineScreen", title: str) -> str:
    """Return the rows that something stands on, as SVG."""
    rows = screen.styled_rows()
    while rows and not "".join(text for text, _ in rows[-1]).strip(f" {PROMPT}"):
        rows.pop()
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    for row in rows:
        pieces = [(text, STYLES.get(style, "")) for text, style in row]
        console.print(Text.assemble(*pieces, no_wrap=True, overflow="crop"))
    return console.export_svg(title=title)


if __name__ == "__main__":
    sys.exit(main())
