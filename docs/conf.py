"""Settings of the documentation site: `make docs` writes it to `build/site`."""

from heedful import __version__

project = "heedful"
release = __version__
extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc", "myst_parser"]
autosummary_generate = True
autodoc_default_options = {"members": True}
autodoc_typehints = "none"  # the docstrings give types and shapes in words
numpydoc_show_class_members = False
exclude_patterns: list[str] = []
html_theme = "alabaster"
html_theme_options = {"description": "Attention Is All You Need, as living software"}
