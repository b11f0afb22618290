"""What `make gpu-check` says of its figures, and of a machine without a card."""

import subprocess
import sys

import pytest

from tests.bench.gpu.row import HEAD, Row, markdown, rows_of


def test_a_row_arrives_as_a_part_has_printed_it() -> None:
    row = Row("100m, 64 x 1024", 358_362.0, "tokens/s", 361_786.0, "MFU 30.5 %")
    assert list(rows_of(f"a warning\n{row.to_json()}\n")) == [row]


def test_the_table_shows_ratios_and_what_was_not_run() -> None:
    rows = [Row("a", 300.0, "tokens/s", 400.0, "x"), Row("b", None, note="stopped after 9 s")]
    assert markdown(rows).splitlines() == [
        *HEAD,
        "| a | 300 tokens/s | 400 | 0.75 | x |",
        "| b | not run |  |  | stopped after 9 s |",
    ]


def test_without_a_card_it_says_so_in_one_line_and_ends_with_2() -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    ran = subprocess.run(
        [sys.executable, "-m", "tests.bench.gpu"], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 2
    assert ran.stderr.strip() == (
        "there is no CUDA device here, and all of these figures need one: not run"
    )
