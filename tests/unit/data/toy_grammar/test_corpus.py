import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.data.toy_grammar.corpus import sample_pairs, split_pairs

SOURCE = str(Path(__file__).parents[4] / "src")

# Written down here once more, so that a wrong entry in the lexicon is seen.
FEMININE = """
    femme fille reine vache souris abeille pomme orange clé fleur maison école
"""
MASCULINE = """
    homme garçon roi chien chat cheval oiseau hibou œuf gâteau livre chapeau jardin arbre
"""
PLURALS = {
    "souris": "souris",
    "cheval": "chevaux",
    "oiseau": "oiseaux",
    "hibou": "hiboux",
    "gâteau": "gâteaux",
    "chapeau": "chapeaux",
}
ADJECTIVES = {
    "beau": ("beau", "belle", "beaux", "belles"),
    "heureux": ("heureux", "heureuse", "heureux", "heureuses"),
    "triste": ("triste", "triste", "tristes", "tristes"),
    "fatigué": ("fatigué", "fatiguée", "fatigués", "fatiguées"),
    "gros": ("gros", "grosse", "gros", "grosses"),
    "petit": ("petit", "petite", "petits", "petites"),
    "grand": ("grand", "grande", "grands", "grandes"),
    "jeune": ("jeune", "jeune", "jeunes", "jeunes"),
    "vieux": ("vieux", "vieille", "vieux", "vieilles"),
    "rouge": ("rouge", "rouge", "rouges", "rouges"),
    "vert": ("vert", "verte", "verts", "vertes"),
    "bleu": ("bleu", "bleue", "bleus", "bleues"),
    "blanc": ("blanc", "blanche", "blancs", "blanches"),
    "noir": ("noir", "noire", "noirs", "noires"),
}
FORMS = {form for forms in ADJECTIVES.values() for form in forms}
ENGLISH = {
    "beautiful": "beau",
    "happy": "heureux",
    "sad": "triste",
    "tired": "fatigué",
    "big": "gros",
    "small": "petit",
    "large": "grand",
    "young": "jeune",
    "old": "vieux",
    "red": "rouge",
    "green": "vert",
    "blue": "bleu",
    "white": "blanc",
    "black": "noir",
}
BEFORE_NOUN = ("beau", "gros", "petit", "grand", "jeune", "vieux")
# Before a masculine noun that begins with a vowel.
LIAISON = {"bel": "beau", "vieil": "vieux"}
ARTICLES = {
    ("m", False): {"le", "un", "mon", "ce", "cet"},
    ("f", False): {"la", "une", "ma", "mon", "cette"},
    ("m", True): {"les", "des", "mes", "ces", "de"},
    ("f", True): {"les", "des", "mes", "ces", "de"},
}
GENDER = {
    **dict.fromkeys(MASCULINE.split(), ("m", False)),
    **dict.fromkeys(FEMININE.split(), ("f", False)),
}
NOUNS = GENDER | {
    PLURALS.get(noun, f"{noun}s"): (gender, True)
    for noun, (gender, _) in GENDER.items()
    if noun != "souris"
}
VOWELS = "aeéiouœh"
ASPIRATED = ("hibou", "hiboux")


def draw(count: int, *seeds: int, hashing: str = "0") -> list[list[tuple[str, str]]]:
    """The pairs of each seed."""
    drawn = evaluated(f"[sample_pairs({count}, seed) for seed in {seeds}]", hashing)
    return [[*map(tuple, pairs)] for pairs in drawn]


def evaluated(expression: str, hashing: str = "0") -> Any:
    """Evaluate in a separate process: without torch, and without the checks that slow it down."""
    code = (
        "import json, sys; sys.modules['torch'] = None\n"
        "from heedful.data.toy_grammar.corpus import sample_pairs, split_pairs\n"
        f"print(json.dumps({expression}))"
    )
    environment = {"PYTHONPATH": SOURCE, "PYTHONHASHSEED": hashing, "PYTHONUTF8": "1"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, check=True, timeout=240, env=environment)
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def corpus() -> dict[str, str]:
    return dict(draw(60_000, 7)[0])


def matches(corpus: dict[str, str], english: str) -> list[tuple[re.Match[str], str]]:
    """Sentences of a form, and their translations; the form must occur."""
    found = [(m, french) for text, french in corpus.items() if (m := re.fullmatch(english, text))]
    assert len(found) >= 5, english
    return found


KNOWN = """
    the small dog = le petit chien
    the owl = le hibou
    my bee = mon abeille
    my cow = ma vache
    this man = cet homme
    this beautiful bird = ce bel oiseau
    the old tree = le vieil arbre
    this old school = cette vieille école
    the old owl = le vieux hibou
    the white houses = les maisons blanches
    i arrive = j'arrive
    he loves us = il nous aime
    i do not love her = je ne l'aime pas
    she fell = elle est tombée
    the horses danced = les chevaux ont dansé
    the mice are tired = les souris sont fatiguées
    the egg is not big = l'œuf n'est pas gros
    the queens did not arrive = les reines ne sont pas arrivées
"""


@pytest.mark.parametrize("line", KNOWN.split("\n")[1:-1])
def test_sentences_that_begin_in_a_known_way(corpus, line):
    english, french = line.strip().split(" = ")
    translations = [
        target for source, target in corpus.items() if f"{source} ".startswith(f"{english} ")
    ]
    assert translations
    assert all(f"{target} ".startswith(f"{french} ") for target in translations)


def test_every_adjective_agrees_and_stands_on_its_side_of_the_noun(corpus):
    seen = set()
    for match, french in matches(corpus, rf"(the|my|this|these|an?) ({'|'.join(ENGLISH)}) \w+"):
        words = re.sub("^l'", "", french).split()
        (noun,) = [word for word in words if word in NOUNS]
        (adjective,) = [word for word in words if LIAISON.get(word, word) in FORMS]
        gender, plural = NOUNS[noun]
        plural = plural or words[0] in ("les", "mes", "ces")
        lemma = ENGLISH[match[2]]
        assert LIAISON.get(adjective, adjective) == ADJECTIVES[lemma][2 * plural + (gender == "f")]
        masculine = gender == "m" and not plural
        if lemma in LIAISON.values():
            liaison = masculine and noun[0] in VOWELS and noun not in ASPIRATED
            assert (adjective in LIAISON) == liaison, french
        assert (words.index(adjective) < words.index(noun)) == (lemma in BEFORE_NOUN), french
        seen.add(lemma)
    assert seen == set(ADJECTIVES)


def test_articles_agree_with_the_noun(corpus):
    seen = set()
    for _, french in matches(corpus, r"(the|my|this|these|an?) \w+"):
        article, noun = re.sub("^l'", "l' ", french).split()
        gender, plural = NOUNS[noun]
        if article == "l'":
            assert noun[0] in VOWELS
        elif noun == "souris":
            assert article in ARTICLES["f", False] | ARTICLES["f", True]
        else:
            assert article in ARTICLES[gender, plural], french
        seen.add(noun)
    assert seen >= set(GENDER)


def test_many_things_have_des_and_de_before_an_adjective(corpus):
    for match, french in matches(corpus, rf"({'|'.join(ENGLISH)}) \w+"):
        before = ENGLISH[match[1]] in BEFORE_NOUN
        assert french.startswith("de " if before else "des "), french


def test_adjectives_after_the_noun_are_the_mirror_of_english(corpus):
    for match, french in matches(corpus, r"the (happy|sad|tired) (red|green|blue|white|black) \w+"):
        mood = {"happy": "heureu", "sad": "triste", "tired": "fatigué"}[match[1]]
        assert french.split()[-1].startswith(mood), french


def test_predicates_agree_with_their_subject(corpus):
    pattern = r"(?:the|my|this|these) \w+ (is|are|was|were)( not)? (\w+)"
    for match, french in matches(corpus, pattern):
        noun = next(w for w in re.split("[ ']", french) if w in NOUNS)
        gender, plural = NOUNS[noun][0], match[1] in ("are", "were")
        verb = {"is": "est", "are": "sont", "was": "était", "were": "étaient"}[match[1]]
        middle = rf" (ne |n'){verb} pas " if match[2] else f" {verb} "
        assert re.search(middle, french), french
        adjective = french.split()[-1]
        assert any(adjective == f[2 * plural + (gender == "f")] for f in ADJECTIVES.values()), (
            french
        )


def test_words_are_elided_before_vowels_and_only_there(corpus):
    for french in corpus.values():
        unelided = re.findall(rf"\b(?:le|la|je|ne|me|que|de|ce|ma|beau) ([{VOWELS}]\w*)", french)
        assert set(unelided) <= set(ASPIRATED), french
        elided = re.findall(r"(?:\b(?:l|j|n|m|d|qu)'|\b(?:cet|bel|vieil) )(\w+)", french)
        assert all(word[0] in VOWELS and word not in ASPIRATED for word in elided), french
        assert not re.search(r"' |''| de les? ", french), french


def test_english_takes_an_before_vowels(corpus):
    for english in corpus:
        assert not re.search(r"\ba [aeiou]|\ban [^aeiou]", english), english


def test_de_and_the_article_become_one_word(corpus):
    for match, french in matches(corpus, r".* near the (garden|gardens|house|tree)"):
        ending = {
            "garden": "près du jardin",
            "gardens": "près des jardins",
            "house": "près de la maison",
            "tree": "près de l'arbre",
        }
        assert french.endswith(ending[match[1]])


def test_every_negation_is_said_in_two_words_around_the_verb(corpus):
    around = re.compile(r"\b(?:ne |n')(?:(?:me|nous|le|la|les) |[ml]')?\w+ pas\b")
    for english, french in corpus.items():
        negations = english.split().count("not")
        assert len(around.findall(french)) == french.split().count("pas") == negations, french


def test_a_negated_verb_has_de_before_an_indefinite_object(corpus):
    for _, french in matches(corpus, r"(?:he|she|i|we) (?:does|do|did) not \w+ an? \w+"):
        assert re.search(r" pas (?:\w+ )?(?:de |d')\w+$", french), french
    for _, french in matches(corpus, r"(?:he|she) \w+ an? \w+"):
        assert re.search(r" une? \w+$", french), french


def test_object_pronouns_stand_before_the_verb_in_the_gender_of_their_noun(corpus):
    pattern = r"(?:i|we|he|she) \w+s? (?:the|my|this) (\w+) and \w+ (it|him|her)"
    for _, french in matches(corpus, pattern):
        first, second = french.split(" et ")
        gender, plural = NOUNS[re.split("[ ']", first)[-1]]
        assert not plural
        assert second.startswith(("le ", "l'") if gender == "m" else ("la ", "l'")), french
    for _, french in matches(corpus, r"he \w+ these \w+ but does not \w+ them"):
        assert re.search(r" mais ne les \w+ pas$", french), french


def test_a_participle_agrees_with_an_object_before_it(corpus):
    endings = {("m", False): "", ("f", False): "e", ("m", True): "s", ("f", True): "es"}
    stems = {"saw": "vu", "found": "trouvé", "loved": "aimé", "ate": "mangé", "bought": "acheté"}
    verbs = "|".join(stems)
    for match, french in matches(
        corpus, rf"(the|these|my|this) \w+ that (?:i|we|he|she) ({verbs})"
    ):
        head, _, clause = french.partition(" qu")
        gender, plural = NOUNS[re.split("[ ']", head)[-1]]
        plural = plural or head.split()[0] in ("les", "mes", "ces")
        assert clause.endswith(f" {stems[match[2]]}{endings[gender, plural]}") or clause.endswith(
            f"'ai {stems[match[2]]}{endings[gender, plural]}"
        ), french
    for _, french in matches(corpus, rf"(?:he|she) (?:{verbs}) (?:the|my) \w+"):
        assert french.split()[2] in stems.values(), french


def test_a_participle_agrees_with_the_subject_after_etre(corpus):
    for match, french in matches(corpus, r"(he|she|the \w+) (?:arrived|fell|stayed)"):
        auxiliary, participle = french.split()[-2:]
        noun = re.split("[ ']", french)[-3]
        gender, plural = NOUNS.get(noun, ("f" if match[1] == "she" else "m", False))
        plural = plural or french.startswith("les ")
        assert auxiliary == ("sont" if plural else "est")
        assert participle.endswith("é" + "e" * (gender == "f") + "s" * plural), french


def test_english_never_hides_a_gender_that_french_must_show(corpus):
    for english in corpus:
        assert not re.match(r"(i|we) (arrived|fell|stayed|did not (arrive|fall|stay))\b", english)
        assert not re.search(r"\b(?:saw|found|loved|heard|followed) (?:me|us)\b", english)
        assert not re.fullmatch(r"\w+ (?:saw|found|loved|heard|followed) them", english)


def test_relative_clauses_say_qui_for_a_subject_and_que_for_an_object(corpus):
    for _, french in matches(corpus, r"the (?:man|king|queen|girl)s? who \w+"):
        assert re.fullmatch(r"(?:l'|les? |la )\w+ qui (?:\w+|(?:a|ont|est|sont) \w+)", french)
    for _, french in matches(corpus, r"the \w+ that (?:i|we|she|he|the \w+) \w+"):
        assert re.search(r" (?:que |qu')", french), french
        assert " qui " not in french


def test_subject_pronouns_take_the_gender_of_their_noun(corpus):
    for match, french in matches(
        corpus, r"(?:the|my) (\w+) \w+ because (it|he|she|they) (?:is|are) \w+"
    ):
        gender, _ = NOUNS[next(w for w in re.split("[ ']", french) if w in NOUNS)]
        pronoun = ("elle" if gender == "f" else "il") + "s" * (match[2] == "they")
        assert f"parce qu'{pronoun} " in french, french


def test_one_english_sentence_has_one_french_translation(corpus):
    translations = dict(corpus)
    for pairs in draw(6_000, *range(2)):
        for english, french in pairs:
            assert translations.setdefault(english, french) == french
    assert len(translations) > 66_000


def test_the_vocabulary_is_small_and_every_word_is_common(corpus):
    english = " ".join(corpus).split()
    french = re.findall(r"\w+'?", " ".join(corpus.values()))
    assert 100 < len(set(english)) < 200
    assert 200 < len(set(french)) < 400
    assert min(Counter(french).values()) > 20


@settings(max_examples=30)
@given(st.integers(0, 60), st.integers())
def test_sampled_sentences_are_distinct_short_and_lower_case(count, seed):
    pairs = sample_pairs(count, seed)
    assert len(pairs) == len({english for english, _ in pairs}) == count
    for english, french in pairs:
        assert 2 <= len(english.split()) <= 14
        assert 1 <= len(french.split()) <= 20
        assert re.fullmatch(r"[a-z]+( [a-z]+)*", english)
        assert re.fullmatch(r"[a-zàâçéèêœ]+([ '][a-zàâçéèêœ]+)*", french)


@settings(max_examples=30)
@given(st.integers(0, 30), st.integers(0, 30), st.integers())
def test_the_same_seed_draws_the_same_pairs_and_a_longer_list_begins_alike(count, more, seed):
    assert sample_pairs(count + more, seed)[:count] == sample_pairs(count, seed)


def test_the_pairs_depend_on_the_seed_alone():
    drawn = [draw(300, 5, hashing=hashing) for hashing in ("1", "2")]
    assert drawn[0] == drawn[1] == [sample_pairs(300, 5)]


def test_another_seed_draws_other_pairs():
    assert sample_pairs(50, seed=1) != sample_pairs(50, seed=2)


@settings(max_examples=30)
@given(st.integers(0, 40), st.integers(1, 20), st.integers())
def test_no_held_out_sentence_is_trained_on(train, held_out, seed):
    training, unseen = split_pairs(train, held_out, seed)
    assert (len(training), len(unseen)) == (train, held_out)
    assert len(dict(training + unseen)) == train + held_out
    assert unseen[0] == ("the big red dog", "le gros chien rouge")


def test_the_big_red_dog_can_be_drawn_and_is_held_out_all_the_same():
    showpiece = ["the big red dog", "le gros chien rouge"]
    drawn, (training, unseen) = evaluated(
        "[sample_pairs(4_000, seed=1), split_pairs(4_000, 10, seed=1)]"
    )
    assert showpiece in drawn
    assert (len(training), len(unseen)) == (4_000, 10)
    assert showpiece not in training
    assert unseen.count(showpiece) == 1


def test_held_out_sentences_are_new_but_their_words_are_not():
    training, unseen = evaluated("split_pairs(2_000, 200, seed=1)")
    words = {word for english, _ in training for word in english.split()}
    assert {word for english, _ in unseen for word in english.split()} <= words


@pytest.mark.parametrize(("train", "held_out"), [(-1, 5), (5, 0)])
def test_impossible_sizes_are_refused(train, held_out):
    with pytest.raises(ValueError, match="at least"):
        split_pairs(train, held_out, seed=0)
