"""Who may ask the endpoint."""

import pytest

from jupiterd.cluster.serving.access import AccessRules, bearer_in, token_refusal

SITE = "https://chat.example.org"


@pytest.mark.parametrize("host", ["127.0.0.1:47480", "localhost:1", "LOCALHOST", "[::1]:5", "::1"])
def test_on_loopback_this_machine_s_names_are_meant(host: str):
    if host != "::1":
        assert AccessRules("127.0.0.1").host_refusal(host) is None
    assert AccessRules("::1").host_refusal("[::1]:9") is None


@pytest.mark.parametrize(
    "host", ["evil.example.org", "evil.example.org:47480", "", "10.0.0.1", "localhost.evil.org"]
)
def test_a_name_that_was_made_to_lead_here_is_refused(host: str):
    refusal = AccessRules("127.0.0.1").host_refusal(host)
    assert refusal is not None
    assert refusal.status == 403


def test_beyond_loopback_the_token_decides():
    assert AccessRules("0.0.0.0").host_refusal("box.example.org") is None


@pytest.mark.parametrize("origin", [SITE, "null", "http://127.0.0.1:1", "https://localhost"])
def test_pages_of_other_sites_are_refused(origin: str):
    rules = AccessRules("127.0.0.1")
    refusal = rules.origin_refusal(origin, "127.0.0.1:47480")
    assert refusal is not None
    assert refusal.status == 403
    assert rules.cors_headers(origin) == {}


def test_programs_and_our_own_page_are_let_in():
    rules = AccessRules("127.0.0.1")
    assert rules.origin_refusal(None, "127.0.0.1:47480") is None
    assert rules.origin_refusal("http://127.0.0.1:47480", "127.0.0.1:47480") is None


def test_a_site_that_was_allowed_may_ask_and_read():
    rules = AccessRules("127.0.0.1", (SITE,))
    assert rules.origin_refusal(SITE, "127.0.0.1:47480") is None
    headers = rules.cors_headers(SITE, "authorization")
    assert headers["Access-Control-Allow-Origin"] == SITE
    assert headers["Access-Control-Allow-Headers"] == "authorization"
    assert rules.cors_headers("https://other.example.org") == {}
    assert AccessRules("127.0.0.1", ("*",)).allows("https://other.example.org")


@pytest.mark.parametrize(
    ("header", "token"),
    [("Bearer abc", "abc"), ("bearer abc ", "abc"), ("abc", ""), ("Basic abc", ""), ("", "")],
)
def test_a_token_is_read_from_its_header(header: str, token: str):
    assert bearer_in(header) == token


def test_a_wrong_token_is_told_as_openai_tells_it():
    assert token_refusal().status == 401
    assert token_refusal().code == "invalid_api_key"
