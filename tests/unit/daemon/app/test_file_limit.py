"""How many files may be open."""

import resource
import subprocess
import sys

import pytest

from jupiterd.daemon.app.file_limit import ENOUGH, wanted_limit

UNLIMITED = resource.RLIM_INFINITY


@pytest.mark.parametrize(
    ("soft", "hard", "wanted"),
    [
        (256, 4096, 4096),
        (256, UNLIMITED, ENOUGH),
        (1024, 1 << 20, ENOUGH),
        (1 << 20, 1 << 20, 1 << 20),
        (UNLIMITED, UNLIMITED, UNLIMITED),
    ],
)
def test_the_limit_is_raised_as_far_as_it_may_be_and_never_lowered(
    soft: int, hard: int, wanted: int
) -> None:
    assert wanted_limit(soft, hard) == wanted


def test_a_process_raises_its_own_limit() -> None:
    lines = (
        "import resource",
        "resource.setrlimit(resource.RLIMIT_NOFILE, (128, 512))",
        "from jupiterd.daemon.app.file_limit import allow_many_open_files",
        "print(allow_many_open_files(), resource.getrlimit(resource.RLIMIT_NOFILE))",
    )
    ran = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True
    )
    assert ran.stdout == "512 (512, 512)\n"
