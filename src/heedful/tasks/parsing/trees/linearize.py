"""
Trees as sequences of symbols, and back.

::

    vinyals  (S (NP XX XX )NP (VP XX )VP )S     Vinyals et al. 2015: every word is XX
    t2t      S NP DT NN /NP VP VBZ /VP /S       tensor2tensor: every word is its part of speech

A tree of n words and k phrases has n + 2k symbols. The words themselves are not written: the i-th
word symbol represents the i-th word.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import count as count_from
from typing import Literal

from heedful.errors import TextError
from heedful.tasks.parsing.trees.read import DEEPEST
from heedful.tasks.parsing.trees.tree import Tree

Linearization = Literal["vinyals", "t2t"]
WORD = "XX"
"""The symbol of a word in the form of Vinyals et al."""
_OPENING = {"vinyals": "(", "t2t": ""}
_CLOSING = {"vinyals": ")", "t2t": "/"}
_BRACKETS = {"vinyals": ("(", ")"), "t2t": ("/",)}


def linearize(tree: Tree, form: Linearization, numbers: int | None = None) -> list[str]:
    """Convert a tree to symbols. `numbers`: the modulus of word numbers, as in XX#3."""
    words = count_from(0)

    def write(node: Tree) -> list[str]:
        if node.word is not None:
            number = "" if numbers is None else f"#{next(words) % numbers}"
            return [(WORD if form == "vinyals" else node.label) + number]
        inner = [symbol for child in node.children for symbol in write(child)]
        return [opening(node.label, form), *inner, closing(node.label, form)]

    return write(tree)


def word_number(symbol: str) -> int:
    """
    Read the number in a word symbol; -1 if the symbol has no number.

    >>> word_number("XX#12"), word_number("##3"), word_number("XX")
    (12, 3, -1)
    """
    number = symbol.rpartition("#")[2]
    return int(number) if "#" in symbol and number.isdecimal() else -1


def delinearize(
    symbols: Iterable[str],
    words: Sequence[str],
    form: Linearization,
    tags: Sequence[str] | None = None,
    labels: "SymbolLabels | None" = None,
) -> Tree | None:
    """
    Read a tree of given words from symbols; None if they are not a tree of these words.

    The result is also None if phrases are nested deeper than `read_trees` allows.

    `tags`: parts of speech of the words, which replace the tags in the symbols. `labels`: labels of
    the whole vocabulary; if None, they are inferred from `symbols`.
    """
    symbols = tuple(symbols)
    labels = labels or SymbolLabels(symbols, form)
    # at the bottom of the stack is a phrase whose child is the whole tree
    stack: list[tuple[str, list[Tree]]] = [("", [])]
    read = 0
    for symbol in symbols:
        if symbol in labels.opens:
            if len(stack) > DEEPEST:
                return None
            stack.append((labels.opens[symbol], []))
        elif symbol in labels.closes:
            label, children = stack[-1]
            if len(stack) == 1 or label != labels.closes[symbol] or not children:
                return None
            stack.pop()
            stack[-1][1].append(Tree(label, tuple(children)))
        elif read == len(words) or not symbol or symbol.startswith(_BRACKETS[form]):
            return None
        else:
            tag = symbol if word_number(symbol) < 0 else symbol.rpartition("#")[0]
            tag = tag if tags is None else tags[read]
            stack[-1][1].append(Tree(tag, word=words[read]))
            read += 1
    roots = stack[0][1]
    return roots[0] if len(stack) == 1 and len(roots) == 1 and read == len(words) else None


def opening(label: str, form: Linearization) -> str:
    """Return the symbol that opens a phrase."""
    return _OPENING[form] + label


def closing(label: str, form: Linearization) -> str:
    """Return the symbol that closes a phrase."""
    return _CLOSING[form] + label


class SymbolLabels:
    """
    The labels of the symbols that open and close phrases.

    A symbol counts as opening if its closing counterpart is among the symbols. Therefore, in the
    t2t form, no part of speech may have the same name as a phrase.
    """

    def __init__(self, symbols: Iterable[str], form: Linearization) -> None:
        mark = _CLOSING[form]
        labels = sorted({symbol[1:] for symbol in symbols if symbol.startswith(mark)})
        self.closes = {closing(label, form): label for label in labels}
        self.opens = {opening(label, form): label for label in labels}


def symbols_f1(outputs: Sequence[str], references: Sequence[str], form: Linearization) -> float:
    """Compute the labeled F1 of linearized trees in percent, punctuation included."""
    # This score is for validations, which do not have the words; `score_trees` computes published
    # scores. An output that is not a tree has no phrases.
    matched = predicted = wanted = 0
    for output, reference in zip(outputs, references, strict=True):
        (phrases, words), (right, leaves) = _phrases(output, form), _phrases(reference, form)
        wanted += right.total()
        if words == leaves:
            predicted += phrases.total()
            matched += (phrases & right).total()
    return 200 * matched / max(predicted + wanted, 1)


def _phrases(line: str, form: Linearization) -> tuple[Counter[tuple[str, int, int]], int]:
    """Count the phrases and words of a linearized tree; -1 words if the line is not a tree."""
    symbols = line.split()
    labels = SymbolLabels(symbols, form)
    words = sum(symbol not in labels.opens and symbol not in labels.closes for symbol in symbols)
    tree = delinearize(symbols, [WORD] * words, form)
    return (Counter(), -1) if tree is None else (Counter(tree.phrases()), words)


def check_labels(trees: Iterable[Tree], form: Linearization, name: str = "the file") -> None:
    """
    Refuse trees that cannot be recovered from their symbols.

    `name`: name of their file, for messages.
    """
    phrases: set[str] = set()
    tags: set[str] = set()
    for tree in trees:
        phrases.update(label for label, _, _ in tree.phrases())
        tags.update(tree.tags)
    written = phrases if form == "vinyals" else phrases | tags
    if spaced := sorted(label for label in written if len(label.split()) > 1):
        raise TextError(
            f"a label must not contain whitespace, which separates symbols, but {name} has "
            f"{spaced[0]!a}; rename it."
        )
    if form == "vinyals":
        return
    wrong = sorted(phrases & tags) + sorted(label for label in written if label[:1] in ("", "/"))
    if wrong:
        raise TextError(
            "parsing.linearisation = t2t writes phrases and words by their labels alone. So parts "
            "of speech and phrases need different labels, and no label may be empty or begin with "
            f"“/”, but {name} has “{wrong[0]}”; set parsing.linearisation=vinyals."
        )
    if numbered := sorted(tag for tag in tags if word_number(tag) >= 0):
        raise TextError(
            "parsing.linearisation = t2t may number words as in NN#3, so no part of speech may "
            f"end in this way, but {name} has “{numbered[0]}”; set parsing.linearisation=vinyals."
        )
