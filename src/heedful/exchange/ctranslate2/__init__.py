"""Import and export of CTranslate2 models."""
