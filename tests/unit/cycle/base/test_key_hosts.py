"""Where a key may be shown."""

import pytest

from jupiterd.cycle.base.key_hosts import (
    KeyHosts,
    is_loopback,
    origin_of,
    read_key_hosts,
    what_to_write,
)

BOUND = read_key_hosts({"A_API_KEY": "https://api.example.org/v1", "L_API_KEY": "http://[::1]:80"})


@pytest.mark.parametrize(
    "url",
    [
        "https://api.example.org",
        "https://api.example.org:443/v1",
        "HTTPS://API.EXAMPLE.ORG/v2/chat?x=1#y",
    ],
)
def test_a_key_is_shown_to_its_own_host(url: str) -> None:
    assert BOUND.allows("A_API_KEY", url)
    assert not BOUND.allows("B_API_KEY", url), "of which nobody said anything"
    assert not KeyHosts().allows("A_API_KEY", url)


@pytest.mark.parametrize(
    "url",
    [
        "http://api.example.org/v1",
        "https://api.example.org:8443/v1",
        "https://api.example.org.example.com/v1",
        "https://example.com/api.example.org",
        "https://api.example.org@example.com/v1",
        "https://api.example.org\\@example.com/v1",
        "https://example.com\\.api.example.org/v1",
        "https://user:word@api.example.org/v1",
        "https://api.example.org:99999/v1",
        "//api.example.org/v1",
        "ftp://api.example.org/v1",
        "https://[api.example.org/v1",
        "https://api.example.org./v1",
        "",
    ],
)
def test_a_key_is_shown_to_nobody_who_only_looks_like_it(url: str) -> None:
    assert not BOUND.allows("A_API_KEY", url)


def test_only_a_server_of_the_same_machine_needs_no_encryption() -> None:
    assert BOUND.allows("L_API_KEY", "http://[::1]/v1")
    assert is_loopback("http://127.8.9.1:11434/v1")
    assert is_loopback("http://localhost/v1")
    assert not is_loopback("http://127.0.0.1.example.org/v1"), "a name that begins like an address"
    assert not is_loopback("http://box/v1")
    plain = KeyHosts({"A_API_KEY": "http://box"})
    assert not plain.allows("A_API_KEY", "http://box/v1")
    assert "https" in what_to_write("A_API_KEY", "http://box/v1")


def test_bindings_are_read_from_a_file_and_from_a_variable() -> None:
    assert read_key_hosts("A_API_KEY=https://api.example.org/v1, L_API_KEY=http://[::1]:80") == (
        BOUND
    )
    assert str(BOUND) == "A_API_KEY=https://api.example.org,L_API_KEY=http://[::1]"
    assert read_key_hosts(str(BOUND)) == BOUND
    assert read_key_hosts({}) == read_key_hosts("") == KeyHosts()
    assert origin_of("https://[fe80::1]:8443/x") == "https://[fe80::1]:8443"


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"A_API_KEY": "http://box"}, "A_API_KEY with an https address"),
        ({"A_API_KEY": "api.example.org"}, "A_API_KEY with an https address"),
        ({"A_API_KEY": ["https://a.org"]}, "A_API_KEY with an https address"),
        ({"PATH": "https://api.example.org"}, "names that end with _API_KEY"),
        (["A_API_KEY"], "a key's name and its host"),
        ("A_API_KEY", "A_API_KEY with an https address"),
    ],
)
def test_what_can_be_no_binding_is_refused(told: object, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_key_hosts(told)
