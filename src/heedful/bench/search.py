"""The translation benchmark, with the real translator, in its own process."""

from pathlib import Path
from typing import Any

from heedful.bench.search_profile import profile_search
from heedful.experiments.process import time_repeats
from heedful.machine.device_memory import peak_of
from heedful.model.encoder_decoder import EncoderDecoder
from heedful.search.settings import SearchOptions
from heedful.text.corpus import read_lines
from heedful.translation.translate import OutputFormat, translate_lines
from heedful.translation.translator import Translator

_LAYOUT = OutputFormat("jsonl")
_WARM_UP = 32
# No limit on tokens, because the batch size is the number of sentences.
_ANY_TOKENS = 1 << 40


def measure_search(request: dict[str, Any]) -> dict[str, Any]:
    """
    Time several translations of a text.

    `request`: `run` and `weights`, `input` (a file of sentences), `output` (the file for
    translations), `batch` (sentences per batch; if None, as in `heedful translate`), `search`
    (fields of `SearchOptions`), `repeats`, `precision`, `device`, `threads`. Returns `seconds`
    of each pass after warming up, and `memory`. If the request has `profile`, the profile of one
    more pass is added (`profile_search`).

    The time includes tokenization and detokenization. If `batch` is None, the text is streamed as
    in `heedful translate`, so memory does not grow with its length.
    """
    translator = Translator.load(
        request["run"],
        weights=request["weights"],
        device=request["device"],
        precision=request["precision"],
        threads=request["threads"],
    )
    source, output = Path(request["input"]), Path(request["output"])
    options, batch = SearchOptions(**request["search"]), request["batch"]

    def stream() -> None:
        with output.open("w", encoding="utf-8") as file:
            translate_lines(translator, read_lines(source), file, _LAYOUT, _ignore, options)

    def batches() -> None:
        lines = list(read_lines(source))
        if batch == 1:  # the next sentence begins when the previous sentence is done
            translations = [translator.translate(line, options) for line in lines]
        else:
            translations = translator.translate(
                lines, options, batch_tokens=_ANY_TOKENS, batch_lines=batch
            )
        with output.open("w", encoding="utf-8") as file:
            for number, translation in enumerate(translations):
                file.writelines(f"{line}\n" for line in _LAYOUT.lines(number, translation))

    first = [line for line, _ in zip(read_lines(source), range(batch or _WARM_UP), strict=False)]
    translator.translate(first, options)
    work = stream if batch is None else batches
    seconds = time_repeats(work, request["repeats"])
    result = {"seconds": seconds, "memory": peak_of(translator.model.device)}
    if request.get("profile") and isinstance(translator.model, EncoderDecoder):
        result |= profile_search(translator.model, work)
    return result


def _ignore(text: str) -> None:
    """Ignore warnings about truncated or unknown text."""
