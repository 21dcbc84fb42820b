"""CTranslate2's conversion of the folders, where it lags behind transformers."""

from pathlib import Path
from typing import Any


def convert(theirs: Path, folder: Path) -> None:
    """
    Convert a folder by CTranslate2's own converter.

    It reads an attribute of BART's class that transformers 5 writes no more, and whose value is
    the only one that the class has; and it does not see the languages of M2M100 there.
    """
    from ctranslate2.converters import TransformersConverter
    from ctranslate2.converters.transformers import M2M100Loader, register_loader

    class Converter(TransformersConverter):
        def load_model(self, *words: Any, **options: Any) -> Any:
            model = super().load_model(*words, **options)
            if not hasattr(model.config, "normalize_before"):
                model.config.normalize_before = False
            return model

    @register_loader("M2M100Config")
    class Loader(M2M100Loader):
        def get_vocabulary(self, model: Any, tokenizer: Any) -> list[str]:
            names = {number: name for name, number in tokenizer.get_vocab().items()}
            rows = range(model.config.vocab_size)
            return [names.get(row, f"madeupword{row}") for row in rows]

    Converter(str(theirs)).convert(str(folder))
