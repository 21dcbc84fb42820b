"""
Search settings equivalent to those of Hugging Face's `generate`.

::

    num_beams             search.beam
    length_penalty        search.length_penalty = power:A, the end symbol counted
    early_stopping        search.stop: "never" is when-none-can-win, true when-beam-finished,
                          false as-transformers
    min_length            search.min_length + 1 for the start symbol; min_new_tokens excludes it
    max_length            search.max_length + 1 for the start symbol, + 1 for a forced end symbol
    forced_eos_token_id   search.length_limit_policy = end; if unset, keep
    no_repeat_ngram_size  search.no_repeat_ngram, from 2 on; at 1, the start symbol would count
    renormalize_logits    search.renormalise
    bad_words_ids         search.forbidden_ids, single symbols; padding and start are never allowed

Other settings that change the search are refused unless they are switched off.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

from heedful.config.search import SearchConfig
from heedful.exchange.formats import Problems
from heedful.exchange.pickled.settings import WIDEST_BEAM
from heedful.search.length import LengthPenalty
from heedful.settings.search import NO_REPEAT_NGRAM
from heedful.tokenization.id_mapping import IdMapping
from heedful.tokenization.tokenizer import END, PAD, START

# Settings that change search results, and the values that switch them off; None always switches
# them off.
_OFF: dict[str, tuple[object, ...]] = {
    "do_sample": (False,),
    "num_beam_groups": (1,),
    "diversity_penalty": (0.0,),
    "repetition_penalty": (1.0,),
    "encoder_repetition_penalty": (1.0,),
    "encoder_no_repeat_ngram_size": (0,),
    "forced_bos_token_id": (),
    "forced_decoder_ids": ([],),
    "exponential_decay_length_penalty": (),
    "begin_suppress_tokens": ([],),
    "sequence_bias": (),
    "constraints": ([],),
    "force_words_ids": ([],),
    "guidance_scale": (1.0,),
    "penalty_alpha": (0.0,),
    "dola_layers": (),
    "stop_strings": (),
    "max_time": (),
    "watermarking_config": (),
}
# Stopping rules of other toolkits, each with the most similar rule of `generate`.
_NEAREST = dict.fromkeys(("as-ctranslate2", "as-joey", "as-opennmt"), "when-beam-finished")
_STOPS: dict[Any, Any] = {
    True: "when-beam-finished",
    False: "as-transformers",
    "never": "when-none-can-win",
}
# Default of `max_new_tokens`.
_NEW_TOKENS = 20
_LONGEST_NGRAM = NO_REPEAT_NGRAM.most or 0
FORBIDDEN_BESIDES = (PAD, START)


@dataclass(frozen=True)
class GenerateSearch:
    """The search settings of a Hugging Face model, with notes on differences."""

    search: SearchConfig
    """The search, expressed in our settings."""
    notes: tuple[str, ...]
    """Differences between our search and `generate`."""


def read_rule(
    settings: Mapping[str, Any], id_mapping: IdMapping, positions: int, reasons: Problems
) -> GenerateSearch:
    """Convert the settings of `generate` to ours; its defaults replace unset settings."""
    for name, off in _OFF.items():
        value = settings.get(name)
        reasons.add_if(
            value is not None and value not in off,
            f"generation_config.json sets {name} = {value!r}, which heedful's search does not "
            "support",
        )
    beam = settings.get("num_beams") or 1
    power = settings.get("length_penalty", 1.0)
    power = 1.0 if power is None else power
    stop = settings.get("early_stopping") or False
    forced = settings.get("forced_eos_token_id")
    forced = forced[0] if isinstance(forced, list) and len(forced) == 1 else forced
    reasons.add_if(
        type(beam) is not int or not 0 < beam < WIDEST_BEAM,
        f"num_beams must be a whole number from 1 to {WIDEST_BEAM - 1:,}, but is {beam!r}",
    )
    reasons.add_if(
        not isinstance(power, int | float) or not 0 <= power <= 10,
        f"length_penalty must be a number between 0 and 10, but is {power!r}",
    )
    reasons.add_if(stop not in (True, False, "never"), f"early_stopping is {stop!r}")
    reasons.add_if(
        forced is not None and forced != id_mapping.origins[END],
        f"forced_eos_token_id must be the id of the end symbol, but is {forced!r}",
    )
    ngram = settings.get("no_repeat_ngram_size") or 0
    reasons.add_if(
        type(ngram) is not int or not (ngram == 0 or 1 < ngram <= _LONGEST_NGRAM),
        f"no_repeat_ngram_size must be 0 or from 2 to {_LONGEST_NGRAM:,}, but is {ngram!r}",
    )
    longest = _longest(settings, positions) - (1 if forced is None else 2)
    reasons.add_if(longest < 1, "max_length leaves no room for a translation")
    forbidden, notes = _forbidden(settings, id_mapping, reasons)
    if reasons.messages:
        return GenerateSearch(SearchConfig(), ())
    search = SearchConfig(
        beam=beam,
        length_penalty=_penalty(float(power)),
        stop=_STOPS[stop],
        length_limit_policy="keep" if forced is None else "end",
        renormalise=bool(settings.get("renormalize_logits")),
        forbidden_ids=" ".join(map(str, forbidden)),
        min_length=_shortest(settings),
        no_repeat_ngram=ngram,
        max_length=str(longest),
        max_source_length=positions - 1,
    )
    return GenerateSearch(search, notes)


def write_rule(
    search: SearchConfig, vocabulary: tuple[int, int], ids: Mapping[int, int], positions: int
) -> tuple[dict[str, Any], GenerateSearch]:
    """Build `generation_config.json`, and the nearest search that this file can express."""
    penalty = LengthPenalty.parse(search.length_penalty)
    relative = search.max_length.startswith("input+")
    longest = positions - 2 if relative else min(int(search.max_length), positions - 2)
    changes = {
        "length_penalty": _penalty(penalty.alpha),
        "eos_candidates": "beam",
        "stop": _NEAREST.get(search.stop, search.stop),
        "length_limit_policy": "keep" if search.length_limit_policy == "keep" else "end",
        "max_length": str(longest),
        "max_source_length": min(search.max_source_length, positions - 1),
        # generate also counts the start symbol, which can be the end symbol
        "no_repeat_ngram": search.no_repeat_ngram if search.no_repeat_ngram > 1 else 0,
    }
    before = search.model_dump()
    wanted = LengthPenalty.parse(str(changes["length_penalty"])) != penalty
    notes = tuple(
        f"transformers' generate searches with {name} = {value} instead of {before[name]}"
        for name, value in changes.items()
        if (wanted if name == "length_penalty" else before[name] != value)
    )
    never = {*FORBIDDEN_BESIDES, *map(int, search.forbidden_ids.split())}
    filling = range(vocabulary[0], vocabulary[1])
    bad = sorted({ids[number] for number in never if number in ids} | {*filling})
    settings = {
        "num_beams": search.beam,
        "length_penalty": penalty.alpha,
        "early_stopping": {ours: theirs for theirs, ours in _STOPS.items()}[str(changes["stop"])],
        "max_length": longest + (1 if changes["length_limit_policy"] == "keep" else 2),
        "renormalize_logits": search.renormalise,
        "bad_words_ids": [[number] for number in bad],
    }
    if changes["no_repeat_ngram"]:
        settings["no_repeat_ngram_size"] = changes["no_repeat_ngram"]
    if search.min_length:
        settings["min_new_tokens"] = search.min_length
    return settings, GenerateSearch(search.model_copy(update=changes), notes)


def _penalty(alpha: float) -> str:
    """Format the exponent of a length penalty as in our settings."""
    shown = f"{alpha:.6f}".rstrip("0").rstrip(".")
    return "none" if shown == "0" else f"power:{shown}"


def _shortest(settings: Mapping[str, Any]) -> int:
    """Compute the minimum number of tokens before the end symbol."""
    new, total = settings.get("min_new_tokens"), settings.get("min_length")
    return max(0, new if isinstance(new, int) else total - 1 if isinstance(total, int) else 0)


def _longest(settings: Mapping[str, Any], positions: int) -> int:
    """Compute the maximum output length, including the start symbol."""
    new, total = settings.get("max_new_tokens"), settings.get("max_length")
    if isinstance(new, int):
        return min(new + 1, positions)
    return min(total if isinstance(total, int) else _NEW_TOKENS + 1, positions)


def _forbidden(
    settings: Mapping[str, Any], id_mapping: IdMapping, reasons: Problems
) -> tuple[Sequence[int], tuple[str, ...]]:
    """List the forbidden tokens as our ids, and notes on tokens that only our search forbids."""
    words, single = (settings.get(name) or [] for name in ("bad_words_ids", "suppress_tokens"))
    reasons.add_if(
        not isinstance(words, list) or not isinstance(single, list),
        "bad_words_ids and suppress_tokens must be lists",
    )
    words, single = ([*part] if isinstance(part, list) else [] for part in (words, single))
    if len(words) + len(single) > 2 * id_mapping.rows:  # transformers reads all for each sentence
        reasons.add_if(
            True, "bad_words_ids and suppress_tokens list more symbols than the vocabulary has"
        )
        return (), ()
    for word in words:
        if isinstance(word, list) and len(word) == 1:
            single += word
        else:
            reasons.add_if(True, f"bad_words_ids has {word!r}, which is not a single symbol")
    is_known = [isinstance(n, int) and n in id_mapping.ours for n in single]
    unknown = [n for n, known in zip(single, is_known, strict=True) if not known]
    reasons.add_if(
        bool(unknown),
        f"bad_words_ids and suppress_tokens contain {unknown}, which are not ids of symbols",
    )
    forbidden = {id_mapping.ours[n] for n in compress(single, is_known)} - {END}
    notes = tuple(
        f"heedful never generates {id_mapping.pieces[ours]}, but transformers' generate may"
        for ours in FORBIDDEN_BESIDES
        if id_mapping.origins[ours] is not None and ours not in forbidden
    )
    return sorted(forbidden - {*FORBIDDEN_BESIDES}), notes
