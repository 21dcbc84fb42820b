"""Import from and export to other toolkits, with checks of every conversion."""
