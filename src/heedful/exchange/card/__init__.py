"""The model card of an exported model."""
