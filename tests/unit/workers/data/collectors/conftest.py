"""A site that tests of crawls fill."""

import pytest

from tests.support.workers.local_site import serving


@pytest.fixture
def site():
    with serving() as started:
        yield started
