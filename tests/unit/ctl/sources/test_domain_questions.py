"""A domain's own questions, read before a cycle starts: every mistake is told with its place."""

from pathlib import Path

import pytest

from jupiterd.ctl.sources.domain_files import read_domain_file
from jupiterd.ctl.sources.domain_name import checked_domain
from jupiterd.ctl.sources.domain_questions import questions_text
from jupiterd.cycle.questions.question_file import MAX_DOMAIN_BYTES
from jupiterd.errors import InvalidDomainError
from tests.support.cycle.round_walk import DOMAIN

QUESTION = '{"question": "Who wrote it?", "answer": "Ada"}\n'
LINE = DOMAIN.count("\n") + 1


def domain_with(folder: Path, questions: str) -> Path:
    file = folder / "tiny.yaml"
    file.write_text(f'{DOMAIN}evaluation: {{questions: "{questions}"}}\n')
    return file


def read(file: Path) -> str:
    found = read_domain_file(str(file))
    return questions_text(found.path, checked_domain(found))


def test_a_relative_path_begins_at_the_folder_of_the_domains_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own.jsonl").write_text(QUESTION)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir("/")
    for name in ("own.jsonl", "./own.jsonl", "~/own.jsonl", str(tmp_path / "own.jsonl")):
        assert read(domain_with(tmp_path, name)) == QUESTION


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "there is no file .*own.jsonl"),
        (f"{QUESTION}\n{{}}\n".encode(), "line 3 of own.jsonl: its question is missing"),
        (b"{", "line 1 of own.jsonl: it is no JSON"),
        (b"\n", "own.jsonl has no question"),
        (QUESTION.encode() + b"\xff", "own.jsonl is no UTF-8 at byte 47"),
        (b" " * (MAX_DOMAIN_BYTES + 1), "own.jsonl has more than 1,048,576 bytes"),
    ],
)
def test_what_is_wrong_is_told_with_the_line_of_the_domain_and_that_of_the_questions(
    tmp_path: Path, content: bytes | None, reason: str
) -> None:
    if content is not None:
        (tmp_path / "own.jsonl").write_bytes(content)
    with pytest.raises(InvalidDomainError) as refused:
        read(domain_with(tmp_path, "own.jsonl"))
    assert refused.match(rf"tiny\.yaml:{LINE}: evaluation\.questions: .*{reason}")
    assert "\n" not in refused.value.message


def test_a_folder_in_the_place_of_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidDomainError, match="there is no file"):
        read(domain_with(tmp_path, "."))
