"""Translators: trained runs that translate, score and align."""
