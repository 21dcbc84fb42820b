"""Text, arguments and refusals of commands."""

QUICK = (
    "data.vocabulary_size=400",
    "train.steps=24",
    "train.batch_tokens=1024",
    "train.validate_steps=12",
    "train.checkpoint_steps=8",
)


def write_text(folder, pairs, name):
    for side, language in enumerate(("en", "fr")):
        text = "".join(f"{pair[side]}\n" for pair in pairs)
        (folder / f"{name}.{language}").write_text(text, encoding="utf-8")


def train_arguments(text, out, *settings, validate=True):
    files = ["--source", text / "train.en", "--target", text / "train.fr"]
    if validate:
        files += ["--valid-source", text / "valid.en", "--valid-target", text / "valid.fr"]
    chosen = [part for setting in (*QUICK, *settings) for part in ("--set", setting)]
    return ["train", "tiny", *files, "--out", out, "--device", "cpu", *chosen]


def refused(done, *parts, code=2):
    """Check that a command ended in one paragraph with these words and no traceback."""
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    message = done.stderr.strip().splitlines()[-1]
    assert message.startswith("heedful: ")
    for part in parts:
        assert part in message
    return message
