"""Which languages a domain may name, and which one was meant where it names none of them.

Pure. Owns the list of natural ones, and the names that people write instead of a code. Doesn't know
how a text's language is told, or what rules follow from it.
"""

from collections.abc import Mapping
from difflib import get_close_matches

from jupiterd.cycle.text_rules.document_kind import CODE_LANGUAGES

CODE = "code:"

NATURAL = frozenset(
    (  # noqa: SIM905 - a hundred lines otherwise
        "af als am an ar arz as ast av az azb ba bar bcl be bg bh bn bo bpy br bs bxr ca cbk ce "
        "ceb ckb co cs cv cy da de diq dsb dty dv el eml en eo es et eu fa fi fr frr fy ga gd gl "
        "gn gom gu gv he hi hif hr hsb ht hu hy ia id ie ilo io is it ja jbo jv ka kk km kn ko "
        "krc ku kv kw ky la lb lez li lmo lo lrc lt lv mai mg mhr min mk ml mn mr mrj ms mt mwl "
        "my myv mzn nah nap nds ne new nl nn no oc or os pa pam pfl pl pms pnb ps pt qu rm ro ru "
        "rue sa sah sc scn sco sd sh si sk sl so sq sr su sv sw ta te tg th tk tl tr tt tyv ug uk "
        "ur uz vec vep vi vls vo wa war wuu xal xmf yi yo yue zh"
    ).split()
)
"""What the model lid.176 tells apart: another one could never be told from text."""

PROGRAMMING = CODE_LANGUAGES

_NAMES: Mapping[str, str] = {
    "afrikaans": "af", "albanian": "sq", "arabic": "ar", "armenian": "hy", "azerbaijani": "az",
    "basque": "eu", "euskara": "eu", "belarusian": "be", "bengali": "bn", "bosnian": "bs",
    "breton": "br", "bulgarian": "bg", "burmese": "my", "cantonese": "yue", "catalan": "ca",
    "catala": "ca", "català": "ca", "chinese": "zh", "mandarin": "zh", "croatian": "hr",
    "czech": "cs", "danish": "da", "dansk": "da", "dutch": "nl", "nederlands": "nl",
    "english": "en", "englisch": "en", "ingles": "en", "inglés": "en", "esperanto": "eo",
    "estonian": "et", "farsi": "fa", "persian": "fa", "finnish": "fi", "suomi": "fi",
    "french": "fr", "francais": "fr", "français": "fr", "galician": "gl", "galego": "gl",
    "georgian": "ka", "german": "de", "deutsch": "de", "greek": "el", "gujarati": "gu",
    "hebrew": "he", "hindi": "hi", "hungarian": "hu", "magyar": "hu", "icelandic": "is",
    "indonesian": "id", "irish": "ga", "italian": "it", "italiano": "it", "japanese": "ja",
    "kannada": "kn", "kazakh": "kk", "khmer": "km", "korean": "ko", "kurdish": "ku", "lao": "lo",
    "latin": "la", "latvian": "lv", "lithuanian": "lt", "luxembourgish": "lb", "macedonian": "mk",
    "malagasy": "mg", "malay": "ms", "malayalam": "ml", "maltese": "mt", "marathi": "mr",
    "mongolian": "mn", "nepali": "ne", "norwegian": "no", "bokmal": "no", "bokmål": "no",
    "nb": "no", "norsk": "no", "nynorsk": "nn", "occitan": "oc", "pashto": "ps", "polish": "pl",
    "polski": "pl", "portuguese": "pt", "portugues": "pt", "português": "pt", "brazilian": "pt",
    "punjabi": "pa", "quechua": "qu", "romanian": "ro", "russian": "ru", "sanskrit": "sa",
    "serbian": "sr", "sinhala": "si", "slovak": "sk", "slovenian": "sl", "somali": "so",
    "spanish": "es", "espanol": "es", "español": "es", "castellano": "es", "swahili": "sw",
    "swedish": "sv", "svenska": "sv", "tagalog": "tl", "filipino": "tl", "tamil": "ta",
    "tatar": "tt", "telugu": "te", "thai": "th", "tibetan": "bo", "turkish": "tr",
    "ukrainian": "uk",
    "urdu": "ur", "uzbek": "uz", "vietnamese": "vi", "welsh": "cy", "yiddish": "yi", "yoruba": "yo",
}  # fmt: skip
"""What people write where a code is meant -> the code."""

_PROGRAMMING_NAMES: Mapping[str, str] = {
    "cpp": "c++", "cplusplus": "c++", "cxx": "c++", "csharp": "c#", "cs": "c#", "fsharp": "f#",
    "golang": "go", "js": "javascript", "ts": "typescript", "py": "python", "python3": "python",
    "rs": "rust", "rb": "ruby", "sh": "bash", "shell": "bash", "asm": "assembly", "hs": "haskell",
    "objc": "objective-c", "kt": "kotlin", "pl": "perl", "makefile": "make", "protobuf": "proto",
    "vimscript": "vim", "hcl": "terraform", "systemverilog": "verilog",
}  # fmt: skip


def language_mistake(language: str) -> str:
    """Return what is wrong with a language, and which was meant; empty: it is one."""
    name = language.removeprefix(CODE)
    is_code = language.startswith(CODE)
    if name in (PROGRAMMING if is_code else NATURAL):
        return ""
    meant = _programming_meant(name) if is_code else _natural_meant(language)
    if meant:
        return f"expected a language that can be told, such as {meant}, got {language}"
    if is_code:
        return f"expected a programming language such as code:python, got {language}"
    return f"expected a code of ISO 639 such as en, es or de, or code:python, got {language}"


def _natural_meant(language: str) -> str:
    """Return the nearest natural language; a programming one where its name was written alone."""
    wanted = language.casefold()
    region_free = wanted.partition("-")[0].partition("_")[0]
    if region_free in NATURAL:
        return region_free
    if wanted in _NAMES:
        return _NAMES[wanted]
    if wanted in PROGRAMMING or wanted in _PROGRAMMING_NAMES:
        return CODE + _PROGRAMMING_NAMES.get(wanted, wanted)
    close = get_close_matches(wanted, [*_NAMES, *PROGRAMMING], n=1, cutoff=0.7)
    if not close:
        return ""
    return _NAMES.get(close[0], CODE + close[0])


def _programming_meant(name: str) -> str:
    if name in _PROGRAMMING_NAMES:
        return CODE + _PROGRAMMING_NAMES[name]
    if name in NATURAL or name in _NAMES:
        return _NAMES.get(name, name)
    close = get_close_matches(name, [*PROGRAMMING, *_PROGRAMMING_NAMES], n=1, cutoff=0.6)
    return CODE + _PROGRAMMING_NAMES.get(close[0], close[0]) if close else ""
