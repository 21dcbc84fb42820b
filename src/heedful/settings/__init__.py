"""The definition of settings: types, ranges, conditions and tables. Needs no torch."""
