from jupiterd.cycle.text_rules.code_parsing import is_python, parseable_beginning, parses_on

TEXT = (
    "import sys\n\n\ndef first(a):\n    return a\n\n\ndef second(b):\n    return (b,\n        1)\n"
)


def test_a_beginning_ends_where_the_code_could_end():
    found = parseable_beginning(TEXT, 20, 80)
    assert found == "import sys\n\n\ndef first(a):\n    return a\n\n\n"
    assert parseable_beginning("no code at all\n" * 5, 10, 60) == ""
    assert parseable_beginning("x = 1\n", 20, 80) == ""


def test_a_text_that_was_cut_off_in_the_middle_of_code_still_counts_as_code():
    begun = "import sys\n"
    assert parses_on(begun, "def f(x):\n    return x\n\n\ndef g(y):\n    retu")
    assert parses_on(begun, "x = 1\ny = [1,\n")
    assert not parses_on(begun, "def def def\nx = 1\n")
    assert not parses_on(begun, "\n\n\n")
    assert not parses_on(begun, "x = 1")


def test_what_no_parser_survives_is_no_code():
    assert not is_python("x = '\0'")
    assert not is_python("(" * 5000)
