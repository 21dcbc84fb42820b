from heedful.bench.random_run import make_random_run, random_lines
from heedful.config.load import load_config


def test_random_weights_never_end_a_translation(tmp_path):
    from heedful.translation.translator import Translator

    make_random_run(tmp_path, load_config("tiny"), 300)
    lines = random_lines(300, 10, 6)
    assert sum(len(line.split()) + 1 for line in lines) == 60
    translator = Translator.load(tmp_path, device="cpu", precision="fp32", threads=1)
    for beam in (1, 4):
        found = translator.translate(lines, beam=beam, max_length="7")
        assert [len(translation.tokens) for translation in found] == [7] * 6
