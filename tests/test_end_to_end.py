"""As a new user would: the daemon with its embedded model, a page in a browser, a kill, and the page again."""

from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from hermes.agent.models import local
from worlds.browser import chromium
from worlds.daemon import SECRET, Daemon

pytestmark = [pytest.mark.browser, pytest.mark.crash]

SECONDS = 60_000
"""Milliseconds for the embedded model to start and answer on a busy machine."""


async def ask(page: Page, text: str) -> None:
    await page.fill("#text", text)
    await page.press("#text", "Enter")


async def log_in(page: Page, url: str) -> None:
    await page.goto(url)
    await page.fill("input[type=password]", SECRET)
    await page.keyboard.press("Enter")
    await expect(page.locator("#text")).to_be_visible()


async def answers(page: Page) -> list[str]:
    """The answers on the page, once nothing is being written."""
    await expect(page.locator("#stop")).to_be_hidden(timeout=SECONDS)
    await expect(page.locator("article.answer.writing")).to_have_count(0, timeout=SECONDS)
    return await page.locator("article.answer .prose").all_inner_texts()


@pytest.mark.skipif(local.available() is not None, reason=str(local.available()))
async def test_a_conversation_in_the_browser_survives_a_kill(tmp_path: Path) -> None:
    async with chromium() as browser, Daemon(tmp_path, {"provider": "local"}) as daemon:
        page = await browser.new_page()
        await log_in(page, daemon.url)
        await ask(page, "What is the capital of France?")
        await expect(page.locator("article.answer .prose")).to_have_count(1, timeout=SECONDS)
        (first,) = await answers(page)
        assert first.strip()
        await ask(page, "And of Italy?")
        await expect(page.locator("article.answer .prose")).to_have_count(2, timeout=SECONDS)
        daemon.kill()
        await daemon.restart()
        await page.reload()
        await expect(page.locator("article.answer .prose")).to_have_count(2, timeout=SECONDS)
        kept, resumed = await answers(page)
        assert kept == first
        assert resumed.strip()
        assert await page.locator("article.question .bubble").all_inner_texts() == [
            "What is the capital of France?",
            "And of Italy?",
        ]
