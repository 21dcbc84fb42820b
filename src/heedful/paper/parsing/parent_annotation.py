"""
Parent annotation: labels that include the parent's label, which adds context to a grammar.

::

    (S (NP dogs) (VP chase (NP cats)))    becomes    (S^ (NP^S dogs) (VP^S chase (NP^VP cats)))

Subjects and objects then have different rules. Tags do not change. The method is from Johnson
(1998), “PCFG Models of Linguistic Tree Representations”, and is v = 2 in Figure 2 of Klein and
Manning (2003).
"""

from dataclasses import replace

from heedful.tasks.parsing.trees.tree import Tree

_MARK = " "  # no label contains it, because a space ends a label when trees are read


def annotate_parents(tree: Tree, parent: str = "") -> Tree:
    """Add the parent's label to the label of each phrase; the root has no parent."""
    if tree.word is not None:
        return tree
    children = tuple(annotate_parents(child, tree.label) for child in tree.children)
    return replace(tree, label=f"{tree.label}{_MARK}{parent}", children=children)


def remove_parents(tree: Tree) -> Tree:
    """Remove parent labels; a tree without parent labels is not changed."""
    if tree.word is not None:
        return tree
    label = tree.label.partition(_MARK)[0]
    return replace(tree, label=label, children=tuple(map(remove_parents, tree.children)))
