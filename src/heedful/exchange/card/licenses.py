"""The license in a model card, as the Hugging Face hub names it."""

import re
from typing import NamedTuple

from heedful.errors import ExchangeError
from heedful.exchange.card.escape import code

_LONGEST = 100
# https://huggingface.co/docs/hub/repositories-licenses
_LISTED = """
    afl-3.0 agpl-3.0 apache-2.0 apple-amlr apple-ascl artistic-2.0 bigcode-openrail-m
    bigscience-bloom-rail-1.0 bigscience-openrail-m bsd bsd-2-clause bsd-3-clause
    bsd-3-clause-clear bsl-1.0 c-uda cc cc-by-2.0 cc-by-2.5 cc-by-3.0 cc-by-4.0 cc-by-nc-2.0
    cc-by-nc-3.0 cc-by-nc-4.0 cc-by-nc-nd-3.0 cc-by-nc-nd-4.0 cc-by-nc-sa-2.0 cc-by-nc-sa-3.0
    cc-by-nc-sa-4.0 cc-by-nd-4.0 cc-by-sa-3.0 cc-by-sa-4.0 cc0-1.0 cdla-permissive-1.0
    cdla-permissive-2.0 cdla-sharing-1.0 creativeml-openrail-m ecl-2.0 epl-1.0 epl-2.0 etalab-2.0
    eupl-1.1 eupl-1.2 gfdl gpl gpl-2.0 gpl-3.0 isc lgpl lgpl-2.1 lgpl-3.0 lgpl-lr lppl-1.3c mit
    mpl-2.0 ms-pl ncsa odbl odc-by ofl-1.1 openrail openrail++ osl-3.0 other pddl postgresql
    unknown unlicense wtfpl zlib
"""
_IDENTIFIERS = frozenset(_LISTED.split())


class LicenseEntries(NamedTuple):
    """The entries for a license in the front matter and in the body of a card."""

    fields: dict[str, str]
    """Fields of the front matter; empty if the license is not stated."""
    sentence: str
    """The sentence in the body."""


def license_entries(text: str) -> LicenseEntries:
    """
    Describe a license; a license that the hub does not list becomes ``other`` with its name.

    Raises `ExchangeError` if `text` cannot be the name of a license.
    """
    if not text:
        return LicenseEntries({}, "Not stated.")
    if len(text) > _LONGEST or not text.isprintable() or not any(map(str.isalnum, text)):
        raise ExchangeError(
            f"--license must be the name of a license, such as apache-2.0 or cc-by-4.0, in at most "
            f"{_LONGEST} characters on one line, but got {text[:_LONGEST]!r}."
        )
    if (identifier := text.lower()) in _IDENTIFIERS:
        return LicenseEntries({"license": identifier}, f"{code(identifier)}.")
    name = re.sub(r"[^a-z0-9.]+", "-", identifier).strip("-") or "other"
    return LicenseEntries({"license": "other", "license_name": name}, f"{code(text)}.")
