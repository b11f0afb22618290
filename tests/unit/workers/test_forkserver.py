"""What workers that are forked needn't find out again, each for itself."""

import subprocess
import sys

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


@pytest.mark.full
@pytest.mark.parametrize("kind", forkserver.PRELOADED)
def test_no_rank_imports_what_all_models_share_after_it_is_forked(kind: str) -> None:
    program = (
        "import sys\n"
        "from jupiterd.workers import forkserver\n"
        f"for name in forkserver.PRELOADED[{kind!r}]:\n"
        "    forkserver.preload(name)\n"
        "before = set(sys.modules)\n"
        "import transformers.models.llama.modeling_llama\n"
        "new = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        "print(sorted(new), len(set(sys.modules) - before) < 20)\n"
    )
    told = subprocess.run(
        (sys.executable, "-c", program), capture_output=True, text=True, check=True
    )
    assert told.stdout.strip() == "['transformers'] True"


@pytest.mark.full
@pytest.mark.parametrize("kind", forkserver.PRELOADED)
def test_no_rank_imports_what_curves_are_written_with_before_its_first_step(kind: str) -> None:
    (name,) = (each for each in forkserver.PRELOADED[kind] if "tensorboard" in each)
    program = (
        "import sys\n"
        "from jupiterd.workers.forkserver import preload\n"
        f"preload({name!r})\n"
        "print('tensorboardX.proto.event_pb2' in sys.modules)\n"
    )
    told = subprocess.run(
        (sys.executable, "-c", program), capture_output=True, text=True, check=True
    )
    assert told.stdout.strip() == "True"
