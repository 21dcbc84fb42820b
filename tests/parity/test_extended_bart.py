"""Models of BART's classes with a further language, as folders that transformers loads."""

import json
import shutil
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from tests.support.extended_bart import ENGLISH, FRENCH, KINDS, SAXON, UMLAUTS, extended
from tests.support.marian import text

from heedful.errors import ExchangeError, SettingError
from heedful.exchange.bart.renumber import renumber_pieces
from heedful.exchange.convert import export_model, import_model
from heedful.exchange.parity import Parity
from heedful.runs.run import Run
from heedful.training.extend import NewLanguage, extend
from heedful.translation.translator import Translator

SENTENCES = [SAXON[0], ENGLISH[0], FRENCH[1]]
SEARCHES = {
    "greedy": {"beam": 1},
    "beam": {"beam": 4, "length_penalty": "power:1.3", "stop": "when-beam-finished"},
}


class Longer(NamedTuple):
    """A folder with the model, the run that a language was added to, and what was exported."""

    folder: Path
    run: Run
    parity: Parity
    notes: tuple[str, ...]


@pytest.fixture(scope="module")
def longer_of(tmp_path_factory):
    """Give a model of a kind another language and export it, once."""

    @cache
    def longer_of(name):
        folder = tmp_path_factory.mktemp("extended")
        run = extended(folder, name)
        exported = export_model(folder / "longer", "bart", folder / "out", sentences=SENTENCES)
        return Longer(folder, run, *exported)

    return longer_of


def written_by_transformers(tokenizer, model, run, sentences, search):
    """Translate as the documentation of transformers says; yields our ids and pieces."""
    pieces, codes = run.tokenizer.models[0], (run.direction.source, run.direction.target)
    names = [pieces.piece(run.tokenizer.frame.token(code)) for code in codes]
    tokenizer.src_lang = codes[0] if type(tokenizer).__name__ == "M2M100Tokenizer" else names[0]
    first = tokenizer.convert_tokens_to_ids(names[1])
    is_start = type(tokenizer).__name__ == "MBartTokenizer"
    rule = {"decoder_start_token_id" if is_start else "forced_bos_token_id": first}
    rule |= {"num_beams": 1} if search == "greedy" else {"num_beams": 4, "length_penalty": 1.3}
    mapping = renumber_pieces(run.tokenizer).models[0].id_mapping
    for sentence in sentences:
        rows = tokenizer([sentence], return_tensors="pt")
        read = mapping.to_ours(rows.input_ids[0].tolist())
        row = model.generate(**rows, **rule)[0].tolist()[1:]
        row = mapping.to_ours(row[: row.index(2)] if 2 in row else row)
        shown = tuple(run.tokenizer.pieces_target(row))
        yield read[:-1] if run.config.model.source_end else read, shown


@pytest.mark.parametrize("name", KINDS)
def test_transformers_reads_the_new_language_and_writes_it(longer_of, tmp_path, name):
    import transformers

    folder, run, parity, notes = longer_of(name)
    kind, _, code, written = KINDS[name]
    assert run.tokenizer.languages[-1] == code
    assert parity.difference < 1e-5
    assert parity.same_tokens == parity.same_outputs == len(SENTENCES)
    settings = json.loads((folder / "out" / "tokenizer_config.json").read_text("utf-8"))
    assert settings["tokenizer_class"] == written
    assert any(code in note for note in notes) == (kind in ("m2m100", "mbart50"))
    again, _ = import_model("huggingface", folder / "out", tmp_path / "again", sentences=SENTENCES)
    assert again.parity.same_outputs == again.parity.sentences
    assert {*Run.open(tmp_path / "again").tokenizer.languages} == {*run.tokenizer.languages}

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder / "out")
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder / "out", dtype=torch.float32)
    longer = Translator.load(folder / "longer", device="cpu", precision="fp32")
    old = run.tokenizer.source_language
    sides = [(old, code), (code, old)]
    for source, target in sides[:1] if written == "M2M100Tokenizer" else sides:
        between = longer.between(source, target)
        ids = between.run.tokenizer.encode_source(SENTENCES)
        for search, options in SEARCHES.items():
            theirs = [*written_by_transformers(tokenizer, model, between.run, SENTENCES, search)]
            assert [row for row, _ in theirs] == ids
            ours = between.translate(SENTENCES, **options)
            assert [row for _, row in theirs] == [line.tokens for line in ours]


@pytest.mark.parametrize("name", ["nllb", "mbart", "m2m100"])
def test_the_new_language_is_named_while_the_tokenizer_is_loaded(longer_of, name):
    import transformers

    folder, run, *_ = longer_of(name)
    code = KINDS[name][2]
    token = run.tokenizer.models[0].piece(run.tokenizer.frame.token(code))
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder / "out", src_lang=token)
    (ids,) = run.between(code, "fr", ("", "")).tokenizer.encode_source(SAXON[:1])
    mapping = renumber_pieces(run.tokenizer).models[0].id_mapping
    read = mapping.to_ours(tokenizer(SAXON[0]).input_ids)
    assert read[: len(ids)] == ids
    assert len({*ids}) > 3


def test_subwords_alone_leave_the_languages_to_the_class(tmp_path):
    import transformers

    run = extended(tmp_path, "lacks rows", tag="")
    parity, notes = export_model(tmp_path / "longer", "bart", tmp_path / "out", sentences=SAXON[:4])
    assert parity.same_tokens == parity.same_outputs == 4
    assert not any("M2M100Tokenizer" in note for note in notes)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out", src_lang="fr")
    assert type(tokenizer).__name__ == "M2M100Tokenizer"
    mapping = renumber_pieces(run.tokenizer).models[0].id_mapping
    assert tokenizer.get_lang_id("fr") == mapping.origins[run.tokenizer.frame.token("fr")]
    (ids,) = run.between("fr", "en", ("", "")).tokenizer.encode_source(SAXON[:1])
    assert mapping.to_ours(tokenizer(SAXON[0]).input_ids)[: len(ids)] == ids


def test_a_new_source_is_refused_where_the_class_has_none(longer_of, tmp_path):
    folder, run, *_ = longer_of("unigram")
    shutil.copytree(folder / "longer", tmp_path / "longer")
    run.between("nds", "fr", ("", "")).tokenizer.save(tmp_path / "longer")
    with pytest.raises(ExchangeError, match="fixed list of source languages, without nds"):
        export_model(tmp_path / "longer", "bart", tmp_path / "out", sentences=SAXON[:2])
    assert not (tmp_path / "out").exists()


def test_a_code_that_could_be_a_word_is_refused(longer_of, tmp_path):
    folder = longer_of("nllb").folder
    new = NewLanguage(target=folder / "text.xx", tag="nds", pieces=40)
    with pytest.raises(SettingError, match="--tag must have the form of the codes"):
        extend(folder / "run", tmp_path / "longer", new)
    assert not (tmp_path / "longer").exists()


def test_new_unigram_subwords_leave_no_tie(longer_of):
    import transformers

    folder, run, *_ = longer_of("mbart50")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder / "out")
    pieces = run.tokenizer.models[0]
    # “mmë s” and “mm ës” are made of the same letters by as many merges
    for line in (french.translate(UMLAUTS) for _, french in text(600)):
        (ids,) = pieces.encode([line])
        assert tokenizer.tokenize(line) == [pieces.piece(number) for number in ids], line
