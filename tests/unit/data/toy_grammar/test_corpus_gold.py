"""The word alignment of the embedded corpus, against links and word lists written by hand."""

import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from heedful.data.toy_grammar.corpus import sample_aligned, sample_pairs, split_aligned, split_pairs

SOURCE = str(Path(__file__).parents[4] / "src")

# Sentences of seed 3. Words joined by = are linked for sure, words joined by ~ may be linked; a ²
# marks the second such word of the line.
KNOWN = {
    "the young woman near the tree": """
        the=la young=jeune woman=femme near=près near~de the²=l'arbre tree=l'arbre
    """,
    "the men do not buy keys": """
        the=les men=hommes do~n'achètent not~n'achètent not=pas buy=n'achètent keys~de keys=clés
    """,
    "the boys do not buy a book": """
        the=les boys=garçons do~n'achètent not~n'achètent not=pas buy=n'achètent a=de book=livre
    """,
    "i follow the woman and see her": """
        i=je follow=suis the=la woman=femme and=et see=vois her=la²
    """,
    "she bought a flower but did not find it": """
        she=elle bought~a bought=acheté a=une flower=fleur but=mais did~l'a did~trouvée not~ne
        not=pas find~l'a find=trouvée it=l'a
    """,
    "these mice find a sad red horse but do not see it": """
        these=ces mice=souris find=trouvent a=un sad=triste red=rouge horse=cheval but=mais
        do~voient not~ne not=pas see=voient it=le
    """,
    "my beautiful birds that he finds stayed in front of the green school": """
        my=mes beautiful=beaux birds=oiseaux that=qu'il he=qu'il finds=trouve stayed~sont
        stayed=restés in~devant front=devant of~devant the=l'école green=verte school=l'école
    """,
    "the boy laughed near the large houses because he was sad": """
        the=le boy=garçon laughed~a laughed=ri near=près near~des the²=des large=grandes
        houses=maisons because=parce because~qu'il he=qu'il was=était sad=triste
    """,
    "this small boy arrived because he was not sad": """
        this=ce small=petit boy=garçon arrived~est arrived=arrivé because=parce because~qu'il
        he=qu'il was=n'était not~n'était not=pas sad=triste
    """,
    "my mice hear me": "my=mes mice=souris hear=m'entendent me=m'entendent",
    "green schools": "green=vertes schools~des schools=écoles",
    "a sad young queen": "a=une sad=triste young=jeune queen=reine",
}

# What a word may be linked to for sure, from its beginning, whatever its gender and number.
LEXICON = """
    man homme    woman femme    boy garçon    girl fille     king roi      queen reine   dog chien
    cat chat     horse cheva    bird oiseau   owl hibou      cow vache     mouse souris  bee abeille
    apple pomme  orange orange  egg œuf       cake gâteau    book livre    hat chapeau   key clé
    flower fleur house maison   garden jardin school école   tree arbre    men hommes    mice souris
    women femmes happy heureu   sad triste    tired fatigué  big gros      small petit   black noir
    large grand  young jeune    old vie       red rouge      green vert    blue bleu     white blan
    eat mang     ate mang       sleep dor     slept dormi    sing chant    sang chant    not pas
    and et       but mais       because parce who qui        in dans       behind derr front devant
"""


def words_of(links, source, target):
    """Spell links as above."""
    return {(source.split()[i], target.split()[j]) for i, j in links}


def position(word, words):
    places = [place for place, other in enumerate(words) if other == word.rstrip("²")]
    return places[word.endswith("²")]


def test_known_sentences_have_the_links_that_were_drawn_by_hand():
    drawn = {pair.source: pair for pair in sample_aligned(70, seed=3)}
    for sentence, links in KNOWN.items():
        pair = drawn[sentence]
        source, target = pair.source.split(), pair.target.split()
        expected = {"=": set(), "~": set()}
        for one, kind, other in re.findall(r"(\S+?)([=~])(\S+)", links):
            expected[kind].add((position(one, source), position(other, target)))
        assert pair.sure == expected["="], sentence
        assert pair.possible == expected["="] | expected["~"], sentence


@pytest.fixture(scope="module")
def aligned():
    """Draw in a separate process, without the checks that slow a test down."""
    code = (
        "import json, sys; sys.modules['torch'] = None\n"
        "from heedful.data.toy_grammar.corpus import sample_aligned\n"
        "drawn = sample_aligned(4000, 11)\n"
        "print(json.dumps([(*p[:2], sorted(p.sure), sorted(p.possible)) for p in drawn]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        check=True,
        timeout=240,
        env={"PYTHONPATH": SOURCE, "PYTHONUTF8": "1"},
    )
    return [
        (source, target, [*map(tuple, sure)], [*map(tuple, possible)])
        for source, target, sure, possible in json.loads(done.stdout)
    ]


def test_every_word_has_a_link_and_every_link_is_inside(aligned):
    for source, target, sure, possible in aligned:
        english, french = source.split(), target.split()
        assert set(sure) <= set(possible)
        assert {i for i, _ in possible} == set(range(len(english))), source
        assert {j for _, j in possible} == set(range(len(french))), source
        # “In front of” has one core word, “did not see” two: the rest may be left without.
        loose = {english[i] for i in range(len(english)) if i not in {i for i, _ in sure}}
        assert loose <= {"do", "does", "did", "in", "of"}, source


def test_words_of_the_lexicon_are_linked_to_their_translations(aligned):
    entries = re.findall(r"(\S+) +(\S+)", LEXICON)
    seen = set()
    for source, target, sure, _ in aligned:
        linked = words_of(sure, source, target)
        for english, french in entries:
            for word in {english, f"{english}s"} & set(source.split()):
                partners = [other for one, other in linked if one == word]
                if word != "in" or partners:  # that of “in front of” has no sure link
                    assert partners, (word, source)
                stem = re.compile(rf"(\w+')*{french}")
                assert all(stem.match(other) for other in partners), (word, partners, source)
                seen.add(english)
    assert seen == {english for english, _ in entries}


def test_the_aligned_split_is_the_split():
    training, held_out = split_aligned(100, 30, seed=1)
    pairs = [(pair.source, pair.target) for pair in held_out]
    assert (training, pairs) == split_pairs(100, 30, seed=1)
    assert held_out[0].sure == held_out[0].possible == {(0, 0), (1, 1), (2, 3), (3, 2)}


def test_the_text_of_a_seed_is_what_it_was_before_there_were_links():
    text = json.dumps(sample_pairs(1000, seed=1), ensure_ascii=False).encode()
    known = "b3714cd1f1022d909df56fd52d0cc7a3f2e0fee45772075b323f31b51bf8fb05"
    assert hashlib.sha256(text).hexdigest() == known
