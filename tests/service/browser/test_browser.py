"""The dashboard in a real browser: what a person does, from signing in to signing out."""

from collections.abc import Callable
from typing import Any

import pytest
from running import ADMINISTRATOR, PATIENCE
from selenium.common.exceptions import (
    ElementClickInterceptedException,
    NoSuchElementException,
    StaleElementReferenceException,
    WebDriverException,
)
from selenium.webdriver import Chrome, Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support import expected_conditions as there
from selenium.webdriver.support.wait import WebDriverWait

pytestmark = pytest.mark.browser

IDS = ["red", "green", "blue"]
MEANS = {"red": 0.1, "green": 0.4, "blue": 0.9}
PAGES = ["", "/releases", "/releases/1", "/privacy?verify=1", "/features", "/events"]
PASSING = (  # a page that moves replaces its parts, and so does one that is just loading
    StaleElementReferenceException,
    NoSuchElementException,
    ElementClickInterceptedException,
)
LEFT = "does not belong to the document"  # Chromium of an element of a page that is being left
Call = Callable[..., Any]
Open = Callable[..., Chrome]
Sent = Callable[[Chrome], list[str]]


def wait(browser: Chrome, condition: Callable[[Chrome], Any]) -> Any:
    """Until something is true. How long it may take is generous: no test is about speed."""

    def met(one: Chrome) -> Any:
        try:
            return condition(one)
        except WebDriverException as error:
            if LEFT in str(error.msg):
                return False
            raise

    waiting = WebDriverWait(browser, PATIENCE, poll_frequency=0.1, ignored_exceptions=PASSING)
    return waiting.until(met)


def find(browser: Chrome, selector: str) -> WebElement:
    return wait(browser, there.presence_of_element_located((By.CSS_SELECTOR, selector)))


def click(browser: Chrome, selector: str) -> None:
    """Click on what is found, as soon as it can be."""

    def clicked(one: Chrome) -> bool:
        element = one.find_element(By.CSS_SELECTOR, selector)
        one.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
        element.click()
        return True

    wait(browser, clicked)


def text_of(browser: Chrome, selector: str) -> str:
    return wait(browser, lambda one: one.find_element(By.CSS_SELECTOR, selector).text)


def write(browser: Chrome, selector: str, text: str) -> None:
    def written(one: Chrome) -> bool:
        field = one.find_element(By.CSS_SELECTOR, selector)
        field.clear()
        field.send_keys(text)
        return True

    wait(browser, written)


def says(browser: Chrome, text: str) -> None:
    wait(browser, there.text_to_be_present_in_element((By.TAG_NAME, "body"), text))


def sign_in(browser: Chrome, address: str, key: str = ADMINISTRATOR) -> None:
    browser.get(f"{address}/")
    write(browser, "#key", key)
    click(browser, "form button.main")
    find(browser, "#sign-out")


def complaints(browser: Chrome) -> list[str]:
    """What the console says that is wrong, among it all that the policy refused."""
    return [one["message"] for one in browser.get_log("browser") if one["level"] == "SEVERE"]


def play(api: Call, name: str, count: int) -> None:
    actions = [{"id": one} for one in IDS]
    rewards = []
    for number in range(count):
        made = api("POST", f"/v1/bandits/{name}/rank", {"actions": actions})
        mean = MEANS[made["action_id"]]
        rewards.append({"event_id": made["event_id"], "value": float(number % 10 < 10 * mean)})
        if len(rewards) == 25 or number == count - 1:
            api("POST", f"/v1/bandits/{name}/rewards", rewards)
            rewards.clear()


@pytest.fixture(scope="session")
def colours(api: Call) -> str:
    """A bandit that has made releases."""
    features = {
        "format": "discreet-features",
        "version": 1,
        "parts": [{"kind": "intercept"}, {"kind": "action_id", "ids": IDS}],
    }
    rule = {"low": 0, "high": 1, "wait_seconds": 1, "default": 0}
    spec = {"name": "colours", "epsilon": 16, "delta": 1e-6, "horizon": None}
    api("POST", "/v1/bandits", {**spec, "reward": rule, "features": features})
    play(api, "colours", 200)
    return "colours"


def test_from_signing_in_to_signing_out(
    address: str, api: Call, open_browser: Open, sent: Sent
) -> None:
    browser = open_browser()
    sign_in(browser, address)

    click(browser, "a[href='/dashboard/new-bandit']")
    write(browser, "#name", "banners")
    write(browser, "#actions", "\n".join(IDS))
    write(browser, "#epsilon", "64")
    write(browser, "#wait_seconds", "1")
    click(browser, "#create")
    says(browser, "Bandit banners is there")
    says(browser, "Nothing has been released yet")

    browser.execute_script("window.notReloaded = true")
    play(api, "banners", 250)
    says(browser, "Actions in release")  # the page moves by itself
    find(browser, "[data-chart=mean] canvas")
    find(browser, "[data-chart=shares] canvas")
    assert browser.execute_script("return window.notReloaded")
    before = text_of(browser, "#part-learning_table h2")
    play(api, "banners", 250)
    wait(browser, lambda one: text_of(one, "#part-learning_table h2") != before)
    assert browser.execute_script("return window.notReloaded")

    click(browser, ".tabs a[href$='/releases']")
    find(browser, "[data-chart=timeline] canvas")
    click(browser, "#part-releases_table tbody a")
    digest = text_of(browser, "#digest")
    number = browser.current_url.rsplit("/", 1)[1]
    assert api("GET", f"/v1/bandits/banners/releases/{number}")["digest"] == digest
    says(browser, "yes, with these values")

    click(browser, ".tabs a[href$='/privacy']")
    click(browser, "#verify")
    says(browser, "Intact")
    head = text_of(browser, "#ledger-head")
    assert len(head) == 64
    write(browser, "#head", head)
    click(browser, "#verify")
    says(browser, "The head that you kept")

    _make_and_revoke_a_key(browser, api)
    click(browser, "#sign-out")
    says(browser, "You are signed out")
    browser.get(f"{address}/dashboard/bandits/banners")
    find(browser, "#key")

    assert complaints(browser) == []
    addresses = sent(browser)
    assert len(addresses) > 20
    own = (
        f"{address}/",
        "data:",
        "chrome:",
        "chrome-untrusted:",
    )  # its first, empty tab is chrome:
    assert [one for one in addresses if not one.startswith(own)] == []


def _make_and_revoke_a_key(browser: Chrome, api: Call) -> None:
    click(browser, "nav a[href='/dashboard/keys']")
    write(browser, "#name", "the shop")
    click(browser, "input[value=rank]")
    click(browser, "#create-key")
    text = find(browser, "#new-key").get_attribute("value")
    assert text.startswith("dk_")
    browser.refresh()
    says(browser, "the shop")
    assert browser.find_elements(By.ID, "new-key") == []
    assert "the shop" in [one["name"] for one in api("GET", "/v1/keys")["keys"]]
    click(browser, "button[aria-label='Revoke the shop']")
    wait(browser, there.alert_is_present()).accept()
    says(browser, "The key is revoked")
    assert "the shop" not in [one["name"] for one in api("GET", "/v1/keys")["keys"]]
    click(browser, "nav a[href='/dashboard/audit-log']")
    says(browser, "revoke key")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_every_page_fits_and_has_the_theme_of_the_system(
    address: str, colours: str, open_browser: Open, *, width: int, dark: bool
) -> None:
    browser = open_browser(width=width, dark=dark)
    sign_in(browser, address)
    wait_for_release(browser, address, colours)
    inner = [f"/dashboard/bandits/{colours}{page}" for page in PAGES]
    others = ["/", "/dashboard/new-bandit", "/dashboard/keys", "/dashboard/audit-log"]
    for path in [*others, *inner]:
        browser.get(address + path)
        find(browser, "footer")
        wide = browser.execute_script("return document.documentElement.scrollWidth")
        assert wide <= width, path
        ground = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        assert ground == ("rgb(18, 18, 23)" if dark else "rgb(246, 245, 241)")
        assert _worst_contrast(browser) >= 4.5, path
    assert complaints(browser) == []


def wait_for_release(browser: Chrome, address: str, name: str) -> None:
    browser.get(f"{address}/dashboard/bandits/{name}")
    says(browser, "Actions in release")


def _worst_contrast(browser: Chrome) -> float:
    """The least contrast of a text with what is behind it, by the formula of WCAG 2."""
    return browser.execute_script(
        """
        const part = (c) => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
        const light = ([r, g, b]) => 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
        const read = (text) => text.match(/[\\d.]+/g).map(Number);
        const behind = (one) => {
          for (let at = one; at; at = at.parentElement) {
            const found = read(getComputedStyle(at).backgroundColor);
            if (found.length === 3 || found[3] === 1) return found;
          }
          return [255, 255, 255];
        };
        let worst = 21;
        for (const one of document.querySelectorAll("body *")) {
          const own = [...one.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
          if (!own || !one.getClientRects().length || one.closest("svg")) continue;
          const [a, b] = [read(getComputedStyle(one).color), behind(one)].map(light);
          worst = Math.min(worst, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05));
        }
        return worst;
        """
    )


def test_the_switch_changes_the_theme_and_is_remembered(address: str, open_browser: Open) -> None:
    browser = open_browser()
    sign_in(browser, address)
    ground = "return getComputedStyle(document.body).backgroundColor"
    light = browser.execute_script(ground)
    click(browser, "#theme")
    dark = browser.execute_script(ground)
    assert light != dark
    assert find(browser, "#theme").get_attribute("aria-label") == "Use the light theme"
    browser.get(f"{address}/dashboard/keys")
    assert browser.execute_script(ground) == dark
    click(browser, "#theme")
    assert browser.execute_script(ground) == light


def test_without_scripts_everything_can_be_read_and_done(
    address: str, api: Call, colours: str, open_browser: Open
) -> None:
    browser = open_browser(scripts=False)
    wait(browser, lambda _: api("GET", f"/v1/bandits/{colours}")["release"]["number"] > 0)
    sign_in(browser, address)
    click(browser, f"a[href='/dashboard/bandits/{colours}']")
    table = text_of(browser, "#part-learning_table table")
    assert all(name in table for name in IDS)
    assert not find(browser, "[data-chart=mean]").is_displayed()
    click(browser, ".tabs a[href$='/privacy']")
    click(browser, "#verify")
    assert "Intact" in text_of(browser, "#verdict")
    click(browser, "#sign-out")
    says(browser, "You are signed out")


def test_one_can_sign_in_and_look_around_with_the_keyboard_alone(
    address: str, colours: str, open_browser: Open
) -> None:
    browser = open_browser()
    browser.get(f"{address}/sign-in")
    wait(browser, lambda one: one.switch_to.active_element.get_attribute("id") == "key")
    browser.switch_to.active_element.send_keys(ADMINISTRATOR, Keys.ENTER)
    find(browser, f"a[href='/dashboard/bandits/{colours}']")
    seen = []
    for _ in range(40):
        browser.switch_to.active_element.send_keys(Keys.TAB)
        focused = browser.switch_to.active_element
        outline = "return getComputedStyle(arguments[0]).outlineStyle"
        seen.append(focused.get_attribute("href") or focused.get_attribute("id"))
        if seen[-1] and seen[-1].endswith(f"/dashboard/bandits/{colours}"):
            assert browser.execute_script(outline, focused) != "none"
            focused.send_keys(Keys.ENTER)
            break
    assert f"{address}/" in seen
    find(browser, ".tabs")


def test_what_is_wrong_with_a_form_has_the_focus(address: str, open_browser: Open) -> None:
    browser = open_browser()
    sign_in(browser, address)
    browser.get(f"{address}/dashboard/new-bandit")
    write(browser, "#name", "fine")
    write(browser, "#epsilon", "none")
    click(browser, "#create")
    find(browser, "#epsilon-error")
    wait(browser, lambda one: one.switch_to.active_element.get_attribute("id") == "epsilon")
    assert find(browser, "#name").get_attribute("value") == "fine"


def test_a_page_left_open_asks_to_sign_in_once_the_key_is_revoked(
    address: str, api: Call, colours: str, open_browser: Open
) -> None:
    key = api("POST", "/v1/keys", {"name": "guest", "scopes": ["read"], "bandit": colours})
    browser = open_browser()
    sign_in(browser, address, key["key"])
    browser.get(f"{address}/dashboard/bandits/{colours}")
    find(browser, ".tabs")
    api("DELETE", f"/v1/keys/{key['id']}")
    find(browser, "#key")
