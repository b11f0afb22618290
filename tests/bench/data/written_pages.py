"""Pages that are written here: documentation worth keeping, and stubs, in forms that sites have.

Their sentences are English and Spanish, made by a small grammar from a seed, so that no project's
words are in them.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

_PARTS = {
    "en": (
        "valve",
        "pump",
        "filter",
        "gasket",
        "sensor",
        "tank",
        "pipe",
        "motor",
        "switch",
        "belt",
    ),
    "es": (
        "filtro",
        "motor",
        "sensor",
        "tanque",
        "tubo",
        "cable",
        "panel",
        "muelle",
        "resorte",
        "eje",
    ),
}
_BEGINNINGS = {
    "en": (
        "The {a} has to be cleaned",
        "You can see how the {a} works",
        "Turn the {a} to the left",
        "Most people forget that a {a} gets hot",
        "We lost {n} litres through the {a}",
        "It is enough to look at the {a}",
        "Nobody should open the {a}",
        "A second {a} pays for itself",
        "If there is dust in the {a}, blow it out",
        "The maker of this {a} says that it is safe",
        "Put some oil on the {a}",
        "Write down how far the {a} has moved",
        "Listen to the {a} for a moment",
        "There are two ways of mending a {a}",
        "Some of the water stays in the {a}",
        "Whoever built the {a} thought of this",
    ),
    "es": (
        "Hay que limpiar el {a}",
        "Se puede ver bien que el {a} trabaja",
        "Gira el {a} hacia la izquierda",
        "Mucha gente olvida que un {a} se calienta",
        "Perdimos {n} litros por culpa del {a}",
        "Basta con mirar el {a}",
        "Nadie debería abrir el {a}",
        "Un segundo {a} se paga solo",
        "Si hay polvo dentro del {a}, sóplalo",
        "El fabricante de este {a} dice que es seguro",
        "Pon algo de aceite en el {a}",
        "Anota cuánto se ha movido el {a}",
        "Escucha un momento el {a}",
        "Hay dos maneras de reparar un {a}",
        "Parte del agua se queda en el {a}",
        "Quien construyó el {a} pensó en esto",
    ),
}
_ENDS = {
    "en": (
        "before the {b} stops for good",
        "when the weather turns cold",
        "and then close the {b} at once",
        "because the {b} would break first",
        "as long as the pressure holds",
        "after about {n} days of work",
        "while somebody else holds the {b}",
        "so that the noise goes away",
        "unless you have a spare {b}",
        "in the same way as with every other {b}",
        "though it takes nearly an hour",
        "until the needle of the {b} is quiet",
        "without taking the whole house apart",
        "which is what most handbooks leave out",
        "and wait for {n} minutes",
        "if the {b} is older than that",
    ),
    "es": (
        "antes de que el {b} se pare del todo",
        "cuando empieza a hacer frío",
        "y después cierra el {b}",
        "porque el {b} se rompería primero",
        "mientras la presión se mantiene",
        "tras unos {n} días de trabajo",
        "mientras otra persona sujeta el {b}",
        "para que desaparezca el ruido",
        "salvo que tengas otro {b}",
        "igual que se hace con cualquier {b}",
        "aunque lleva casi una hora",
        "hasta que la aguja del {b} esté quieta",
        "sin tener que desmontar la casa entera",
        "que es lo que callan casi todos los manuales",
        "y espera {n} minutos",
        "si el {b} es más viejo que eso",
    ),
}


@dataclass(frozen=True)
class Page:
    """A page with its label."""

    name: str
    """Path below the folder."""
    text: str
    is_good: bool
    """Whether it is worth training on."""


class _Writer:
    def __init__(self, chance: random.Random, language: str) -> None:
        self.chance = chance
        self.language = language
        self._drawn: dict[str, list[str]] = {}

    def part(self) -> str:
        return self.chance.choice(_PARTS[self.language])

    def sentence(self) -> str:
        form = f"{self._next('begin', _BEGINNINGS)} {self._next('end', _ENDS)}."
        return form.format(a=self.part(), b=self.part(), n=self.chance.randint(2, 900))

    def _next(self, name: str, forms: Mapping[str, Sequence[str]]) -> str:
        """Return one that wasn't drawn since all were: so that a page hardly repeats itself."""
        left = self._drawn.setdefault(name, [])
        if not left:
            left += self.chance.sample(forms[self.language], len(forms[self.language]))
        return left.pop()

    def text(self, sentences: int) -> str:
        return " ".join(self.sentence() for _ in range(sentences))

    def linked(self, sentences: int) -> str:
        part = self.part()
        return self.text(sentences).replace(part, f"[{part}](../parts/{part}.md#top)", 1)


def _guide(to: _Writer) -> str:
    return f"""---
title: {to.part()}
weight: {to.chance.randint(1, 9)}
---

# {to.part()} {{ #top }}

{to.linked(3)}

```python
open_{to.part()}(litres={to.chance.randint(1, 99)})
```

!!! note
    {to.text(2)}

{{% include 'menu.html' %}}

## {to.part()}

{to.linked(4)}

- **{to.part()}**: {to.text(1)}
- **{to.part()}**: {to.text(1)}
"""


def _reference(to: _Writer) -> str:
    rows = "\n".join(f"| `{to.part()}_{n}` | {n} | [{to.part()}](x.md) |" for n in range(6))
    output = "\n".join(f"{n} % done" for n in range(30))
    return f"""# {to.part()}

{to.linked(5)}

| name | least | page |
|---|---|---|
{rows}

## {to.part()}

{to.text(3)} `{{x}}` {to.text(1)}

```console
$ run {to.part()}
{output}
```

{to.text(3)}
"""


def _sphinx(to: _Writer) -> str:
    title = to.part()
    return f""".. _{title}:

{title}
{"=" * len(title)}

{to.text(4)} :ref:`{to.part()} <top>`.

.. note::

   {to.text(3)}

::

    open({to.chance.randint(1, 99)})

.. function:: turn_{to.part()}(x)

   {to.text(4)} ``turn({{x}})``

.. toctree::

   one
   two
"""


def _example(to: _Writer) -> str:
    lines = "\n".join(f"{to.part()}_{n} = {{'litres': {n}}}" for n in range(20))
    return f"# {to.part()}\n\n{to.text(6)}\n\n```python\n{lines}\n```\n"


def _index(to: _Writer) -> str:
    links = "\n".join(f"- [{to.part()} {n}]({n}.md)" for n in range(12))
    return f"# {to.part()}\n\n{to.text(1)}\n\n{links}\n"


def _redirect(to: _Writer) -> str:
    return f"# {to.part()}\n\n[{to.part()}](https://example.org/{to.part()})\n"


def _api(to: _Writer) -> str:
    names = "\n\n".join(
        f"::: pumps.{to.part()}_{n}\n    options:\n      level: 2" for n in range(5)
    )
    return f"# {to.part()}\n\n{to.text(1)}\n\n{names}\n"


def _template(to: _Writer) -> str:
    cards = "\n".join(
        f"{{% for x in {to.part()} %}}\n<div><img src='{{{{ x.url }}}}'></div>\n{{% endfor %}}"
        for _ in range(4)
    )
    return f"# {to.part()}\n\n{cards}\n\n{to.text(1)}\n"


_GOOD: dict[str, Callable[[_Writer], str]] = {
    "guide.md": _guide,
    "reference.md": _reference,
    "sphinx.rst": _sphinx,
    "example.mdx": _example,
}
_STUBS: dict[str, Callable[[_Writer], str]] = {
    "index.md": _index,
    "redirect.md": _redirect,
    "api.md": _api,
    "template.md": _template,
}


def written_pages(count: int, seed: int, language: str) -> Iterator[Page]:
    """Yield pages in one language, half of them good."""
    writer = _Writer(random.Random(seed), language)
    forms = [*((name, form, True) for name, form in _GOOD.items())]
    forms += [(name, form, False) for name, form in _STUBS.items()]
    for number in range(count):
        name, form, is_good = forms[number % len(forms)]
        yield Page(f"{number}/{name}", form(writer), is_good)
