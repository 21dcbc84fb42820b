"""Speed of heedful beside other toolkits, in sections that can be measured alone."""
