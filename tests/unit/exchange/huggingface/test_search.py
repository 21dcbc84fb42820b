"""Search settings of `generate`, there and back; tests/parity compare what is found."""

from heedful.config.search import SearchConfig
from heedful.exchange.formats import Problems
from heedful.exchange.huggingface.search import read_rule, write_rule
from heedful.tokenization.id_mapping import IdMapping


def test_a_rule_survives_the_way_there_and_back():
    names = ["</s>", "<unk>", "a", "b", "<pad>"]
    numbers = {name: number for number, name in enumerate(names)}
    special = {"pad": "<pad>", "unknown": "<unk>", "end": "</s>"}
    id_mapping = IdMapping.of(numbers, special, 5)
    given = {
        "num_beams": 6,
        "length_penalty": 0.7,
        "early_stopping": "never",
        "max_length": 33,
        "renormalize_logits": True,
        "forced_eos_token_id": 0,
        "bad_words_ids": [[4], [2]],
        "no_repeat_ngram_size": 3,
    }
    rule = read_rule(given, id_mapping, 64, Problems())
    search = rule.search
    assert (rule.notes, search.no_repeat_ngram) == ((), 3)
    assert (search.beam, search.length_penalty, search.stop) == (
        6,
        "power:0.7",
        "when-none-can-win",
    )
    assert (search.max_length, search.length_limit_policy, search.forbidden_ids) == (
        "31",
        "end",
        "4",
    )
    ids = {ours: their for ours, their in enumerate(id_mapping.origins) if their is not None}
    back, again = write_rule(search, (5, 5), ids, 64)
    assert {**back, "forced_eos_token_id": 0} == {**given, "bad_words_ids": [[2], [4]]}
    assert again.notes == ()
    assert again.search == search


def test_a_list_of_forbidden_symbols_is_no_longer_than_the_vocabulary():
    names = {"</s>": 0, "<unk>": 1, "a": 2}
    id_mapping = IdMapping.of(names, {"end": "</s>", "unknown": "<unk>"}, 3)
    for words, count in (([[2]] * 6, 0), ([[2]] * 7, 1), ([[2], [9], [9.5], ["a"]], 1)):
        reasons = Problems()
        read_rule({"bad_words_ids": words}, id_mapping, 64, reasons)
        assert len(reasons.messages) == count
    assert "[9, 9.5, 'a'], which are not ids of symbols" in reasons.messages[0]


def test_repeated_unigrams_are_refused_for_the_start_symbol_counts_there():
    id_mapping = IdMapping.of({"</s>": 0, "<unk>": 1}, {"end": "</s>", "unknown": "<unk>"}, 2)
    for size in (1, -1, True, "3", 10**9):
        reasons = Problems()
        read_rule({"no_repeat_ngram_size": size}, id_mapping, 64, reasons)
        assert any(text.startswith("no_repeat_ngram_size must be") for text in reasons.messages)


def test_single_tokens_may_repeat_in_what_goes_out():
    search = SearchConfig(no_repeat_ngram=1, max_length="31")
    settings, written = write_rule(search, (5, 5), {}, 64)
    assert "no_repeat_ngram_size" not in settings
    assert written.search.no_repeat_ngram == 0
    assert any("no_repeat_ngram = 0 instead of 1" in note for note in written.notes)
