"""For mkdocstrings: docstrings name their Parameters and let notes and examples follow; this names those sections too."""

import re
from typing import Any

import griffe

_ENTRY = re.compile(r"[\w, *]+ :|[\w, *]+$")  # "name : type", or "name" alone


def named(text: str) -> str:
    """The docstring with headings of the sections that follow its parameters, as numpydoc has them."""
    paragraphs = re.split(r"\n\s*\n", text)
    section, out = "", []
    for paragraph in paragraphs:
        first = paragraph.lstrip("\n").splitlines()[0]
        heading = re.match(r"(\w+)\n---+\n", paragraph)
        if heading:
            section = heading[1]
        elif first.startswith(">>>"):
            paragraph = paragraph if section == "Examples" else "Examples\n--------\n" + paragraph
            section = "Examples"
        elif section in ("Parameters", "Returns", "Attributes") and not first.startswith(" ") and not _ENTRY.match(first):
            section, paragraph = "Notes", "Notes\n-----\n" + paragraph
        out.append(paragraph)
    return "\n\n".join(out)


class Sections(griffe.Extension):
    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = named(obj.docstring.value)
