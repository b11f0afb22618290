import pytest

from jupiterd.cycle.base.web_addresses import normalised


@pytest.mark.parametrize(
    ("address", "written"),
    [
        (" HTTPS://Example.ORG ", "https://example.org/"),
        ("http://a.org:80/x#top", "http://a.org/x"),
        ("https://a.org:80/x?q=1", "https://a.org:80/x?q=1"),
        ("https://[::1]:443/", "https://[::1]/"),
        ("https://me@a.org/", ""),
        ("https://a.org:x/", ""),
        ("ftp://a.org/", ""),
        ("folder:texts", ""),
        ("", ""),
    ],
)
def test_an_address_is_written_in_one_way_and_only_one_of_the_web(address, written):
    assert normalised(address) == written
    assert normalised(written) == written
