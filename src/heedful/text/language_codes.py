"""
Language codes as people and programs write them, and the best match among known codes.

::

    zh-Hans  zh_CN  zho  cmn_Hans     zh
    zh-Hant  zh_TW  zt                zh-Hant
    pt_BR.UTF-8  por_BR  pb           pt-BR
    sr_RS@latin                       sr-Latn

`look_up` follows RFC 4647, section 3.4: the last part of a code is removed repeatedly until the
code equals a known one. Before that, codes are normalized with the tables of BCP 47's registry and
Unicode's CLDR. A part that the language implies is left out, such as the country in `zh_CN`. If no
code is equal, any code of the language in the same script matches: `pt` and `pt-PT` match `pt-BR`
if no code is closer. A code in another script never matches.
"""

import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

# Every two-letter code of ISO 639, including withdrawn ones, and LibreTranslate's pb and zt.
_TWO_LETTERS = (
    "aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv "
    "cy da de dv dz ee el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr "
    "ht hu hy hz ia id ie ig ii ik in io is it iu iw ja ji jv jw ka kg ki kj kk kl km kn ko kr "
    "ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mo mr ms mt my na nb nd ne ng "
    "nl nn no nr nv ny oc oj om or os pa pb pi pl ps pt qu rm rn ro ru rw sa sc sd se sg sh si "
    "sk sl sm sn so sq sr ss st su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz "
    "ve vi vo wa wo xh yi yo za zh zt zu"
)
BARE_CODE = re.compile(r"[a-z]{2,3}_[A-Z][A-Za-z]{1,3}")
"""Matches language codes in vocabularies, such as deu_Latn and en_XX; ordinary text has none."""
TWO_LETTERS = frozenset(_TWO_LETTERS.split())
_ENDINGS = "bio bpe csv dat ids low lst out raw ref seg sp spm src tgt tok trg tsv txt"
ENDINGS = frozenset(_ENDINGS.split())
"""Common suffixes of text files that say nothing about the language."""
# Three-letter codes and their two-letter equivalents: both kinds of ISO 639-2, and the main
# language of a macrolanguage, such as cmn for Chinese.
_THREE_LETTERS = (
    "aar=aa abk=ab afr=af aka=ak alb=sq als=sq amh=am ara=ar arb=ar arg=an arm=hy asm=as ava=av "
    "ave=ae aym=ay ayr=ay aze=az azj=az bak=ba bam=bm baq=eu bel=be ben=bn bis=bi bod=bo bos=bs "
    "bre=br bul=bg bur=my cat=ca ces=cs cha=ch che=ce chi=zh chu=cu chv=cv cmn=zh cor=kw cos=co "
    "cre=cr cym=cy cze=cs dan=da deu=de div=dv dut=nl dzo=dz ekk=et ell=el eng=en epo=eo est=et "
    "eus=eu ewe=ee fao=fo fas=fa fij=fj fil=tl fin=fi fra=fr fre=fr fry=fy ful=ff fuv=ff gaz=om "
    "geo=ka ger=de gla=gd gle=ga glg=gl glv=gv gre=el grn=gn gug=gn guj=gu hat=ht hau=ha heb=he "
    "her=hz hin=hi hmo=ho hrv=hr hun=hu hye=hy ibo=ig ice=is ido=io iii=ii ike=iu iku=iu ile=ie "
    "ina=ia ind=id ipk=ik isl=is ita=it jav=jv jpn=ja kal=kl kan=kn kas=ks kat=ka kau=kr kaz=kk "
    "khk=mn khm=km kik=ki kin=rw kir=ky kmr=ku knc=kr kom=kv kon=kg kor=ko kua=kj kur=ku lao=lo "
    "lat=la lav=lv lim=li lin=ln lit=lt ltz=lb lub=lu lug=lg lvs=lv mac=mk mah=mh mal=ml mao=mi "
    "mar=mr may=ms mkd=mk mlg=mg mlt=mt mol=ro mon=mn mri=mi msa=ms mya=my nau=na nav=nv nbl=nr "
    "nde=nd ndo=ng nep=ne nld=nl nno=nn nob=nb nor=no npi=ne nya=ny oci=oc oji=oj ori=or orm=om "
    "ory=or oss=os pan=pa pbt=ps per=fa pes=fa pli=pi plt=mg pol=pl por=pt pus=ps que=qu quy=qu "
    "quz=qu roh=rm ron=ro rum=ro run=rn rus=ru sag=sg san=sa sin=si slk=sk slo=sk slv=sl sme=se "
    "smo=sm sna=sn snd=sd som=so sot=st spa=es sqi=sq srd=sc srp=sr ssw=ss sun=su swa=sw swe=sv "
    "swh=sw tah=ty tam=ta tat=tt tel=te tgk=tg tgl=tl tha=th tib=bo tir=ti ton=to tsn=tn tso=ts "
    "tuk=tk tur=tr twi=tw uig=ug ukr=uk urd=ur uzb=uz uzn=uz ven=ve vie=vi vol=vo wel=cy wln=wa "
    "wol=wo xho=xh ydd=yi yid=yi yor=yo zha=za zho=zh zsm=ms zul=zu"
)
# Codes of three letters, withdrawn codes, Norwegian (which means Bokmål), LibreTranslate's codes.
_ALIASES = {
    **dict(entry.split("=") for entry in _THREE_LETTERS.split()),
    **{"in": "id", "iw": "he", "ji": "yi", "jw": "jv", "mo": "ro", "no": "nb", "nor": "nb"},
    **{"pb": "pt-br", "sh": "sr-latn", "zt": "zh-hant"},
}
# The two-letter codes that imply each script; all other two-letter codes imply Latin.
_SCRIPTS = {
    "arab": "ar fa ks ps sd ug ur",
    "armn": "hy",
    "beng": "as bn",
    "cans": "cr iu oj",
    "cyrl": "ab av ba be bg ce cu cv kk kv ky mk mn os ru sr tg tt uk",
    "deva": "hi mr ne sa",
    "ethi": "am ti",
    "geor": "ka",
    "grek": "el",
    "gujr": "gu",
    "guru": "pa",
    "hans": "zh",
    "hebr": "he yi",
    "jpan": "ja",
    "khmr": "km",
    "knda": "kn",
    "kore": "ko",
    "laoo": "lo",
    "mlym": "ml",
    "mymr": "my",
    "orya": "or",
    "sinh": "si",
    "taml": "ta",
    "telu": "te",
    "thaa": "dv",
    "thai": "th",
    "tibt": "bo dz",
}
_SCRIPT_OF = {code: script for script, codes in _SCRIPTS.items() for code in codes.split()}
# The script that a country implies, and whether the country is then left out.
_SCRIPT_OF_REGION = {
    "zh-cn": ("hans", True),
    "zh-sg": ("hans", False),
    "zh-my": ("hans", False),
    "zh-tw": ("hant", True),
    "zh-hk": ("hant", False),
    "zh-mo": ("hant", False),
    "sr-me": ("latn", False),
    "pa-pk": ("arab", False),
    "uz-af": ("arab", False),
    "az-ir": ("arab", False),
    "kk-cn": ("arab", False),
    "mn-cn": ("mong", False),
}
# Modifiers of locales, such as sr_RS@latin, and other names of a script.
_SAME_SCRIPT = {"latin": "latn", "cyrillic": "cyrl", "devanagari": "deva", "hang": "kore"}
_NO_SCRIPT = ("hani", "zyyy", "zzzz")  # both Chinese scripts, several scripts, an unknown script
_SCRIPT = re.compile("[a-z]{4}")
_REGION = re.compile("[a-z]{2}|[0-9]{3}")
_LANGUAGE = re.compile("[a-z]{2,3}")
_VARIANT = re.compile("[a-z0-9]{5,8}|[0-9][a-z0-9]{3}")


class LanguageTag(NamedTuple):
    """The parts of a code in lower case; a script or country that is implied is empty."""

    language: str
    script: str = ""
    region: str = ""
    variants: tuple[str, ...] = ()

    @property
    def written_in(self) -> str:
        """The script, even if the language implies it; empty if it is unknown."""
        implied = "latn" if self.language in TWO_LETTERS else ""
        return self.script or _SCRIPT_OF.get(self.language, implied)


@cache
def parse_code(code: str) -> LanguageTag | None:
    """
    Parse a language code; None if the text does not have the form of one.

    >>> parse_code("zho_Hant_HK")
    LanguageTag(language='zh', script='hant', region='hk', variants=())
    >>> parse_code("english")
    """
    plain, _, modifier = code.lower().partition("@")
    first, *rest = plain.partition(".")[0].replace("_", "-").split("-")
    # A language of a macrolanguage may follow the macrolanguage's code: zh-yue is yue.
    if rest and re.fullmatch("[a-z]{3}", rest[0]):
        first = rest.pop(0)
    if not _LANGUAGE.fullmatch(first):
        return None
    language, *implied = _ALIASES.get(first, first).split("-")
    parts = [*rest, modifier] if modifier else rest
    script = region = ""
    variants: list[str] = []
    for place, part in enumerate([*parts, *implied]):
        name = _SAME_SCRIPT.get(part, part)
        if len(name) == 1 and place < len(parts):
            break  # the parts that follow are an extension
        if _SCRIPT.fullmatch(name):
            script = script or (name if name not in _NO_SCRIPT else "")
        elif _REGION.fullmatch(name):
            region = region or name
        elif _VARIANT.fullmatch(name):
            variants.append(name)
        else:
            return None
    by_region, is_all = _SCRIPT_OF_REGION.get(f"{language}-{region}", ("", False))
    if by_region and script in ("", by_region):
        script, region = by_region, "" if is_all else region
    if script == LanguageTag(language).written_in:
        script = ""
    return LanguageTag(language, script, region, tuple(variants))


def language_of_code(code: str) -> str:
    """
    Return the language of a code, as a two-letter code if there is one.

    >>> language_of_code("deu_AT"), language_of_code("gsw"), language_of_code("Klingon")
    ('de', 'gsw', 'klingon')
    """
    tag = parse_code(code)
    return tag.language if tag else code.replace("_", "-").split("-")[0].lower()


def look_up(code: str, known: Sequence[str]) -> str | None:
    """
    Find the known code that best matches a code; None if none matches.

    >>> look_up("zh-CN", ["en", "zh"]), look_up("zh-TW", ["en", "zh"])
    ('zh', None)
    >>> look_up("ceb", ["ceb_Latn"]), look_up("taq", ["taq_Latn", "taq_Tfng"])
    ('ceb_Latn', None)
    """
    folded = {name.lower().replace("_", "-"): name for name in reversed(known)}
    if exact := folded.get(code.lower().replace("_", "-")):
        return exact
    tag = parse_code(code)
    if tag is None:
        return None
    same = [(name, near) for name in known if (near := parse_code(name)) and near[0] == tag[0]]
    alike = [(name, near) for name, near in same if near.written_in == tag.written_in]
    if not tag.written_in and len({near.written_in for _, near in same}) == 1:
        alike = same  # the code's script is unknown, and all known codes have the same script
    # variants are left out first, then the country
    ends = [(tag.region, tag.variants[:end]) for end in range(len(tag.variants), -1, -1)]
    for end in [*ends, ("", ())]:
        for name, near in alike:
            if (near.region, near.variants) == end:
                return name
    return alike[0][0] if alike else None


def in_another_script(code: str, known: Sequence[str]) -> str | None:
    """
    Find a known code of the same language in another script; None if there is none.

    >>> in_another_script("zh-TW", ["en", "zh"])
    'zh'
    """
    tag = parse_code(code)
    for name in known:
        near = parse_code(name)
        if tag and near and near[0] == tag[0] and near.written_in != tag.written_in:
            return name
    return None
