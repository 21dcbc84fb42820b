"""
Tokenizers of the transformers library for a model's languages, including added languages.

::

    NllbTokenizer      any list of languages; only byte-pair subwords
    MBartTokenizer     its 25 languages and any others
    MBart50Tokenizer   its 52 languages; other source languages are set after loading
    M2M100Tokenizer    its 100 languages, or WMT21's 8; others only as target languages

So an M2M100 model with an added language is written for `NllbTokenizer`. This class adds the same
tokens to text, but names a language by its token. It needs byte-pair subwords, each with a row in
the embedding table.
"""

from collections.abc import Sequence

from heedful.exchange.bart import languages
from heedful.exchange.bart.renumber import subwords_of
from heedful.tokenization.imported_model import ImportedModel
from heedful.tokenization.model_proto import kind_of
from heedful.tokenization.tokenizer import Tokenizer


def tokenizer_class(tokenizer: Tokenizer, kind: str) -> str:
    """Choose the transformers class of a tokenizer; `kind`: `model_type` of the model."""
    model, frame = tokenizer.models[0], tokenizer.frame
    assert frame is not None
    assert isinstance(model, ImportedModel)
    if kind == "mbart":
        return "MBartTokenizer" if frame.target == "start" else "MBart50Tokenizer"
    if not _is_m2m100(tokenizer):
        return "NllbTokenizer"
    is_fixed = not new_languages(tokenizer, kind)
    is_bytepair = kind_of(model.files()["model"]) == "bpe"
    has_all = subwords_of(model) <= {piece for piece in model.id_mapping.pieces if piece}
    return "NllbTokenizer" if not is_fixed and is_bytepair and has_all else "M2M100Tokenizer"


def new_languages(tokenizer: Tokenizer, kind: str) -> list[str]:
    """List the languages that the class of the tokenizer does not know."""
    assert tokenizer.frame is not None
    codes = [*tokenizer.frame.languages]
    if kind == "mbart":
        is_plain = tokenizer.frame.target == "start"
        usual = (languages.MBART if is_plain else languages.MBART50).split()
    elif _is_m2m100(tokenizer):
        usual = (languages.WMT21 if is_wmt21(codes) else languages.M2M100).split()
    else:
        usual = codes
    return [code for code in codes if code not in usual]


def is_wmt21(codes: Sequence[str]) -> bool:
    """Return whether a list begins with the languages of WMT21's models."""
    usual = languages.WMT21.split()
    return [*codes[: len(usual)]] == usual


def notes_on(name: str, kind: str, new: Sequence[str]) -> tuple[str, ...]:
    """Explain how to name new languages for a tokenizer; `new`: tokens of these languages."""
    if not new or name == "MBartTokenizer":
        return ()
    token = new[-1]
    if name == "NllbTokenizer" and kind == "m2m_100":
        return (
            "transformers' M2M100Tokenizer has a fixed list of languages, so the folder uses "
            f'NllbTokenizer, which names languages by their tokens: src_lang="{token}"',
        )
    if name == "MBart50Tokenizer":
        return (
            "transformers' MBart50Tokenizer looks src_lang up in a fixed list while it loads; "
            f'set a new language after loading: tokenizer.src_lang = "{token}"',
        )
    return (
        "transformers' M2M100Tokenizer has a fixed list of languages; a new language can only "
        f'be a target: forced_bos_token_id=tokenizer.convert_tokens_to_ids("{token}")',
    )


def _is_m2m100(tokenizer: Tokenizer) -> bool:
    """Return whether the tokens of languages are spelled as in M2M100."""
    assert tokenizer.frame is not None
    first = next(iter(tokenizer.frame.languages.values()))
    return tokenizer.models[0].piece(first).startswith("__")
