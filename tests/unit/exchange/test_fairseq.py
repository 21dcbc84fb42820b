"""Imported fairseq models compute the same as its forward pass written in NumPy."""

import json

import numpy as np
import pytest
import torch

from heedful.errors import ExchangeError, HeedfulError, TokenizerError
from heedful.exchange.convert import import_model
from heedful.exchange.fairseq.files import read_dictionary
from heedful.exchange.fairseq.read import read
from heedful.exchange.formats import ReadOptions
from heedful.runs.run import Run
from tests.oracles.originals import compare_import
from tests.support.old_fairseq import Fairseq, options, write

BOS, PAD, EOS, UNK = range(4)
SENTENCES = ["w1 w12 w5 w1", "w7 nothing"]
VARIANTS = {
    "post-norm": {},
    "pre-norm": {"encoder_normalize_before": True, "decoder_normalize_before": True},
    "mixed": {"encoder_normalize_before": True, "encoder_layers": 1, "decoder_layers": 3},
    "learned positions": {"encoder_learned_pos": True, "decoder_learned_pos": True},
    "tied output": {"share_decoder_input_output_embed": True},
    "one table": {"share_all_embeddings": True},
    "not scaled": {"no_scale_embedding": True, "activation_fn": "gelu"},
    "uneven": {
        "decoder_attention_heads": 2,
        "decoder_ffn_embed_dim": 40,
        "activation_fn": "gelu_accurate",
    },
    "swish": {"activation_fn": "swish"},
    "no last norm": {
        "encoder_normalize_before": True,
        "decoder_normalize_before": True,
        "no_decoder_final_norm": True,
    },
}


def imported(folder, **options_given):
    """Import a checkpoint and compare the run with the original in NumPy."""
    options = ReadOptions(**options_given)
    _, notes = import_model("fairseq", folder, folder / "run", options=options, sentences=SENTENCES)
    parity = compare_import("fairseq", folder, folder / "run", SENTENCES)
    return Run.open(folder / "run"), parity, notes


def ours(run, source, target_in):
    """Log-probabilities in the order of fairseq's ids."""
    model = run.load_model("default", torch.device("cpu"), "fp32")
    here, there = (one.id_mapping for one in run.tokenizer.models)
    with torch.no_grad():
        states = model.states(
            torch.tensor([here.to_ours(source)]), torch.tensor([there.to_ours(target_in)])
        )
        found = model.log_probabilities(states[0]).numpy()
    return found[:, there.to_ours(range(there.rows))]


def refusal(read, *arguments):
    with pytest.raises((ExchangeError, TokenizerError)) as caught:
        read(*arguments)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("name", VARIANTS)
def test_log_probabilities_are_those_of_fairseq(name, tmp_path):
    given = options(**VARIANTS[name], max_target_positions=6)
    tensors = write(tmp_path, given, joined=given["share_all_embeddings"], filled=3)
    run, parity, notes = imported(tmp_path)
    assert parity.difference < 1e-4
    assert parity.same_tokens == parity.sentences
    assert "spaces" in notes[0]
    source, target_in = [5, 9, 4, 3, 6, EOS], [EOS, 4, 8, 3, 6]
    wanted = Fairseq(tensors, given).log_probabilities(source, target_in)
    np.testing.assert_allclose(ours(run, source, target_in), wanted, atol=2e-5)


@pytest.mark.parametrize(("form", "zipped"), [("cfg", True), ("nested", False)])
def test_newer_configurations_and_older_containers_are_read(form, zipped, tmp_path):
    given = options()
    tensors = write(tmp_path, given, form=form, zipped=zipped)
    run, _, _ = imported(tmp_path)
    source, target_in = [5, 9, EOS], [EOS, 4]
    wanted = Fairseq(tensors, given).log_probabilities(source, target_in)
    np.testing.assert_allclose(ours(run, source, target_in), wanted, atol=2e-5)
    search = run.config.search
    assert (search.beam, search.length_penalty, search.max_length) == (3, "power:0.6", "input+11")
    assert search.min_length == 1


def oldest(tensors):
    """Names and layouts of 2018."""
    found = {}
    for name, array in tensors.items():
        if name.endswith((".version", "_float_tensor", "decoder.layer_norm.weight")):
            continue
        if ".q_proj." in name:
            parts = [tensors[name.replace("q_proj", f"{part}_proj")] for part in "qkv"]
            found[name.replace("q_proj.", "in_proj_")] = np.concatenate(parts)
        elif not any(f".{part}_proj." in name for part in "kv"):
            found[name] = array
    for number, norm in enumerate(("self_attn", "encoder_attn", "final")):
        old = {n: n.replace(f"{norm}_layer_norm", f"layer_norms.{number}") for n in found}
        found = {
            (new.replace("norms.2", "norms.1") if "encoder.l" in name and "final" in name else new)
            if "decoder" in name or norm != "encoder_attn"
            else name: found[name]
            for name, new in old.items()
        }
    found["decoder.embed_out"] = found.pop("decoder.output_projection.weight")
    found["encoder.embed_positions.weights"] = np.zeros((4, 16), np.float32)
    return found


def test_a_checkpoint_of_the_first_versions_is_read(tmp_path):
    given = options(encoder_normalize_before=True, decoder_normalize_before=True)

    def change(tensors):
        return {
            name: array
            for name, array in oldest(tensors).items()
            if not name.startswith(("encoder.layer_norm", "decoder.layer_norm."))
        }

    tensors = write(tmp_path, given, change=change, zipped=False)
    tensors = {
        name: array
        for name, array in tensors.items()
        if not name.startswith(("encoder.layer_norm", "decoder.layer_norm"))
    }
    run, _, _ = imported(tmp_path)
    source, target_in = [5, 9, 4, EOS], [EOS, 4, 7]
    wanted = Fairseq(tensors, given).log_probabilities(source, target_in)
    np.testing.assert_allclose(ours(run, source, target_in), wanted, atol=2e-5)
    assert run.config.model.norm == "pre-no-final"


def test_half_precision_is_read(tmp_path):
    given = options()
    tensors = write(
        tmp_path, given, change=lambda t: {k: v.astype(np.float16) for k, v in t.items()}
    )
    run, _, _ = imported(tmp_path)
    tensors = {name: array.astype(np.float16) for name, array in tensors.items()}
    wanted = Fairseq(tensors, given).log_probabilities([5, EOS], [EOS, 4])
    np.testing.assert_allclose(ours(run, [5, EOS], [EOS, 4]), wanted, atol=2e-5)


def test_ids_and_settings_follow_the_dictionaries(tmp_path):
    write(tmp_path, options(), filled=2)
    run, _, _ = imported(tmp_path)
    source, target = run.tokenizer.models
    assert source.id_mapping.pieces[:6] == ("<pad>", "<unk>", "<s>", "</s>", "w0", "w1")
    assert source.id_mapping.origins[:6] == (PAD, UNK, BOS, EOS, 4, 5)
    assert target.id_mapping.pieces[-1] == "madeupword0001"
    assert run.tokenizer.encode_source(["w1 w0 nothing </s>"]) == [[5, 4, 1, 1]]
    model, search = run.config.model, run.config.search
    assert (model.decoder_start, model.source_end, model.norm_epsilon) == ("end", True, 1e-5)
    assert (model.positions, model.position_offset, model.tie_embeddings) == ("halves", 2, "none")
    assert (search.beam, search.length_penalty, search.max_length) == (5, "power:1", "11")
    assert (run.config.recipe, run.config.reading) == ("custom", "own")


def test_codes_beside_the_model_cut_the_text(tmp_path):
    given = options(share_all_embeddings=True)
    write(tmp_path, given, joined=True)
    (tmp_path / "bpecodes").write_text("m 0</w> 12\nw 1</w> 9\n")  # fastBPE counts
    run, _, notes = imported(tmp_path)
    assert notes == ()
    assert run.tokenizer.pieces_source(run.tokenizer.encode_source(["w1 m0"])[0]) == ["w1", "m0"]
    assert run.config.data.shared_vocabulary


def test_all_that_cannot_be_expressed_is_refused_at_once(tmp_path):
    write(
        tmp_path,
        options(
            layernorm_embedding=True,
            adaptive_softmax_cutoff="10,20",
            no_cross_attention=True,
            decoder_embed_dim=32,
            decoder_learned_pos=True,
            activation_fn="tanh",
            arch="transformer_lm",
        ),
    )
    message = refusal(read, tmp_path, ReadOptions())
    for word in (
        "layernorm_embedding",
        "adaptive_softmax_cutoff",
        "no_cross_attention",
        "transformer_lm",
        "decoder_embed_dim",
        "learned positions",
        "tanh",
    ):
        assert word in message
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("activation_fn", [1]),
        ("encoder_layers", 100_000),
        ("encoder_layers", "six"),
        ("encoder_embed_dim", 0),
        ("decoder_attention_heads", 3),
        ("decoder_ffn_embed_dim", [24]),
        ("max_source_positions", float("nan")),
        ("source_lang", {"a": 1}),
        ("arch", 7),
    ],
)
def test_damaged_options_are_one_paragraph(name, value, tmp_path):
    write(tmp_path, options())
    state = torch.load(tmp_path / "model.pt", weights_only=False)
    setattr(state["args"], name, value)
    torch.save(state, tmp_path / "model.pt")
    with pytest.raises(HeedfulError) as caught:
        read(tmp_path, ReadOptions())
    assert "\n" not in str(caught.value)


def test_missing_extra_and_misshapen_tensors_are_named_together(tmp_path):
    def change(tensors):
        tensors["encoder.layers.0.fc1.weight"] = tensors["encoder.layers.0.fc1.weight"][:-1]
        tensors["encoder.layers.7.fc1.bias"] = np.zeros(3, np.float32)
        del (
            tensors["decoder.layers.1.fc2.bias"],
            tensors["decoder.layers.0.self_attn.k_proj.weight"],
        )
        return tensors

    write(tmp_path, options(), change=change)
    message = refusal(read, tmp_path, ReadOptions())
    for word in ("layers.0.fc1.weight", "layers.7.fc1.bias", "self_attn.k_proj.weight"):
        assert word in message


def test_what_is_missing_beside_a_checkpoint_is_said(tmp_path):
    given = options()
    write(tmp_path, given)
    (tmp_path / "dict.fr.txt").unlink()
    assert "dict.fr.txt" in refusal(read, tmp_path, ReadOptions())
    (tmp_path / "other.pt").write_bytes((tmp_path / "model.pt").read_bytes())
    (tmp_path / "model.pt").unlink()
    (tmp_path / "third.pt").write_bytes(b"")
    assert "other.pt, third.pt" in refusal(read, tmp_path, ReadOptions())
    torch.save({"weights": 1}, tmp_path / "model.pt")
    assert "no `model`" in refusal(read, tmp_path, ReadOptions())
    torch.save({"model": {}}, tmp_path / "model.pt")
    assert "options of its training" in refusal(read, tmp_path, ReadOptions())
    del given["source_lang"]
    write(tmp_path, given)
    assert "--source-language" in refusal(read, tmp_path, ReadOptions())


@pytest.mark.parametrize("line", ["word", "word x", "a 1\na 2", " 3", "a 1 #fairseq:else"])
def test_a_damaged_dictionary_names_its_line(line, tmp_path):
    path = tmp_path / "dict.en.txt"
    path.write_text(f"b 4\n{line}\n")
    assert "line" in refusal(read_dictionary, path)


def test_a_dictionary_may_overwrite(tmp_path):
    path = tmp_path / "dict.en.txt"
    path.write_text("a 4\nb c 3\n<unk> 2 #fairseq:overwrite\n", encoding="utf-8")
    assert read_dictionary(path) == {"<s>": 0, "<pad>": 1, "</s>": 2, "a": 4, "b c": 5, "<unk>": 6}
    assert json.loads(json.dumps(read_dictionary(path)))["a"] == 4
