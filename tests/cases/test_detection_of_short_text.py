"""Two words without a language are confidently taken for Bengali, or for one that no model has."""

import pytest

from tests.support.serving import serving

SHORT = ["hello handsome", "hello", "OK", "the", "Ciao!", "e", "merci", "bonjour monde", "今日は"]


@pytest.fixture(scope="module")
def server(zygote, toy_run):
    pairs = ("en:fr", "en:bn", "bn:ru", "ru:ja", "vi:en")
    with serving(zygote, *(f"{pair}={toy_run}" for pair in pairs)) as server:
        yield server


def detected(server, text):
    return server.client.post("/detect", json={"q": text}).json()


@pytest.mark.parametrize("text", [*SHORT, "123 456", "", "\0x", "!?"])
def test_confidences_of_short_text_are_modest_and_of_one_kind(server, text):
    guesses = detected(server, text)
    assert len(guesses) == 6
    for guess in guesses:
        assert isinstance(guess["confidence"], float)
        assert 0 <= guess["confidence"] <= 80


@pytest.mark.parametrize(
    ("text", "languages"),
    [("hello handsome", "en fr vi"), ("今日は", "ja"), ("দুই কথা", "bn"), ("да, да", "ru")],
)
def test_a_language_of_another_script_is_never_guessed(server, text, languages):
    likely = {guess["language"] for guess in detected(server, text) if guess["confidence"]}
    assert likely
    assert likely <= set(languages.split())


def automatic(server, text, target):
    body = {"q": text, "source": "auto", "target": target}
    return server.client.post("/translate", json=body).json()


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("le gros chien rouge dort dans la maison", "fr"),
        ("今日は", "fr"),
        ("привет", "fr"),
        ("Ich weiß nicht, was das heute noch werden soll.", "fr"),
        ("123 456", "fr"),
        ("", "fr"),
    ],
)
def test_text_in_the_wanted_language_or_in_none_comes_back(server, text, target):
    assert automatic(server, text, target)["translatedText"] == text


def test_text_in_a_language_of_the_server_is_translated(server):
    result = automatic(server, "the big red dog", "fr")
    assert result["translatedText"] == "le gros chien rouge"
    assert result["detectedLanguage"]["language"] == "en"
