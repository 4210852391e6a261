"""A person's tasks, in Chromium: why does my job wait, what did yesterday cost, what is broken."""

import json
import os
import shutil

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from tests.fakes.operated import HOSTILE

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="needs Debian's packages chromium and chromium-driver"
)
PHONE, DESK = (400, 800), (1280, 900)
LIMIT_S = 60


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    given = ["--headless=new", "--disable-gpu", "--disable-dev-shm-usage"]
    given.append(f"--user-data-dir={tmp_path_factory.mktemp('chromium')}")
    for word in [*given, *(["--no-sandbox"] if os.geteuid() == 0 else [])]:  # its sandbox refuses root
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture
def browser(chromium):
    size(chromium, DESK)
    chromium.get_log("browser")
    yield chromium
    chromium.get("about:blank")


def size(driver, of):
    given = {"width": of[0], "height": of[1], "deviceScaleFactor": 1, "mobile": of == PHONE}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", given)


def until(driver, condition):
    return WebDriverWait(driver, LIMIT_S, 0.1, ignored_exceptions=[Exception]).until(condition)


def text(driver, selector):
    return driver.find_element(By.CSS_SELECTOR, selector).text


def rows(driver):
    return [row for row in driver.find_elements(By.CSS_SELECTOR, ".jobs tbody tr") if row.is_displayed()]


def find(driver, words):
    field = driver.find_element(By.ID, "q")
    field.clear()
    field.send_keys(words)


@pytest.fixture(params=["live", "file"])
def opened(request, serving, site, browser, tmp_path):
    """The page, live and as a file."""
    if request.param == "live":
        browser.get(f"http://127.0.0.1:{serving()[0]}/")
    else:
        (tmp_path / "page.html").write_text(site.source().file())
        browser.get((tmp_path / "page.html").as_uri())
    yield browser
    assert [entry["message"] for entry in browser.get_log("browser")] == []  # nothing refused, nothing failed


@pytest.mark.parametrize("of", [DESK, PHONE], ids=["desk", "phone"])
def test_why_does_my_job_wait(opened, site, of):
    size(opened, of)
    find(opened, str(site.world.waits))
    (row,) = until(opened, lambda driver: len(found := rows(driver)) == 1 and found)
    assert f"Job {site.world.waits} (8 GPUs, 2 h) waits until" in row.text and "the cloud refused it lately" in row.text
    find(opened, 'o"brien')
    until(opened, lambda driver: HOSTILE in rows(driver)[0].text)
    assert opened.title == "lab · ironburst"  # a job's name is no script
    assert opened.execute_script("return document.documentElement.scrollWidth <= innerWidth")


def test_what_did_yesterday_cost(opened, site):
    usd = site.source().seen().spent[1][1]
    whole = f"${sum(cost for of in usd.values() for cost in of.values()):,.2f}"  # test_view holds it against the ledger
    tile = ".tiles li:nth-child(6)"
    assert whole in text(opened, tile) and "yesterday" in text(opened, tile)
    until(opened, lambda driver: driver.find_element(By.CSS_SELECTOR, f"{tile} a").click() or True)
    table = "#money table:nth-of-type(2)"
    until(opened, lambda driver: all(word in text(driver, table) for word in (whole, "yesterday", "vision")))
    where = "return document.querySelector(arguments[0]).getBoundingClientRect().top"
    until(opened, lambda driver: 0 <= driver.execute_script(where, table) < DESK[1])


def test_what_is_broken(opened):
    first = text(opened, ".broken li:first-child")
    assert "Pool p5 is closed" in first and "ironburst open p5" in first and "Act" in first
    where = "return document.querySelector('.broken li').getBoundingClientRect().bottom"
    assert opened.execute_script(where) < DESK[1]  # without scrolling


def test_it_is_reached_by_the_keyboard(opened):
    opened.find_element(By.TAG_NAME, "body").send_keys(Keys.TAB)
    assert opened.switch_to.active_element.text == "Skip to what is broken"
    for _ in range(30):
        opened.switch_to.active_element.send_keys(Keys.TAB)
        if opened.switch_to.active_element.get_attribute("id") == "q":
            break
    opened.switch_to.active_element.send_keys("notebook", Keys.ENTER)
    until(opened, lambda driver: [row.find_element(By.TAG_NAME, "th").text for row in rows(driver)] == ["30"])


def test_it_goes_on_by_itself_and_says_when_it_cannot(browser, serving, site):
    port, stop = serving()
    browser.get(f"http://127.0.0.1:{port}/")
    assert "nobody has looked yet" in text(browser, "#drift")
    find(browser, "eval")
    until(browser, lambda driver: len(rows(driver)) == 1)
    browser.find_element(By.CSS_SELECTOR, ".jobs summary").click()
    host = {"state": "drifted", "changed": 1, "why": ["file /etc/motd: is another"]}
    said = {"started": site.now() - 60, "serial": 1, "check": True, "hosts": {"dgx01": host}}
    site.check.write_text(json.dumps(said))
    until(browser, lambda driver: "/etc/motd" in text(driver, "#drift"))
    assert len(rows(browser)) == 1 and "instead: " in rows(browser)[0].text  # what was asked for and opened stays
    assert browser.get_log("browser") == []
    stop()
    until(browser, lambda driver: driver.find_element(By.ID, "lost").is_displayed())


def test_without_a_script_it_is_a_plain_page_that_says_when_it_was_made(browser, serving):
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get(f"http://127.0.0.1:{serving()[0]}/?q=eval")
        assert "Made at 2026-11-22" in text(browser, "#now") and "Reload for newer" in text(browser, "header")
        assert len(rows(browser)) == 1
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_with_a_token_a_browser_signs_in_once(browser, serving):
    port, _ = serving("correct-horse-battery-staple", local=False)
    address = f"http://127.0.0.1:{port}/"
    browser.get(address)
    assert "the token is needed" in text(browser, "body")
    browser.get(f"{address}?token=correct-horse-battery-staple")
    assert browser.current_url == address and "What is broken" in text(browser, "main")
    browser.get(f"{address}now?q=notebook")
    assert "notebook" in text(browser, "body")
    browser.delete_all_cookies()
