"""
Labels that name the parent phrase: the simplest way to add context to a treebank's grammar.

::

    (S (NP dogs) (VP chase (NP cats)))    becomes    (S^ (NP^S dogs) (VP^S chase (NP^VP cats)))

A subject and an object then have rules of their own. Tags stay as they are. Johnson (1998), “PCFG
Models of Linguistic Tree Representations”; v = 2 in Table 1 of Klein and Manning (2003).
"""

from dataclasses import replace

from heedful.tasks.parsing.trees.tree import Tree

_MARK = " "  # no label contains it, because a space ends a label when trees are read


def annotate_parents(tree: Tree, parent: str = "") -> Tree:
    """Add to the label of each phrase that of its parent; the root has none."""
    if tree.word is not None:
        return tree
    children = tuple(annotate_parents(child, tree.label) for child in tree.children)
    return replace(tree, label=f"{tree.label}{_MARK}{parent}", children=children)


def remove_parents(tree: Tree) -> Tree:
    """Remove the labels of parents; a tree without them is not changed."""
    if tree.word is not None:
        return tree
    label = tree.label.partition(_MARK)[0]
    return replace(tree, label=label, children=tuple(map(remove_parents, tree.children)))
