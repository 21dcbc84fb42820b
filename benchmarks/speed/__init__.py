"""How fast heedful is, beside others: sections that can each be measured alone."""
