"""What an import reports."""

from pathlib import Path

import pytest

from heedful.errors import ParityFailed
from heedful.exchange.import_report import ImportReport, count_round_trips
from heedful.exchange.parity import Parity
from heedful.families.keymap import TensorUse
from heedful.tokenization.id_mapping import IdMapping
from heedful.tokenization.imported_model import ImportedModel
from heedful.tokenization.tokenizer import Tokenizer


def test_sentences_whose_subwords_change_do_not_count():
    pieces = ["<unk>", "<s>", "</s>", "a", "b", "c"]
    numbers = {piece: number for number, piece in enumerate(pieces)}
    special = {"unknown": "<unk>", "start": "<s>", "end": "</s>"}
    mapping = IdMapping.of(numbers, special, len(pieces))
    tokenizer = Tokenizer(ImportedModel(mapping, "spaces"), source_language="", target_language="")
    assert count_round_trips(tokenizer, ["a b", "c"]) == 2
    decode = tokenizer.decode_source
    tokenizer.decode_source = lambda ids: decode(ids).replace("c", "a")
    assert count_round_trips(tokenizer, ["a b", "c"]) == 1


def test_a_report_names_its_proofs_and_what_was_not_done():
    alone = ImportReport(TensorUse(9), 4, 3, None, "results were not compared")
    assert str(alone) == (
        "all 9 tensors of the run are filled, and each tensor of the original is used once; 3 of 4 "
        "sentences have the same subwords after decoding to text and encoding again; results "
        "were not compared"
    )
    alone.check_outputs(Path("run"))


def test_other_translations_of_the_toolkit_are_an_error():
    parity = Parity("words", 20, 1e-3, 0.0, 20, 18, 0.1, 0.1)
    report = ImportReport(TensorUse(9), 20, 20, parity)
    assert str(report).endswith(str(parity))
    with pytest.raises(ParityFailed, match="18 of 20"):
        report.check_outputs(Path("run"))
