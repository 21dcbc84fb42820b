"""Report of attention heads that answer who, did what, to whom: table, JSON, picture."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from heedful.data.coverage import unknown_parts
from heedful.data.toy_grammar.roles import sample_roles
from heedful.paper.figures import Figure, run_name
from heedful.paper.role_heads import RatedHead, answer_questions, rate_heads
from heedful.paper.word_attention import WordAttention, word_attention
from heedful.translation.translator import Translator
from heedful.visualise.lines import Head, Panel
from heedful.visualise.report_page import ReportPage

# This seed differs from the quickstart's, so the quickstart's training text contains few of these
# sentences.
_SEED = 20_170_612


@dataclass(frozen=True)
class RoleReport(Figure):
    """The heads that answer each question, and a figure of the best head for each question."""

    as_json: dict[str, Any]
    """The results as JSON values; for a single sentence, with all heads."""


def find_in_sentence(
    translator: Translator, sentence: str, query: str, answers: Mapping[str, str], top: int = 3
) -> RoleReport:
    """Find heads that answer questions about a sentence; a missing word raises `SettingError`."""
    attention = word_attention(translator, sentence)
    query_words = attention.find(query, "--query")
    rated = {
        question: rate_heads(
            attention.weights, query_words, attention.find(words, f"--{question.replace(' ', '-')}")
        )
        for question, words in answers.items()
    }
    rows = [
        (
            question,
            f"layer {rating.layer} head {rating.head}",
            f"{rating.weight:.3f}",
            str(rating.rank),
            f"{rating.others:.3f}",
        )
        for question, heads in rated.items()
        for rating in heads[:top]
    ]
    name = " ".join(attention.words[index] for index in query_words)
    even = 1 / len(attention.words)
    sheet = ReportPage(
        f"Who, did what, to whom: from “{name}”",
        f"Weight of a head from “{name}” to the words of the answer, and the answer's rank among "
        f"the {len(attention.words)} words. The last column is the mean weight from the other "
        f"words to the answer. With equal weights each word has {even:.3f}.",
        [("question", "head", "weight", "rank", "from the others"), *rows],
    )
    unknown = f"this run's subwords cannot spell {' '.join(attention.unknown)}"
    panels = tuple(
        _panel(question, answers[question], heads, attention, query_words)
        for question, heads in rated.items()
    )
    questions = {
        question: {"answer": answers[question], "heads": [rating._asdict() for rating in heads]}
        for question, heads in rated.items()
    }
    return RoleReport(
        run_name(translator.run),
        attention.words,
        panels,
        sheet,
        (unknown,) if attention.unknown else (),
        {"words": attention.words, "query": name, "questions": questions},
    )


def find_in_grammar(translator: Translator, size: int) -> RoleReport:
    """
    Find the heads that answer the questions on sentences of the built-in grammar.

    `size`: number of sentences, at least 2. Heads are chosen on the first half and rated on the
    second half.
    """
    sentences = sample_roles(size, _SEED)
    answers = answer_questions(translator, sentences)
    rows = [
        (
            row.question,
            f"layer {row.layer} head {row.head}",
            f"{row.weight:.3f}",
            f"{row.even:.3f}",
            f"{row.right:.1%}",
            f"{row.by_offset:.1%} ({row.offset:+d})" if row.offset else f"{row.by_offset:.1%} (0)",
        )
        for row in answers
    ]
    sheet = ReportPage(
        "Who, did what, to whom: sentences of the grammar",
        f"Heads were chosen on {size // 2:,} sentences and rated on {answers[0].sentences:,} "
        "others. The query word is a verb for “who”, “did what” and “to whom”, and a pronoun for "
        "“for what”. “Even” is the weight of the answer if all words have equal weights; “right” "
        "is how often no word has more weight than the answer. The last column is how often the "
        "answer is at its most frequent distance from the query word.",
        [("question", "head", "weight", "even", "right", "by distance alone"), *rows],
    )
    texts = [sentence.text for sentence in sentences]
    unknown = unknown_parts(translator.tokenizer, texts, "source")
    note = (
        "this run's subwords cannot spell some words of the grammar, so the run was probably not "
        "trained on sentences of the grammar"
    )
    questions = {row.question: row._asdict() for row in answers}
    notes = (note,) if unknown else ()
    return RoleReport("", (), (), sheet, notes, {"sentences": size, "questions": questions})


def _panel(
    question: str,
    answer: str,
    heads: Sequence[RatedHead],
    attention: WordAttention,
    query_words: tuple[int, ...],
) -> Panel:
    """Build the panel of the best head that answers a question; without such a head it is empty."""
    answering = (head for head in heads if head.rank == 1 and head.weight > head.others)
    best = next(answering, None)
    if best is None:
        return Panel(
            f"{question}: {answer}; no head gives it both the highest weight and more weight than "
            "it gets from other words",
            (),
            query_words,
        )
    title = f"{question}: {answer}; layer {best.layer} head {best.head}, weight {best.weight:.2f}"
    weights = attention.weights[best.layer - 1, best.head - 1]
    return Panel(title, (Head(best.head, weights),), query_words)
