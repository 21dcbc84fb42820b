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


def test_scores_and_attention_of_threads_do_not_mix(toy_run):
    translator = heedful.Translator.load(toy_run)
    scores = [translator.score(line, "le chien rouge") for line in LINES]

    def score(number):
        translator.attend(LINES[number])
        return translator.score(LINES[number], "le chien rouge")

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(score, range(len(LINES)))) == scores


FORKS = """
import multiprocessing, sys, threading
import heedful

translator = heedful.Translator.load(sys.argv[1], threads=2)
expected = translator.translate("the red dog sleeps").text
begun, ended = threading.Event(), threading.Event()

def hold(snapshot):
    begun.set()
    ended.wait(100)

held = threading.Thread(target=translator.translate, args=("the cat",), kwargs={"observer": hold})
held.start()
begun.wait(100)

# A web server forks while a thread of it translates: the fork must not wait for that thread.
context = multiprocessing.get_context("fork")
reader, writer = context.Pipe(duplex=False)
child = context.Process(
    target=lambda: writer.send(translator.translate("the red dog sleeps").text)
)
child.start()
writer.close()
print(reader.poll(200) and reader.recv() == expected)
ended.set()
child.join()
held.join()
"""


def test_a_fork_answers_while_a_thread_of_its_parent_translates(heedful_cli, toy_run):
    done = heedful_cli("-c", FORKS, toy_run)
    assert done.stdout == "True\n", done.stderr
