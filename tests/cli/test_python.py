"""The Python interface, without the checks of shapes and types that tests add to every call."""

import json
import re

import pytest

# Each expression of the first argument in turn: how it is written, or what it is refused with.
PROGRAM = """
import json, shutil, sys
import heedful
translator = heedful.Translator.load(sys.argv[2], device="cpu", precision="fp32", threads=1)
few = {"max_length": 4, "beam": 1}
options = heedful.SearchOptions(**few)
found = {}
for expression in json.loads(sys.argv[1]):
    try:
        found[expression] = repr(eval(expression))
    except heedful.HeedfulError as error:
        found[expression] = f"{type(error).__name__}: {error}"
print(json.dumps(found))
"""
TAKEN = {
    "type(translator.translate('the dog', **few)).__name__": "'Translation'",
    "len(translator.translate(['the dog', 'a cat'], **few))": "2",
    "len(translator.translate((line for line in ['the dog', 'a cat']), **few))": "2",
    "translator.translate([], **few)": "[]",
    "translator.translate('the dog', target_prefix='le', force_phrases=['le'],"
    " max_length=4).text[:2]": "'le'",
    "type(translator.score('the dog', 'le chien')[0]).__name__": "'float'",
    "type(translator.score(['the dog'], ['le chien'])[0]).__name__": "'list'",
    "type(translator.align('the dog', 'le chien')).__name__": "'WordAlignment'",
    "len(translator.align(['the dog'], iter(['le chien'])))": "1",
    "translator.attend('the', 'le')": "Attention(",
    "translator.attend('the', 'le').plot()._repr_png_()[1:4]": "b'PNG'",
    "translator.attend('the', 'le')._repr_png_()[1:4]": "b'PNG'",
    "translator": "Translator('",
    "translator.run": "Run('",
    "translator.translate('the', n_best=2, max_length=2)": "Translation('",
    "translator.translate('<', **few)._repr_html_()[:7]": "'<table>'",
    "len(list(heedful.score(translator, pairs=[('the dog', 'le chien'), ('a', 'b')])))": "2",
    "heedful.evaluate(translator, pairs=[('a', 'b')], options=options)": "Evaluation('",
    "heedful.plot(sys.argv[2])._repr_svg_()[:5]": "'<?xml",
    "heedful.average(shutil.copytree(sys.argv[2], sys.argv[3]), 1).name": "'average'",
}
REFUSED = {
    "translator.translate(None)": "`texts` of Translator.translate must be a string or a list of",
    "translator.translate(5)": "but got 5",
    "translator.translate(b'abc')": "but got b'abc'",
    "translator.translate({'a'})": "must be a string or a list",
    "translator.translate(['a', None])": "its entry 1 is None",
    "translator.translate([b'a'])": "its entry 0 is b'a'",
    "translator.translate('\\ud800')": "an unpaired surrogate",
    "translator.translate('a', beam='4')": "`beam` of Translator.translate must be a whole number",
    "translator.translate('a', beam=10**9)": "beam must be at most 10,000",
    "translator.translate('a', max_length='9' * 20)": "below a million",
    "translator.translate('a', length_penalty=1.0)": "must be a string or None, but got 1.0",
    "translator.translate('a', sample={'seed': 1})": "must be a Sampling or None",
    "translator.translate('a', batch_tokens=0)": "`batch_tokens` must be at least 1",
    "translator.translate('a', warn=1)": "must be a function or None",
    "translator.translate(['a', 'b'], target_prefix=['a'])": "one entry for each line",
    "translator.translate(['a'], force_phrases=['a'])": "a list of lists of strings",
    "translator.translate(['a'], avoid_phrases=[[1]])": "its entry 0 is [1]",
    "translator.translate('a', stop='nope')": "stop must be when-none-can-win or",
    "translator.score(['a', 'b'], ['a'])": "2 sources and 1 targets",
    "translator.score('a', ['a'])": "both be strings or both be lists",
    "translator.align(['a'], [None])": "its entry 0 is None",
    "translator.attend(None)": "must be a string",
    "translator.attend('the', 'le').plot(layer=9)": "`layer` must be from 1 to 2",
    "translator.attend('the', 'le').plot('up')": "must be 'cross' or 'encoder' or 'decoder'",
    "translator.attention_of([10**9], [1])": "ids from 0 to",
    "heedful.Translator.load(None)": "must be a string or a path or a list of strings or paths",
    "heedful.Translator.load(sys.argv[2], device=0)": "`device` of Translator.load",
    "heedful.Translator.load(sys.argv[2], precision='fp16')": "a precision must be auto or fp32",
    "heedful.Translator.load('a\\0')": "contains a NUL",
    "heedful.score(translator, 'a.en')": "score needs either files, as `source` and `target`, or",
    "list(heedful.score(translator, pairs=['ab']))": "its pair 0 is 'ab'",
    "list(heedful.score(translator, pairs=[('a', None)]))": "the target of pair 0 is None",
    "heedful.score(5, 'a', 'b')": "`run` of score must be a Translator or a string or a path or",
    "heedful.score(translator, 'nope.en', 'nope.de')": "nope.en",
    "heedful.evaluate(5, 'a')": "must be a file of translations, a run folder or a Translator",
    "heedful.evaluate('nope.de', 'x.de')": "nope.de must exist",
    "heedful.evaluate(sys.argv[2] + '/log.jsonl', pairs=[('a', 'b')])": "`pairs` are translated",
    "heedful.evaluate(translator)": "give either `source` and `reference`, or only",
    "heedful.evaluate(translator, pairs=[])": "must hold at least one pair",
    "heedful.evaluate(translator, source='x.en')": "give either `source` and `reference`",
    "heedful.evaluate(sys.argv[2] + '/log.jsonl')": "evaluate needs `reference`",
    "heedful.plot([])": "must name at least one run",
    "heedful.plot('nowhere')": "nowhere",
    "heedful.plot(sys.argv[2], 'curves.bmp')": "The file of a figure must end in",
    "heedful.plot(sys.argv[2], along='days')": "must be 'steps' or 'tokens' or 'hours'",
    "heedful.average(None)": "`run` of average must be a string or a path",
    "heedful.average(sys.argv[2], 0)": "`last` must be at least 1",
    "heedful.Transformer(0)": "`vocabulary` must be at least 1, but is 0",
    "heedful.Transformer(8000, heads=7)": "`heads` must divide d_model=512, but 7 does not",
    "heedful.Sampling(temperature='1')": "`temperature` of Sampling must be a number",
    "heedful.MultiHeadAttention('16', 2)": "`d_model` of MultiHeadAttention must be a whole number",
    "heedful.FeedForward(16, 0)": "`d_ff` must be at least 1",
    "heedful.recipes.recipe(5)": "`name` of recipe must be a string",
    "heedful.train('tiny', out=5)": "`out` of train must be a string or a path",
    "heedful.train('tiny', out='x', source=[None])": "its entry 0 is None",
    "heedful.train('tiny', out='x', source=['A dog runs.'], target=['Ein Hund rennt.'])": "no file "
    "“A dog runs.”; correct the name, or write the sentences to a file",
    "heedful.train('tiny', out='x', data={'en': ['a']})": "write the sentences to a",
    "heedful.train('tiny', out='x', resume=1)": "must be True or False",
    "heedful.train('tiny', out='x', settings={'train': {'stepz': 5}})": "`train.stepz`",
    "heedful.train('tiny', out='x', settings={'train.steps': None})": "`train.steps`",
}


@pytest.fixture(scope="module")
def answers(heedful_cli, trained, tmp_path_factory):
    """What each expression of the tests is, or is refused with."""
    copy = tmp_path_factory.mktemp("copy") / "run"
    done = heedful_cli("-c", PROGRAM, json.dumps([*TAKEN, *REFUSED]), trained, copy)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_string_gives_one_and_a_list_gives_a_list(answers):
    assert {e: answers[e][: len(start)] for e, start in TAKEN.items()} == TAKEN


@pytest.mark.parametrize("expression", REFUSED)
def test_an_argument_that_makes_no_sense_is_refused_in_a_sentence(answers, expression):
    assert REFUSED[expression] in answers[expression]
    assert "Error: " in answers[expression]


def test_a_training_gives_its_run_and_takes_settings_as_a_dict(heedful_cli, text, tmp_path):
    program = (
        "import heedful, sys; "
        "done = heedful.train('tiny', source=sys.argv[1], target=sys.argv[2], out=sys.argv[3],"
        " quiet=True, settings={'data.vocabulary_size': 400, 'train.clip_norm': None,"
        " 'train': {'steps': 2, 'batch_tokens': 256, 'device': 'cpu', 'precision': 'fp32'}}); "
        "print(done, done.reason, done.step, done.best, done.log.name, done.run, sep='\\n'); "
        "print(heedful.Translator.load(done, device='cpu').run.folder.path)"
    )
    out = tmp_path / "run"
    done = heedful_cli("-c", program, text / "train.en", text / "train.fr", out)
    assert done.returncode == 0, done.stderr
    said, *lines = done.stdout.splitlines()
    assert re.fullmatch(
        rf"TrainingResult\('{out}', ended by steps at step 2, loss \d\.\d{{3}}\)", said
    )
    assert lines == [
        *("steps", "2", "()", "log.jsonl", str(out), str(out)),
    ]
