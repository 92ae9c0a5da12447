"""Take docs/pictures/server.png: the server's page after some minutes with simulated users.

python docs/making/server_picture.py [minutes]      # needs chromium and playwright; 6 minutes if not given
"""

import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from check import BROWSERS, find_browser
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[2]
PICTURE = ROOT / "docs" / "pictures" / "server.png"
SIZE = {"width": 1280, "height": 1190}


def take_picture(address: str, key: str, path: Path) -> None:
    """Log in with an admin's key, open the first experiment, and save what a browser shows."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=["--no-sandbox"])
        tab = browser.new_page(viewport=SIZE)
        tab.goto(f"{address}/login")
        tab.fill("#key", key)
        tab.click("button.primary")
        tab.goto(f"{address}/e/notifications")
        tab.wait_for_timeout(3000)
        tab.screenshot(path=path)
        browser.close()


def main(minutes: float) -> None:
    """Serve the example with simulated users in a temporary folder, wait, and take the picture."""
    if find_browser() is None:
        raise SystemExit(f"none of {', '.join(BROWSERS)} is installed")
    with tempfile.TemporaryDirectory() as folder:
        options = ["--demo", "--quiet", "--port", "0", "--store", f"{folder}/log.db", "--keys", f"{folder}/keys.txt"]
        command = [
            sys.executable,
            "-u",
            "-m",
            "stagewise",
            "serve",
            str(ROOT / "examples/notifications.toml"),
            *options,
        ]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            try:
                address = next(
                    found[0] for line in server.stdout or () if (found := re.search(r"http://[\w.:]+", line))
                )
                time.sleep(60 * minutes)
                keys = Path(folder, "keys.txt").read_text(encoding="utf-8")
                admin = next(line for line in keys.splitlines() if "admin" in line)
                take_picture(address, re.findall(r"sw_\S+", admin)[0], PICTURE)
            finally:
                server.terminate()


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 6.0)
