"""A domain's own questions: the file that `evaluation.questions` names, read and checked.

Owns where it lies, and what is wrong with it in words. Doesn't know the form of a question
(`cycle.questions.question_file`), or what becomes of the text.
"""

from pathlib import Path

from jupiterd.cycle.domain.domain import Domain
from jupiterd.cycle.questions.question_file import MAX_DOMAIN_BYTES, read_questions
from jupiterd.errors import NotFoundError, UsageError
from jupiterd.path_text import path_of, path_text


def questions_text(domain_file: Path, domain: Domain) -> str:
    """Return the text of a domain's questions, checked; it has some.

    Raises:
        NotFoundError: there is no such file, or it can't be read.
        UsageError: it is too large, or a line of it is no question.
    """
    file = domain_file.parent / path_of(domain.evaluation.questions)
    text = _text(file)
    read_questions(text, path_text(file.name))
    return text


def questions_mistake(domain_file: Path, domain: Domain) -> str:
    """Return what is wrong with a domain's questions; empty: nothing, or there are none."""
    if not domain.evaluation.questions:
        return ""
    try:
        questions_text(domain_file, domain)
    except (NotFoundError, UsageError) as error:
        return error.message
    return ""


def _text(file: Path) -> str:
    name = path_text(file)
    try:
        if not file.is_file():  # a pipe would be waited for
            raise NotFoundError(f"there is no file {name}")
        with file.open("rb") as stream:
            found = stream.read(MAX_DOMAIN_BYTES + 1)
    except OSError as error:
        raise NotFoundError(f"{name} can't be read: {error.strerror or error}") from error
    if len(found) > MAX_DOMAIN_BYTES:
        raise UsageError(f"{name} has more than {MAX_DOMAIN_BYTES:,} bytes")
    try:
        return found.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{name} is no UTF-8 at byte {error.start}") from error
