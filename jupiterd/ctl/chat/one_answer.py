"""One question and its answer: from the command line, or from a pipe.

Owns what the question is, the form of the answer, and how an error ends the command. Doesn't know
conversations.
"""

import os
import stat
import sys
from pathlib import Path

from jupiterd.ctl.chat.answer_display import Answers
from jupiterd.ctl.chat.answer_progress import AnswerProgress
from jupiterd.ctl.chat.model_names import PROMOTED
from jupiterd.ctl.chat.screen.answer_screen import NoScreen
from jupiterd.ctl.chat.screen.text_output import text_output
from jupiterd.ctl.chat.talk import Talk
from jupiterd.ctl.output.console import Console
from jupiterd.document_schema import SCHEMA
from jupiterd.errors import UsageError


def piped_text(*, is_awaited: bool) -> str:
    """Return what comes on the standard input; empty if that is a terminal, or nothing comes.

    Args:
        is_awaited: nothing else was asked. With a question on the command line only a pipe or a
            file is read, for who calls may have left anything else open.
    """
    if sys.stdin is None or (sys.stdin.isatty() and not is_awaited):
        return ""
    if not is_awaited and not _is_pipe_or_file():
        return ""
    raw = getattr(sys.stdin, "buffer", None)
    text = sys.stdin.read() if raw is None else raw.read().decode("utf-8", "replace")
    return text.removesuffix("\n")


def typed_text(argument: str) -> str:
    """Return an argument of the command line as valid UTF-8: nothing else can be sent."""
    return os.fsencode(argument).decode("utf-8", "replace")


def question_of(prompt: str, piped: str, model: str = "") -> str:
    """Return the whole question: what was piped, and below it what is asked of it.

    Args:
        prompt: of the command line.
        piped: of standard input.
        model: the only argument, if there was one: it may have been meant as the prompt.

    Raises:
        UsageError: there is none.
    """
    text = "\n\n".join(part for part in (piped, typed_text(prompt)) if part.strip())
    if not text and model:
        raise UsageError(
            f"nothing was asked of a model called {model}",
            f'if that is the prompt: jupiterctl model chat {PROMOTED} "{model}"',
        )
    if not text:
        raise UsageError(
            "nothing was asked", 'jupiterctl model chat "PROMPT", or without any at a terminal'
        )
    return text


def answer_once(state_dir: Path, console: Console, talk: Talk, text: str) -> None:
    """Have it answered, and print the answer.

    Raises:
        JupiterError: it wasn't answered, or not to the end.
    """
    answers, question = Answers(state_dir, console, talk), talk.ask(text)
    if console.is_table:
        written = answers.shown(question, text_output(console))
    else:
        written = answers.silent(question, NoScreen())
    errors = [writing.error for writing in written if writing.error is not None]
    if not console.is_table and len(errors) < len(written):
        console.show(_document(talk, text, written), list)
    for error in errors[:-1]:
        console.error(error)
    if errors:
        raise errors[-1]


def _document(talk: Talk, text: str, written: list[AnswerProgress]) -> dict[str, object]:
    return {
        "schema": SCHEMA,
        "prompt": text,
        "system": talk.system or None,
        "answers": [writing.to_plain() for writing in written],
    }


def _is_pipe_or_file() -> bool:
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (OSError, ValueError):  # a program that calls us has put something else there
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)
