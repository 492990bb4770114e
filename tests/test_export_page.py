"""The exported page in a real browser: it shows and finds what was said, and does nothing that somebody wrote."""

from collections.abc import AsyncIterator
from contextlib import closing
from datetime import UTC
from functools import partial
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from contracts.store.facts import T0, tell
from hermes.sessions.database import open_readable, snapshot
from hermes.sessions.exports import files, html
from hermes.sessions.exports.document import Reading
from hermes.sessions.filters import Filter
from hermes.sessions.model import OWNER
from hermes.sessions.store import open_store
from worlds.archive import fill
from worlds.browser import chromium

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

HOSTILE = (
    "<script>document.title='owned'</script>",
    "<img src=x onerror=\"document.title='owned'\">",
    "![](http://127.0.0.1:9/track.png) ![x](data:image/svg+xml,<svg/onload=alert(1)>)",
    "[a](javascript:document.title='owned') [b](data:text/html,hi) [c](file:///etc/passwd) [d](vbscript:x)",
    "</article></section></main></body><h1 id=find>fake</h1>",
    '<style>*{display:none}</style> <a href="http://x" onclick=alert(1)>y</a>',
    "[e](https://example.com/\"onmouseover=\"document.title='owned')",
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with chromium() as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def page(browser: Browser, tmp_path: Path) -> AsyncIterator[Page]:
    """The export of a store with ordinary and hostile words; any request or complaint of the page fails the test."""
    store = await open_store(tmp_path / "state.db")
    await fill(store)
    await tell(store, "h", *HOSTILE, title="</title><script>document.title='owned'</script>")
    lineages = await store.select(Filter(), OWNER)
    with closing(open_readable(tmp_path / "state.db")) as connection:
        reading = Reading(partial(snapshot, connection))
        shown = [reading.whole(one) for one in lineages]
        files.write(tmp_path / "page.html", html.page(shown, exported_at=T0, zone=UTC))
    await store.close()
    page = await browser.new_page()
    trouble: list[str] = []
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("console", lambda message: trouble.append(message.text))
    page.on("dialog", lambda dialog: trouble.append(dialog.message))
    page.on("request", lambda request: trouble.append(request.url) if not request.url.startswith("file:") else None)
    await page.goto((tmp_path / "page.html").as_uri())
    yield page
    await page.close()
    assert trouble == []


async def test_every_conversation_is_there_and_in_the_sidebar(page: Page) -> None:
    assert await page.locator("main > section").count() == 4
    assert await page.locator("nav a").count() == 4
    await page.locator("nav a", has_text="proj #2").click()
    await expect(page.locator("#s1 h1")).to_be_in_viewport()
    await expect(page.locator("#s1 article")).to_have_count(6)
    await expect(page.locator("#s1 article.user b").first).to_have_text("Ann")


async def test_tool_output_is_folded_and_opens(page: Page) -> None:
    result = page.locator("#s1 article.tool pre")
    await expect(result).to_be_hidden()
    await page.locator("#s1 article.tool summary").click()
    await expect(result).to_have_text("def login(): ...")


async def test_the_search_box_finds_and_forgets(page: Page) -> None:
    await page.keyboard.press("/")
    await page.keyboard.type("AUTH")
    await expect(page.locator("#found")).to_have_text("1 message")
    await expect(page.locator("mark")).to_have_text("auth")
    await expect(page.locator("nav li:visible")).to_have_count(1)
    await page.keyboard.press("Escape")
    await expect(page.locator("mark")).to_have_count(0)
    await expect(page.locator("nav li:visible")).to_have_count(4)
    await page.locator("#find").fill("修复")
    await expect(page.locator("#found")).to_have_text("1 message")
    await page.locator("#find").fill("no such words")
    await expect(page.locator("main > section:visible")).to_have_count(0)


async def test_hostile_words_are_only_words(page: Page) -> None:
    hostile = page.locator("section", has=page.locator("h1", has_text="owned"))
    await expect(hostile.locator("article")).to_have_count(len(HOSTILE))
    assert await page.title() == "4 conversations"
    assert (
        await page.evaluate("document.querySelectorAll('img, iframe, script, style, object, embed, form').length") == 2
    )
    links = await page.locator("main a").evaluate_all("found => found.map(one => one.getAttribute('href'))")
    assert [link.partition("://")[0] for link in links] == ["http", "https"]
    handlers = "[...document.querySelectorAll('*')].some(one => [...one.attributes].some(a => a.name.startsWith('on')))"
    assert not await page.evaluate(handlers)
    await expect(hostile.locator("article", has_text="fake")).to_be_visible()


async def test_dark_light_and_print_are_all_readable(page: Page) -> None:
    grounds = set()
    for scheme in ("light", "dark"):
        await page.emulate_media(color_scheme=scheme)
        grounds.add(await page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert len(grounds) == 2
    await page.emulate_media(media="print")
    await expect(page.locator("header")).to_be_hidden()
    await page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    await expect(page.locator("#s1 article.tool pre")).to_be_visible()


async def test_one_conversation_has_no_sidebar_and_an_empty_page_says_so(browser: Browser, tmp_path: Path) -> None:
    files.write(tmp_path / "none.html", html.page([], exported_at=T0, zone=UTC))
    page = await browser.new_page()
    await page.goto((tmp_path / "none.html").as_uri())
    await expect(page.get_by_text("No conversation matched.")).to_be_visible()
    assert await page.locator("nav").count() == 0
    await page.close()
