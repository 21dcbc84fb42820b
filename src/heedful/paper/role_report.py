"""The heads that answer who, did what, to whom: as a table, as JSON, as a picture."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from heedful.data.coverage import unknown_parts
from heedful.data.toy_grammar.roles import sample_roles
from heedful.paper.figures import Figure
from heedful.paper.role_heads import RatedHead, answer_questions, rate_heads
from heedful.paper.word_attention import WordAttention, word_attention
from heedful.translation.translator import Translator
from heedful.visualise.lines import Head, Panel
from heedful.visualise.report_page import ReportPage

# Not the quickstart's, so that few of the sentences were in its training text.
_SEED = 20_170_612


@dataclass(frozen=True)
class RoleReport(Figure):
    """
    Hold which heads answer which question, and a figure of the best of each.

    Attributes
    ----------
    as_json : dict
        The table with all heads.

    Notes
    -----
    Made by `find_in_sentence`, and by `find_in_grammar`: then there is nothing to draw.
    """

    as_json: dict[str, Any]


def find_in_sentence(
    translator: Translator, sentence: str, asks: str, answers: Mapping[str, str], top: int = 3
) -> RoleReport:
    """
    Find the heads that answer questions about one sentence.

    Parameters
    ----------
    translator : Translator
        The run that is looked into.
    sentence : str
        In its source language.
    asks : str
        The word that asks.
    answers : mapping of str to str
        For each question the words that answer it.
    top : int, default 3
        How many heads of each question the table has.

    Returns
    -------
    RoleReport
        Table, JSON and picture.

    Notes
    -----
    Raises `SettingError` for words that are not in the sentence.
    """
    looks = word_attention(translator, sentence)
    asking = looks.find(asks, "--asks")
    rated = {
        question: rate_heads(
            looks.weights, asking, looks.find(words, f"--{question.replace(' ', '-')}")
        )
        for question, words in answers.items()
    }
    rows = [
        (
            question,
            f"layer {one.layer} head {one.head}",
            f"{one.weight:.3f}",
            str(one.rank),
            f"{one.others:.3f}",
        )
        for question, heads in rated.items()
        for one in heads[:top]
    ]
    name = " ".join(looks.words[index] for index in asking)
    even = 1 / len(looks.words)
    sheet = ReportPage(
        f"Who, did what, to whom: from “{name}”",
        f"Weight that a head puts, from “{name}”, on the words that answer, and their rank among "
        f"the {len(looks.words)} words; then the mean weight that the other words put there. "
        f"{even:.3f} is what one word has if all are looked at alike.",
        ("question", "head", "weight", "rank", "from the others"),
        tuple(rows),
    )
    unknown = f"this run's subwords cannot spell {' '.join(looks.unknown)}"
    panels = tuple(
        _panel(question, answers[question], heads[0], looks, asking, colour)
        for colour, (question, heads) in enumerate(rated.items())
    )
    questions = {
        question: {"answer": answers[question], "heads": [one._asdict() for one in heads]}
        for question, heads in rated.items()
    }
    return RoleReport(
        looks.words,
        panels,
        sheet,
        (unknown,) if looks.unknown else (),
        {"words": looks.words, "asks": name, "questions": questions},
    )


def find_in_grammar(translator: Translator, size: int) -> RoleReport:
    """
    Find the heads that answer the questions about sentences of the embedded grammar.

    Parameters
    ----------
    translator : Translator
        A run that reads such sentences, as the quickstart's does.
    size : int
        How many sentences, at least 2.

    Returns
    -------
    RoleReport
        Table and JSON; there is nothing to draw.

    Notes
    -----
    Chosen on the first half and rated on the second.
    """
    sentences = sample_roles(size, _SEED)
    answers = answer_questions(translator, sentences)
    rows = tuple(
        (
            one.question,
            f"layer {one.layer} head {one.head}",
            f"{one.weight:.3f}",
            f"{one.even:.3f}",
            f"{one.right:.1%}",
            f"{one.by_offset:.1%} ({one.offset:+d})" if one.offset else f"{one.by_offset:.1%} (0)",
        )
        for one in answers
    )
    sheet = ReportPage(
        "Who, did what, to whom: sentences of the grammar",
        f"Heads chosen by {size // 2:,} sentences and rated by {answers[0].sentences:,} others. "
        "The verb asks who, did what, to whom; a pronoun, in sentences that have one, for what it "
        "stands. “Even” is the weight if all words were looked at alike; “right” says how often no "
        "word is looked at more than the answer; the last column how often the answer stands where "
        "it stands most often, so many words from the one that asks.",
        ("question", "head", "weight", "even", "right", "by distance alone"),
        rows,
    )
    texts = [sentence.text for sentence in sentences]
    unknown = unknown_parts(translator.tokenizer, texts, "source")
    note = "this run cannot spell words of the grammar, so it was hardly trained on its sentences"
    questions = {one.question: one._asdict() for one in answers}
    notes = (note,) if unknown else ()
    return RoleReport((), (), sheet, notes, {"sentences": size, "questions": questions})


def _panel(
    question: str,
    answer: str,
    best: RatedHead,
    looks: WordAttention,
    asking: tuple[int, ...],
    colour: int,
) -> Panel:
    """Show the best head of a question."""
    title = f"{question}: {answer}; layer {best.layer} head {best.head}, weight {best.weight:.2f}"
    weights = looks.weights[best.layer - 1, best.head - 1]
    return Panel(title, (Head(f"head {best.head}", colour, weights),), asking)
