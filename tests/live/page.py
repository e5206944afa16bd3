"""Airflow's pages in headless Chromium, driven the way a person does it: by what stands on them.

A step that fails leaves a picture and the text of the page behind, and says where.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from selenium import webdriver
from selenium.common.exceptions import (
    ElementClickInterceptedException,
    ElementNotInteractableException,
    NoSuchElementException,
    StaleElementReferenceException,
    TimeoutException,
)
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

from tests.ui.shots import browser, log_in

PATIENCE_S = 60.0
"""For the host's pages, on a busy machine."""
MOMENT = (
    StaleElementReferenceException,
    NoSuchElementException,
    ElementClickInterceptedException,
    ElementNotInteractableException,
)
"""What React's next rendering brings about."""
T = TypeVar("T")


class Page:
    """A browser that is logged in.

    Args:
        driver: the browser.
        url: where Airflow is.
        evidence: folder for pictures of what went wrong.
    """

    def __init__(self, driver: webdriver.Chrome, url: str, evidence: Path) -> None:
        self.driver = driver
        self.url = url
        self._evidence = evidence

    def open(self, path: str) -> None:
        """Go to a path of Airflow."""
        self.driver.get(self.url + path)

    def open_run(self, dag_id: str, run_id: str) -> None:
        """Open the DataFlow tab of a run by its address."""
        self.open(f"/dags/{quote(dag_id, safe='')}/runs/{quote(run_id, safe=':+')}/plugin/dataflow-run")

    def wait(self, what: str, until: Callable[[], T | None], timeout_s: float = PATIENCE_S) -> T:
        """The first true value of ``until``.

        Raises:
            AssertionError: none came; says where the picture is.
        """

        def look(_: webdriver.Chrome) -> T | None:
            try:
                return until() or None
            except MOMENT:
                return None

        try:
            found = WebDriverWait(self.driver, timeout_s, poll_frequency=0.2).until(look)
        except TimeoutException:
            raise AssertionError(f"{what}: not within {timeout_s:.0f} s. {self.keep(what)}") from None
        assert found is not None
        return found

    def keep(self, name: str) -> str:
        """Save a picture and the text of the page; where they are."""
        stem = "".join(c if c.isalnum() else "-" for c in name)[:60]
        target = self._evidence / f"{time.strftime('%H%M%S')}-{stem}"
        self.driver.save_screenshot(str(target.with_suffix(".png")))
        text = f"{self.driver.current_url}\n\n{self.text()}\n"
        target.with_suffix(".txt").write_text(text, encoding="utf-8")
        return f"Picture and text: {target}.png, .txt"

    def text(self) -> str:
        """All that a person can read on the page."""
        return str(self.driver.execute_script("return document.body.innerText"))

    def waits_for_text(self, *wanted: str, timeout_s: float = PATIENCE_S) -> str:
        """Wait until all of these stand on the page; the page's text."""

        def all_there() -> str | None:
            text = self.text()
            return text if all(part in text for part in wanted) else None

        return self.wait(f"text {wanted}", all_there, timeout_s)

    def find(self, css: str, name: str = "", within: str = "") -> WebElement:
        """The first visible element, of the given text or label where one is given; waits for it.

        Args:
            css: selector.
            name: how its text or its ``aria-label`` begins.
            within: selector of what it stands in.
        """

        def named(element: WebElement) -> bool:
            label = element.get_attribute("aria-label") or ""
            return element.text.strip().startswith(name) or label.startswith(name)

        def there() -> WebElement | None:
            found = self.driver.find_elements(By.CSS_SELECTOR, f"{within} {css}".strip())
            return next((e for e in found if e.is_displayed() and named(e)), None)

        return self.wait(f"{css} '{name}'", there)

    def click(self, css: str, name: str = "", within: str = "") -> None:
        """Click what :meth:`find` finds."""
        self._do(f"click {css} '{name}'", lambda: self._reach(css, name, within).click())

    def type(self, css: str, keys: str, name: str = "", within: str = "") -> None:
        """Type into what :meth:`find` finds."""
        self._do(f"type into {css} '{name}'", lambda: self._reach(css, name, within).send_keys(keys))

    def progress(self) -> int:
        """Percent that the run's bar shows; -1 without a bar."""
        bars = self.driver.find_elements(By.CSS_SELECTOR, '[data-dataflow="run"] [role="progressbar"]')
        return int(bars[0].get_attribute("aria-valuenow") or -1) if bars else -1

    def _reach(self, css: str, name: str, within: str) -> WebElement:
        element = self.find(css, name, within)
        self.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
        return element

    def _do(self, what: str, act: Callable[[], object]) -> None:
        def tried() -> bool:
            act()
            return True

        self.wait(what, tried)


@contextmanager
def logged_in(url: str, user: str, password: str, folder: Path, *, size: tuple[int, int]) -> Iterator[Page]:
    """A browser that went through Airflow's login form.

    Args:
        url: where Airflow is.
        user: name.
        password: of the user.
        folder: for the browser's profile and for pictures of what went wrong.
        size: of the window, pixels.
    """
    folder.mkdir(parents=True, exist_ok=True)
    driver = browser(*size, str(folder / "profile"))
    page = Page(driver, url, folder)
    try:
        try:
            log_in(driver, url, user, password)
        except TimeoutException:
            raise AssertionError(f"The login form did not let {user} in. {page.keep('login')}") from None
        yield page
    finally:
        driver.quit()
