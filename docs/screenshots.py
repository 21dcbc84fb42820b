"""
Take screenshots of a terminal, the web page and the explorer: `python docs/screenshots.py RUN`.

RUN is a run of the quickstart, in the same folder as its text. Commands run in a terminal, and the
run is served to Chromium; the pictures go to `docs/images`. Pages of `heedful attend` give the
pictures of the explorer.
"""

import io
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright
from rich.console import Console
from rich.text import Text

DOCS = Path(__file__).parent
IMAGES = DOCS / "images"
HEEDFUL = (sys.executable, "-m", "heedful")
SENTENCE = "the boys who buy the old flower did not hear her"
WORD = "entendue"
STEPS_BACK = 6  # from the end of the search to a step at which hypotheses differ
EXPLORED = "the big red dog sees a small black cat"
SHORT = "the big red dog"
TRAIN = "heedful train tiny --source train.en --target train.fr --out runs/en-fr"
USE = (
    f'echo "{SHORT}" | heedful translate runs/en-fr --n-best 2',
    f'echo "{SHORT}" | heedful translate runs/en-fr --alignments',
)
COLUMNS = 92
LAST_LINES = 4  # of a training


def main(run: str) -> None:
    """Take all pictures."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"))
        take_terminal(browser, Path(run).parent / "text")
        take_page(browser, run)
        take_explorer(browser, run)
        browser.close()


def take_terminal(browser: Browser, text: Path) -> None:
    """Train on a text and translate, and draw the terminal."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    with tempfile.TemporaryDirectory() as folder:
        for file in text.iterdir():
            shutil.copy(file, folder)
        for command in (TRAIN, *USE):
            console.print(Text(f"$ {command}", style="bold"))
            words = command.replace("heedful", shlex.join(HEEDFUL))
            run = subprocess.run(words, shell=True, cwd=folder, capture_output=True, check=True)
            lines = (run.stderr + run.stdout if command == TRAIN else run.stdout).decode()
            shown = lines.splitlines()
            if command == TRAIN:
                shown = [*shown[:3], "…", *shown[-LAST_LINES:]]
            console.print(Text("\n".join(shown)))
        console.print()  # the picture cuts its last line
    page = browser.new_page(viewport={"width": 1130, "height": 900}, device_scale_factor=1.5)
    page.set_content(console.export_svg(title="heedful"))
    save(page.locator("svg").screenshot(), IMAGES / "terminal.webp")


def take_page(browser: Browser, run: str) -> None:
    """Serve a run and take pictures of its page."""
    command = [*HEEDFUL, "serve", run, "--port", "0", "--quiet"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            address = next(line.strip() for line in server.stdout if line.startswith("http"))
            page = opened(browser, address, 1200, 880, "light")
            page.get_by_text("Follow the beam").click()
            for _ in range(STEPS_BACK):
                page.get_by_role("slider").press("ArrowLeft")
            page.get_by_role("slider").blur()
            save(page.screenshot(), IMAGES / "page.webp")
            page = opened(browser, address, 1200, 900, "dark")
            page.locator("#translation .word", has_text=WORD).click()
            page.locator("#explorer .heedful-explorer").wait_for()
            page.wait_for_timeout(500)
            save(page.screenshot(), IMAGES / "page-attention.webp")
            page = opened(browser, address, 360, 660, "light")
            page.locator("#translation .word", has_text=WORD).focus()
            save(page.screenshot(), IMAGES / "page-phone.webp")
        finally:
            server.terminate()


def take_explorer(browser: Browser, run: str) -> None:
    """Take pictures of pages of `heedful attend`: a part of a page, and a full page."""
    page = explored(browser, run, EXPLORED, 1100)
    page.locator(".he-queries .he-word", has_text="rouge").click()
    page.mouse.move(0, 0)
    box = page.locator("section", has_text="Where it looks").first.bounding_box()
    assert box is not None
    below = page.get_by_text("These weights as a table").bounding_box()
    assert below is not None
    clip = {"x": 0, "y": box["y"] + 1, "width": 1100, "height": below["y"] - box["y"]}
    save(page.screenshot(clip=clip), DOCS / "explain" / "explorer.png")  # type: ignore[arg-type]
    page = explored(browser, run, SHORT, 1000)
    save(page.screenshot(full_page=True), DOCS / "howto" / "attend-page.png")


def opened(browser: Browser, address: str, width: int, height: int, scheme: str) -> Page:
    """Open the page and translate the sentence."""
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme=scheme,
        device_scale_factor=1.5,
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.goto(address)
    page.get_by_label("Text to translate").fill(SENTENCE)
    page.locator("#legend").wait_for()
    page.locator("#result:not([data-busy])").wait_for()
    return page


def explored(browser: Browser, run: str, sentence: str, width: int) -> Page:
    """Open the page that `heedful attend` writes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.html"
        subprocess.run([*HEEDFUL, "attend", run, sentence, "--out", path], check=True)
        page = browser.new_page(viewport={"width": width, "height": 900}, reduced_motion="reduce")
        page.goto(path.as_uri())
        page.locator(".heedful-explorer").wait_for()
    return page


def save(screenshot: bytes, path: Path) -> None:
    """Compress a picture, and write it."""
    picture = Image.open(io.BytesIO(screenshot)).convert("RGB")
    if path.suffix == ".png":
        picture.quantize(256).save(path, optimize=True)
    else:
        picture.save(path, quality=80, method=6)


if __name__ == "__main__":
    main(sys.argv[1])
