"""The definition of settings: types, ranges, conditions and tables, without torch."""
