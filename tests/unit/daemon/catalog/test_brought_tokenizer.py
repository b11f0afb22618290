"""The tokenizer of a model folder that comes in."""

from pathlib import Path

import pytest

from jupiterd.daemon.catalog.brought_tokenizer import read_identity
from jupiterd.errors import CorruptArtifactError


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"added_tokens": [{"id": 1}]}', "it lacks 'content'"),
        ('{"post_processor": {"type": "BertProcessing"}}', "it lacks 'cls'"),
        ('{"model": {"vocab": [[]]}}', "index out of range"),
    ],
)
def test_a_file_that_lacks_something_is_told_in_a_line(
    tmp_path: Path, text: str, told: str
) -> None:
    (tmp_path / "tokenizer.json").write_text(text)
    with pytest.raises(CorruptArtifactError) as caught:
        read_identity(tmp_path)
    assert told in caught.value.message
