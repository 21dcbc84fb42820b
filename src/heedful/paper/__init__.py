"""The paper's own figures and claims, made again here: drawn, computed, counted."""
