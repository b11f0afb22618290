import ast
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cycle.text_rules.secrets import (
    EMAIL,
    IP_ADDRESS,
    PHONE,
    REMOVED,
    cleaned,
    entropy_bits,
)

# Put together here, so that nobody's scanner takes this file for a leak.
AMAZON = "AKIA" + "QYLPMN5HHHFPZAM2"
GITHUB = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
BEGIN, END = (f"-----{word} RSA {'PRIVATE'} KEY-----" for word in ("BEGIN", "END"))
KEY = f"{BEGIN}\nMIIEpAIBAAKCAQEAx4fm0q\nJ7kQ+/b3/zZ2Lw==\n{END}"
LINES = ("MIIEpAIBAAKCAQ", "J7kQ")
MARKS = ("# ", " * ", "// ", "-- ", ";; ", "% ", "> ", "| ", "+", " " * 40, "\t" * 9 + "# ")
LOCKED = KEY.replace("\n", "\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0A1B\n\n", 1)
"""Behind a passphrase."""


@pytest.mark.parametrize(
    ("text", "kind", "secret"),
    [
        (KEY, "private-key", "MIIEpAIBAAKCAQ"),
        (KEY.replace("\n", "\\n"), "private-key", "J7kQ"),
        (KEY.replace("\n", '\\n"\n"'), "private-key", "J7kQ"),
        (KEY.partition("\n-----END")[0], "private-key", "J7kQ"),
        *(
            (KEY.replace("\n", f"\n{mark}"), "private-key", lost)
            for mark in MARKS
            for lost in LINES
        ),
        (LOCKED, "private-key", "J7kQ"),
        (LOCKED.replace("\n", "\n# "), "private-key", "J7kQ"),
        (LOCKED.replace("\n", "\\n"), "private-key", "J7kQ"),
        (f"key: {AMAZON}", "token", AMAZON),
        (f"git clone https://x:{GITHUB}@host/repo", "token", GITHUB),
        ("use sk-" + "proj-aB3dE5gH7jK9mN1pQ3sT5", "token", "aB3dE5gH7jK9mN1pQ3sT5"),
        ("Bearer eyJ" + "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmN", "token", "hbGci"),
        ("export KEY=xoxb-" + "1234567890-abcdefABCDEF", "token", "1234567890"),
        ("postgres://admin:hunter2@db/x", "login", "hunter2"),
        ("password = 'tr0ub4dor&3x9'", "password", "tr0ub4dor&3x9"),
        ('"api_key": "9f86d081884c7d65"', "password", "9f86d081884c7d65"),
        ("write to jane.doe@corp.co.uk today", "email", "jane.doe@corp.co.uk"),
        ("call +49 30 901820 now", "phone", "901820"),
        ("call (212) 736-5000 now", "phone", "736-5000"),
        ("host 8.8.8.8 answers", "ip-address", "8.8.8.8"),
    ],
)
def test_a_secret_is_replaced_and_counted(text, kind, secret):
    found = cleaned(text)
    assert secret not in found.text
    assert found.counts == {kind: 1}


@pytest.mark.parametrize(
    "text",
    [
        "password = 'your password'",
        "password = getpass()",
        f"if '{BEGIN}' in text:\n    raise ValueError('a key')",
        "token = 'identifier'",
        "write to user@example.com or to me at home",
        "matrix @ vector, and @decorator",
        "127.0.0.1, 192.168.1.7, 10.0.0.1 and 999.1.2.3",
        "version 1.2.3.4 and v1.2.3.4, 1.2.3.4.5",
        "2020-01-02 12:30, 1 + 2, 555-1234, 0123456789",
        "task-force, sk-learn-estimator-of-something-long",
        "https://host:8080/path",
        "",
    ],
)
def test_what_is_none_stays(text):
    assert cleaned(text) == (text, {})


def test_what_stands_in_its_place_is_of_the_same_form():
    assert cleaned("a@b.org, +1 212 736 5000, 8.8.4.4").text == f"{EMAIL}, {PHONE}, {IP_ADDRESS}"
    assert cleaned(f"x = '{AMAZON}'").text == f"x = '{REMOVED}'"


def test_code_parses_afterwards():
    code = (
        f'KEY = """{KEY}"""\nLINE = {KEY!a}\nTOKEN = "{GITHUB}"\nPASSWORD = "tr0ub4dor&3x9"\n'
        'MAIL = "jane@corp.org"  # or 8.8.8.8\nproduct = first@second.mean\n'
    )
    found = cleaned(code)
    ast.parse(found.text)
    assert set(found.counts) == {"private-key", "token", "password", "email", "ip-address"}


def test_the_parts_around_a_key_stay_as_they_are():
    assert cleaned(f"before\n{KEY}\nafter").text.startswith("before\n-----BEGIN RSA")
    assert cleaned(f"before\n{KEY}\nafter").text.endswith("KEY-----\nafter")


@pytest.mark.parametrize("mark", MARKS)
def test_the_marks_of_a_comment_and_the_end_of_its_key_stay(mark):
    lines = cleaned(f"{mark}{KEY}\nafter".replace("\n", f"\n{mark}")).text.split("\n")
    assert [line.removeprefix(mark) for line in lines][-2:] == [END, "after"]
    # A plus is a digit of keys, too.
    assert all(line.startswith(mark) for line in lines if REMOVED not in line or mark != "+")


_SECRETS = (KEY, AMAZON, GITHUB, "a@b.org", "8.8.8.8", "+1 212 736 5000", "password='aB3dE5gH7'")
_PIECES = st.sampled_from(
    (
        *_SECRETS,
        BEGIN,
        END,
        "# ",
        "-- ",
        "https://u:p@h.org/",
        "\n",
        " ",
        "x",
        "'",
        ".",
        "@",
        "-",
        "=",
    )
)


@given(st.lists(_PIECES, max_size=12).map("".join))
def test_cleaning_again_changes_nothing(text):
    once = cleaned(text)
    assert cleaned(once.text) == (once.text, {})


@pytest.mark.parametrize(
    "piece",
    [
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----" + "\n# " * 100,
        "A: -----BEGIN PRIVATE KEY-----\n",
        "-----BEGIN PRIVATE KEY-----" + "\nAb: c" * 20,
        "-----BEGIN PRIVATE KEY-----\n" + "A" * 17 + " -" * 400,
        "a@",
        "a.",
        "1.",
        "+1 ",
        "password=",
        "x://y:",
        "eyJ",
        "eyJ-",
        "sk-",
        "a+",
        "version 1.2.3, ",
    ],
    ids=lambda piece: piece[:30],
)
def test_no_text_takes_longer_than_its_length(piece):
    began_s = time.process_time()
    cleaned(piece * (300_000 // len(piece)) + " 8.8.8.8")
    assert time.process_time() - began_s < 10.0


def test_entropy_tells_words_from_keys():
    assert entropy_bits("aaaaaaaa") == 0.0
    assert entropy_bits("abcdefgh") == 3.0


@pytest.mark.parametrize(
    "line", ["#### 9.2.1.1. Remote displays", "9.2.1.1. Remote displays", "## 9.2.1.1 Displays"]
)
def test_the_number_of_a_section_is_no_address(line):
    assert cleaned(f"Text.\n{line}\n").text == f"Text.\n{line}\n"
    assert cleaned(f"Ask {line.lstrip('# ')}").counts == {"ip-address": 1}


@pytest.mark.parametrize(
    "text",
    [
        "SQLite version 3.7.7.1 of 2011. With 3.7.7.1 it was mended.",
        "Versions 3.7.7.1, 3.7.7.2 and **3.7.7.3**",
        "La versión 3.7.7.1 y la v3.7.7.2",
        'version = "3.7.7.1"',
        "since release 3.7.7.1",
        "SQLite Release 3.7.7.1 On 2011-06-28",
        "2011-06-28 (3.7.7.1)",
        "wget https://example.org/lib-1.2.3.4.tar.gz",
        "lib_1.2.3.4-1_amd64.deb",
    ],
)
def test_the_number_of_a_version_is_no_address(text):
    assert cleaned(text) == (text, {})


@pytest.mark.parametrize(
    "text",
    [
        "release 52.14.3.9 to the pool",
        "server version 3 at 52.14.3.9",
        "the version of the server at 52.14.3.9",
        "nginx/1.2 52.14.3.9",
        "worker-52.14.3.9.tar",
        "ip-52.14.3.9-1",
        "2011-06-28 52.14.3.9 GET /",
        "ip.addr==52.14.3.9",
        "version 3.7.7.1 answers at 52.14.3.9",
    ],
)
def test_an_address_beside_a_version_is_one(text):
    assert cleaned(text).counts == {"ip-address": 1}
    assert "52.14.3.9" not in cleaned(text).text
