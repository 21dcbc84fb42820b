"""
The English and French words of the toy corpus.

One line of a table is one entry. Forms that depend on the next word are written ``form|form before
a vowel``: ``beau|bel``, ``le|l'``. Each noun has one kind. Adjectives and verbs list the kinds that
they go with, so that no king is eaten and no garden is carried.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TypeVar


@dataclass(frozen=True)
class Noun:  # numpydoc ignore=PR02
    """A noun in the singular and the plural."""

    singular: str
    plural: str
    """The English forms."""
    un: str
    des: str
    """The French forms."""
    gender: str
    """French gender, “m” or “f”."""
    kind: str
    """Its kind: person, child, animal, food, thing or place."""


@dataclass(frozen=True)
class Adjective:  # numpydoc ignore=PR02
    """An adjective with its position in both languages."""

    english: str
    """The English form."""
    group: str
    """Opinion, measure or color, which determines its position among English adjectives."""
    side: str
    """Its position relative to the French noun, “before” or “after”."""
    un: str
    une: str
    des_m: str
    des_f: str
    """The French forms: masculine, feminine, and the two plurals."""
    kinds: str
    """Kinds of nouns that it suits."""


@dataclass(frozen=True)
class Verb:  # numpydoc ignore=PR02
    """A verb in the present and the past."""

    base: str
    third: str
    past: str
    """The English forms: I see, she sees, we saw."""
    je: str
    il: str
    nous: str
    ils: str
    """The French present."""
    participle: str
    """The French participle, masculine singular; the other forms add e and s."""
    auxiliary: str
    """Auxiliary of the French past, “avoir” or “être”."""
    kinds: str
    """Kinds of nouns that it takes as its object."""


@dataclass(frozen=True)
class Pronoun:  # numpydoc ignore=PR02
    """A pronoun as subject and as object."""

    subject: str
    object: str
    """The English forms."""
    sujet: str
    objet: str
    """The French forms."""
    gender: str
    """Gender in French, “m”, “f”, or “?” if English does not show it."""
    plural: bool
    person: int = 3
    """Grammatical person, 1 or 3."""


_KINDS = {
    "all": "person,child,animal,food,thing,place",
    "living": "person,child,animal",
    "colored": "animal,food,thing,place",
    "none": "",
}


def suits(entry: Adjective | Verb, noun: Noun) -> bool:
    """Whether an adjective or verb makes sense with a noun."""
    return noun.kind in _kinds(entry.kinds)


@cache
def _kinds(names: str) -> frozenset[str]:
    """Parse the last column of a table."""
    return frozenset(_KINDS.get(names, names).split(","))


_Entry = TypeVar("_Entry")


def _read(entry: Callable[..., _Entry], table: str) -> tuple[_Entry, ...]:
    """Parse each line of a table."""
    return tuple(entry(*line.split()) for line in table.strip().splitlines())


NOUNS = _read(
    Noun,
    """
    man      men      homme    hommes    m  person
    woman    women    femme    femmes    f  person
    boy      boys     garçon   garçons   m  child
    girl     girls    fille    filles    f  child
    king     kings    roi      rois      m  person
    queen    queens   reine    reines    f  person
    dog      dogs     chien    chiens    m  animal
    cat      cats     chat     chats     m  animal
    horse    horses   cheval   chevaux   m  animal
    bird     birds    oiseau   oiseaux   m  animal
    owl      owls     hibou    hiboux    m  animal
    cow      cows     vache    vaches    f  animal
    mouse    mice     souris   souris    f  animal
    bee      bees     abeille  abeilles  f  animal
    apple    apples   pomme    pommes    f  food
    orange   oranges  orange   oranges   f  food
    egg      eggs     œuf      œufs      m  food
    cake     cakes    gâteau   gâteaux   m  food
    book     books    livre    livres    m  thing
    hat      hats     chapeau  chapeaux  m  thing
    key      keys     clé      clés      f  thing
    flower   flowers  fleur    fleurs    f  thing
    house    houses   maison   maisons   f  place
    garden   gardens  jardin   jardins   m  place
    school   schools  école    écoles    f  place
    tree     trees    arbre    arbres    m  place
    """,
)
# English adjectives follow the order of their groups; a noun takes at most one from each group.
ADJECTIVES = _read(
    Adjective,
    """
    beautiful opinion before beau|bel    belle    beaux    belles    all
    happy     opinion after  heureux     heureuse heureux  heureuses living
    sad       opinion after  triste      triste   tristes  tristes   living
    tired     opinion after  fatigué     fatiguée fatigués fatiguées living
    big       measure before gros        grosse   gros     grosses   animal,food,thing
    small     measure before petit       petite   petits   petites   all
    large     measure before grand       grande   grands   grandes   place
    young     measure before jeune       jeune    jeunes   jeunes    living
    old       measure before vieux|vieil vieille  vieux    vieilles  person,animal,thing,place
    red       color  after  rouge       rouge    rouges   rouges    colored
    green     color  after  vert        verte    verts    vertes    colored
    blue      color  after  bleu        bleue    bleus    bleues    colored
    white     color  after  blanc       blanche  blancs   blanches  colored
    black     color  after  noir        noire    noirs    noires    colored
    """,
)
GROUPS = ("opinion", "measure", "color")

VERBS = _read(
    Verb,
    """
    see     sees     saw       vois     voit    voyons     voient     vu       avoir  all
    find    finds    found     trouve   trouve  trouvons   trouvent   trouvé   avoir  all
    love    loves    loved     aime     aime    aimons     aiment     aimé     avoir  all
    hear    hears    heard     entends  entend  entendons  entendent  entendu  avoir  living
    follow  follows  followed  suis     suit    suivons    suivent    suivi    avoir  living
    eat     eats     ate       mange    mange   mangeons   mangent    mangé    avoir  food
    buy     buys     bought    achète   achète  achetons   achètent   acheté   avoir  food,thing
    carry   carries  carried   porte    porte   portons    portent    porté    avoir  food,thing
    sleep   sleeps   slept     dors     dort    dormons    dorment    dormi    avoir  none
    sing    sings    sang      chante   chante  chantons   chantent   chanté   avoir  none
    dance   dances   danced    danse    danse   dansons    dansent    dansé    avoir  none
    run     runs     ran       cours    court   courons    courent    couru    avoir  none
    laugh   laughs   laughed   ris      rit     rions      rient      ri       avoir  none
    arrive  arrives  arrived   arrive   arrive  arrivons   arrivent   arrivé   être   none
    fall    falls    fell      tombe    tombe   tombons    tombent    tombé    être   none
    stay    stays    stayed    reste    reste   restons    restent    resté    être   none
    """,
)
HUMANS = tuple(noun for noun in NOUNS if noun.kind in ("person", "child"))
LIVING = tuple(noun for noun in NOUNS if noun.kind in _KINDS["living"].split(","))
LANDMARKS = tuple(noun for noun in NOUNS if noun.kind == "place")
MOODS = tuple(a for a in ADJECTIVES if a.group == "opinion" and a.side == "after")
TRANSITIVE = tuple(verb for verb in VERBS if verb.kinds != "none")
INTRANSITIVE = tuple(verb for verb in VERBS if verb.kinds == "none")

# English singular and plural; French masculine singular, feminine singular and plural.
DETERMINERS = {
    "the": ("the", "the", "le|l'", "la|l'", "les"),
    "a": ("a|an", "", "un", "une", "des"),
    "my": ("my", "my", "mon", "ma|mon", "mes"),
    "this": ("this", "these", "ce|cet", "cette", "ces"),
}
PREPOSITIONS = {
    "in": "dans",
    "behind": "derrière",
    "in front of": "devant",
    "near": "près de|d'",
}
LINKS = {"and": "et", "but": "mais", "because": "parce que|qu'"}

PRONOUNS = {
    "i": Pronoun("i", "me", "je|j'", "me|m'", "?", plural=False, person=1),
    "we": Pronoun("we", "us", "nous", "nous", "?", plural=True, person=1),
    "he": Pronoun("he", "him", "il", "le|l'", "m", plural=False),
    "she": Pronoun("she", "her", "elle", "la|l'", "f", plural=False),
    "it-m": Pronoun("it", "it", "il", "le|l'", "m", plural=False),
    "it-f": Pronoun("it", "it", "elle", "la|l'", "f", plural=False),
    "they-m": Pronoun("they", "them", "ils", "les", "m", plural=True),
    "they-f": Pronoun("they", "them", "elles", "les", "f", plural=True),
    "they-?": Pronoun("they", "them", "ils", "les", "?", plural=True),
}

# Forms for I, a third person, we, they.
DO = ("do", "does", "do", "do")
BE = ("am", "is", "are", "are")
WAS = ("was", "was", "were", "were")
AUXILIARIES = {
    "avoir": ("ai", "a", "avons", "ont"),
    "être": ("suis", "est", "sommes", "sont"),
}
ETAIT = ("étais", "était", "étions", "étaient")
