"""Encoding in several processes, interrupted and resumed: always the same bytes."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from heedful.data.cleaning.filter import PairFilter
from heedful.data.cleaning.rules import TextRules
from heedful.data.encoded import encode
from heedful.data.encoded.encode import encode_corpus
from heedful.data.encoded.shards import Shard, encode_shard, shard_digest
from heedful.data.encoded.worker_pool import Workers
from heedful.data.overlap.leaks import HeldOutPairs, Leaks
from heedful.data.toy_grammar.corpus import sample_pairs
from heedful.errors import HeedfulError, TextError
from heedful.text.corpus import Corpus
from heedful.tokenization.tokenizer import Tokenizer

FILTER = PairFilter(max_length=40, max_length_ratio=3.0)
# A third of the text comes twice, some of it is excluded, some empty, some Russian.
RULES = TextRules("en", "fr", 0.5, True, frozenset(["the dog sleeps"]))


@pytest.fixture(scope="module")
def text(tmp_path_factory) -> Corpus:
    folder = tmp_path_factory.mktemp("text")
    pairs = sample_pairs(400, seed=5)
    pairs += [
        ("", "x"),
        ("The  dog sleeps", "le chien"),
        ("da", "да"),
        *pairs[::2],
        ("a", "b " * 99),
    ]
    for side, language in enumerate(("en", "fr")):
        lines = "".join(f"{pair[side]}\n" for pair in pairs)
        (folder / f"text.{language}").write_text(lines, encoding="utf-8")
    return Corpus((folder / "text.en",), (folder / "text.fr",))


@pytest.fixture(scope="module")
def tokenizer(text: Corpus) -> Tokenizer:
    languages = {"source_language": "en", "target_language": "fr"}
    size = {"kind": "bpe", "vocabulary_size": 300, "shared": True, "seed": 1}
    return Tokenizer.train(text.source, text.target, **size, **languages)


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encode, "_SHARD_PAIRS", 50)


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="module")
def expected(text: Corpus, tokenizer: Tokenizer, tmp_path_factory) -> dict[str, bytes]:
    """What one process writes that is never interrupted."""
    folder = tmp_path_factory.mktemp("expected") / "ids"
    encode_corpus(text, tokenizer, FILTER, folder, rules=RULES)
    return content(folder)


def test_any_number_of_processes_writes_the_same_bytes(text, tokenizer, expected, tmp_path):
    read: list[int] = []
    for processes in (2, 3):
        folder = tmp_path / f"ids{processes}"
        pairs = encode_corpus(
            text, tokenizer, FILTER, folder, rules=RULES, processes=processes, progress=read.append
        )
        assert content(folder) == expected
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ids2", "ids3"]
    assert read[:2] == [50, 100]
    assert pairs.report.dropped["duplicate"] >= 200
    assert {rule: len(shown) for rule, shown in pairs.report.examples.items()} == {
        **{"empty": 1, "overlap": 1, "script": 1, "duplicate": 5, "too long": 1}
    }
    assert pairs.report.examples["overlap"][0].line == 402


def test_what_is_kept_is_what_the_tokenizer_gives(text, tokenizer, tmp_path):
    pairs = encode_corpus(text, tokenizer, FILTER, tmp_path / "ids", rules=RULES, processes=2)
    dropped = ("", "The  dog sleeps", "the dog sleeps", "da", "a")
    kept = [pair for pair in dict.fromkeys(text.pairs()) if pair[0] not in dropped]
    assert len(pairs) == len(kept)
    for index, (source, target) in enumerate(kept):
        assert [pairs.pair(index)[0].tolist()] == tokenizer.encode_source([source])
        assert [pairs.pair(index)[1].tolist()] == tokenizer.encode_target([target])


@pytest.mark.parametrize(
    ("language", "told"),
    [
        ("xx", "not applied to lines in “xx”, because the script"),
        ("", "not applied to lines without a language; set data.source_language"),
    ],
)
def test_a_rule_that_could_not_be_applied_is_noted_once(text, tokenizer, tmp_path, language, told):
    rules = TextRules(language, "fr", 0.5)
    pairs = encode_corpus(text, tokenizer, FILTER, tmp_path / "ids", rules=rules, processes=2)
    (note,) = pairs.report.notes
    assert told in note
    assert note in (tmp_path / "ids" / "report.json").read_text("utf-8")
    assert pairs.report.dropped["script"] == 1  # the French side was judged


@pytest.mark.parametrize("processes", [1, 2])
def test_dropped_pairs_are_not_counted_as_repetitions(text, tokenizer, tmp_path, processes):
    # the last pair of the text is too long, and the third last breaks a rule for text
    held_out = HeldOutPairs(["a", "da"], ["b " * 99, "да"], [1, 2])
    leaks = Leaks(held_out)
    encode_corpus(
        *(text, tokenizer, FILTER, tmp_path / "ids"),
        rules=RULES,
        processes=processes,
        leaks=leaks,
    )
    assert (leaks.exact, leaks.near, leaks.note()) == (0, 0, "")
    leaks = Leaks(held_out)
    longer = PairFilter(max_length=400, max_length_ratio=None)
    encoded = encode_corpus(
        *(text, tokenizer, longer, tmp_path / "more"),
        rules=RULES,
        processes=processes,
        leaks=leaks,
    )
    assert (leaks.exact, leaks.both, leaks.repeated) == (1, 1, 1)
    assert encoded.report.notes == [leaks.note()]


class Interrupted(BaseException):
    """What Ctrl-C would raise, at a moment that the test chooses."""


def interrupt(read: int) -> None:
    if read == 400:
        raise Interrupted


def interrupted(text: Corpus, tokenizer: Tokenizer, folder: Path, processes: int) -> list[Path]:
    """Begin to encode; list the shards that were finished."""
    with pytest.raises(Interrupted):
        encode_corpus(
            text, tokenizer, FILTER, folder, rules=RULES, processes=processes, progress=interrupt
        )
    assert not folder.exists()
    return sorted(folder.with_name(f".{folder.name}.shards").glob("*.safetensors"))


@pytest.mark.parametrize("processes", [1, 2])
def test_what_was_encoded_before_an_interruption_is_not_encoded_again(
    text, tokenizer, expected, tmp_path, monkeypatch, processes
):
    finished = interrupted(text, tokenizer, tmp_path / "ids", processes=1)
    assert len(finished) == 7  # 350 lines
    encoded: list[Path] = []
    if processes == 1:
        monkeypatch.setattr(
            encode, "encode_shard", lambda *job: (encoded.append(job[-1]), encode_shard(*job))
        )
    else:
        submit = Workers.submit
        monkeypatch.setattr(
            Workers, "submit", lambda self, *job: (encoded.append(job[0]), submit(self, *job))
        )
    encode_corpus(text, tokenizer, FILTER, tmp_path / "ids", rules=RULES, processes=processes)
    assert content(tmp_path / "ids") == expected
    assert encoded
    assert not set(encoded) & set(finished)
    assert [path.name for path in tmp_path.iterdir()] == ["ids"]


def test_an_interruption_ends_every_process(text, tokenizer, expected, tmp_path):
    before = set(children())
    finished = interrupted(text, tokenizer, tmp_path / "ids", processes=3)
    assert set(children()) == before
    assert len(finished) <= 7
    encode_corpus(text, tokenizer, FILTER, tmp_path / "ids", rules=RULES, processes=3)
    assert content(tmp_path / "ids") == expected


def test_damaged_shards_and_those_of_other_text_are_not_used(text, tokenizer, expected, tmp_path):
    finished = interrupted(text, tokenizer, tmp_path / "ids", processes=1)
    finished[0].write_bytes(finished[0].read_bytes()[:-1])
    finished[1].write_bytes(b"")
    finished[2].rename(finished[2].with_name(finished[2].name.replace("-", "-0")))
    (finished[0].parent / ".half.partial").write_bytes(b"x")
    encode_corpus(text, tokenizer, FILTER, tmp_path / "ids", rules=RULES)
    assert content(tmp_path / "ids") == expected
    assert [path.name for path in tmp_path.iterdir()] == ["ids"]


def test_the_digest_changes_with_everything_that_a_shard_depends_on(tokenizer):
    shard = Shard([1, 2], ["a", "b"], ["c", "\ud800 \n"])
    assert Shard.unpack(shard.pack()) == shard
    variants = [
        (shard.pack(), "f" * 64, FILTER),
        (Shard([1, 3], shard.sources, shard.targets).pack(), "f" * 64, FILTER),
        (Shard([1, 2], ["ab", ""], shard.targets).pack(), "f" * 64, FILTER),
        (shard.pack(), "e" * 64, FILTER),
        (shard.pack(), "f" * 64, PairFilter(41, 3.0)),
        (shard.pack(), "f" * 64, PairFilter(40, None)),
    ]
    assert len({shard_digest(*variant) for variant in variants}) == len(variants)


def children() -> list[int]:
    """List the processes that encode for this one and are still there; other tests have others."""
    tasks = Path(f"/proc/{os.getpid()}/task").iterdir()
    numbers = [int(number) for task in tasks for number in read_process(task / "children").split()]
    return [n for n in numbers if b"heedful.data" in read_process(Path(f"/proc/{n}/cmdline"))]


def read_process(file: Path) -> bytes:
    """Read a file of ``/proc``; empty when its thread or process has ended since it was listed."""
    try:
        return file.read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def test_a_process_that_is_killed_is_reported_and_its_work_goes_on_later(
    text, tokenizer, expected, tmp_path
):
    def kill_one(read: int) -> None:
        if read == 300:
            os.kill(children()[0], signal.SIGKILL)

    def go(tell: Callable[[int], object] | None) -> None:
        encode_corpus(
            text, tokenizer, FILTER, tmp_path / "ids", rules=RULES, processes=2, progress=tell
        )

    with pytest.raises(HeedfulError, match=r"was ended by SIGKILL, .* Run the same command again"):
        go(kill_one)
    assert children() == []
    assert not (tmp_path / "ids").exists()
    go(None)
    assert content(tmp_path / "ids") == expected


def test_what_a_process_refuses_is_raised_here(text, tokenizer, tmp_path, monkeypatch):
    lines = ["the dog"] * 70 + ["half \ud83d"] + ["the dog"] * 70
    monkeypatch.setattr(Corpus, "pairs", lambda self: iter(zip(lines, lines, strict=True)))
    with pytest.raises(TextError, match="text 21 of 50 holds half a surrogate pair"):
        encode_corpus(text, tokenizer, FILTER, tmp_path / "ids", processes=2)
    assert children() == []


def test_a_process_that_cannot_start_says_why(text, tokenizer, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    with pytest.raises(HeedfulError, match="“No such file or directory”; use fewer processes"):
        encode_corpus(text, tokenizer, FILTER, tmp_path / "ids", processes=2)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(HeedfulError, match="ended with status 1"):
        encode_corpus(text, tokenizer, FILTER, tmp_path / "ids", processes=2)
    assert not list(tmp_path.iterdir())


LIMITED = """
import resource, sys
from pathlib import Path
from heedful.data.encoded import encode
from heedful.data.cleaning.filter import PairFilter
from heedful.text.corpus import Corpus
from heedful.tokenization.tokenizer import Tokenizer
from heedful.errors import HeedfulError
folder, kind, limit, shard = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
tokenizer = Tokenizer.load(folder)
corpus = Corpus((folder / "text.en",), (folder / "text.fr",))
encode._SHARD_PAIRS = shard
if limit:
    resource.setrlimit(getattr(resource, kind), (limit, limit))
try:
    encode.encode_corpus(corpus, tokenizer, PairFilter(99, None), folder / "ids", processes=2)
except HeedfulError as error:
    print(type(error).__name__, error)
# What getrusage says of this process may be the peak of the one that started it.
peak = Path("/proc/self/status").read_text("ascii").split("VmHWM:")[1].split()[0]
print(peak, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def limited(folder: Path, kind: str, limit: int, shard: int) -> list[str]:
    """Encode in a separate process, under a limit of the system."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", LIMITED, str(folder), kind, str(limit), str(shard)],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


def write(folder: Path, pairs: list[tuple[str, str]], times: int) -> None:
    for side, language in enumerate(("en", "fr")):
        lines = "".join(f"{pair[side]}\n" for pair in pairs)
        (folder / f"text.{language}").write_text(lines * times, encoding="utf-8")


def test_a_full_disk_is_reported_by_the_process_that_met_it(tokenizer, tmp_path):
    tokenizer.save(tmp_path)
    write(tmp_path, sample_pairs(100, seed=6), 10)
    # Shards of a hundred pairs fit, what is joined of them does not.
    for shard in (500, 100):
        said, _ = limited(tmp_path, "RLIMIT_FSIZE", 8_000, shard)
        told = f"StorageError cannot write to {tmp_path / 'ids'}: File too large. Free some space"
        assert said.startswith(told)
        assert said.endswith("; finished shards are kept.")
        assert not (tmp_path / "ids").exists()
    assert len(list((tmp_path / ".ids.shards").glob("*.safetensors"))) == 10


def test_memory_does_not_grow_with_the_text(tokenizer, tmp_path):
    tokenizer.save(tmp_path)
    pairs, peaks = sample_pairs(200, seed=6) * 10, []
    for times in (2, 20):
        write(tmp_path, pairs, times)
        (used,) = limited(tmp_path, "", 0, 500)
        peaks.append([int(kibibytes) for kibibytes in used.split()])
    # Thirty-six thousand pairs more: 3 MB of text, which Python's objects make 11 MB.
    for few, many in zip(*peaks, strict=True):
        assert many < few + 2_000
