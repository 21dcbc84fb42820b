"""A trained model made ready for translating."""
