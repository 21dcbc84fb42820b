"""
Refuse British spellings and odd phrases: `python tools/spelling.py`, a part of `make check`.

Every text and file name of the repository is checked. Names such as `headColor` and `test_colors`
are split into words. Records of measurements, saved runs, corpora and names of earlier tests are
not checked.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Verbs that end in -ize in American English. Other verbs, such as `exercise`, always end in -ise.
_IZE = """
    anonym author binar canonical capital categor central character color custom emphas equal factor
    final formal general global harmon initial ital item legal linear local maxim memor minim modern
    neutral normal optim organ parallel parametr penal personal prior quant random real recogn
    regular roman serial special stabil standard structural summar symbol symmetr synchron synthes
    token util vector visual
"""

# Refused spellings, and their American endings.
REFUSED = {
    rf"({'|'.join(_IZE.split())})is(e|ed|ers?|es|ing|able|ations?)": "-ize",
    r"(ana|cata|para)lys(e|ed|ers?|ing)": "-yze",
    r"(behavi|col|fav|flav|harb|hon|hum|lab|neighb|rig|rum|vap|vig)our[a-z]*": "-or",
    r"(cent|fib|lit|theat|calib)re[ds]?": "-er",
    r"(cancel|channel|dial|fuel|label|level|marshal|model|quarrel|signal|total|travel|tunnel)l"
    r"(ed|ers?|ing)": "one l",
    r"fulfil(s|ment)?|enrol(s|ment)?|instal(s|ments?)": "two l",
    r"(spel|learn|burn|dream|leap|lean)t": "-ed",
    r"licences?": "license",
    r"greys?": "gray",
    r"artefacts?": "artifact",
    r"judgements?": "judgment",
    r"(de|of)fences?": "-ense",
    r"programmes?": "program",
    r"sceptic[a-z]*": "skeptic",
    r"towards": "toward",
    r"whilst|amongst": "while, among",
}
# Phrases that a reader has to read twice, and clear replacements.
PHRASES = {
    r"\bbut\b[^.;]*\bcame\b(?! (back|before|first|from|later|out|to)\b)": "but got 3",
    r"\b(it|they) (is|are) none\b|\b(is|are) none of them\b": "is not one, or: there is none",
    r"\bmend(s|ed|ing)?\b": "correct, repair or change",
}
# Names that users write, names of other programs, and quotations.
ALLOWED = re.compile(
    r"legacy_behaviour|CancelledError"
    r"|\bvisualise\b|\binitialisation\b|\blinearisation\b|\brenormalise\b"
    r"|“Many of the attention heads exhibit behaviour"  # the paper's words
)
AS_WRITTEN = (
    "docs/results/*.json",
    "tests/fates.tsv",
    "tests/formats",
    "tests/learning/*.json",
    "tests/structure/test_spelling.py",
    "tools/spelling.py",
    "tools/test_fates.toml",
)

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_FORM = re.compile(rf"(un|re|de|pre|mis|non)?({'|'.join(REFUSED)})")


def main() -> int:
    """Print the file and line of each refused word; return 1 if there is any."""
    places = [place for name in tracked_files() for place in places_of(name, read(name))]
    print("\n".join(places), end="\n" if places else "")
    return int(bool(places))


def tracked_files() -> list[str]:
    """List the files of the repository that are in English."""
    left_out = [f":!{pattern}" for pattern in AS_WRITTEN]
    command = ["git", "ls-files", "-co", "--exclude-standard", "-z", "--", ".", *left_out]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in listed.stdout.split("\0") if name]


def read(name: str) -> str:
    """Read a file; the text of a binary file is empty."""
    try:
        return (ROOT / name).read_text(encoding="utf-8")
    except (UnicodeDecodeError, FileNotFoundError):
        return ""


def places_of(name: str, text: str) -> Iterator[str]:
    """List the refused words of a file with their lines; line 0 is the file's name."""
    for number, line in enumerate([name, *text.splitlines()]):
        for word in _WORD.findall(ALLOWED.sub(" ", line)):
            if american := spelling_of(word.lower()):
                yield f"{name}:{number}: “{word}” is British; American English has {american}"
        for form, plain in PHRASES.items():
            if phrase := re.search(form, line):
                yield f"{name}:{number}: “{phrase[0]}” is hard to read; write for example: {plain}"


@cache
def spelling_of(word: str) -> str | None:
    """Return the American spelling of a refused word; None for other words."""
    if not _FORM.fullmatch(word):
        return None
    return next(
        american
        for form, american in REFUSED.items()
        if re.fullmatch(rf"(un|re|de|pre|mis|non)?({form})", word)
    )


if __name__ == "__main__":
    sys.exit(main())
