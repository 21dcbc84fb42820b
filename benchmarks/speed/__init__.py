"""Speed of heedful and other toolkits, in sections that can be measured separately."""
