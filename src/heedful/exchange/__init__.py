"""Import from and export to other toolkits; every conversion is checked against the original."""
