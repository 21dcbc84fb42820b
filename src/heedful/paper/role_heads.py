"""
Heads that answer a question: who, did what, to whom.

The founding notes show a verb that asks three questions of its sentence, each answered by a head
of its own. Here every head is rated by the weight it puts, from the word that asks, on the words
that answer. One sentence proves little: on sentences of the embedded grammar, whose subjects,
verbs and objects are known, the best head is chosen on one half and rated on the other, beside
what one gets by looking always as many words away.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from heedful.data.toy_grammar.roles import RoledSentence
from heedful.paper.word_attention import word_attention
from heedful.translation.translator import Translator

QUESTIONS = ("who", "did what", "to whom", "for what")
"""The verb asks the first three, and a pronoun the last: for what does it stand?"""


class RatedHead(NamedTuple):
    """
    Hold how well a head answers a question in one sentence.

    Attributes
    ----------
    layer, head : int
        Counted from 1.
    weight : float
        Its weight on the words that answer, from 0 to 1, the mean of the words that ask.
    others : float
        The same of all words that do not ask.
    rank : int
        1 if no other word is looked at more than the best of those that answer.

    Notes
    -----
    Of words that ask together, the rank is the worst. A head with as large a weight from the others
    answers nobody's question: it always looks there.
    """

    layer: int
    head: int
    weight: float
    others: float
    rank: int


class RoleAnswer(NamedTuple):
    """
    Hold which head answers a question in many sentences.

    Attributes
    ----------
    question : str
        One of `QUESTIONS`.
    layer, head : int
        Counted from 1; the head with the largest weight on the answers of the first half.
    weight : float
        Its mean weight on the answer, in the second half.
    right : float
        In which share of the second half it looks at no word more than at the answer.
    offset : int
        How many words from the one that asks the answer stands most often, in the first half.
    by_offset : float
        In which share of the second half the answer stands there.
    even : float
        The weight that each answer would have if all words were looked at alike.
    sentences : int
        Of the second half.

    Notes
    -----
    A head that does no better than `by_offset` may have learned a distance and no question.
    """

    question: str
    layer: int
    head: int
    weight: float
    right: float
    offset: int
    by_offset: float
    even: float
    sentences: int


def rate_heads(
    weights: Float[np.ndarray, "layers heads words words"],
    asking: Sequence[int],
    answers: Sequence[int],
) -> list[RatedHead]:
    """
    Rate all heads by the weight that they put where the answer is.

    Parameters
    ----------
    weights : ndarray of float, shape (layers, heads, words, words)
        Row i is how word i shares out its look.
    asking : sequence of int
        Numbers of the words that ask.
    answers : sequence of int
        Numbers of the words that answer.

    Returns
    -------
    list of RatedHead
        The best first; of equal ones the lower layer, then the lower head.

    Notes
    -----
    The rank tells a head that looks at the answer from one that looks everywhere.
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
    return sorted(rated, key=lambda one: (-one.weight, one.layer, one.head))


def answer_questions(
    translator: Translator, sentences: Sequence[RoledSentence]
) -> list[RoleAnswer]:
    """
    Find the heads that answer the questions, by sentences whose answers are known.

    Parameters
    ----------
    translator : Translator
        A run that reads such sentences.
    sentences : sequence of RoledSentence
        At least two; the first half chooses the heads, the second rates them.

    Returns
    -------
    list of Answer
        One a question; of the last only where two sentences have a pronoun.

    Notes
    -----
    The verb asks, as in the founding notes; “did what” is answered by itself. A pronoun asks what
    it stands for, as in figure 4 of the paper.
    """
    if len(sentences) < 2:
        raise ValueError(f"at least 2 sentences are needed, but {len(sentences)} came")
    rows = [word_attention(translator, sentence.text).weights for sentence in sentences]
    asked = [
        [
            (place, row, one.verb, (one.subject, one.verb, one.object)[place])
            for row, one in enumerate(sentences)
        ]
        for place in range(3)
    ]
    asked.append(
        [
            (3, row, one.pronoun, one.object)
            for row, one in enumerate(sentences)
            if one.pronoun is not None
        ]
    )
    return [
        choose_and_rate(
            QUESTIONS[some[0][0]],
            [rows[row][:, :, asking] for _, row, asking, _ in some],
            np.array([answer for *_, answer in some]),
            np.array([asking for _, _, asking, _ in some]),
        )
        for some in asked
        if len(some) > 1
    ]


def choose_and_rate(
    question: str,
    looks: Sequence[Float[np.ndarray, "layers heads _"]],
    answers: Int[np.ndarray, " sentences"],
    asking: Int[np.ndarray, " sentences"],
) -> RoleAnswer:
    """
    Choose the best head on the first half of some sentences, and rate it on the second.

    Parameters
    ----------
    question : str
        What is asked.
    looks : sequence of ndarray of float, shape (layers, heads, words)
        For each sentence, how each head shares out the look of the word that asks.
    answers : ndarray of int, shape (sentences,)
        Number of the word that answers.
    asking : ndarray of int, shape (sentences,)
        Number of the word that asks.

    Returns
    -------
    RoleAnswer
        The head and its rating.

    Notes
    -----
    Rated on the sentences that chose it, the best of many heads would look better than it is.
    """
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
