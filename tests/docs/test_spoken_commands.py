"""Commands that the product itself names, in hints, lines and help: each can be typed."""

import pytest

from tests.docs.pages import ROOT
from tests.docs.spoken_commands import missing, speaking_code, spoken, texts_of


def test_every_command_that_the_product_names_is_there():
    named = [
        (f"{name}:{line}", words)
        for name, source in speaking_code(ROOT)
        for line, text in texts_of(source)
        for words in spoken(text)
    ]
    assert len(named) > 250
    assert [f"{where}: {told}" for where, words in named if (told := missing(words))] == []


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("x = 'jupiterctl train resume goes on'", "no command 'resume'"),
        ("x = f'see: jupiterctl cycle {verb} --colour'", ""),
        ("x = f'see: jupiterctl cycle show {name}'", "no command 'show'"),
        ("x = f'{why}; jupiterctl cycle extend {name} --round 3'", "no option --round"),
        ("x = ('jupiterctl --state-dir X ' 'data lisst')", "no command 'lisst'"),
        ("def f():\n    'jupiterctl does it'", ""),
        ("@command.command()\ndef f():\n    'Try:\\n jupiterctl doit'", "no command 'doit'"),
        ("x = 'see: jupiterctl status --setings'", "no option --setings"),
        ("x = 'jupiterctl launch --nodes all -- python a.py --epochs 3'", ""),
    ],
)
def test_one_that_is_not_would_be_found(code, told):
    faults = [missing(words) for _, text in texts_of(code) for words in spoken(text)]
    assert told in "".join(faults)
    assert bool(told) == any(faults)
