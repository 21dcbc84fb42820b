"""A small vocabulary in lower case for tests of reading, and a translator by dictionary."""

from heedful.text.reading.vocabulary import LACKING, SourceVocabulary

LETTERS = set("abcdefghijklmnopqrstuvwxyzéèàç'.,?")
FRENCH = {
    "the": "le",
    "big": "gros",
    "red": "rouge",
    "dog": "chien",
    "sleeps": "dort",
    "my": "mon",
    "boy": "garçon",
    "stays": "reste",
}
MARKS = ".,?'"


def small_vocabulary(words=FRENCH, letters=LETTERS, language="en"):
    """A vocabulary in which a known word is one subword and a letter is one of another."""

    def cost(texts):
        return [
            sum(
                1
                if word.strip(MARKS) in words
                else sum(1 if sign in letters else LACKING for sign in word)
                for word in text.split()
            )
            for text in texts
        ]

    return SourceVocabulary(cost, language=language)


def translate(text):
    """Translate word by word; “red” moves behind the next word. Returns text, words and links."""
    source = text.split(" ")
    order = list(range(len(source)))
    for place, word in enumerate(source[:-1]):
        if word == "red":
            order[place : place + 2] = order[place + 1], order[place]
    words = []
    for place in order:
        core = source[place].strip(MARKS)
        words.append(source[place].replace(core, FRENCH.get(core, core)) if core else source[place])
    return " ".join(words), words, [(i, j) for j, i in enumerate(order)]
