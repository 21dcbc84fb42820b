"""Systems trained side by side on one corpus, for the paper's Tables 2 and 3."""
