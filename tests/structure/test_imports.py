"""Every module is imported by a test of its own kind, or it is said here why not."""

import ast
import functools
from collections.abc import Iterable
from pathlib import Path

from tests.support.families import HERE

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"

# Modules that no unit test imports, by where else they are tested. "x.*" is all of a package.
ELSEWHERE = {
    "a command: run as a user runs it by tests/cli and tests/docs": """
        __main__ cli.* tasks.parsing.cli.* tasks.parsing.cli
    """,
    "the work of one command: tests/cli run that command on a trained run": """
        analysis.attention_files analysis.compare analysis.plot
        analysis.training_cost engines preparation.show quickstart
        tasks.parsing.quickstart
    """,
    "an argument of `heedful bench`, measured in a process of its own: tests/cli/test_bench.py": """
        bench.__main__ bench.data bench.preparing bench.profile
    """,
    "the door of a package: tests/structure/test_kernels.py": """
        kernels.api
    """,
    "kernels that need a GPU: tests/gpu/test_kernels.py": """
        kernels.triton_kernels
    """,
    "a part of the loop of a GPU: tests/unit/training/device/test_trainer.py": """
        training.device.ahead training.device.buffers
    """,
    "a table of settings: tests/unit/config/test_schema.py": """
        config.data
    """,
    "found through the registry: tests/unit/families": """
        families.batch_norm families.bytenet families.experts families.fastformer families.pooled
        families.pooled.build families.qk_l2_norm families.qk_layer_norm families.qk_norm
        families.recurrent.clashes families.relative_buckets
        families.relative_buckets.build families.relative_maps families.rms_norm
        families.rotary families.rotary.build
        families.shaw families.shaw.build
        families.transformer families.transformer.build
    """,
    "a server is tried from outside: tests/cli/test_serve*.py and tests/browser": """
        serve.app serve.connection serve.middleware serve.openapi serve.pipeline
        serve.response_schemas serve.responses
        serve.service serve.static_files serve.streaming
    """,
    "a part of html_document: tests/unit/serve/documents/test_html_document.py": """
        serve.documents.html_blocks serve.documents.tag_projection
    """,
    "a side of the exchange with another program, which checks it: tests/parity": """
        exchange.bart.text exchange.bart.write exchange.bart.write_text
        translation.languages
        exchange.ctranslate2.comparison exchange.ctranslate2.engine exchange.ctranslate2.keys
        exchange.ctranslate2.read exchange.ctranslate2.record exchange.ctranslate2.settings
        exchange.ctranslate2.translator exchange.ctranslate2.vocabulary
        exchange.ctranslate2.write exchange.huggingface.config_record
        exchange.marian.write
        exchange.t5.text exchange.t5.write
    """,
    "a part of the readers of old checkpoints: tests/unit/exchange/test_fairseq.py": """
        exchange.bundle
    """,
    "a part of onnx.write: tests/unit/exchange/onnx/test_write.py": """
        exchange.onnx.graphs
    """,
    "a part of corpus: tests/unit/data/toy_grammar": """
        data.toy_grammar.alignment data.toy_grammar.english data.toy_grammar.french
        data.toy_grammar.generator data.toy_grammar.lexicon data.toy_grammar.syntax_tree
    """,
    "read through file_formats, as every format is: tests/unit/text/test_tmx.py": """
        text.tmx
    """,
    "a part of encode, in processes of its own: tests/unit/data/encoded/test_encode.py": """
        data.encoded.worker
    """,
    "a part of tokenizer: tests/unit/tokenization/test_tokenizer.py": """
        tokenization.serialization tokenization.subword_model
    """,
    "a part of figures and of `heedful paper`: tests/unit/visualise, tests/cli/test_paper.py": """
        paper.claim_checks paper.role_report paper.sentences visualise.panels
    """,
    "a part of training, which is run: tests/cli/test_commands.py and test_prepare.py": """
        preparation.tokenizer
    """,
    "a part of translate: tests/unit/translation/test_translate.py and tests/cli": """
        translation.constraints translation.load_models
    """,
    "a number: tests/structure/test_public_names.py": """
        _version
    """,
}


@functools.cache
def _modules() -> list[str]:
    """The modules that hold more than a docstring; `heedful` itself is its list of names."""
    return [
        _name(file)
        for file in sorted((SOURCE / "heedful").rglob("*.py"))
        if file.stem != "__init__"
        or (file.parent.name != "heedful" and len(ast.parse(file.read_text("utf-8")).body) > 1)
    ]


def _name(file: Path) -> str:
    parts = file.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


def _imported(sources: Iterable[str]) -> set[str]:
    """What import statements name: modules, and what is taken out of them."""
    found = set()
    for source in sources:
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


@functools.cache
def _imported_by_unit_tests() -> set[str]:
    files = sorted((ROOT / "tests" / "unit").rglob("*.py"))
    return _imported(file.read_text(encoding="utf-8") for file in files)


def _names() -> list[str]:
    """The names of the list, without those of families that were removed."""
    names = [name for names in ELSEWHERE.values() for name in names.split()]
    return [
        f"heedful.{name}"
        for name in names
        if not name.startswith("families.") or name.split(".")[1] in HERE
    ]


def _is_listed(module: str) -> bool:
    listed, package = _names(), module.rpartition(".")[0]
    return module in listed or f"{package}.*" in listed


def test_every_module_is_imported_by_a_unit_test_or_listed_with_the_reason():
    imported = _imported_by_unit_tests()
    assert [name for name in _modules() if name not in imported and not _is_listed(name)] == []


def test_the_list_holds_only_modules_that_exist_and_that_no_unit_test_imports():
    imported, modules = _imported_by_unit_tests(), _modules()
    names = _names()
    assert len(names) == len(set(names))
    for name in names:
        package = name.removesuffix("*")
        meant = [
            module
            for module in modules
            if module == name or (package != name and module.startswith(package))
        ]
        assert meant, name
        assert imported.isdisjoint(meant), imported & set(meant)


def test_the_places_that_the_list_names_exist():
    words = " ".join(ELSEWHERE).replace(",", " ").replace(":", " ").split()
    places = [word for word in words if word.startswith("tests/")]
    assert len(places) >= 10
    assert [place for place in places if not list(ROOT.glob(place))] == []


def test_imports_of_every_form_are_seen():
    source = (
        "import heedful.files\nfrom heedful.text import tmx\n"
        "def f():\n    from heedful.text.lines import on_one_line"
    )
    assert {"heedful.files", "heedful.text.tmx", "heedful.text.lines"} < _imported([source])
