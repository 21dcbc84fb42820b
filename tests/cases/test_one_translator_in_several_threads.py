"""A web application shares one Translator among threads: mixed or empty answers, or errors."""

from concurrent.futures import ThreadPoolExecutor

import heedful

LINES = ["the red dog sleeps", "my men buy the apple", "she bought a flower", "the cat"] * 3


def test_answers_of_threads_are_those_of_one_thread(toy_run):
    translator = heedful.Translator.load(toy_run)
    alone = [translator.translate(line).text for line in LINES]

    def answer(number):
        if number % 3 == 0:  # a search of another kind in between
            translator.translate(LINES[number], beam=1)
        return translator.translate(LINES[number]).text

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(answer, range(len(LINES)))) == alone
