"""What chat models say around an answer: "Sure, here is ...", "I hope this helps!".

Owns these phrases, in the languages in which most models answer, and cutting them. They stand at an
answer's beginning and end alone, and are cut only there. Doesn't know what was asked.
"""

import re
from typing import Final

MAX_OPENING_CHARS: Final = 240
MAX_CUTS: Final = 4
"""Of phrases one behind the other, at either end."""

_AGREES = (
    r"sure( thing)?|certainly|of course|absolutely|definitely|okay|ok|alright|great( question)?|"
    r"i('|\u2019| a)m (happy|glad|delighted) to (help|assist)[^.!:\n]*|"
    r"no problem|gladly|yes|i('d| would) be (happy|glad) to[^.!:\n]*|happy to help|"
    r"\u00a1?claro( que s\u00ed)?|\u00a1?por supuesto|desde luego|con (mucho )?gusto|de acuerdo|"
    r"\u00a1?perfecto|vale|encantad[oa]( de ayudar(te|le)?)?|"
    r"bien s\u00fbr|volontiers|d'accord|nat\u00fcrlich|gerne?|selbstverst\u00e4ndlich|"
    r"com certeza|com prazer|certamente|volentieri|certo"
)
_HANDS_OVER = (
    r"here('s|\u2019s| is| are| you (go|are))|below (is|are)|"
    r"the following (is|are)|this is (a|an|the|my)|"
    r"aqu\u00ed (tienes|tiene|ten\u00e9is|est\u00e1n?|te|le|va|hay|lo tienes)|"
    r"a continuaci\u00f3n|te (dejo|presento|comparto)|"
    r"voici|ci-dessous|hier (ist|sind)|aqui (est\u00e1|est\u00e3o|vai)|ecco"
)
_WHAT = (
    r"summar(y|ies)|explanations?|questions?|answers?|exercises?|solutions?|texts?|articles?|"
    r"tutorials?|tables?|versions?|examples?|rewrit\w*|overviews?|faqs?|sentences|"
    r"res\u00famen(es)?|resumen|explicaci\u00f3n(es)?|preguntas?|respuestas?|ejercicios?|"
    r"soluci\u00f3n(es)?|textos?|art\u00edculos?|frases|versi\u00f3n|"
    r"r\u00e9sum\u00e9|questions|zusammenfassung|erkl\u00e4rung|fragen?|\u00fcbung|resumo|riassunto"
)
_OPENINGS: Final = (
    # "Sure!", "Claro, " before anything else.
    re.compile(rf"(?:{_AGREES})\b[!.,]+\s+(?=\S)", re.IGNORECASE),
    # "Certainly. Here are the questions:", a line of its own that ends with a colon.
    re.compile(
        rf"(?:{_AGREES}|{_HANDS_OVER})\b[^\n]{{0,{MAX_OPENING_CHARS}}}:[*_ \t]*\n+", re.IGNORECASE
    ),
    # "Here is a summary of the text: FastAPI is ...".
    re.compile(
        rf"(?:{_HANDS_OVER})\b[^\n:.]{{0,60}}\b(?:{_WHAT})\b[^\n:.]{{0,80}}:\s+", re.IGNORECASE
    ),
    # "Based on the text above, here is ...": a line of its own.
    re.compile(
        r"(?:based on|according to|using|bas\u00e1ndo(?:me|nos) en|seg\u00fan|a partir de)\b"
        rf"[^\n]{{0,{MAX_OPENING_CHARS}}}:[*_ \t]*\n+",
        re.IGNORECASE,
    ),
)

_LEAVES = (
    r"i hope (this|that|it|these)\b|hope (this|that|it) helps|let me know|please let me know|"
    r"(please )?feel free|don('|\u2019)t hesitate|please (ask|don('|\u2019)t hesitate)|"
    r"if you (have|need|want|would like|'d like)\b[^.!?\n]*\b(question|further|more|help|else|"
    r"assist|another|let me know|ask)|(is|was) there anything else|"
    r"would you like me to|do you (want|need) (me|any)|i('m| am) here to help|"
    r"happy (learning|coding|studying|reading)\b|good luck|"
    r"\u00a1?espero (que|haber)\b|si (tienes|tiene|necesitas|necesita|quieres|quiere|deseas)\b"
    r"[^.!?\n]*\b(pregunta|duda|ayuda|algo|m\u00e1s|consult|d\u00edmelo|av\u00edsame)|"
    r"no (dudes|dude) en|\u00bf?(hay algo m\u00e1s|necesitas (algo|ayuda)|te gustar\u00eda que|"
    r"quieres que|puedo ayudarte)|(h\u00e1zmelo|h\u00e1game) saber|av\u00edsame|d\u00edmelo si|"
    r"estoy aqu\u00ed para|\u00a1?buena suerte|"
    r"j'esp\u00e8re que|n'h\u00e9sitez pas|ich hoffe,? (das|dies)|lass(en)? (sie )?mich wissen|"
    r"espero que isso|se (voc\u00ea )?precisar|spero che"
)
_CLOSING: Final = re.compile(rf"[*_>\s]*(?:{_LEAVES})", re.IGNORECASE)
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+(?=[\u00bf\u00a1A-Z\u00c0-\u00de])")
_RULE: Final = re.compile(r"\n+[-*_]{3,}\s*\Z")


def without_chat(text: str) -> str:
    """Return an answer without what its model says to whom it talks with; may be empty."""
    return _without_closings(_without_openings(text.strip()))


def _without_openings(text: str) -> str:
    for _ in range(MAX_CUTS):
        found = next(filter(None, (opening.match(text) for opening in _OPENINGS)), None)
        if found is None:
            break
        text = text[found.end() :].strip()
    return text


def _without_closings(text: str) -> str:
    for _ in range(MAX_CUTS):
        before, line = text.rpartition("\n")[::2]
        sentences = _SENTENCE.split(line)
        if not _CLOSING.match(sentences[-1]):
            break
        shortened = line[: len(line) - len(sentences[-1])].rstrip()
        text = _RULE.sub("", f"{before}\n{shortened}".strip())
    return text
