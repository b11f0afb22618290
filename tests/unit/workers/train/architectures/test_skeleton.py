"""What workers that are forked needn't find out again, each for itself."""

import pytest
from transformers import conversion_mapping

from jupiterd.workers import forkserver


@pytest.mark.parametrize("kind", forkserver.PRELOADED)
def test_ranks_are_forked_with_the_table_of_conversions(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversion_mapping, "_checkpoint_conversion_mapping_cache", None)
    for name in forkserver.PRELOADED[kind]:
        if ":" in name:
            forkserver.preload(name)
    assert conversion_mapping._checkpoint_conversion_mapping_cache is not None
