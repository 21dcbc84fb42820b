"""Public corpora: where they are, and how they are downloaded, checked and unpacked."""
