"""What commands and the page say of architectures is what was compared, and is still so."""

from importlib.metadata import version
from pathlib import Path

import pytest

from jupiterd.cycle.training import known_architectures, mlx_proven
from tests.bench.models import results, table
from tests.bench.models.cases import NAMED, OTHERS, Case, cases_of

ROOT = Path(__file__).resolve().parents[5]
QUICK = (
    Case("llama", ""),
    Case("gpt2", ""),
    Case("gemma3_text", "windows", {"sliding_window": 8}),
    Case("gpt_neox", "untied", {"tie_word_embeddings": False}),
)
"""One of each way of names: as they are, without the body's and turned, windows, other names."""


def test_the_table_of_mlx_is_what_was_compared():
    found = results.load()
    assert dict(mlx_proven.PROVEN) == table.proven_traits(found)
    assert mlx_proven.LEFT_OUT.keys() == table.left_out_reasons(found).keys()


def test_the_page_is_what_was_compared():
    page = ROOT / "docs" / "models.md"
    assert page.read_text(encoding="utf-8") == table.page(results.load())


def test_everything_that_was_named_was_compared():
    compared = {(each.architecture, each.variant) for each in results.load()}
    named = {(c.architecture, c.name) for name in (*NAMED, *OTHERS) for c in cases_of(name)}
    assert compared == named


def test_every_architecture_that_is_named_trains_on_both_engines_but_the_one_mlx_lacks():
    assert {*NAMED} - mlx_proven.PROVEN.keys() == {"hrm_text"}
    assert {*NAMED} <= known_architectures.TRAINED


@pytest.mark.mlx
@pytest.mark.parametrize("case", QUICK, ids=lambda case: f"{case.architecture} {case.name}")
def test_torch_and_mlx_compute_the_same(case: Case):
    pytest.importorskip("mlx.core")
    from tests.bench.models.parity import compared

    assert compared(case).is_alike, compared(case).why


@pytest.mark.mlx
@pytest.mark.full
@pytest.mark.parametrize("architecture", [*NAMED])
def test_what_is_named_comes_out_alike_again(architecture: str):
    pytest.importorskip("mlx.core")
    from tests.bench.models.parity import compared

    case = next(cases_of(architecture))
    before = [e for e in results.load() if (e.architecture, e.variant) == (architecture, case.name)]
    assert [compared(case).is_alike] == [each.is_alike for each in before]


@pytest.mark.mlx
@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("architecture", [*NAMED, *OTHERS])
def test_what_was_compared_comes_out_alike_again(architecture: str):
    pytest.importorskip("mlx.core")
    from tests.bench.models.parity import compared

    before = {e.variant: e.is_alike for e in results.load() if e.architecture == architecture}
    again = {case.name: compared(case) for case in cases_of(architecture)}
    assert {name: each.is_alike for name, each in again.items()} == before, {
        name: each.why for name, each in again.items() if each.is_alike != before[name]
    }


@pytest.mark.full
@pytest.mark.parametrize("architecture", [*NAMED])
def test_an_architecture_that_is_named_trains_with_the_installed_transformers(architecture: str):
    from tests.bench.models.torch_sweep import tried

    assert not tried(architecture).error


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_causal_language_model_of_transformers_comes_out_as_the_table_has_it():
    from tests.bench.models.torch_sweep import is_tied_by_default, known, tried

    if version("transformers") not in (known_architectures.__doc__ or ""):
        pytest.skip("the table is of another transformers")
    found = [tried(architecture) for architecture in known()]
    tied = [architecture for architecture in known() if is_tied_by_default(architecture)]
    source = Path(known_architectures.__file__).read_text(encoding="utf-8")
    assert table.known_module(found, tied) == source
