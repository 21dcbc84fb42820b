"""The definition of settings: types, ranges, conditions and tables. They do not need torch."""
