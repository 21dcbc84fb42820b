from heedful.settings.conditions import ActsIf, acts, flat, idle_settings, names_of_idle

# As of families of models: a table inside a table, and two settings of which one is enough.
CONDITIONS = {
    "model.recurrent.cell": (ActsIf(("model.encoder", "model.decoder"), ("recurrent",)),),
    "model.recurrent.score": (
        ActsIf("model.decoder", ("recurrent",)),
        ActsIf("model.recurrent.attends", (True,)),
    ),
    "model.recurrent.attends": (ActsIf("model.decoder", ("recurrent",)),),
    "model.recurrent.size": (ActsIf("model.recurrent.score", unless=("dot", "general")),),
}
DEFAULTS = {
    "model.encoder": "transformer",
    "model.decoder": "transformer",
    "model.recurrent.cell": "lstm",
    "model.recurrent.attends": True,
    "model.recurrent.score": "additive",
    "model.recurrent.size": None,
}


def acting(**model):
    values = DEFAULTS | flat({"model": model})
    names = {name for name in CONDITIONS if acts(name, values, CONDITIONS)}
    assert {*names_of_idle(values, CONDITIONS)} == CONDITIONS.keys() - names
    return names


def complaints(**model):
    return idle_settings(DEFAULTS | flat({"model": model}), DEFAULTS, CONDITIONS)


def test_one_of_several_settings_is_enough():
    assert acting() == set()
    assert acting(encoder="recurrent") == {"model.recurrent.cell"}
    assert acting(decoder="recurrent") == CONDITIONS.keys()


def test_all_conditions_must_hold_and_what_does_not_act_makes_nothing_act():
    some = acting(decoder="recurrent", recurrent={"attends": False})
    assert some == {"model.recurrent.cell", "model.recurrent.attends"}
    assert "model.recurrent.size" not in acting(decoder="recurrent", recurrent={"score": "dot"})


def test_a_complaint_names_the_condition_that_fails():
    assert complaints(recurrent={"cell": "lstm"}) == []
    assert complaints(recurrent={"cell": "gru"}) == [
        "`model.recurrent.cell` applies only if `model.encoder` or `model.decoder` is recurrent, "
        "but they are transformer and transformer; leave `model.recurrent.cell` out, or set "
        "`model.encoder` or `model.decoder` to recurrent"
    ]
    (attends,) = complaints(decoder="recurrent", recurrent={"attends": False, "score": "dot"})
    assert "`model.recurrent.score` applies only if `model.recurrent.attends` is true" in attends
    (size,) = complaints(decoder="recurrent", recurrent={"score": "general", "size": 3})
    assert "is not dot or general, but that is general" in size
    assert "to a value other than dot or general" in size
