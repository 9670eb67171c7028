"""A real browser, headless, that looks up nothing outside this machine."""

from __future__ import annotations

import shutil
import subprocess
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

BROWSER = shutil.which("chromium")
DRIVER = shutil.which("chromedriver")
QUIET = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-dev-shm-usage", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-proxy-server"),
    *("--window-size=1280,1060", "--force-color-profile=srgb", "--lang=en"),
)


@cache
def missing() -> str:
    """Return why no browser can be driven here; "" when one can."""
    for name, path in (("chromium", BROWSER), ("chromedriver", DRIVER)):
        if path is None:
            return f"{name} is not installed: apt-get install chromium chromium-driver"
    versions = {
        subprocess.run([path, "--version"], capture_output=True, check=False).returncode for path in (BROWSER, DRIVER)
    }
    return "" if versions == {0} else "chromium is installed and does not start"


@contextmanager
def browser(profile: Path):
    """Yield a browser with an empty profile; it is closed at the end."""
    options = ChromeOptions()
    options.binary_location = BROWSER
    for flag in (*QUIET, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    driver = Chrome(options, Service(DRIVER))
    driver.set_page_load_timeout(60)
    try:
        yield driver
    finally:
        driver.quit()
