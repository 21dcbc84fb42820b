"""What languages are called in English."""

_NAMES = """
aa Afar, ab Abkhazian, af Afrikaans, am Amharic, ar Arabic, as Assamese, ay Aymara, az
Azerbaijani, ba Bashkir, be Belarusian, bg Bulgarian, bn Bengali, bo Tibetan, br Breton, bs
Bosnian, ca Catalan, ce Chechen, co Corsican, cs Czech, cv Chuvash, cy Welsh, da Danish, de
German, dv Divehi, dz Dzongkha, ee Ewe, el Greek, en English, eo Esperanto, es Spanish, et
Estonian, eu Basque, fa Persian, ff Fulah, fi Finnish, fj Fijian, fo Faroese, fr French, fy
Western Frisian, ga Irish, gd Scottish Gaelic, gl Galician, gn Guarani, gu Gujarati, ha Hausa, he
Hebrew, hi Hindi, hr Croatian, ht Haitian Creole, hu Hungarian, hy Armenian, ia Interlingua, id
Indonesian, ig Igbo, ilo Ilocano, is Icelandic, it Italian, ja Japanese, jv Javanese, ka Georgian,
kk Kazakh, kl Greenlandic, km Khmer, kn Kannada, ko Korean, ku Kurdish, kw Cornish, ky Kyrgyz, la
Latin, lb Luxembourgish, lg Ganda, ln Lingala, lo Lao, lt Lithuanian, lv Latvian, mg Malagasy, mi
Maori, mk Macedonian, ml Malayalam, mn Mongolian, mr Marathi, ms Malay, mt Maltese, my Burmese, nb
Norwegian Bokmål, ne Nepali, nl Dutch, nn Norwegian Nynorsk, no Norwegian, ny Nyanja, oc Occitan,
om Oromo, or Odia, pa Punjabi, pl Polish, ps Pashto, pt Portuguese, qu Quechua, rm Romansh, rn
Rundi, ro Romanian, ru Russian, rw Kinyarwanda, sa Sanskrit, sc Sardinian, sd Sindhi, se Northern
Sami, si Sinhala, sk Slovak, sl Slovenian, sm Samoan, sn Shona, so Somali, sq Albanian, sr
Serbian, ss Swati, st Southern Sotho, su Sundanese, sv Swedish, sw Swahili, ta Tamil, te Telugu,
tg Tajik, th Thai, ti Tigrinya, tk Turkmen, tl Tagalog, tn Tswana, to Tongan, tr Turkish, ts
Tsonga, tt Tatar, tw Twi, ty Tahitian, ug Uyghur, uk Ukrainian, ur Urdu, uz Uzbek, ve Venda, vi
Vietnamese, wo Wolof, xh Xhosa, yi Yiddish, yo Yoruba, yue Cantonese, zh Chinese, zt Chinese
(traditional), zu Zulu
"""
_BY_CODE = dict(entry.split(" ", 1) for entry in " ".join(_NAMES.split()).split(", "))


def language_name(code: str) -> str:
    """
    Name a language.

    Parameters
    ----------
    code : str
        Of ISO 639, perhaps with a script or a country: ``en``, ``pt-BR``, ``zh_Hans``.

    Returns
    -------
    str
        Its English name, with what follows the code in brackets; the code if it has no name here.

    Notes
    -----
    For people; programs use the code.

    Examples
    --------
    >>> language_name("pt-BR")
    'Portuguese (BR)'
    """
    plain, _, rest = code.replace("_", "-").partition("-")
    name = _BY_CODE.get(plain.lower())
    if name is None:
        return code
    return f"{name} ({rest})" if rest else name
