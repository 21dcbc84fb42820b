"""
Families of models, such as the Transformer, and parts that a recipe may put into a model.

A family is a folder here, with its settings, checks of their combinations, modules, builders and
recipes. One line in `heedful.families.registry` registers it.
"""
