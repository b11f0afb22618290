"""Tasks that small models can do, too: one short sentence behind a passage, in its language.

Owns the words of four tasks, for prose, documentation and code. A model of a hundred million
parameters follows what it reads last, and follows one thing; it answers in the language in which it
is asked. Doesn't know prompts, models, or what an answer is worth.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from jupiterd.cycle.text_rules.document_kind import DocumentForm, DocumentKind

ENGLISH: Final = "en"


class Subject(StrEnum):
    """What a passage is, as far as the words of a task differ."""

    PROSE = "prose"
    DOCUMENTATION = "documentation"
    CODE = "code"


Words = Mapping[Subject, Mapping[str, str]]
"""Subject -> language -> what is asked."""

_SUBJECTS: Final = MappingProxyType(
    {
        DocumentKind.CODE: Subject.CODE,
        DocumentKind.DOCUMENTATION: Subject.DOCUMENTATION,
        DocumentKind.NOTEBOOK: Subject.DOCUMENTATION,
    }
)

QUESTION_ANSWER: Final[Words] = {
    Subject.PROSE: {
        "en": "Write one question that the text above answers, and its answer in five full "
        'sentences. Begin them with "Question:" and "Answer:".',
        "es": "Escribe una pregunta que el texto anterior responde, y su respuesta en cinco "
        'frases completas. Empi\u00e9zalas con "Pregunta:" y "Respuesta:".',
    },
    Subject.DOCUMENTATION: {
        "en": "Write one question of a user that the documentation above answers, and its answer "
        'in five full sentences. Begin them with "Question:" and "Answer:".',
        "es": "Escribe una pregunta de un usuario que la documentaci\u00f3n anterior responde, y "
        "su respuesta en cinco frases completas. Empi\u00e9zalas con "
        '"Pregunta:" y "Respuesta:".',
    },
    Subject.CODE: {
        "en": "Write one question about what the code above does, and its answer in five full "
        'sentences. Begin them with "Question:" and "Answer:".',
        "es": "Escribe una pregunta sobre lo que hace el c\u00f3digo anterior, y su respuesta en "
        'cinco frases completas. Empi\u00e9zalas con "Pregunta:" y "Respuesta:".',
    },
}

EXPLANATION: Final[Words] = {
    Subject.PROSE: {
        "en": "Explain to a beginner, in your own words, what the text above is about.",
        "es": "Explica a un principiante, con tus propias palabras, de qu\u00e9 trata el texto "
        "anterior.",
    },
    Subject.DOCUMENTATION: {
        "en": "Explain to a beginner, in your own words, what is documented above and how it is "
        "used.",
        "es": "Explica a un principiante, con tus propias palabras, qu\u00e9 se documenta arriba y "
        "c\u00f3mo se usa.",
    },
    Subject.CODE: {
        "en": "Explain to a beginner, in full sentences, what the code above does and how.",
        "es": "Explica a un principiante, en frases completas, qu\u00e9 hace el c\u00f3digo "
        "anterior y c\u00f3mo.",
    },
}

SUMMARY: Final[Words] = {
    Subject.PROSE: {
        "en": "Summarize the text above in five full sentences of your own.",
        "es": "Resume el texto anterior en cinco frases completas y propias.",
    },
    Subject.DOCUMENTATION: {
        "en": "Summarize in five full sentences of your own what is documented above.",
        "es": "Resume en cinco frases completas y propias lo que se documenta arriba.",
    },
    Subject.CODE: {
        "en": "Summarize in five full sentences what the code above is for and how it works.",
        "es": "Resume en cinco frases completas para qu\u00e9 sirve el c\u00f3digo anterior y "
        "c\u00f3mo funciona.",
    },
}

EXERCISE: Final[Words] = {
    Subject.PROSE: {
        "en": "Write one exercise about the text above, and its solution with reasons in five full "
        'sentences. Begin them with "Exercise:" and "Solution:".',
        "es": "Escribe un ejercicio sobre el texto anterior, y su soluci\u00f3n con razones en "
        'cinco frases completas. Empi\u00e9zalas con "Ejercicio:" y "Soluci\u00f3n:".',
    },
    Subject.DOCUMENTATION: {
        "en": "Write one exercise for users of what is documented above, and its solution with "
        'reasons in five full sentences. Begin them with "Exercise:" and "Solution:".',
        "es": "Escribe un ejercicio para usuarios de lo que se documenta arriba, y su "
        "soluci\u00f3n con razones en cinco frases completas. Empi\u00e9zalas con "
        '"Ejercicio:" y "Soluci\u00f3n:".',
    },
    Subject.CODE: {
        "en": "Write one exercise about the code above, and its solution with reasons in five full "
        'sentences. Begin them with "Exercise:" and "Solution:".',
        "es": "Escribe un ejercicio sobre el c\u00f3digo anterior, y su soluci\u00f3n con razones "
        'en cinco frases completas. Empi\u00e9zalas con "Ejercicio:" y "Soluci\u00f3n:".',
    },
}

ANYWHERE: Final = "Write in the language of the text."
"""Said to whom no words in the document's language are known."""


def subject_of(document_kind: str) -> Subject:
    """Return what a passage of such a document is; as samples carry the kind, empty: prose."""
    return _SUBJECTS.get(DocumentForm.parse(document_kind).kind, Subject.PROSE)


def words_of(words: Words, subject: Subject, language: str) -> str:
    """Return what is asked of a passage in that language; in English where it isn't known."""
    known = words[subject]
    return known[language] if language in known else f"{known[ENGLISH]} {ANYWHERE}"
