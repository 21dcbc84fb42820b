"""Objectives of training, such as the likelihood of references and the risk of translations."""
