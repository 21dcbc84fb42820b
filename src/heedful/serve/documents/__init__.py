"""Documents sent to a server: layout, markup, language."""
