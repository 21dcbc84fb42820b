"""Models of BART's classes that `heedful extend` gave another language."""

import torch

from heedful.exchange.convert import import_model
from heedful.exchange.formats import ReadOptions
from heedful.runs.checkpoint import save_checkpoint
from heedful.runs.run import Run
from heedful.training.extend import NewLanguage, extend
from tests.support.bart import make
from tests.support.marian import text

ENGLISH, FRENCH = ([pair[side] for pair in text(40)] for side in (0, 1))
UMLAUTS = str.maketrans("aeiou", "äëïöü")
SAXON = [f"{line.translate(UMLAUTS)} ßöß" for line in FRENCH]
COMPLETE = {"complete": True}
# Kind of folder, what it has, the code that is added, the tokenizer that is written.
KINDS = {
    "nllb": ("nllb", {}, "nds_Latn", "NllbTokenizer"),
    "legacy": ("nllb", {"spelled": {"legacy_behaviour": True}}, "nds_Latn", "NllbTokenizer"),
    "mbart": ("mbart", {}, "nds_DE", "MBartTokenizer"),
    "mbart50": ("mbart50", {}, "nds_DE", "MBart50Tokenizer"),
    "m2m100": ("m2m100", {"text": COMPLETE}, "nds", "NllbTokenizer"),
    "lacks rows": ("m2m100", {}, "nds", "M2M100Tokenizer"),
    "unigram": ("m2m100", {"text": {**COMPLETE, "cut": "unigram"}}, "nds", "M2M100Tokenizer"),
}


def extended(folder, name, **more):
    """Import a model, a random one if there is none, add a language, make its new rows differ."""
    kind, shape, code, _ = KINDS[name]
    if not (folder / "theirs").exists():
        make(folder / "theirs", kind, **shape)
    options = ReadOptions("en", "fr")
    import_model(
        "huggingface", folder / "theirs", folder / "run", options=options, sentences=SAXON[:2]
    )
    files = {}
    for language, lines in (("en", ENGLISH), ("fr", FRENCH), ("xx", SAXON)):
        files[language] = folder / f"text.{language}"
        files[language].write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    keep = [files["en"], files["fr"]]
    new = {"target": files["xx"], "tag": code, "pieces": 40, "keep": keep, **more}
    extend(folder / "run", folder / "longer", NewLanguage(**new))
    run = Run.open(folder / "longer")
    weights = dict(run.load_checkpoint(run.checkpoint_folder()).model)
    torch.manual_seed(1)
    first = Run.open(folder / "run").tokenizer.target_size
    for table in ("embed_source.weight", "output.bias"):
        if table in weights:  # unknown letters start alike, and equal scores have no order
            noise = torch.randn_like(weights[table]) * weights[table][:first].std() / 2
            noise[:first] = 0
            weights[table] = weights[table] + noise
    save_checkpoint(run.folder.checkpoint(1), weights, None, {"step": 1, **run.signature})
    return run
