from heedful.text.reading.note import HeldNote, ReadingCounts, ReadingNote, joined_notes


def test_only_what_was_done_is_written():
    assert ReadingNote().to_dict() == {}
    held = (HeldNote("👍", "👍", "edge"), HeldNote("dog", "chien", "end"))
    assert ReadingNote(held=held, case="upper", numbers=("7",), loops=1).to_dict() == {
        "held": [
            {"text": "👍", "where": "edge"},
            {"text": "dog", "put": "chien", "where": "end"},
        ],
        "case": "upper",
        "numbers": ["7"],
        "loops": 1,
    }


def test_the_notes_of_sentences_are_joined():
    notes = [ReadingNote(case="upper", numbers=("7",)), ReadingNote(copied=True, loops=2)]
    assert joined_notes(notes) == ReadingNote(
        case="upper", numbers=("7",), loops=2, sentences=2, copied=False
    )


def test_what_a_user_should_look_at_is_counted():
    counts = ReadingCounts()
    assert list(counts.warnings()) == []
    counts.add(None)
    counts.add(ReadingNote(numbers=("7", "8"), held=(HeldNote("x", "x", "end"),)))
    numbers, ends = counts.warnings()
    assert (
        "lack numbers of their sources (2 numbers in 1 line)" in numbers
        and "at the end of translations (1 piece in 1 line)" in ends
    )
