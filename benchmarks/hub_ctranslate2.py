"""CTranslate2's conversion of Hugging Face model folders, adapted to transformers 5."""

from pathlib import Path
from typing import Any


def convert(theirs: Path, folder: Path) -> None:
    """
    Convert a model folder with CTranslate2's converter.

    Adds an attribute of BART's class that transformers 5 no longer writes, and the languages of
    M2M100 that the converter omits.
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
            # The tokenizer's vocabulary omits the languages, but its conversion of ids includes
            # them.
            names = tokenizer.convert_ids_to_tokens(range(model.config.vocab_size))
            unknown = (tokenizer.unk_token, tokenizer.unk_token_id)
            return [
                f"madeupword{row}" if name == unknown[0] and row != unknown[1] else name
                for row, name in enumerate(names)
            ]

    Converter(str(theirs)).convert(str(folder))
