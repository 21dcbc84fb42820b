"""Test sets in WMT's format since 2021."""

from pathlib import Path
from xml.sax.saxutils import escape, quoteattr


def as_xml(
    documents: list[dict[str, list[str]]], suites: int = 0, order: list[int] | None = None
) -> str:
    """
    A test set in the format since 2021; keys are “src”, “ref:A”, “hyp:online-A”.

    `order`: the numbers of the documents in the order in which they are written.
    """
    parts = ['<?xml version="1.0" encoding="utf-8"?>\n<dataset id="newstest2021">']
    for number in order or range(len(documents)):
        document = documents[number]
        suite = ' testsuite="x"' if number < suites else ""
        parts.append(f'<doc origlang="en" id="{number}"{suite}>')
        for side, texts in document.items():
            tag, _, who = side.partition(":")
            whose = {"ref": "translator", "hyp": "system"}.get(tag)
            by = f" {whose}={quoteattr(who)}" if who else ""
            parts.append(f'<{tag} lang="{"en" if tag == "src" else "de"}"{by}><p>')
            parts += [f'<seg id="{n}">{escape(t)}</seg>' for n, t in enumerate(texts, start=1) if t]
            parts.append(f"</p></{tag}>")
        parts.append("</doc>")
    return "\n".join([*parts, "</dataset>\n"])


def write_xml(
    path: Path,
    *documents: dict[str, list[str]],
    suites: int = 0,
    order: list[int] | None = None,
) -> Path:
    """Write a test set to a file."""
    path.write_text(as_xml(list(documents), suites, order), encoding="utf-8")
    return path
