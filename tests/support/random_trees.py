"""Random trees, trees like others with some phrases changed, and two trees of a sentence."""

from heedful.tasks.parsing.trees.read import parse_line
from heedful.tasks.parsing.trees.tree import Tree


def read_tree(text):
    """Read the tree of a text."""
    tree = parse_line(text, "text")
    assert tree is not None
    return tree


GOLD = read_tree(
    "(S (NP (PRP she)) (VP (VBD saw) (NP (NP (DT the) (NN dog)) (PP (IN with) (NP (PRP us))))) "
    "(. .))"
)
FLAT = read_tree(
    "(S (NP (PRP she)) (VP (VBD saw) (NP (DT the) (NN dog)) (PP (IN with) (NP (PRP us)))) (. .))"
)


def random_tree(source, words, labels=("S", "NP", "VP", "PP", "ADVP", "PRT", "TOP")):
    """Draw a tree of these words; some of its phrases have one child."""
    tags = ("NN", "VB", "DT", ",", ".")
    parts = [Tree(source.choice(tags), word=word) for word in words]
    while len(parts) > 1 or parts[0].word is not None:
        start = source.randrange(len(parts))
        end = min(len(parts), start + source.choice((1, 2, 2, 3)))
        if end - start == 1 and source.random() < 0.7 and len(parts) > 1:
            continue
        parts[start:end] = [Tree(source.choice(labels), tuple(parts[start:end]))]
    return parts[0]


def changed_tree(source, tree, chance=0.2, labels=("NP", "VP", "PP", "SBAR")):
    """Take phrases out of a tree, and give others another label."""
    if tree.word is not None:
        return tree
    children = []
    for child in (changed_tree(source, child, chance, labels) for child in tree.children):
        dissolved = child.word is None and source.random() < chance
        children += child.children if dissolved else [child]
    label = source.choice(labels) if source.random() < chance / 2 else tree.label
    return Tree(label, tuple(children))
