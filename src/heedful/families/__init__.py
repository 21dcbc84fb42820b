"""
Families of models: those beside the Transformer, and parts that a recipe may put into one.

A family is a folder here, with its settings, what does not go together, its modules, how they are
built, and its recipes. It is known elsewhere by one line in `heedful.families.registry`.
"""
