"""How text as people have it is read for a model, and what is put back into its translation."""
