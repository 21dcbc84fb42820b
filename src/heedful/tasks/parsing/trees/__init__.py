"""Reading, linearizing, scoring and drawing constituency trees; torch is not needed."""
