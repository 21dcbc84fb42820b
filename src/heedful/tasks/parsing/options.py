"""The options that name trees: flags of `heedful parse train`, keywords of `heedful.train`."""

from dataclasses import dataclass

from heedful.arguments import Files, flag


@dataclass(frozen=True)
class TreeOptions:
    """The trees for training and validating a parser."""

    trees: Files | None = flag(
        "File of bracketed trees, each on one or several lines; may be compressed, repeated or a "
        "quoted glob.",
        metavar="FILE",
    )
    """Bracketed trees for training a parser, instead of text in two languages."""
    valid_trees: Files | None = flag("Held-out trees.", metavar="FILE")
    """Trees for validation."""
