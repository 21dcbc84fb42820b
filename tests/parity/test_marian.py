import pytest
import torch
from tests.support.marian import TAGS, make, text

from heedful.exchange.convert import HeedfulReference, import_model
from heedful.exchange.huggingface.engine import TransformersReference
from heedful.exchange.marian.names import CLASSES
from heedful.exchange.parity import DoublePrecisionReference, compare
from heedful.runs.run import Run
from heedful.translation.translator import Translator

PAIRS = text()
SENTENCES = [pair[0] for pair in text(3)]
SHORT = {"max_length": 14}
# Each with something odd in the model and something odd in the search.
ODD = {
    "usual": {},
    "separate vocabularies, stops when the beam is full": {
        "separate": True,
        "generation": {"early_stopping": True},
    },
    "untied, stops never": {
        "tie_word_embeddings": False,
        "generation": {"early_stopping": "never", "length_penalty": 0.6},
    },
    "separate and untied, no penalty": {
        "separate": True,
        "tie_word_embeddings": False,
        "generation": {"length_penalty": 0.0},
    },
    "relu, greedy": {"activation_function": "relu", "generation": {"num_beams": 1}},
    "gelu, not renormalized": {
        "activation_function": "gelu",
        "generation": {"renormalize_logits": False, "num_beams": 6},
    },
    "gelu by tanh, no forced end": {
        "activation_function": "gelu_new",
        "generation": {"forced_eos_token_id": None},
        "forced_eos_token_id": None,
    },
    "not scaled, greedy without forced end": {
        "scale_embedding": False,
        "generation": {"forced_eos_token_id": None, "num_beams": 1},
        "forced_eos_token_id": None,
    },
    "uneven, forbidden words": {
        "encoder_layers": 3,
        "decoder_layers": 1,
        "encoder_attention_heads": 2,
        "decoder_attention_heads": 8,
        "encoder_ffn_dim": 20,
        "decoder_ffn_dim": 36,
        "generation": {"bad_words_ids": [[1], [9], [200]], "length_penalty": 2.0},
    },
    "rows without pieces, many tokens": {"rows": 5, "generation": {"min_length": 9}},
    "tags, few tokens": {
        "tags": TAGS,
        "generation": {"max_length": None, "max_new_tokens": 5},
    },
}


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param(odd, marks=[] if odd.startswith(("usual", "tags")) else pytest.mark.soak)
        for odd in ODD
    ],
)
def test_a_model_is_the_same_here_as_in_transformers(odd, tmp_path):
    settings = ODD[odd]
    folder, out = tmp_path / "theirs", tmp_path / "run"
    make(folder, **{"generation": SHORT} | settings)
    tags = settings.get("tags", ())
    sentences = [f"{tags[0]} {line}" if tags else line for line in SENTENCES]
    parity = import_model("marian", folder, out, sentences=sentences)[0].parity
    assert parity.difference < 1e-4
    assert (parity.same_tokens, parity.same_outputs) == (len(SENTENCES), len(SENTENCES)), parity
    _same_logits_and_text(folder, out, sentences)
    _same_in_double(folder, out, sentences)
    if tags:
        _same_ids(folder, out, [f"{tags[1]}the dog", f"{tags[0]}   the cats ", "the >>fr<< dog"])


@pytest.mark.parametrize("layout", ["pickle", "shards"])
def test_weights_of_each_layout_are_the_same_here_as_in_transformers(layout, tmp_path):
    model = make(tmp_path / "theirs", generation=SHORT)
    (tmp_path / "theirs" / "model.safetensors").unlink()
    if layout == "pickle":
        torch.save(model.state_dict(), tmp_path / "theirs" / "pytorch_model.bin")
    else:
        model.save_pretrained(tmp_path / "theirs", max_shard_size="16kB")
        assert len([*(tmp_path / "theirs").glob("model-*.safetensors")]) > 1
    out = tmp_path / "run"
    report, _ = import_model("huggingface", tmp_path / "theirs", out, sentences=SENTENCES)
    assert report.parity.difference < 1e-4
    assert report.parity.same_outputs == len(SENTENCES)


def _same_in_double(folder, out, sentences):
    """Both sides can compute in double precision, where rounding hardly matters."""
    run = Run.open(out)
    ours, theirs = HeedfulReference(run), TransformersReference(folder, run.tokenizer, *CLASSES)
    assert isinstance(theirs, DoublePrecisionReference)
    precise = compare(ours.in_double(), theirs.in_double(), sentences, 1e-6)
    precise.check()
    assert precise.difference > 0


def _same_ids(folder, out, sentences):
    from transformers import MarianTokenizer

    tokenizer, run = MarianTokenizer.from_pretrained(folder), Run.open(out)
    id_mapping = run.tokenizer.models[0].id_mapping
    wanted = [id_mapping.to_ours(row[:-1]) for row in tokenizer(sentences).input_ids]
    assert run.tokenizer.encode_source(sentences) == wanted


@pytest.mark.soak
def test_a_model_that_has_learned_something_translates_alike(tmp_path):
    from transformers import MarianTokenizer

    model = make(tmp_path / "theirs", spread=0.0, d_model=32, encoder_ffn_dim=64)
    tokenizer = MarianTokenizer.from_pretrained(tmp_path / "theirs")
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-3)
    losses = []
    for step in range(90):
        some = PAIRS[step * 8 % 500 :][:16]
        rows = tokenizer([pair[0] for pair in some], return_tensors="pt", padding=True)
        labels = tokenizer(
            text_target=[pair[1] for pair in some], return_tensors="pt", padding=True
        ).input_ids
        labels[labels == tokenizer.pad_token_id] = -100
        loss = model.train()(**rows, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0]
    model.save_pretrained(tmp_path / "theirs")
    sentences = [pair[0] for pair in PAIRS[500:506]]
    report, notes = import_model(
        "marian", tmp_path / "theirs", tmp_path / "run", sentences=sentences
    )
    parity = report.parity
    assert (parity.same_tokens, parity.same_outputs, notes) == (6, 6, ())
    assert parity.difference < 1e-4
    _same_lengths(model.eval(), tmp_path, sentences)


def _same_lengths(model, folder, sentences):
    """With a least length that most translations would not have by themselves."""
    from transformers import MarianTokenizer

    tokenizer = MarianTokenizer.from_pretrained(folder / "theirs")
    translator = Translator.load(folder / "run", device="cpu", precision="fp32")
    id_mapping = translator.tokenizer.models[1].id_mapping
    found = translator.translate(sentences, min_length=11)
    free = translator.translate(sentences)
    assert min(len(one.tokens) for one in free) < 11 <= min(len(one.tokens) for one in found)
    for sentence, ours in zip(sentences, found, strict=True):
        rows = tokenizer([sentence], return_tensors="pt")
        (written,) = model.generate(**rows, min_new_tokens=11).tolist()
        body = [n for n in written[1:] if n != tokenizer.eos_token_id]
        assert translator.tokenizer.pieces_target(id_mapping.to_ours(body)) == list(ours.tokens)


def _same_logits_and_text(folder, out, sentences):
    """Straight from both libraries, without the parity report in between."""
    from transformers import MarianMTModel, MarianTokenizer

    theirs = MarianMTModel.from_pretrained(folder).eval()
    tokenizer = MarianTokenizer.from_pretrained(folder)
    run = Run.open(out)
    ours = run.load_model("default", torch.device("cpu"), "fp32")
    id_mapping = run.tokenizer.models[1].id_mapping
    source = tokenizer(sentences[0], return_tensors="pt").input_ids
    assert run.tokenizer.models[0].id_mapping.to_ours(source[0].tolist()) == [
        *run.tokenizer.encode_source(sentences[:1])[0],
        3,
    ]
    target = [5, 7, 30]
    start = theirs.config.decoder_start_token_id
    with torch.inference_mode():
        batch = run.collator(ours).batch(
            run.tokenizer.encode_source(sentences[:1]), [id_mapping.to_ours(target)]
        )
        mine = ours.project(ours.states(batch.source, batch.target_in))[0]
        wanted = theirs(
            input_ids=source, decoder_input_ids=torch.tensor([[start, *target]])
        ).logits[0]
    pairs = [(n, their) for n, their in enumerate(id_mapping.origins) if their is not None]
    here, there = torch.tensor(pairs).T
    assert (mine[:, here] - wanted[:, there]).abs().max() < 1e-4
    if not theirs.generation_config.bad_words_ids:
        return
    written = theirs.generate(source)
    (found,) = Translator.load(out, device="cpu", precision="fp32").translate(sentences[:1])
    (shown,) = tokenizer.batch_decode(written, skip_special_tokens=True)
    # with two vocabularies MarianTokenizer looks the symbols to skip up in the wrong one
    assert found.text.replace("⁇", "").split() == shown.replace("<pad>", "").split()
