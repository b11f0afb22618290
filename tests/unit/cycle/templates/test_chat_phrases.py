"""What chat models say around an answer is cut, and nothing else."""

import pytest

from jupiterd.cycle.templates.chat_phrases import without_chat

TEXT = "FastAPI reads types. It builds a schema of them."


@pytest.mark.parametrize(
    "opening",
    [
        "Sure! ",
        "Sure, here is a summary of the text:\n\n",
        "Certainly. Here are five sentences:\n",
        "Of course! Here's an explanation for beginners:\n\n",
        "Here is the summary: ",
        "Based on the documentation above, here is what users ask:\n\n",
        "I'd be happy to help! ",
        "Of course, I'm delighted to help! ",
        "Great question! Below is an explanation:\n\n",
        "Claro, aqu\u00ed tienes un resumen del texto:\n\n",
        "\u00a1Claro que s\u00ed! A continuaci\u00f3n, te presento la explicaci\u00f3n:\n",
        "\u00a1Por supuesto! ",
        "Aqu\u00ed est\u00e1n las dos preguntas con sus respuestas:\n\n",
        "Voici un r\u00e9sum\u00e9 du texte :\n\n",
        "Nat\u00fcrlich! Hier ist die Zusammenfassung:\n",
    ],
)
def test_openings_are_cut(opening: str):
    assert without_chat(opening + TEXT) == TEXT


@pytest.mark.parametrize(
    "closing",
    [
        "\n\nI hope this helps!",
        " I hope this helps! Let me know if you have any questions.",
        "\n\nFeel free to ask if anything is unclear.",
        "\n\n---\n\nWould you like me to go into more detail?",
        "\n\nIf you have any further questions, please ask.",
        "\n\n\u00a1Espero que esto te ayude!",
        " Si tienes alguna duda, no dudes en preguntar.",
        "\n\n\u00bfHay algo m\u00e1s en lo que pueda ayudarte?",
        "\n\nN'h\u00e9sitez pas \u00e0 demander.",
    ],
)
def test_closings_are_cut(closing: str):
    assert without_chat(TEXT + closing) == TEXT


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        "Sure enough, the test fails.",
        "Yes is a program that repeats a line.",
        "Here is where the server waits. It never ends.",
        "If you want to change the port, set it in the file.",
        "The user says: I hope this helps!\nThen the page ends with a form.",
        "Perfecto es un adjetivo. Se usa con nombres.",
        "Question: What is a task?\nAnswer: It is a unit of work.",
    ],
)
def test_other_text_stays(text: str):
    assert without_chat(text) == text


def test_nothing_but_chat_leaves_nothing():
    assert without_chat("Sure! Let me know if you have any questions.") == ""
