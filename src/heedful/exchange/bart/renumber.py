"""
Ids of an extended vocabulary in an exported folder.

`heedful extend` adds rows at the end, but in transformers, language tokens follow all subwords. So
an export reorders the rows of an extended model::

    imported    <s> <pad> </s> <unk>   subwords                languages  <mask>   other rows
    extended    as imported, then the languages and subwords of each extension
    exported    <s> <pad> </s> <unk>   subwords, old and new   languages  <mask>   new languages
                other rows

The other rows have no token. Our own ids do not change, and a vocabulary that was not extended
keeps its original ids.
"""

from heedful.tokenization.id_mapping import IdMapping
from heedful.tokenization.imported_model import ImportedModel
from heedful.tokenization.sentencepiece_model import load_processor
from heedful.tokenization.special_symbols import SPECIAL_PIECES
from heedful.tokenization.tokenizer import Tokenizer

MASK = "<mask>"


def renumber_pieces(tokenizer: Tokenizer) -> Tokenizer:
    """Return a tokenizer with ids in the exported order; the same one if it has this order."""
    model, frame = tokenizer.models[0], tokenizer.frame
    if not isinstance(model, ImportedModel) or frame is None or not frame.languages:
        return tokenizer
    mapping = model.id_mapping
    places = _places(mapping, set(frame.languages.values()), subwords_of(model))
    order = sorted(places, key=places.__getitem__)
    if order == sorted(places, key=lambda ours: places[ours][1]):
        return tokenizer
    numbers = {ours: number for number, ours in enumerate(order)}
    origins = tuple(numbers.get(ours) for ours in range(model.size))
    content = model.files()["model"]
    longer = ImportedModel(IdMapping(mapping.pieces, origins), "sentencepiece", content)
    return tokenizer.changed(longer)


def subwords_of(model: ImportedModel) -> set[str]:
    """List the subwords into which a tokenizer's sentencepiece model splits text."""
    processor = load_processor(model.files()["model"])
    return {
        processor.id_to_piece(number)
        for number in range(processor.get_piece_size())
        if not (processor.is_control(number) or processor.is_unknown(number))
    }


def _places(
    mapping: IdMapping, languages: set[int], subwords: set[str]
) -> dict[int, tuple[int, int]]:
    """Return a mapping of our ids to the sort keys of their rows: group and original id."""
    numbered = {ours: n for ours, n in enumerate(mapping.origins) if n is not None}
    first = min(numbered[language] for language in languages)
    places = {}
    for ours, number in numbered.items():
        piece = mapping.pieces[ours]
        is_language = ours in languages or piece == MASK
        is_early = number < first and not is_language
        if ours < len(SPECIAL_PIECES) or is_early or (piece in subwords and not is_language):
            group = 0
        else:
            group = 1 if piece is not None else 2
        places[ours] = (group, number)
    return places
