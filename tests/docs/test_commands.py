import re
import subprocess

import pytest

from jupiterd.daemon.runtime.settings import Settings
from tests.docs.command_lines import PROGRAMS, commands_in, trouble
from tests.docs.pages import ROOT, blocks, inline_code, pages, prose

SHELL = ("sh", "bash")
MADE_OUT_OF_THE_CODE = ROOT / "docs" / "reference"

WRITTEN = [page for page in pages() if MADE_OUT_OF_THE_CODE not in page.parents]


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_in_a_block_is_one_that_its_program_understands(page):
    shell = [block.text for block in blocks(page) if block.language in SHELL]
    wrong = [told for text in shell for words in commands_in(text) if (told := trouble(words))]
    assert wrong == []


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_in_a_sentence_is_one_too(page):
    said = [words for text in inline_code(page) if is_command(text) for words in commands_in(text)]
    wrong = [told for words in said if (told := trouble(words, whole=False))]
    assert wrong == []


def is_command(text: str) -> bool:
    """Say whether some code in a sentence is one command: no mere name, and no list of them."""
    words = text.removeprefix("sudo ").split()
    is_list = "|" in text or "…" in text or "..." in text
    return len(words) > 1 and words[0] in PROGRAMS and not is_list


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("jupiterctl statuss", "No such command"),
        ("jupiterctl cycle start --domain python --round 2 --colour red", "No such option"),
        ("jupiterctl train start --precision fp8", "is not one of"),
        ("jupiterctl cycle", "Usage: "),
        ("jupiterd --port many", "is not a valid integer"),
        ("jupiter-tui --refresh 100", "is not in the range"),
        ("jupiterctl node approve", "Missing argument"),
    ],
)
def test_a_wrong_command_would_be_found(line, words):
    [command] = commands_in(line)
    assert words in trouble(command)


def test_commands_are_found_wherever_they_stand_on_a_line():
    shell = "docker run jupiter jupiterctl status && jupiterd --local; # jupiterctl nothing"
    assert list(commands_in(shell)) == [["jupiterctl", "status"], ["jupiterd", "--local"]]
    assert list(commands_in("jupiterctl version | head -1")) == [["jupiterctl", "version"]]


def test_every_shell_block_is_shell():
    shell = [block for page in pages() for block in blocks(page) if block.language in SHELL]
    wrong = [block.where for block in shell if not parses(block.text)]
    assert len(shell) > 20
    assert wrong == []


def parses(shell: str) -> bool:
    """Say whether bash can read some lines; they aren't run."""
    read = subprocess.run(
        ["bash", "-n"], input=shell, capture_output=True, text=True, check=False, timeout=20
    )
    return read.returncode == 0 and not read.stderr


def test_shell_that_is_none_would_be_found():
    assert not parses("if then")
    assert not parses('echo "no end')


def test_every_block_says_what_language_it_is_in_or_is_a_picture():
    nameless = [
        block.where
        for page in WRITTEN
        for block in blocks(page)
        if not block.language and any(name in block.text for name in PROGRAMS)
    ]
    assert [where for where in nameless if not where.startswith("docs/metrics.md")] == []


def test_every_make_target_that_is_named_is_in_the_makefile():
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z][a-z-]*):", makefile, re.MULTILINE))
    for page in WRITTEN:
        shell = "\n".join(block.text for block in blocks(page) if block.language in SHELL)
        code = "\n".join([shell, *inline_code(page)])
        named = set(re.findall(r"^make ([a-z][a-z-]+)", code, re.MULTILINE))
        assert named <= targets, page


COMPOSE = ROOT / "installers" / "docker" / "compose.yaml"


def test_every_setting_that_is_named_as_a_variable_is_one():
    known = {f"JUPITER_{name.upper()}" for name in Settings.__dataclass_fields__}
    of_compose = re.findall(r"\$\{(JUPITER_\w+):-", COMPOSE.read_text())
    others = {f"JUPITER_{name}" for name in ("BENCH_MODEL", "PAGES", "TEST_COLD", "TEST_SEED")}
    others.update(of_compose)
    others.add("JUPITER_UPDATE_GOLDEN")
    for page in WRITTEN:
        text = prose(page) + "".join(block.text for block in blocks(page))
        assert set(re.findall(r"\bJUPITER_[A-Z_]+\b", text)) <= known | others, page


def test_every_option_of_the_installer_that_is_named_is_one():
    told = subprocess.run(
        ["sh", ROOT / "installers" / "install.sh", "--help"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    known = set(re.findall(r"^  (--[a-z0-9-]+)", told, re.MULTILINE))
    for page in WRITTEN:
        code = "\n".join([*(block.text for block in blocks(page)), *inline_code(page)])
        for line in re.findall(r"install\.sh(.*)$", code, re.MULTILINE):
            assert set(re.findall(r" (--[a-z0-9-]+)", line)) <= known, page
