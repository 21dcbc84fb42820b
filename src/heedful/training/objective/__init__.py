"""Objectives of training: likelihood of references, risk of the model's translations, others."""
