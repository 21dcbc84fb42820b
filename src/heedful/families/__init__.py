"""
Families of models other than the Transformer, and parts that a recipe may put into a model.

A family is a folder here, with its settings, checks of their combinations, modules, builders and
recipes. One line in `heedful.families.registry` makes it known to the rest of the program.
"""
