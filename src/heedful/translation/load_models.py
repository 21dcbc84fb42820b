"""The models of open runs, on the device and with the precision that a user chooses."""

import platform
import warnings
from collections.abc import Sequence

from heedful.errors import DeviceError
from heedful.kernels.api import resolve_precision, why_not_native
from heedful.machine.devices import has_int8, resolve_device, resolve_threads
from heedful.model.encoder_decoder import EncoderDecoder
from heedful.runs.run import Run
from heedful.translation.ensemble import check_members


def load_models(
    runs: Sequence[Run],
    weights: str = "default",
    device: str = "auto",
    precision: str = "auto",
    threads: int = 0,
) -> list[EncoderDecoder]:
    """Load the model of one run, or of each member of an ensemble, as `Translator.load` does."""
    check_members(runs)
    place = resolve_device(device)
    resolve_threads(threads)
    if precision == "int8" and not has_int8(place):
        raise DeviceError(
            f"int8 needs an x86 processor, but the device is {place} on {platform.machine()}; "
            "choose auto, fp32 or bf16, or, on an x86 machine, the device cpu."
        )
    if precision == "int8" and (reason := why_not_native()):
        warnings.warn(
            f"int8 is slow here, because compiled functions are missing: {reason}.",
            RuntimeWarning,
            stacklevel=3,
        )
    precision = resolve_precision(precision, place)
    return [run.load_model(weights, place, precision) for run in runs]
