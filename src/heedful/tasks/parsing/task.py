"""The description of the parsing task for other packages."""

from collections.abc import Collection, Iterable

from heedful.errors import SettingError
from heedful.tasks.parsing.config import PARSER_SETTINGS, ParsingConfig, parsing_clashes
from heedful.tasks.parsing.options import TreeOptions
from heedful.tasks.parsing.recipes import PARSING_RECIPES
from heedful.tasks.task import Settings, Task


class Parsing(Task):
    """The parsing task, whose targets are trees."""

    settings = ParsingConfig
    recipes = PARSING_RECIPES
    changes = PARSER_SETTINGS
    free_changes = ("data.max_length", "data.character_coverage", "search.max_length")
    metrics = ("f1",)
    run = "heedful.tasks.parsing.run:ParserRun"
    text = "heedful.tasks.parsing.text"
    text_options = TreeOptions
    alone = "A parser is trained from trees alone"
    other_text = (
        "parsing.linearisation makes a parser, which is trained from trees, but got text; use "
        "`heedful parse train`, or set parsing.linearisation=none."
    )
    shared = ("parsing.linearisation", "parsing.lower_case", "parsing.word_numbers")
    models = "parsers"
    export_note = (
        "this model is a parser: the exported model searches without the constraint that trees are "
        "well-formed, and reads words as `Parser.source_line` writes them."
    )

    def acts(self, settings: Settings) -> bool:
        """Return whether the settings define a parser."""
        return settings["parsing.linearisation"] is not None

    def clashes(self, settings: Settings) -> Iterable[str]:
        """List conflicting settings."""
        return parsing_clashes(settings)

    def check_origin(self, run: str, origin: Settings, reset: Collection[str]) -> None:
        """Refuse a translator as the run from which a parser inherits its vocabularies."""
        if "tokenizer" not in reset and not self.acts(origin):
            raise SettingError(
                f"--finetune-from {run} must be a parser, but is a translator; give another run, "
                "or make new vocabularies with --reset tokenizer."
            )

    def check_alike(
        self, run: str, origin: Settings, settings: Settings, reset: Collection[str]
    ) -> None:
        """Refuse settings that do not fit the inherited vocabulary or weights."""
        for name in ("parsing.linearisation", "parsing.word_numbers", "parsing.next_word"):
            before, now = origin[name], settings[name]
            is_shape = (
                name == "parsing.next_word"
            )  # the setting changes the shapes of inherited weights
            if before != now and (is_shape or "tokenizer" not in reset):
                raise SettingError(
                    f"--finetune-from {run} must have the same parser settings as this run, but "
                    f"{name} is {before} in that run and {now} in this one; leave the setting out"
                    + ("." if is_shape else ", or add --reset tokenizer.")
                )

    def beyond_transformer(self, settings: Settings) -> list[tuple[str, object]]:
        """List `parsing.next_word` if it is true."""
        name = "parsing.next_word"
        return [(name, True)] if settings[name] else []

    def exported(self, settings: Settings) -> Settings:
        """Turn off the constraint that trees are well-formed, because other programs lack it."""
        return {"parsing.constrained": False} if settings["parsing.constrained"] else {}


TASK = Parsing()
