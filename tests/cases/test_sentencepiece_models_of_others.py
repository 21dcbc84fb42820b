"""A SentencePiece model that was trained with its defaults, or for another toolkit, is refused."""

import io

import pytest
import sentencepiece

from heedful.data.toy_grammar.corpus import sample_pairs
from heedful.errors import TokenizerError
from heedful.tokenization.from_files import could_have_given, tokenizer_from_files
from heedful.tokenization.tokenizer import Tokenizer

PAIRS = sample_pairs(150, seed=11)
LINES = [line for pair in PAIRS for line in pair]
# Ids of padding, unknown, start and end; -1 for a symbol that a model does not have.
IDS = {
    "README": {},
    "Marian": {"eos_id": 0, "unk_id": 1, "bos_id": -1},
    "T2T": {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1},
    "fairseq": {"bos_id": 0, "pad_id": 1, "eos_id": 2, "unk_id": 3},
    "T5": {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1, "control_symbols": ["<extra>"]},
    "none": {"bos_id": -1, "eos_id": -1},
    "names": {"bos_piece": "<start>", "unk_piece": "[?]", "unk_id": 3, "bos_id": 0},
}


def model(path, kind="bpe", size=150, **more):
    """Train a model; return it as SentencePiece loads it."""
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES),
        model_writer=written,
        model_type=kind,
        vocab_size=size,
        hard_vocab_limit=False,
        minloglevel=2,
        **more,
    )
    path.write_bytes(written.getvalue())
    return sentencepiece.SentencePieceProcessor(model_proto=written.getvalue())


def taken(path):
    """Load a tokenizer as a training does."""
    languages = {"source_language": "en", "target_language": "fr"}
    return tokenizer_from_files(path, [], [], vocabulary_size=9, shared=True, **languages)


@pytest.mark.parametrize("kind", ["bpe", "unigram", "char", "word"])
@pytest.mark.parametrize("name", IDS)
def test_the_subwords_are_the_models_own(tmp_path, name, kind):
    path = tmp_path / "their.model"
    theirs = model(path, kind, **IDS[name])
    tokenizer = taken(path)
    assert tokenizer.kind == {"char": "character"}.get(kind, kind)
    lines = [*LINES[:40], "un Ω inconnu", ""]
    rows = tokenizer.encode_target(lines)
    for line, row in zip(lines, rows, strict=True):
        pieces = [theirs.id_to_piece(number) for number in theirs.encode(line)]
        assert tokenizer.pieces_target(row) == pieces
        assert tokenizer.decode([*row, 3, 9]) == theirs.decode(theirs.encode(line))
    assert not {0, 2, 3} & {number for row in rows for number in row}
    # it is saved, loaded and known again
    tokenizer.save(tmp_path)
    assert Tokenizer.load(tmp_path).encode_target(lines) == rows
    assert could_have_given(path, tokenizer)


def test_subwords_can_be_sampled(tmp_path):
    model(tmp_path / "their.model", "unigram")
    tokenizer = taken(tmp_path / "their.model")
    (plain,) = tokenizer.encode_source(LINES[:1])
    (sampled,) = tokenizer.encode_source(LINES[:1], sampling=0.1)
    assert tokenizer.decode(sampled) == tokenizer.decode(plain) == LINES[0]


def test_an_ordinary_subword_with_the_name_of_a_symbol_is_refused_with_the_flags(tmp_path):
    model(tmp_path / "their.model", user_defined_symbols=["<pad>"])
    with pytest.raises(TokenizerError, match="--pad_id=0 --unk_id=1 --bos_id=2 --eos_id=3"):
        taken(tmp_path / "their.model")


def test_a_list_of_subwords_is_answered_with_the_model_beside_it(tmp_path):
    theirs = model(tmp_path / "their.model")
    pieces = [f"{theirs.id_to_piece(n)}\t{theirs.get_score(n):g}\n" for n in range(len(theirs))]
    (tmp_path / "their.vocab").write_text("".join(pieces), encoding="utf-8")
    with pytest.raises(TokenizerError, match=r"give its \.model file: .*their\.model\."):
        taken(tmp_path / "their.vocab")


def test_a_dry_run_names_the_models_own_kind(heedful_cli, tmp_path):
    model(tmp_path / "their.model", "unigram")
    for side, language in enumerate(("en", "fr")):
        lines = "".join(f"{pair[side]}\n" for pair in PAIRS)
        (tmp_path / f"text.{language}").write_text(lines, encoding="utf-8")
    text = ("--source", tmp_path / "text.en", "--target", tmp_path / "text.fr")
    given = ("--tokenizer", tmp_path / "their.model")
    done = heedful_cli("train", "tiny", *text, *given, "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "(unigram)" in done.stdout
