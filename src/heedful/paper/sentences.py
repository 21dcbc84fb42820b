"""Example sentences: the sentences of the paper's figures 3 to 5, or of a run's training text."""

from typing import NamedTuple

from heedful.data.encoded.dataset import META, EncodedPairs
from heedful.runs.run import Run
from heedful.tokenization.tokenizer import UNKNOWN

# Sentence lengths in words that a picture shows well, and the number of sentences to search.
_WORDS, _LOOKED_THROUGH = range(8, 17), 500


class PaperExample(NamedTuple):
    """
    A sentence in the paper, and what its figure shows.

    All three figures show the encoder's self-attention “at layer 5 of 6” in a model that translates
    from English. Their two sentences are from newstest2013.
    """

    text: str
    """The sentence as written, before punctuation was separated from words."""
    query: str
    """The query word whose attention is shown; empty for all words."""
    keys: str
    """The words to which the query word attends."""
    about: str
    """The paper's remark on its figure."""


LAYER = 5
_LAW = (
    "The Law will never be perfect, but its application should be just - this is what we are "
    "missing, in my opinion."
)

FIGURE_3 = PaperExample(
    "It is in this spirit that a majority of American governments have passed new laws since 2009 "
    "making the registration or voting process more difficult.",
    "making",
    "more difficult",
    "“Many of the attention heads attend to a distant dependency of the verb ‘making’, completing "
    "the phrase ‘making...more difficult’.”",
)
FIGURE_4 = PaperExample(
    _LAW,
    "its",
    "Law application",
    "“Two attention heads, also in layer 5 of 6, apparently involved in anaphora resolution. [...] "
    "Note that the attentions are very sharp for this word.”",
)
FIGURE_5 = PaperExample(
    _LAW,
    "",
    "",
    "“Many of the attention heads exhibit behaviour that seems related to the structure of the "
    "sentence. [...] The heads clearly learned to perform different tasks.”",
)

EXAMPLES = {3: FIGURE_3, 4: FIGURE_4, 5: FIGURE_5}


def own_sentence(run: Run) -> str:
    """Return a sentence of suitable length from a run's training text; empty if there is none."""
    metas = sorted(run.folder.path.glob(f"data/**/{META}"))
    if not metas:
        return ""
    pairs = EncodedPairs.open(metas[0].parent, run.tokenizer)
    for number in range(min(len(pairs), _LOOKED_THROUGH)):
        ids = pairs.pair(number)[0].tolist()
        sentence = run.tokenizer.decode_source(ids)
        if UNKNOWN not in ids and len(sentence.split()) in _WORDS:
            return sentence
    return ""
