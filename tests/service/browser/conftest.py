"""A real browser, and a real service in processes of its own."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from running import ADMINISTRATOR, running
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

FLAGS = (
    "--headless",
    "--no-sandbox",  # it refuses to start for root with one
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--window-size=1280,900",
)


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the service is."""
    with running(tmp_path_factory.mktemp("service")) as found:
        yield found


@pytest.fixture
def open_browser(tmp_path: Path) -> Iterator[Callable[..., webdriver.Chrome]]:
    """Starts browsers with an empty profile, and ends them."""
    started: list[webdriver.Chrome] = []

    def begin(*, width: int = 1280, dark: bool = False, scripts: bool = True) -> webdriver.Chrome:
        options = Options()
        options.binary_location = _path("chromium")
        for flag in (*FLAGS, f"--user-data-dir={tmp_path / str(len(started))}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        browser = webdriver.Chrome(options=options, service=Service(_path("chromedriver")))
        started.append(browser)
        screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
        theme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [theme]})
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not scripts})
        return browser

    yield begin
    for browser in started:
        browser.quit()


def _path(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.fail(f"{name} is not installed; run tests/service/browser/install.sh")
    return found


@pytest.fixture(scope="session")
def api(address: str) -> Iterator[Callable[..., Any]]:
    """The service as a program sees it."""
    headers = {"Authorization": f"Bearer {ADMINISTRATOR}"}
    with httpx.Client(base_url=address, headers=headers, timeout=60.0) as client:

        def call(method: str, path: str, body: object = None) -> Any:
            answer = client.request(method, path, json=body)
            assert answer.is_success, answer.text
            return answer.json() if answer.content else None

        yield call


def requests_of(browser: webdriver.Chrome) -> list[str]:
    """Addresses of all requests since it was last asked."""
    messages = [json.loads(one["message"])["message"] for one in browser.get_log("performance")]
    return [
        one["params"]["request"]["url"]
        for one in messages
        if one["method"] == "Network.requestWillBeSent"
    ]


@pytest.fixture(scope="session")
def sent() -> Callable[[webdriver.Chrome], list[str]]:
    return requests_of
