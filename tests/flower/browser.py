"""A real browser, headless, that looks up nothing outside this machine."""

from __future__ import annotations

import shutil
import subprocess
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

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


def cells(page, table):
    return [row.text for row in page.find_elements(By.CSS_SELECTOR, f"#{table} tbody tr")]


def settled(page, condition):
    # The page puts new rows in place of old ones while it is read.
    wait = WebDriverWait(page, 30, poll_frequency=0.1, ignored_exceptions=[StaleElementReferenceException])
    return wait.until(lambda _: condition())


def found(page, outcome):
    """Search the open list of tasks for an outcome; return the one row that shows it."""
    page.find_element(By.CSS_SELECTOR, "#tasks-table_filter input").send_keys(f"result:{outcome}")
    settled(page, lambda: [row.partition(" ")[0] for row in cells(page, "tasks-table")] == ["office.assign_task"])
    (row,) = settled(page, lambda: cells(page, "tasks-table"))
    return row.replace("\n", " ")
