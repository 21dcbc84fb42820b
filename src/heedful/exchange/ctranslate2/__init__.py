"""CTranslate2's models, read and written."""
