"""Which modules a question for a document loads."""

import subprocess
import sys
from typing import Any, cast

import pytest

from jupiterd.daemon.queries.documents import Documents
from jupiterd.errors import NotFoundError

LOADED = """
import sys
import jupiterd.daemon.queries.documents
before = "jupiterd.daemon.queries.slow_documents" in sys.modules
from jupiterd.daemon.queries.slow_documents import SLOW_DOCUMENTS
dear = ("jupiterd.daemon.queries.cycle.review_document", "jupiterd.doctor.examination")
print(before, any(name in sys.modules for name in dear))
"""


class Nothing:
    """What no document is read from: whoever reads it fails."""


async def test_a_document_that_is_not_there_is_not_found() -> None:
    nothing = cast("Any", Nothing())
    documents = Documents(nothing, nothing, nothing, nothing, nothing, {})
    with pytest.raises(NotFoundError, match="no document called nonsense/1"):
        await documents.of("nonsense/1")


def test_what_takes_memory_is_not_loaded_before_somebody_asks() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", LOADED], capture_output=True, text=True, check=True, timeout=60
    )
    assert ran.stdout == "False False\n"
