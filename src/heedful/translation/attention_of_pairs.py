"""Attention of a translator's layers and heads for a pair of sentences."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch

from heedful.arguments import checked, read_texts
from heedful.errors import TextError
from heedful.machine.forks import in_turn
from heedful.translation.languages import chooses_languages
from heedful.translation.result import Attention, Translation
from heedful.translation.sources import check_ids, check_source

_Function = TypeVar("_Function", bound=Callable[..., Any])


def _of_translator(method: _Function) -> _Function:
    """Give a method the name under which users call it, for messages and help."""
    method.__qualname__ = f"Translator.{method.__name__}"
    return method


class AttentionOfPairs:
    """The part of a `Translator` that computes attention."""

    @checked
    @in_turn
    @chooses_languages
    @_of_translator
    def attend(
        self,
        source: str,
        target: str | None = None,
        *,
        from_language: str = "",
        to_language: str = "",
    ) -> Attention:
        """
        Compute the attention of every layer and head for a sentence.

        Parameters
        ----------
        source : str
            A sentence.
        target : str, optional
            A translation of it; the model's own if None.
        from_language, to_language : str, optional
            Languages of this call, for multilingual models (`between`).

        Returns
        -------
        Attention
            Subwords and weights.

        Notes
        -----
        Figures 3 to 5 of the paper show such weights.
        """
        own: Any = self
        if target is None:
            parts = len(own.reader.read(read_texts("source", source)).rows)
            if parts > 1:
                raise TextError(
                    f"attention is shown for text of at most {own.reader.longest:,} subwords "
                    f"(search.max_source_length), but this text is longer and was split into "
                    f"{parts} parts; give one part."
                )
            translation: Translation = own.translate(source, attention=True)
            if translation.attention is not None:
                return translation.attention
            target = translation.text  # a blank or copied source has no attention yet
        targets = own.run.read_targets(read_texts("target", target))
        (target_ids,) = own.tokenizer.encode_target(targets)
        (ids,) = own._source_ids(own.run.read_sources(read_texts("source", source)), None)
        return self.attention_of(ids, target_ids)

    @checked
    @torch.inference_mode()
    @in_turn
    @_of_translator
    def attention_of(self, source: Sequence[int], target: Sequence[int]) -> Attention:
        """
        Compute all attention weights of a pair of sentences that are given as ids.

        Parameters
        ----------
        source : sequence of int
            Subwords of the source, without special symbols.
        target : sequence of int
            Subwords of the target, without special symbols.

        Returns
        -------
        Attention
            Attention of the first model.

        Notes
        -----
        The model makes one pass over the known target, as in training.
        """
        own: Any = self
        check_ids(source, target, own.run.vocabularies)
        check_source(source, own.collator.source_end, "this one")
        batch = own.collator.batch([source], [target]).to(own.model.device)
        weights = own.models[0].attention(batch.source, batch.target_in)
        end = [own.collator.end_token]
        return Attention(
            tuple(own.tokenizer.pieces_source([*source, *(end * own.collator.source_end)])),
            tuple(own.tokenizer.pieces_target([*target, *end])),
            *(kind.float().cpu().numpy() for kind in weights.of_sentence(0)),
        )
