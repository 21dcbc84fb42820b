from heedful.exchange.card.edits import is_edited, signed


def test_only_a_card_as_it_was_signed_is_not_edited():
    card = signed(b"# mine\n")
    assert card.startswith(b"# mine\n\n<!-- ")
    assert not is_edited(card)
    assert not is_edited(signed(card))
    for other in (b"", b"# mine\n", card.replace(b"mine", b"yours"), card + b"more\n"):
        assert is_edited(other)
