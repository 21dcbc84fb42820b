"""Control symbols and tags typed as text end the sentence, vanish, or steer the model."""

import pytest

ODD = ["</s>", "<s>", "<unk>", "<pad>", "<0x0A>", "▁", "▅", "@@", "<|endoftext|>", "&lt;/s&gt;"]


@pytest.mark.parametrize("text", ODD)
def test_typed_symbols_stay_text(translate, text):
    plain, behind = translate(["my boy sees a dog", f"my boy sees a dog {text}"])
    assert behind == f"{plain} {text}"


@pytest.mark.parametrize("tag", [">>de<<", ">>pt_BR<<"])
def test_a_tag_that_the_model_does_not_know_is_text(translate, tag):
    plain, before = translate(["the big red dog", f"{tag} the big red dog"])
    assert before == f"{tag} {plain}"
