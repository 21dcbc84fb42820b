"""A recurrent model with attention learns the embedded corpus and translates unseen sentences."""

from heedful.data.toy_grammar.corpus import split_pairs
from heedful.evaluation.bleu import corpus_bleu
from tests.support.commands import write_text

SETTINGS = (
    "model.encoder=recurrent",
    "model.decoder=recurrent",
    "model.encoder_layers=1",
    "model.decoder_layers=1",
    "model.recurrent.hidden_size=128",
    "model.recurrent.readout_size=64",
    "train.schedule=cosine",
    "model.recurrent.score=general",
    "model.recurrent.initialisation=glorot",
    "train.learning_rate=0.004",
    "train.warmup=50",
    "train.steps=1400",
    "train.batch_tokens=512",
    "train.precision=fp32",
)


def test_the_embedded_corpus_is_learned(heedful_cli, tmp_path):
    pairs, unseen = split_pairs(30_000, 300, seed=1)
    write_text(tmp_path, pairs, "train")
    files = ("--source", tmp_path / "train.en", "--target", tmp_path / "train.fr")
    chosen = [part for setting in SETTINGS for part in ("--set", setting)]
    out = tmp_path / "run"
    done = heedful_cli("train", "tiny", *files, "--out", out, *chosen, timeout=1500)
    assert done.returncode == 0, done.stderr
    assert heedful_cli("average", out).returncode == 0
    lines = "".join(f"{source}\n" for source, _ in unseen)
    done = heedful_cli("translate", out, "--precision", "fp32", stdin=lines, timeout=500)
    assert corpus_bleu(done.stdout.splitlines(), [target for _, target in unseen]) >= 90
