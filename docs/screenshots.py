"""
Screenshots of the web page: `python docs/screenshots.py RUN`, with a run of the quickstart.

Serves the run, opens the page in Chromium, and writes what it shows to `docs/images`.
"""

import io
import shutil
import subprocess
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

IMAGES = Path(__file__).parent / "images"
SENTENCE = "the key that the woman found was not hers"


def main(run: str) -> None:
    """Serve a run and take its pictures."""
    command = [sys.executable, "-m", "heedful", "serve", run, "--port", "0", "--quiet"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            address = next(line.strip() for line in server.stdout if line.startswith("http"))
            with sync_playwright() as playwright:
                program = shutil.which("chromium")
                browser = playwright.chromium.launch(executable_path=program)
                take(browser, address)
                browser.close()
        finally:
            server.terminate()


def take(browser: Browser, address: str) -> None:
    """Take all pictures."""
    IMAGES.mkdir(exist_ok=True)
    page = opened(browser, address, 1200, 880, "light")
    page.get_by_text("Follow the beam").click()
    save(page, "page")
    page = opened(browser, address, 1200, 900, "dark")
    page.locator("#translation .word", has_text="trouvée").click()
    page.locator("#explorer .heedful-explorer").wait_for()
    page.wait_for_timeout(500)
    save(page, "page-attention")
    page = opened(browser, address, 360, 660, "light")
    page.locator("#translation .word", has_text="trouvée").focus()
    save(page, "page-phone")


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


def save(page: Page, name: str) -> None:
    """Write what is seen as a small file."""
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    picture.save(IMAGES / f"{name}.webp", quality=80, method=6)


if __name__ == "__main__":
    main(sys.argv[1])
