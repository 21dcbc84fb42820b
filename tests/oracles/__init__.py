"""
Models of other toolkits recomputed in NumPy, by the toolkits' own names, ids and rules of search.

They share nothing with `heedful.model`: imported models are compared with them.
"""
