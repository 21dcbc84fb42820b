"""A hook for schemathesis: the languages of the tested server."""

import itertools

import schemathesis

KNOWN = {"source": "en", "target": "fr"}
turns = itertools.count()


@schemathesis.hook
def before_call(context, case, kwargs):
    """Every second time ask for what there is, so that the model is reached."""
    if isinstance(case.body, dict) and next(turns) % 2:
        for name, code in KNOWN.items():
            if isinstance(case.body.get(name), str):
                case.body[name] = code
        if isinstance(case.body.get("model"), str):
            del case.body["model"]
