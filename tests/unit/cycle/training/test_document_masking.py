import pytest

from jupiterd.cycle.training.document_masking import MASKED, check_documents_apart
from jupiterd.cycle.training.engine_options import EngineOptions
from jupiterd.errors import UsageError
from tests.support.workers.tiny_run import tiny_shape

ON = EngineOptions(document_masks="on")


@pytest.mark.parametrize("name", sorted(MASKED))
def test_models_that_take_a_mask_are_trained_with_it(name: str):
    check_documents_apart(tiny_shape(architecture=name), ON)


def test_other_models_are_refused_by_name_before_anything_starts():
    with pytest.raises(UsageError, match="apart in a mamba model") as caught:
        check_documents_apart(tiny_shape(architecture="mamba"), ON)
    assert "document masks: off" in str(caught.value.hint)
    check_documents_apart(tiny_shape(architecture="mamba"), EngineOptions())


def test_flash_attn_keeps_them_apart_in_our_own_model_alone():
    flash = EngineOptions(document_masks="on", attention="flash")
    check_documents_apart(tiny_shape(), flash)
    with pytest.raises(UsageError, match="with flash-attn"):
        check_documents_apart(tiny_shape(architecture="llama"), flash)


@pytest.mark.parametrize(
    ("config", "seq_len", "is_refused"),
    [
        ({"sliding_window": 64}, 64, False),
        ({"sliding_window": 64}, 65, True),
        ({"sliding_window": 64, "use_sliding_window": False}, 65, False),
        ({"sliding_window": None}, 8192, False),
        ({}, 8192, True),
    ],
)
def test_a_window_that_slides_within_a_sequence_is_a_mask_of_its_own(
    config: dict[str, object], seq_len: int, is_refused: bool
):
    shape = tiny_shape(architecture="mistral", config=config, seq_len=seq_len)
    if is_refused:
        with pytest.raises(UsageError, match="in a model that sees"):
            check_documents_apart(shape, ON)
    else:
        check_documents_apart(shape, ON)
