"""What `make gpu-check` says of its figures, and of a machine without a card."""

import math
import subprocess
import sys

import pytest

from jupiterd.cycle.training.peak_flops import peak_flops_per_s, utilisation
from tests.bench.gpu.row import HEAD, Row, latest, markdown, rows_of


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


@pytest.mark.full
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


def test_a_figure_that_is_printed_again_replaces_the_first() -> None:
    alone, beside = Row("a", 3.0, "tokens/s"), Row("a", 3.0, "tokens/s", 4.0)
    assert latest([alone, Row("b", 1.0), beside]) == [beside, Row("b", 1.0)]


def test_at_its_limit_a_part_ends_with_all_that_it_has_started() -> None:
    main = pytest.importorskip("tests.bench.gpu.__main__")
    child = "import time; time.sleep(6); print('the child went on')"
    parent = (
        "import subprocess, sys, time; print('first', flush=True); "
        f"subprocess.Popen([sys.executable, '-c', {child!r}]); time.sleep(60)"
    )
    ran = main.run_bounded([sys.executable, "-c", parent], 2)
    assert ran.stdout == "first\n"
    assert ran.returncode != 0
    assert ran.stderr.splitlines()[-1] == "stopped after 2 s"


def test_mfu_is_palms_count_over_the_peak_of_the_card() -> None:
    pytest.importorskip("torch")
    flops = pytest.importorskip("jupiterd.cycle.training.memory").flops_per_token
    model = pytest.importorskip("tests.bench.train.single").preset("100m")
    peak = peak_flops_per_s("NVIDIA H200")
    assert peak == 989.4e12
    share = utilisation(398_578, flops(model), peak)
    assert share is not None
    assert math.isclose(share, 0.340, abs_tol=0.001)
    assert utilisation(398_578, flops(model), peak_flops_per_s("a card of tomorrow")) is None
