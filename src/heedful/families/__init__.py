"""
Families of models other than the Transformer, and parts that a recipe may put into a model.

A family is a folder here, with its settings, what does not go together, its modules, how they are
built, and its recipes. It is known elsewhere by one line in `heedful.families.registry`.
"""
