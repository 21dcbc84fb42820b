import copy
import inspect
import pickle
import threading
from dataclasses import fields
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import torch

from heedful.bench.random_run import make_random_run
from heedful.config.schema import RunConfig
from heedful.errors import ArgumentError, SettingError, TextError
from heedful.kernels.native.compile import processor_flags
from heedful.kernels.native.product import can_multiply_bf16
from heedful.model.inference import is_compiled
from heedful.search.search import run_search
from heedful.search.settings import Sampling, SearchOptions
from heedful.search.trace import Trace
from heedful.translation import translator as translator_module
from heedful.translation.score import score
from heedful.translation.translate import OutputFormat, translate_lines
from heedful.translation.translator import Translator

SMALL = {
    "model.d_model": 16,
    "model.d_ff": 32,
    "model.heads": 2,
    "model.encoder_layers": 1,
    "model.decoder_layers": 1,
    "data.vocabulary_size": 50,
}


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    folder: Path = tmp_path_factory.mktemp("run")
    make_random_run(folder, RunConfig().with_settings(SMALL), 50)
    return Translator.load(folder, device="cpu", precision="fp32", threads=1)


@pytest.fixture(scope="module")
def splitting(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    """A translator that splits lines of more than six words."""
    folder: Path = tmp_path_factory.mktemp("splitting")
    settings = {**SMALL, "data.reading": "text", "search.max_source_length": 6}
    make_random_run(folder, RunConfig().with_settings(settings), 50)
    return Translator.load(folder, device="cpu", precision="fp32", threads=1)


def test_options_of_the_search_come_whole_or_as_keywords(translator: Translator) -> None:
    options = SearchOptions(beam=2, max_length="5", n_best=2, stop="when-beam-finished")
    whole = translator.translate(["w1 w2", "w3"], options)
    keywords = translator.translate(
        ["w1 w2", "w3"], beam=2, max_length=5, n_best=2, stop="when-beam-finished"
    )
    assert whole == keywords
    assert all(len(one.alternatives) == 1 for one in whole)
    with pytest.raises(ArgumentError, match="`options` must hold all options of the search"):
        translator.translate("w1", options, beam=3)


def test_the_options_of_the_search_are_completed_as_keywords(translator: Translator) -> None:
    parameters = inspect.signature(translator.translate).parameters
    assert [name for name in parameters if name in SearchOptions.__dataclass_fields__] == [
        field.name for field in fields(SearchOptions)
    ]
    assert "keywords" not in parameters
    with pytest.raises(TypeError, match="unexpected keyword argument 'beams'"):
        translator.translate("w1", beams=3)
    with pytest.raises(ArgumentError, match="`beam` of Translator"):
        translator.translate("w1", beam="3")


def test_an_unknown_stopping_rule_is_refused(translator: Translator) -> None:
    with pytest.raises(SettingError, match="stop must be when-none-can-win or"):
        translator.translate("w1", stop="soon")


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("precision", ["fp32", "int8", *(["bf16"] if can_multiply_bf16() else [])])
@pytest.mark.parametrize("options", [{"beam": 3, "n_best": 2}, {"sample": Sampling(seed=3)}])
def test_batches_beside_each_other_translate_as_one_after_the_other(
    translator: Translator, precision: str, options: dict[str, Any]
) -> None:
    if precision == "bf16" and not can_multiply_bf16():
        return
    several = Translator.load(
        translator.run.folder.path, device="cpu", precision=precision, threads=2
    )
    if precision == "bf16" and "amx_bf16" in processor_flags():
        return  # oneDNN multiplies there, and not row by row
    assert is_compiled(several.models[0])
    lines = [
        " ".join(f"w{(7 * line + word) % 40}" for word in range(1 + line % 9)) for line in range(40)
    ]
    begun = []

    def search(*given: Any, **keywords: Any) -> Any:
        begun.append(threading.get_ident())
        return run_search(*given, **keywords)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(translator_module, "run_search", search)
        beside = several.translate(lines, batch_lines=8, **options)
    assert len(begun) == 5
    # the fifth is for all cores
    assert begun.count(threading.get_ident()) == 1
    torch.set_num_threads(1)
    assert several.translate(lines, batch_lines=8, **options) == beside
    assert several.translate(lines, **options) == beside


def test_a_translator_that_is_copied_or_pickled_says_what_to_do(translator: Translator) -> None:
    for door in (copy.deepcopy, copy.copy, pickle.dumps):
        with pytest.raises(ArgumentError, match="open it in each process"):
            door(translator)


def test_most_lines_of_a_batch_must_be_a_number_above_0(translator: Translator) -> None:
    with pytest.raises(SettingError, match="`batch_lines` must be at least 1, but is 0"):
        translator.translate(["w1"], batch_lines=0)


PART = "w1 w2 w3 w4"


def test_parts_of_a_split_line_are_drawn_apart(splitting: Translator) -> None:
    sampled = {"sample": Sampling(seed=3), "max_length": "5"}
    alone = splitting.translate(PART, **sampled).tokens
    both = splitting.translate(f"{PART} {PART}", **sampled).tokens
    assert both[:5] == alone
    assert both[5:] != alone


def test_constraints_of_another_number_of_lines_are_refused_for_split_lines(
    splitting: Translator,
) -> None:
    for option, entries in {
        "target_prefix": ["w1", "w2"],
        "force_phrases": [["w1"], []],
        "avoid_phrases": [[], ["w1"]],
    }.items():
        with pytest.raises(TextError, match=f"{option} must have .* there are 2 for 1 lines"):
            splitting.translate([f"{PART} {PART}"], **{option: entries})


def test_an_observer_of_a_line_that_is_split_is_refused(splitting: Translator) -> None:
    trace = Trace()
    splitting.translate(["w1", PART], observer=trace, max_length="3")
    assert trace.tree(1)
    with pytest.raises(SettingError, match=r"at most 6 subwords .* for `observer`"):
        splitting.translate(["w1", f"{PART} {PART}"], observer=trace)


def test_each_line_whose_translation_has_a_loop_is_reported(splitting: Translator) -> None:
    told: list[str] = []
    lines = [PART, "w9 w8", "w7"]
    options = SearchOptions(max_length="30", beam=1)
    results = splitting.translate(lines, options)
    translate_lines(splitting, lines, StringIO(), OutputFormat(), told.append, options)
    looped = [number for number, one in enumerate(results, start=1) if one.reading.loops]
    assert len(looped) > 1
    messages = [text for text in told if "repeats text" in text]
    assert [text.split(" has ")[0] for text in messages] == [f"line {n}" for n in looped]


def test_a_pair_that_cannot_be_scored_is_named(translator: Translator, tmp_path: Path) -> None:
    pairs = [("w1", "w2")] * 2050
    pairs[2049] = ("w1", "w2 " * 2000)
    scored = score(translator, pairs=pairs)
    with pytest.raises(TextError, match=r"a pair must have at most .* but pair 2050 has 2,000"):
        list(scored)
    settings = {**SMALL, "model.source_end": False}
    make_random_run(tmp_path, RunConfig().with_settings(settings), 50)
    unended = Translator.load(tmp_path, device="cpu", precision="fp32", threads=1)
    with pytest.raises(TextError, match="no end symbol after it, but that of pair 2 is empty"):
        unended.score(["w1", ""], ["w1", "w1"])
    assert unended.align("", "w1").links == ()
    assert translator.score("", "w1")
    for attend in (lambda: unended.attend("", "w1"), lambda: unended.attention_of([], [5])):
        with pytest.raises(TextError, match="but this one is empty"):
            attend()
