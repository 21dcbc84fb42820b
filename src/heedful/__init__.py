"""
The Transformer of “Attention Is All You Need”, as a maintained toolkit.

Train a translator from two text files:

::

    import heedful

    heedful.train("small", source="train.en", target="train.de", out="runs/en-de")
    translator = heedful.Translator.load("runs/en-de")
    print(translator.translate("A dog runs.").text)

The names below are loaded on first use, so ``import heedful`` is fast and does not import torch.

Before torch is imported, ``import heedful`` sets two environment variables for it,
``OMP_WAIT_POLICY`` and ``GOMP_SPINCOUNT``, unless they are already set. They let idle threads sleep
instead of occupying cores on a busy machine. Child processes inherit them. ``HEEDFUL_OMP=0`` leaves
the environment as it is.
"""

from heedful._version import __version__ as __version__
from heedful.machine.environment import WAITING, set_variables

set_variables(WAITING)
del WAITING, set_variables

# Defined here, because importing `typing` takes time, in which Ctrl-C would print a traceback.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from heedful.analysis.evaluate import evaluate
    from heedful.analysis.plot import plot
    from heedful.config import recipes
    from heedful.errors import HeedfulError
    from heedful.model.attention import MultiHeadAttention, scaled_dot_product_attention
    from heedful.model.feed_forward import FeedForward
    from heedful.model.layer_config import LayerConfig
    from heedful.model.layers import Decoder, Encoder
    from heedful.model.transformer import Transformer
    from heedful.runs.average import average
    from heedful.search.settings import Sampling, SearchOptions
    from heedful.tasks.parsing.parser import Parser
    from heedful.training.callbacks import Callback
    from heedful.training.result import TrainingResult
    from heedful.training.train import train
    from heedful.translation.result import Translation
    from heedful.translation.score import score
    from heedful.translation.translator import Translator

__all__ = [
    "Callback",
    "Decoder",
    "Encoder",
    "FeedForward",
    "HeedfulError",
    "LayerConfig",
    "MultiHeadAttention",
    "Parser",
    "Sampling",
    "SearchOptions",
    "TrainingResult",
    "Transformer",
    "Translation",
    "Translator",
    "average",
    "evaluate",
    "plot",
    "recipes",
    "scaled_dot_product_attention",
    "score",
    "train",
]

_HOME = {
    "Callback": "heedful.training.callbacks:Callback",
    "Decoder": "heedful.model.layers:Decoder",
    "Encoder": "heedful.model.layers:Encoder",
    "FeedForward": "heedful.model.feed_forward:FeedForward",
    "HeedfulError": "heedful.errors:HeedfulError",
    "LayerConfig": "heedful.model.layer_config:LayerConfig",
    "MultiHeadAttention": "heedful.model.attention:MultiHeadAttention",
    "Parser": "heedful.tasks.parsing.parser:Parser",
    "Sampling": "heedful.search.settings:Sampling",
    "SearchOptions": "heedful.search.settings:SearchOptions",
    "TrainingResult": "heedful.training.result:TrainingResult",
    "Transformer": "heedful.model.transformer:Transformer",
    "Translation": "heedful.translation.result:Translation",
    "Translator": "heedful.translation.translator:Translator",
    "average": "heedful.runs.average:average",
    "evaluate": "heedful.analysis.evaluate:evaluate",
    "plot": "heedful.analysis.plot:plot",
    "recipes": "heedful.config.recipes:",
    "scaled_dot_product_attention": "heedful.model.attention:scaled_dot_product_attention",
    "score": "heedful.translation.score:score",
    "train": "heedful.training.train:train",
}


def __getattr__(name: str) -> object:
    """Load a public name from its module, once."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import pkgutil  # noqa: PLC0415

    globals()[name] = value = pkgutil.resolve_name(_HOME[name])
    return value


def __dir__() -> list[str]:
    """List the public names, including those that are not loaded yet."""
    return sorted({*globals(), *__all__})
