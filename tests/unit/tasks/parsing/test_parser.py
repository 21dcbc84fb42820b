"""A trained parser."""

import pytest

from heedful.analysis.attend import attend
from heedful.errors import ArgumentError, HeedfulError, RunFolderError, SettingError, TextError
from heedful.search.settings import SearchOptions
from heedful.tasks.parsing.parser import Parser
from heedful.tasks.parsing.trees.linearize import linearize
from heedful.tasks.parsing.trees.sentence import join_words
from heedful.training.train import train

TREES = """(S (NP (DT the) (NN dog)) (VP (VBZ sleeps)))
(S (NP (PRP she)) (VP (VBZ reads) (NP (DT a) (NN book))))
(S (NP (DT a) (NN cat)) (VP (VBZ eats) (PP (IN in) (NP (DT the) (NN house)))))
"""
SETTINGS = {
    "model.d_model": 16,
    "model.d_ff": 32,
    "model.heads": 2,
    "data.subwords": "character",
    "train.steps": 3,
    "train.precision": "fp32",
    "train.device": "cpu",
    "train.warmup": 10,
}


@pytest.fixture(
    scope="module",
    params=["vinyals", "numbered vinyals", "numbered t2t", "next vinyals", "next t2t"],
)
def run(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("parser")
    trees = folder / "trees"
    trees.write_text(TREES, encoding="utf-8")
    words, _, form = request.param.rpartition(" ")
    settings = SETTINGS | {"parsing.linearisation": form}
    if words:
        settings |= (
            {"parsing.word_numbers": 3} if words == "numbered" else {"parsing.next_word": True}
        )
    done = train(
        "tiny", trees=trees, valid_trees=trees, out=folder / "run", settings=settings, quiet=True
    )
    assert "f1" in done.best[0]
    return done.run


def load(run, **options):
    return Parser.load(run, device="cpu", precision="fp32", threads=1, **options)


def test_what_is_written_are_trees_of_the_words(run):
    parser = load(run)
    numbers = parser.translator.run.config.parsing.word_numbers
    sentences = ["the dog sleeps", "she", "a ( b ) cat reads a book", "a\u2009b ▁c▁ [d]"]
    for beam in (1, 3):
        found = parser.parse(sentences, SearchOptions(beam=beam, n_best=beam))
        assert [parse.tree.words for parse in found] == [
            ("the", "dog", "sleeps"),
            ("she",),
            ("a", "-LRB-", "b", "-RRB-", "cat", "reads", "a", "book"),
            ("a\u2009b", "▁c▁", "[d]"),
        ]
        for parse in found:
            assert parse.is_tree
            for each in (parse, *parse.alternatives):
                assert " ".join(linearize(each.tree, parser.form, numbers)) == each.symbols
    assert parser.parse("the dog sleeps").tree == parser.parse(["the dog sleeps"])[0].tree


def test_the_score_is_that_of_the_symbols(run):
    parser = load(run)
    options = SearchOptions(beam=3, length_penalty="none")
    parse = parser.parse("she reads", options)
    parsing = parser.translator.run.config.parsing
    line = join_words(["she", "reads"], numbers=parsing.word_numbers)
    scored = parser.translator.score(line, parse.symbols)
    assert sum(scored) == pytest.approx(parse.score, abs=1e-4)


def test_tags_are_written_but_not_read(run):
    parser = load(run)
    plain = parser.parse(["she reads"])[0]
    tagged = parser.parse(["she reads"], tags=[["PRP", "VBZ"]])[0]
    assert tagged.tree.tags == ("PRP", "VBZ")
    assert tagged.symbols == plain.symbols
    with pytest.raises(ArgumentError, match="one part of speech for each word"):
        parser.parse(["she reads"], tags=[["PRP"]])
    for tag in ("", "V Z", "(", "V\n"):
        with pytest.raises(ArgumentError, match="without parentheses or spaces, but got '"):
            parser.parse(["she reads"], tags=[["PRP", tag]])


def test_a_free_search_falls_back_to_a_flat_tree(run):
    parser = load(run, constrained=False)
    found = parser.parse("she reads a book", SearchOptions(max_length=1))
    assert not found.is_tree
    assert str(found.tree) == "(S (XX she) (XX reads) (XX a) (XX book))"


def test_an_ensemble_writes_trees(run):
    parse = load([run, run]).parse("the cat sleeps")
    assert parse.is_tree
    assert parse.symbols == load(run).parse("the cat sleeps").symbols


def test_attention_is_shown_of_the_text_that_a_parser_reads(run):
    parser = load(run)
    shown = attend(parser.translator, "the ( dog")
    assert shown.text == parser.parse("the ( dog").symbols


def test_a_sentence_without_room_gets_a_flat_tree_and_a_warning(run):
    told = []
    sentences = ["she", "she reads a book"]
    one, other = load(run).parse(
        sentences, SearchOptions(max_length=5), first_line=3, warn=told.append
    )
    assert one.is_tree
    assert not other.is_tree
    assert str(other.tree) == "(S (XX she) (XX reads) (XX a) (XX book))"
    assert len(told) == 1
    assert told[0].startswith("line 4 has 4 words, too many for a tree")


def test_a_translator_of_numbered_words_refuses_others(run):
    parser = load(run)
    if parser.translator.run.config.parsing.word_numbers is None:
        assert parser.translator.translate("she reads").text
        return
    with pytest.raises(TextError, match="reads numbered words, but got “she reads”"):
        parser.translator.translate("she reads")


def test_options_that_leave_no_tree_are_named(run):
    with pytest.raises(
        HeedfulError, match="line 1 has no translation that satisfies all constraints"
    ):
        load(run).parse("she", SearchOptions(min_length=40))


def test_a_line_without_words_is_refused(run):
    with pytest.raises(TextError, match="line 8 is empty"):
        load(run).parse(["she", " "], first_line=7)


def test_arguments_of_other_types_are_refused(run):
    with pytest.raises(ArgumentError, match="`translator` of Parser must be"):
        Parser(3)
    with pytest.raises(ArgumentError, match=r"`sentence` of Parser\.source_line must be"):
        load(run).source_line(3)


def test_a_translator_is_no_parser(tmp_path):
    from heedful.bench.random_run import make_random_run
    from heedful.config.schema import RunConfig

    shape = {name: value for name, value in SETTINGS.items() if name.startswith("model.")}
    make_random_run(tmp_path, RunConfig().with_settings(shape), 50)
    with pytest.raises(SettingError, match="must be a parser"):
        load(tmp_path)


@pytest.fixture
def treebank(tmp_path):
    file = tmp_path / "trees"
    file.write_text(TREES, encoding="utf-8")
    return file


def quietly(treebank, name, settings=(), **options):
    done = train(
        "tiny",
        trees=options.pop("trees", treebank),
        out=treebank.parent / name,
        settings={**SETTINGS, **dict(settings)},
        quiet=True,
        **options,
    )
    return done.run


def test_sentences_longer_than_all_in_training_are_parsed_with_numbers(treebank):
    run = quietly(treebank, "run", {"parsing.word_numbers": 32})
    words = " ".join("abcdefghijklmnop")
    found = load(run).parse([words, "she"], SearchOptions(beam=2))
    assert [parse.is_tree for parse in found] == [True, True]


def test_a_given_tokenizer_gets_the_symbols_of_the_trees_and_weights_keep_theirs(treebank):
    first = quietly(treebank, "first", {"parsing.word_numbers": 4})
    more = treebank.with_name("more")
    more.write_text("(FRAG (NP (DT the) (NN dog)) (ADVP (RB well)))\n" * 3, encoding="utf-8")
    given = quietly(treebank, "given", {"parsing.word_numbers": 4}, trees=more, tokenizer=first)
    assert "(FRAG" in Parser.load(given).translator.tokenizer.pieces_target(range(20))
    kept = quietly(treebank, "kept", trees=more, finetune_from=first)
    parser, before = Parser.load(kept), Parser.load(first)
    assert parser.translator.run.config.parsing.word_numbers == 4
    assert parser.translator.tokenizer.fingerprint == before.translator.tokenizer.fingerprint
    with pytest.raises(SettingError, match=r"linearisation is vinyals in that run and t2t"):
        quietly(treebank, "other", {"parsing.linearisation": "t2t"}, finetune_from=first)
    with pytest.raises(RunFolderError, match=r"the same parsing\.word_numbers, but it is 4"):
        load([first, quietly(treebank, "plain", tokenizer=first)])


def test_a_parser_does_not_go_on_from_a_translator(treebank):
    from heedful.bench.random_run import make_random_run
    from heedful.config.schema import RunConfig

    folder = treebank.parent / "translator"
    folder.mkdir()
    make_random_run(folder, RunConfig().with_settings({"model.d_model": 16, "model.heads": 2}), 50)
    with pytest.raises(SettingError, match="must be a parser, but is a translator"):
        quietly(treebank, "run", finetune_from=folder)


def test_trees_without_a_phrase_are_refused(treebank):
    treebank.write_text("(NN dog)\n", encoding="utf-8")
    with pytest.raises(TextError, match="must hold trees with phrases"):
        quietly(treebank, "run")
