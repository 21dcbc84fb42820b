"""Text as it is sent to a server: layout, markup, and the language it is in."""
