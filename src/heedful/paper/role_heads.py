"""
Attention heads that answer a question: who, did what, to whom.

A verb asks three questions about its sentence (who, did what, to whom), and a different head may
answer each question. Every head is rated by its attention from the query word to the answer words.
One sentence proves little, so heads are also rated on sentences of the built-in grammar, with known
subjects, verbs and objects. The best head is chosen on one half of these sentences. It is rated on
the other half, and compared with always choosing the word at a fixed distance.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from heedful.data.toy_grammar.roles import RoledSentence
from heedful.paper.word_attention import word_attention
from heedful.translation.translator import Translator

QUESTIONS = ("who", "did what", "to whom", "for what")
"""A verb asks the first three questions; a pronoun asks the last question, about its antecedent."""


class RatedHead(NamedTuple):
    """
    Rating of a head: how well it answers a question in one sentence.

    With several query words, the worst of their ranks counts. A head answers no question if other
    words attend to the answer words just as much as the query words do.
    """

    layer: int
    head: int
    """Index of the head in its layer; heads and layers are counted from 1."""
    weight: float
    """The head's weight on the answer words, from 0 to 1, averaged over the query words."""
    others: float
    """The head's weight on the answer words, averaged over all words except the query words."""
    rank: int
    """1 if the best answer word has the largest weight of all words."""


class RoleAnswer(NamedTuple):
    """
    The head that answers a question in many sentences.

    A head whose `right` is not larger than `by_offset` may have learned only a distance.
    """

    question: str
    layer: int
    head: int
    """Index, from 1, of the head with the largest weight on the answers in the first half."""
    weight: float
    """The head's mean weight on the answer in the second half."""
    right: float
    """Fraction of sentences in the second half in which the answer has the largest weight."""
    offset: int
    """Most frequent distance from the query word to the answer, in the first half."""
    by_offset: float
    """Fraction of sentences in the second half in which the answer is at the distance `offset`."""
    even: float
    """Weight of uniform attention on the answer, averaged over the second half."""
    sentences: int
    """Number of sentences in the second half."""


def rate_heads(
    weights: Float[np.ndarray, "layers heads words words"],
    asking: Sequence[int],
    answers: Sequence[int],
) -> list[RatedHead]:
    """
    Rate all heads by their attention from query words to answer words.

    Returns the ratings with the best head first; heads with equal weights are in the order of layer
    and head.

    The rank distinguishes a head that attends to the answer from a head that attends everywhere.
    """
    everywhere = weights[..., list(answers)].sum(axis=-1)
    rest = [word for word in range(weights.shape[-1]) if word not in asking]
    others = everywhere[..., rest].mean(axis=-1) if rest else everywhere.mean(axis=-1)
    looks = weights[:, :, list(asking)]
    on_answers = looks[..., list(answers)]
    weight = on_answers.sum(axis=-1).mean(axis=-1)
    more = looks > on_answers.max(axis=-1, keepdims=True)
    rank = more.sum(axis=-1).max(axis=-1) + 1
    rated = [
        RatedHead(
            layer + 1,
            head + 1,
            float(weight[layer, head]),
            float(others[layer, head]),
            int(rank[layer, head]),
        )
        for layer, head in np.ndindex(*weight.shape)
    ]
    return sorted(rated, key=lambda rating: (-rating.weight, rating.layer, rating.head))


def answer_questions(
    translator: Translator, sentences: Sequence[RoledSentence]
) -> list[RoleAnswer]:
    """Find the heads that answer the questions, on sentences with known answers."""
    # The query word is the verb, which is also the answer to “did what”. For “for what”, the query
    # word is a pronoun and the answer is its antecedent, as in figure 4 of the paper.
    if len(sentences) < 2:
        raise ValueError(f"the number of sentences must be at least 2, but is {len(sentences)}")
    rows = [word_attention(translator, sentence.text).weights for sentence in sentences]
    words = [
        ((s.verb, s.subject), (s.verb, s.verb), (s.verb, s.object), (s.pronoun, s.object))
        for s in sentences
    ]
    chosen = []
    for question, pairs in zip(QUESTIONS, zip(*words, strict=True), strict=True):
        instances = [
            (row[:, :, asking], asking, answer)
            for row, (asking, answer) in zip(rows, pairs, strict=True)
            if asking is not None
        ]
        if len(instances) > 1:
            looks, asking, answers = zip(*instances, strict=True)
            chosen.append(choose_and_rate(question, looks, np.array(answers), np.array(asking)))
    return chosen


def choose_and_rate(
    question: str,
    looks: Sequence[Float[np.ndarray, "layers heads _"]],
    answers: Int[np.ndarray, " sentences"],
    asking: Int[np.ndarray, " sentences"],
) -> RoleAnswer:
    """Choose the best head on the first half of the sentences, and rate it on the second half."""
    # On the sentences used to choose it, the best of many heads would look better than it is.
    half = len(looks) // 2
    weight = np.stack([look[..., a] for look, a in zip(looks, answers, strict=True)])
    first = np.stack(
        [look[..., a] >= look.max(axis=-1) for look, a in zip(looks, answers, strict=True)]
    )
    mean = weight[:half].mean(axis=0)
    layer, head = np.unravel_index(mean.argmax(), mean.shape)
    offsets = answers - asking
    distances, counts = np.unique(offsets[:half], return_counts=True)
    offset = int(distances[counts.argmax()])
    return RoleAnswer(
        question,
        int(layer) + 1,
        int(head) + 1,
        float(weight[half:, layer, head].mean()),
        float(first[half:, layer, head].mean()),
        offset,
        float((offsets[half:] == offset).mean()),
        float(np.mean([1 / look.shape[-1] for look in looks[half:]])),
        len(looks) - half,
    )
