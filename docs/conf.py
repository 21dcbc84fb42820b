"""Sphinx settings of the documentation site: `make docs` writes it to `build/site`."""

import re
import sys
from pathlib import Path
from typing import Any, NoReturn

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

from heedful._version import __version__

sys.path.insert(0, str(Path(__file__).parent))
from generate import commands_page, settings_page

project = "heedful"
copyright = "heedful's authors, Apache-2.0"
release = __version__
extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc", "myst_parser"]
autosummary_generate = True
autodoc_default_options = {"members": True}
maximum_signature_line_length = 90  # a longer one, such as with shapes, has one parameter a line
numpydoc_show_class_members = False
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
exclude_patterns: list[str] = []
html_theme = "furo"
html_title = f"heedful {release}"
html_static_path = ["static"]
html_css_files = ["front.css"]
html_math_renderer = "mathml"
smartquotes = False  # it would make a dash of the two hyphens of an option


def write_pages(site: Sphinx) -> None:
    """Write the generated pages before Sphinx reads the sources."""
    folder = Path(site.srcdir) / "generated"
    folder.mkdir(exist_ok=True)
    (folder / "commands.md").write_text(commands_page(), encoding="utf-8")
    (folder / "settings.md").write_text(settings_page(), encoding="utf-8")


def write_inline_formula(page: HTML5Translator, node: nodes.math) -> None:
    """Write a formula within a line as MathML, which browsers draw without network or script."""
    _write_mathml(page, node, as_block=False)


def write_formula(page: HTML5Translator, node: nodes.math_block) -> None:
    """Write a formula as a block."""
    _write_mathml(page, node, as_block=True)


def _write_mathml(page: HTML5Translator, node: nodes.Element, as_block: bool) -> NoReturn:
    """Write a formula as MathML; warn if docutils does not support it."""
    try:
        page.body.append(tex2mathml(node.astext(), as_block=as_block))
    except MathError as error:
        logging.getLogger(__name__).warning("formula: %s", error, location=node)
    raise nodes.SkipNode


# Commands, and the options in them; a browser would break a line after the hyphens of an option.
_COMMANDS = re.compile(r'(?<=<div class="highlight-)(?:sh|bash)\b.*?</pre>', re.DOTALL)
_OPTION = re.compile(r"(?<=[\s>])--?[a-z][\w-]*")


def keep_options_whole(
    site: Sphinx, page: str, template: str, context: dict[str, Any], tree: nodes.document | None
) -> None:
    """Prevent line breaks within the options of commands."""
    context["body"] = _COMMANDS.sub(
        lambda command: _OPTION.sub(r'<span class="option">\g<0></span>', command[0]),
        context.get("body", ""),
    )


def setup(site: Sphinx) -> None:
    """Connect the generated pages, the writers of formulas and the markup of options to Sphinx."""
    site.connect("builder-inited", write_pages)
    site.connect("html-page-context", keep_options_whole)
    site.add_html_math_renderer("mathml", (write_inline_formula, None), (write_formula, None))
