"""Figures of the cluster's core that need no daemon still measure something."""

import pytest

from tests.bench.cluster import history, placement
from tests.bench.figure import Figure


@pytest.fixture
def short_history(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the ledger be short: here nobody reads how fast it is."""
    monkeypatch.setattr(history, "FACTS", 500)


@pytest.mark.parametrize(
    "figure", [*placement.FIGURES, history.FIGURES[0]], ids=lambda figure: figure.name
)
async def test_a_figure_is_measured(figure: Figure, short_history: None) -> None:
    assert await figure.trial() > 0
