"""A run as ONNX graphs: the same numbers in onnxruntime, and a search without torch."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from heedful.config.schema import RunConfig
from heedful.errors import MissingExtra, RunFolderError
from heedful.exchange.formats import WriteOptions, Writer
from heedful.exchange.onnx import write as onnx_writer
from heedful.exchange.onnx.model import OnnxModel
from heedful.exchange.onnx.write import ENCODER, STEP
from heedful.exchange.parity import ReferenceModel
from heedful.model.initialize import initialize
from heedful.runs.checkpoint import save_checkpoint
from heedful.runs.folder import RunFolder
from heedful.runs.machine_settings import ONE_THREAD
from heedful.runs.run import Run, write_config
from heedful.tokenization.tokenizer import Tokenizer

PAGE = Path(__file__).parents[4] / "docs/howto/onnx.md"
SMALL = {
    "model.d_model": 16,
    "model.d_ff": 24,
    "model.heads": 2,
    "model.encoder_layers": 1,
    "model.decoder_layers": 2,
    "data.vocabulary_multiple": 16,
    "search.max_length": "12",
}
# what the files beside the graphs and the searches have to know about, in two models
RECIPES = {
    "post": {
        "model.positions": "halves",
        "model.position_offset": 2,
        "model.decoder_start": "zero",
        "model.tie_embeddings": "output",
        "model.projection_bias": False,
        "model.source_end": False,
        "search.eos_candidates": "twice",
        "search.forbidden_ids": "9 10",
    },
    "pre": {
        "model.norm": "pre",
        "model.positions": "learned",
        "data.max_length": 5,
        "model.d_k": 3,
        "model.d_v": 5,
        "model.encoder_heads": 4,
        "model.tie_embeddings": "none",
        "model.output_bias": True,
        "model.activation": "gelu_tanh",
        "data.shared_vocabulary": False,
        "model.decoder_start": "end",
        "search.length_limit_policy": "end",
        "search.beam": 3,
    },
}


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    from heedful.data.toy_grammar.corpus import split_pairs

    folder = tmp_path_factory.mktemp("text")
    pairs, _ = split_pairs(300, 40, seed=1)
    for side, name in enumerate(("source", "target")):
        lines = "".join(f"{pair[side]}\n" for pair in pairs)
        (folder / name).write_text(lines, encoding="utf-8")
    return folder


def learn(sources, targets, shared=True):
    return Tokenizer.train(
        sources,
        targets,
        kind="bpe",
        vocabulary_size=90,
        shared=shared,
        source_language="en",
        target_language="fr",
        seed=1,
    )


@torch.no_grad()
def write_run(folder, text, settings):
    """A run folder with random weights, lively enough that searches end at different lengths."""
    config = RunConfig().with_settings({**SMALL, **settings})
    folder.mkdir()
    tokenizer = learn([text / "source"], [text / "target"], config.data.shared_vocabulary)
    tokenizer.save(folder)
    run = Run(RunFolder(folder), config, tokenizer)
    write_config(run.folder, config, ONE_THREAD, {}, {})
    model = run.build()
    initialize(model, 3)
    generator = torch.Generator().manual_seed(6)
    for parameter in model.parameters():
        parameter += 0.4 * torch.randn(parameter.shape, generator=generator)
    save_checkpoint(run.folder.checkpoint(0), dict(model.named_parameters()), None, {"step": 0})
    return run


@pytest.fixture(scope="module", params=RECIPES)
def exported(request, heedful_cli, text, tmp_path_factory):
    """A run, its exported folder, and the output of the command."""
    folder = tmp_path_factory.mktemp(request.param)
    run = write_run(folder / "run", text, RECIPES[request.param])
    done = heedful_cli("export", folder / "run", folder / "out", "--format", "onnx")
    assert done.returncode == 0, done.stderr
    return run, folder / "out", done


def graphs(run, folder):
    facts = json.loads((folder / "onnx.json").read_text(encoding="utf-8"))
    return OnnxModel(folder, facts["padding"], facts["first"], facts["end"])


def test_the_command_reports_that_both_are_equal(exported):
    _, _, done = exported
    assert done.stderr == ""
    assert re.search(
        r"compared with onnxruntime \S+ on 12 sentences: "
        r".* 12 of 12 sentences with equal subwords, 12 of 12",
        done.stdout,
    )
    assert float(re.search(r"differ by at most (\S+)", done.stdout)[1]) < 1e-4


def test_beams_are_reordered_by_rows(exported):
    run, folder, _ = exported
    model = graphs(run, folder)
    source = torch.tensor([[5, 6, 7, 3], [8, 3, 0, 0]])
    state = model.start(model.encode(source))
    _, state = model.step(state, torch.tensor([model.start_token] * 2))
    rows, tokens = torch.tensor([1, 0, 1]), torch.tensor([9, 10, 11])
    found, _ = model.step(state.select(rows), tokens)
    target_in = torch.stack([torch.full((3,), model.start_token), tokens], dim=1)
    torch.testing.assert_close(
        found, model.states(source[rows], target_in)[:, 1], atol=1e-5, rtol=0
    )


def test_the_description_names_what_the_graphs_have(exported):
    import onnxruntime

    run, folder, _ = exported
    facts = json.loads((folder / "onnx.json").read_text(encoding="utf-8"))
    for name, about in (("encoder", ENCODER), ("step", STEP)):
        assert {side: facts[name][side] for side in about} == about
        session = onnxruntime.InferenceSession(folder / facts[name]["file"])
        for side, found in (("inputs", session.get_inputs()), ("outputs", session.get_outputs())):
            assert [one.name for one in found] == list(about[side])
            for one in found:
                axes = about[side][one.name].split()
                shape = [str(size).replace(" ", "") for size in one.shape]
                assert shape == [str(facts["sizes"].get(axis, axis)) for axis in axes]
    assert facts["subwords"] == run.tokenizer.target_size
    assert Tokenizer.load(folder).fingerprint == run.tokenizer.fingerprint


@pytest.mark.parametrize("file", ["encoder.onnx", "step.onnx", "onnx.json", "tokenizer"])
def test_files_of_different_exports_are_refused(exported, file, text, tmp_path):
    import onnx

    run, folder, _ = exported
    mixed = shutil.copytree(folder, tmp_path / "mixed")
    if file == "tokenizer":
        learn([text / "target"], [text / "target"]).save(mixed)
    elif file == "onnx.json":
        facts = json.loads((mixed / file).read_text(encoding="utf-8"))
        (mixed / file).write_text(json.dumps({**facts, "fingerprint": "0"}), encoding="utf-8")
    else:
        graph = onnx.load(mixed / file)
        onnx.helper.set_model_props(graph, {"fingerprint": "0"})
        onnx.save(graph, mixed / file)
    with pytest.raises(RunFolderError, match="must come from one export"):
        graphs(run, mixed)


def test_the_search_of_the_page_needs_no_torch(exported, heedful_cli, tmp_path):
    run, folder, _ = exported
    block = re.findall(r"(?ms)^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"))[0]
    # as it stands, but for these: where the folder is, what is translated, and a shorter limit
    lines = ["the big red dog", "a small cat", "the boy sees the old house"]
    asked = block.replace('Path("exported")', f"Path({str(folder)!r})")
    asked = asked.replace("len(source) + 50", "12")
    asked = asked.replace('print(translate("the big red dog"))', "")
    program = f"import sys\nsys.modules['torch'] = None\n{asked}\n"
    program += f"for line in {lines!r}:\n    print(translate(line))\n"
    source = str(Path(__file__).parents[4] / "src")
    done = subprocess.run(
        [sys.executable, "-c", program],
        check=False,
        capture_output=True,
        encoding="utf-8",
        env={"PYTHONPATH": source, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    text = "".join(f"{line}\n" for line in lines)
    ours = heedful_cli(
        "translate", run.folder.path, "--beam", "1", "--precision", "fp32", stdin=text
    )
    assert ours.stdout.splitlines() == done.stdout.splitlines()
    assert len(set(done.stdout.splitlines())) > 1


def test_the_example_is_short():
    block = re.findall(r"(?ms)^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"))[0]
    body = block[block.index("def translate") : block.index("print(")]
    before = block[block.index("folder =") : block.index("def translate")]
    assert len([line for line in (before + body).splitlines() if line.strip()]) <= 23


def test_the_contracts_are_kept(exported):
    run, folder, _ = exported
    from heedful.exchange.formats import ModelBundle
    from heedful.runs.checkpoint import load_checkpoint

    assert isinstance(onnx_writer, Writer)
    weights = load_checkpoint(run.checkpoint_folder()).model
    side = onnx_writer.open_engine(folder, ModelBundle(run.config, weights, run.tokenizer))
    assert isinstance(side, ReferenceModel)
    assert side.outputs([""]) == [[]]
    assert np.isfinite(side.log_probabilities([5], [6, 7])).all()
    with pytest.raises(TypeError, match="does not give access to its output matrix"):
        _ = graphs(run, folder).output


def test_what_is_missing_is_named(monkeypatch, tmp_path, text):
    run = write_run(tmp_path / "run", text, {})
    from heedful.exchange.convert import export_model

    for module in ("onnxruntime", "onnx"):
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(MissingExtra, match=f"needs {module}.*heedful\\[exchange\\]"):
            export_model(run.folder.path, "onnx", tmp_path / "out", options=WriteOptions())
        assert not (tmp_path / "out").exists()


def test_weights_are_not_rounded(tmp_path, text):
    from heedful.errors import ExchangeError
    from heedful.exchange.convert import export_model

    run = write_run(tmp_path / "run", text, {})
    with pytest.raises(ExchangeError, match=r"--quantization is for .* but the format is onnx"):
        export_model(run.folder.path, "onnx", tmp_path / "out", options=WriteOptions("int8"))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("separate", [False, True])
def test_a_model_of_another_toolkit_goes_through(separate, tmp_path):
    from heedful.exchange.convert import export_model, import_model
    from tests.support.marian import TAGS, make, text

    tags = () if separate else TAGS
    make(tmp_path / "marian", tags=tags, separate=separate)
    import_model("marian", tmp_path / "marian", tmp_path / "run")
    lines = [f"{tags[0]} {pair[0]}" if tags else pair[0] for pair in text(4)]
    parity, _ = export_model(tmp_path / "run", "onnx", tmp_path / "out", sentences=lines)
    assert (parity.sentences, parity.same_tokens, parity.same_outputs) == (4, 4, 4)
    facts = json.loads((tmp_path / "out/onnx.json").read_text(encoding="utf-8"))
    assert facts["search"]["length_limit_policy"] == "end"
    assert Tokenizer.load(tmp_path / "out").encode_source(lines)
