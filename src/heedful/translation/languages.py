"""Translators for other languages of the same model, which has language tokens."""

from collections.abc import Callable
from copy import copy
from functools import cached_property, wraps
from typing import Any, TypeVar

from heedful.arguments import check_argument
from heedful.runs.language_pair import LanguagePair

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Chooser = TypeVar("_Chooser", bound="LanguageChoice")


class LanguageChoice:
    """The part of a `Translator` that chooses languages."""

    @cached_property
    def siblings(self) -> dict[LanguagePair, Any]:
        """Translators of the same model for other languages, by language pair."""
        return {}

    def between(
        self: _Chooser,
        from_language: str = "",
        to_language: str = "",
        options: tuple[str, str] = ("from_language", "to_language"),
    ) -> _Chooser:
        """
        Return a translator for other languages of the same model.

        Parameters
        ----------
        from_language, to_language : str, optional
            Language codes in any form, such as ``de`` for ``deu_Latn``; empty for the run's
            languages.
        options : pair of str, optional
            Names of the two arguments, for messages.

        Returns
        -------
        Translator
            A translator that shares the weights; calls of the two run one after the other.

        Notes
        -----
        This is for models with a token for each language. Raises `SettingError` for an unknown
        language; the message lists the most similar languages.
        """
        for option, language in zip(options, (from_language, to_language), strict=True):
            check_argument("Translator.between", option, language, str)
        own: Any = self
        if not (from_language or to_language):
            return own
        run = own.run.between(from_language, to_language, options)
        pair = run.direction
        if pair == own.run.direction:
            return own
        if pair not in own.siblings:
            models = [
                copy(model) for model in own.models
            ]  # shallow copies, which share the weights
            for model in models:
                if own.tokenizer.start != run.tokenizer.start:
                    model.start_token = run.tokenizer.start
            translator = type(own)(run, *models)
            translator.turns, translator.siblings = own.turns, own.siblings
            own.siblings[pair] = translator
        return own.siblings[pair]


def chooses_languages(method: _Function) -> _Function:
    """Add the keywords `from_language` and `to_language` to a method of a `LanguageChoice`."""

    @wraps(method)
    def call(
        self: LanguageChoice,
        *arguments: Any,
        from_language: str = "",
        to_language: str = "",
        **keywords: Any,
    ) -> Any:
        return method(self.between(from_language, to_language), *arguments, **keywords)

    return call  # type: ignore[return-value]
