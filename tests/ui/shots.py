"""Takes pictures of the DataFlow pages of a running Airflow, in both themes and both languages.

    python tests/ui/shots.py --url http://127.0.0.1:8080 --out shots \
        --run web_corpus__full/manual__2026-11-30 --dataset web_corpus

Add `--user` and the variable `SHOTS_PASSWORD` where Airflow asks for a login. Not a test: it is for eyes.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path
from urllib.parse import quote, urlencode

from selenium import webdriver
from selenium.common.exceptions import TimeoutException
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

VIEWS = ("today", "search", "versions", "compare", "rules", "samples")
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)


def browser(width: int, height: int, profile: str) -> webdriver.Chrome:
    """A headless Chromium with a profile of its own; the caller quits it."""
    options = Options()
    options.binary_location = "/usr/bin/chromium"
    for flag in (*FLAGS, f"--window-size={width},{height}", f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))


def log_in(driver: webdriver.Chrome, base: str, user: str, password: str) -> None:
    """Fills Airflow's login form."""
    driver.get(f"{base}/auth/login")
    WebDriverWait(driver, 30).until(lambda d: d.find_elements(By.NAME, "username"))
    driver.find_element(By.NAME, "username").send_keys(user)
    driver.find_element(By.NAME, "password").send_keys(password + "\n")
    WebDriverWait(driver, 30).until(lambda d: "/login" not in d.current_url)


def settle(driver: webdriver.Chrome, seconds: float) -> str:
    """Waits for the page's own root and for its first data; returns what is missing, or nothing."""
    try:
        WebDriverWait(driver, 30).until(lambda d: d.find_elements(By.CSS_SELECTOR, "[data-dataflow]"))
        waiting = "[data-dataflow-loading]"
        WebDriverWait(driver, 15).until(lambda d: not d.find_elements(By.CSS_SELECTOR, waiting))
    except TimeoutException:
        return "the page was not ready in time"
    time.sleep(seconds)
    return ""


def pages(args: argparse.Namespace) -> list[tuple[str, str]]:
    """Name and path of each page to take."""
    found: list[tuple[str, str]] = []
    for run in args.run or []:
        dag_id, _, run_id = run.partition("/")
        path = f"/dags/{quote(dag_id, safe='')}/runs/{quote(run_id, safe=':+')}/plugin/{args.run_route}"
        found.append((f"run-{''.join(c if c.isalnum() else '_' for c in run_id)}", path))
    for view in args.views:
        query = {"view": view} | ({"dataset": args.dataset} if args.dataset else {})
        found.append((view, f"/plugin/{args.product_route}?{urlencode(query)}"))
    for extra in args.path or []:
        name, _, path = extra.partition("=")
        found.append((name, path))
    return found


def take(args: argparse.Namespace, theme: str, language: str, profile: str) -> int:
    """All pages in one theme and one language; returns how many were not ready."""
    driver = browser(args.width, args.height, profile)
    failures = 0
    try:
        password = os.environ.get("SHOTS_PASSWORD", "")
        if args.user:
            log_in(driver, args.url, args.user, password)
        driver.get(args.url)
        driver.execute_script(
            "localStorage.setItem('theme', arguments[0]);"
            "localStorage.setItem('i18nextLng', arguments[1]);"
            "localStorage.setItem('timezone', JSON.stringify('UTC'));",
            theme,
            language,
        )
        for name, path in pages(args):
            driver.get(args.url + path)
            missing = settle(driver, args.wait)
            target = Path(args.out) / f"{name}-{args.width}-{theme}-{language}.png"
            driver.save_screenshot(str(target))
            failures += bool(missing)
            print(target, missing)
            for entry in driver.get_log("browser"):  # type: ignore[no-untyped-call]
                if entry["level"] == "SEVERE":
                    print("  ", entry["message"][:400])
    finally:
        driver.quit()
    return failures


def main() -> int:
    """Reads the command line and takes the pictures; 1 when a page was not ready."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--run", action="append", help="DAG_ID/RUN_ID, as often as wanted")
    parser.add_argument("--dataset", default="")
    parser.add_argument("--views", nargs="*", default=list(VIEWS))
    parser.add_argument("--path", action="append", help="NAME=/path of a further page")
    parser.add_argument("--theme", nargs="*", default=["light", "dark"])
    parser.add_argument("--language", nargs="*", default=["en", "zh-CN"])
    parser.add_argument("--width", type=int, default=1600)
    parser.add_argument("--height", type=int, default=2000)
    parser.add_argument("--wait", type=float, default=1.0, help="seconds after the first data")
    parser.add_argument("--user", default="")
    parser.add_argument("--run-route", default="dataflow-run")
    parser.add_argument("--product-route", default="dataflow")
    args = parser.parse_args()
    args.url = args.url.rstrip("/")
    Path(args.out).mkdir(parents=True, exist_ok=True)
    failures = 0
    for theme in args.theme:
        for language in args.language:
            with tempfile.TemporaryDirectory() as profile:
                failures += take(args, theme, language, profile)
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
