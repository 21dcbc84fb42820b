"""Translation over HTTP, and the web page."""
