"""The web chat's page in a real browser, against the real adapter and a small gateway around it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from hermes.adapters.base import Guard, Inbound, Route
from hermes.adapters.web.page import FOLDER
from hermes.errors import StoreLocked
from worlds.browser import chromium
from worlds.http_house import house
from worlds.web_world import CODE, SECRET, WebWorld

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with chromium() as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def world(tmp_path: Path) -> AsyncIterator[WebWorld]:
    async with WebWorld().running(tmp_path) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def renderer(browser: Browser) -> AsyncIterator[Page]:
    """The Markdown renderer alone on an empty page."""
    page = await browser.new_page()
    for name in ("texts.js", "markdown.js"):
        await page.add_script_tag(content=(FOLDER / name).read_text(encoding="utf-8"))
    yield page
    await page.close()


@asynccontextmanager
async def visitor(browser: Browser, url: str, **options: Any) -> AsyncIterator[Page]:
    """A page that fails its test when anything is logged as an error, apart from what a refused request says."""
    context = await browser.new_context(**{"locale": "en-GB", **options})
    page = await context.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on(
        "console",
        lambda message: (
            complaints.append(message.text)
            if message.type == "error" and not message.text.startswith(("Failed to load resource", "WebSocket"))
            else None
        ),
    )
    try:
        await page.goto(url)
        yield page
        assert complaints == []
    finally:
        await context.close()


@asynccontextmanager
async def owner(browser: Browser, world: WebWorld, **options: Any) -> AsyncIterator[Page]:
    """The owner's page, logged in by the code of the address and connected."""
    async with visitor(browser, f"{world.url}#code={CODE}", **options) as page:
        world.used_codes.clear()
        await expect(page.locator("#app")).to_be_visible()
        yield page


async def ask(page: Page, world: WebWorld, text: str) -> Inbound:
    await page.fill("#text", text)
    await page.press("#text", "Enter")
    return await world.next_said()


class TestLogin:
    async def test_the_code_of_the_address_logs_in_and_leaves_the_address(
        self, browser: Browser, world: WebWorld
    ) -> None:
        async with owner(browser, world) as page:
            await expect(page.locator("#empty h2")).to_have_text("What is on your mind?")
            assert page.url == world.url

    async def test_a_used_code_and_a_wrong_secret_are_told_apart_and_the_secret_lets_in(
        self, browser: Browser, world: WebWorld
    ) -> None:
        world.used_codes.add(CODE)
        async with visitor(browser, f"{world.url}#code={CODE}") as page:
            await expect(page.locator("#refusal")).to_contain_text("used")
            await page.fill("#secret", "guess")
            await page.press("#secret", "Enter")
            await expect(page.locator("#refusal")).to_have_text("That is not the secret.")
            await page.fill("#secret", SECRET)
            await page.press("#secret", "Enter")
            await expect(page.locator("#app")).to_be_visible()

    async def test_a_stranger_is_told_where_the_secret_lies(self, browser: Browser, world: WebWorld) -> None:
        async with visitor(browser, world.url) as page:
            await expect(page.locator("#login label")).to_contain_text("$HERMES_HOME/web-token")
            await expect(page.locator("#app")).to_be_hidden()

    async def test_the_gateways_own_doors_let_the_page_and_its_socket_in(
        self, browser: Browser, world: WebWorld
    ) -> None:
        assert world.adapter is not None
        lists = Route(method="GET", path="/api/sessions", handler=world.list_sessions, guard=Guard.OWNER)
        async with (
            house([*world.adapter.routes(), lists]) as home,
            visitor(browser, f"{home.url('/')}#code={home.doors.new_code()}") as page,
        ):
            await expect(page.locator("#app")).to_be_visible()
            assert (await ask(page, world, "Hello")).text == "Hello"
            await page.click("#logout")
            await expect(page.locator("#secret")).to_be_visible()

    async def test_logging_out_asks_for_the_secret_again(self, browser: Browser, world: WebWorld) -> None:
        async with owner(browser, world) as page:
            await page.click("#logout")
            await expect(page.locator("#secret")).to_be_visible()

    async def test_the_page_works_below_a_base_path_and_speaks_chinese(self, browser: Browser, tmp_path: Path) -> None:
        async with (
            WebWorld(base="/hermes/").running(tmp_path) as world,
            owner(browser, world, locale="zh-CN") as page,
        ):
            await expect(page.locator("#empty h2")).to_have_text("想聊点什么?")
            question = await ask(page, world, "你好")
            await world.answer(question, "您好!")
            await expect(page.locator(".answer .prose")).to_have_text("您好!")


class TestTalk:
    async def test_an_answer_is_streamed_and_becomes_final(self, browser: Browser, world: WebWorld) -> None:
        async with owner(browser, world) as page:
            question = await ask(page, world, "What is a list?")
            await expect(page.locator(".bubble")).to_have_text("What is a list?")
            world.glimpse(question, tool="session_search")
            await expect(page.locator(".chip.working")).to_have_text("session_search")
            world.glimpse(question, tool="session_search", done=True)
            world.glimpse(question, "Things:\n\n- *on")
            world.glimpse(question, "e*\n- two")
            await expect(page.locator(".writing li")).to_have_count(2)
            await expect(page.locator(".writing em")).to_have_text("one")
            await expect(page.locator("#stop")).to_be_visible()
            call = {"id": "c1", "name": "session_search", "arguments": '{"query":"list"}'}
            await world.answer(question, "Things:\n\n- *one*\n- two\n- three", calls=[call])
            await expect(page.locator(".stored li")).to_have_count(3)
            await expect(page.locator(".live article")).to_have_count(0)
            await expect(page.locator(".bubble")).to_have_count(1)
            await expect(page.locator("#stop")).to_be_hidden()
            await page.click(".tool summary")
            await expect(page.locator(".tool pre")).to_have_text(['{\n  "query": "list"\n}', "3 hits"])
            await expect(page.locator("#sessions .row")).to_have_attribute("aria-current", "page")

    async def test_the_stop_button_and_escape_stop_the_turn(self, browser: Browser, world: WebWorld) -> None:
        async with owner(browser, world) as page:
            for press, by_the_command in ((page.click("#stop"), True), (page.keyboard.press("Escape"), False)):
                question = await ask(page, world, "Count to a million")
                world.glimpse(question, "1, 2, 3")
                await expect(page.locator(".writing .prose").last).to_have_text("1, 2, 3")
                await press
                stop = await world.next_said()
                assert (stop.text, stop.origin.chat_id) == ("/stop", question.origin.chat_id)
                await world.say(stop if by_the_command else question, "Stopped.", key=stop.event_id)
                await expect(page.locator("#stop")).to_be_hidden()
                await expect(page.locator(".writing")).to_have_count(0)

    async def test_a_question_that_is_stored_before_its_answer_is_still_worked_on(
        self, browser: Browser, world: WebWorld
    ) -> None:
        session = world.add(title="Slow", chat_id="slow")
        world.keep(session, "user", "First")
        async with owner(browser, world) as page:
            await page.click("text=Slow")
            question = await ask(page, world, "Second")
            world.keep(session, "user", "Second")
            await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
            await expect(page.locator(".stored .bubble")).to_have_text(["First", "Second"])
            await expect(page.locator(".live .bubble")).to_have_count(0)
            await expect(page.locator("#stop")).to_be_visible()
            await world.say(question, "The model is away.", key="k1", session=session)
            await expect(page.locator("#stop")).to_be_hidden()
            await expect(page.locator(".live .prose")).to_have_text("The model is away.")

    async def test_answers_that_the_store_does_not_hold_stay(self, browser: Browser, world: WebWorld) -> None:
        async with owner(browser, world) as page:
            status = await ask(page, world, "/status")
            await expect(page.locator("#stop")).to_be_hidden()
            await world.say(status, "All is well.", key="k1")
            question = await ask(page, world, "And now?")
            await world.answer(question, "Still well.")
            await expect(page.locator(".stored .prose")).to_have_text("Still well.")
            await expect(page.locator(".live .prose")).to_have_text("All is well.")

    async def test_a_plain_http_name_will_do_and_code_can_still_be_copied(
        self, browser: Browser, world: WebWorld
    ) -> None:
        async with visitor(browser, f"http://house.test:{world.port}/#code={CODE}") as page:
            await expect(page.locator("#app")).to_be_visible()
            question = await ask(page, world, "Hello")
            await world.answer(question, "```sh\nls\n```")
            await page.click(".stored .copy")
            assert await page.evaluate("[isSecureContext, String(getSelection())]") == [False, "ls"]

    async def test_the_copy_button_copies_code(self, browser: Browser, world: WebWorld) -> None:
        async with owner(browser, world, permissions=["clipboard-read", "clipboard-write"]) as page:
            question = await ask(page, world, "Hello")
            await world.answer(question, "```sh\nls -l\n```")
            await page.click(".stored .copy")
            await expect(page.locator(".stored .copy")).to_have_text("Copied")
            assert await page.evaluate("navigator.clipboard.readText()") == "ls -l"

    async def test_two_pages_of_the_owner_stay_in_step(self, browser: Browser, world: WebWorld) -> None:
        session = world.add(title="Shared", chat_id="shared")
        world.keep(session, "user", "First")
        async with owner(browser, world) as page, owner(browser, world) as other:
            for one in (page, other):
                await one.click("text=Shared")
                await expect(one.locator(".bubble")).to_have_text(["First"])
            question = await ask(page, world, "Second")
            assert question.origin.chat_id == "shared"
            await expect(other.locator(".bubble")).to_have_text(["First", "Second"])
            await world.answer(question, "Done.")
            await expect(other.locator(".answer")).to_have_text(["Done."])

    async def test_a_session_from_elsewhere_is_continued_by_its_id(self, browser: Browser, world: WebWorld) -> None:
        session = world.add(source="telegram", title="On the train", chat_id="77")
        world.keep(session, "user", "Where am I?", sender_name="Ada")
        async with owner(browser, world) as page:
            await page.click("text=On the train")
            await expect(page.locator(".sender")).to_have_text("Ada")
            question = await ask(page, world, "And now?")
            assert (question.origin.chat_id, question.continues) == (f"s-{session}", session)
            await world.answer(question, "In Basel.")
            await expect(page.locator(".answer .prose")).to_have_text("In Basel.")

    async def test_enter_sends_unless_shift_is_held_and_the_field_grows_to_eight_lines(
        self, browser: Browser, world: WebWorld
    ) -> None:
        async with owner(browser, world) as page:
            await page.focus("#text")
            heights = []
            for _ in range(12):
                await page.keyboard.type("x")
                await page.keyboard.press("Shift+Enter")
                heights.append(await page.evaluate("document.getElementById('text').clientHeight"))
            assert heights[0] < heights[5] < heights[8] == heights[11]
            await page.keyboard.press("Enter")
            assert (await world.next_said()).text == "\n".join("x" * 12)

    async def test_enter_that_ends_an_input_method_does_not_send(self, browser: Browser, world: WebWorld) -> None:
        async with owner(browser, world) as page:
            await page.fill("#text", "ni")
            await page.evaluate(
                "document.getElementById('text').dispatchEvent("
                "new KeyboardEvent('keydown', { key: 'Enter', isComposing: true, bubbles: true, cancelable: true }))"
            )
            await expect(page.locator("#text")).to_have_value("ni")
            await expect(page.locator(".bubble")).to_have_count(0)

    async def test_a_refused_message_says_why_and_can_be_sent_again(self, browser: Browser, world: WebWorld) -> None:
        world.refuse = StoreLocked("The store is busy.")
        async with owner(browser, world) as page:
            await page.fill("#text", "Hello")
            await page.press("#text", "Enter")
            await expect(page.locator(".refused")).to_contain_text("The store is busy.")
            world.refuse = None
            await page.click(".refused button")
            assert (await world.next_said()).text == "Hello"
            await expect(page.locator(".refused")).to_have_count(0)

    async def test_the_column_follows_the_end_until_the_reader_scrolls_up(
        self, browser: Browser, world: WebWorld
    ) -> None:
        session = world.add(title="Long")
        for index in range(60):
            world.keep(session, "user" if index % 2 == 0 else "assistant", f"Line {index}")
        async with owner(browser, world) as page:
            await page.click("text=Long")
            await expect(page.locator("article").last).to_be_in_viewport()
            await page.evaluate("document.getElementById('scroller').scrollTop = 0")
            await expect(page.locator("#jump")).to_be_visible()
            world.keep(session, "user", "From elsewhere")
            await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
            await expect(page.locator("article")).to_have_count(61)
            await expect(page.locator("article").first).to_be_in_viewport()
            await page.click("#jump")
            await expect(page.locator("article").last).to_be_in_viewport()


class TestLostLine:
    async def test_words_sent_while_the_gateway_is_away_arrive_once_when_it_is_back(
        self, browser: Browser, tmp_path: Path
    ) -> None:
        world = WebWorld()
        async with world.running(tmp_path):
            context = owner(browser, world)
            page = await context.__aenter__()
            first = await ask(page, world, "Before")
        await expect(page.locator("#status")).to_be_visible()
        await page.fill("#text", "While you were away")
        await page.press("#text", "Enter")
        await expect(page.locator(".unsent .bubble")).to_have_text("While you were away")
        session = world.session_of(first)
        world.keep(session, "user", "Before")
        world.keep(session, "assistant", "Answered meanwhile")
        async with world.running(tmp_path):
            second = await world.next_said()
            assert second.text == "While you were away"
            await expect(page.locator(".unsent")).to_have_count(0)
            await expect(page.locator("#status")).to_be_hidden()
            await world.answer(second, "Welcome back.")
            await expect(page.locator(".bubble")).to_have_text(["Before", "While you were away"])
            await expect(page.locator(".prose")).to_have_text(["Answered meanwhile", "Welcome back."])
            assert world.heard.empty()
            await context.__aexit__(None, None, None)

    async def test_words_that_were_not_acknowledged_outlive_a_reload(self, browser: Browser, world: WebWorld) -> None:
        async with owner(browser, world) as page:
            await page.evaluate(
                """localStorage.setItem("hermes.unsent.u1", JSON.stringify(
                   { t: "say", id: "u1", chat: "kept", session: null, text: "Kept words", at: 1 }))"""
            )
            await page.reload()
            assert (await world.next_said()).event_id == "m:u1"
            await expect(page.locator(".bubble")).to_have_text("Kept words")
            await expect(page.locator(".unsent")).to_have_count(0)
            assert await page.evaluate("localStorage.getItem('hermes.unsent.u1')") is None

    async def test_the_open_conversation_outlives_a_reload(self, browser: Browser, world: WebWorld) -> None:
        world.keep(world.add(title="Kept open"), "user", "Hello")
        async with owner(browser, world) as page:
            await page.click("text=Kept open")
            await expect(page.locator(".bubble")).to_have_text("Hello")
            await page.reload()
            await expect(page.locator(".bubble")).to_have_text("Hello")


class TestSessions:
    async def test_the_list_is_grouped_paged_and_opened_with_the_keyboard(
        self, browser: Browser, world: WebWorld
    ) -> None:
        for index in range(45):
            session = world.add(title=f"Talk {index}", chat_id=f"c{index}", at=1_700_000_000 - index, source="telegram")
            world.keep(session, "user", f"Words {index}")
        async with owner(browser, world) as page:
            await expect(page.locator("#sessions .row")).to_have_count(40)
            await expect(page.locator("#sessions h2")).to_have_text("Earlier")
            await page.click(".load-more")
            await expect(page.locator("#sessions .row")).to_have_count(45)
            await page.keyboard.press("Control+k")
            await page.keyboard.press("ArrowDown")
            await page.keyboard.press("ArrowDown")
            await page.keyboard.press("Enter")
            await expect(page.locator(".bubble")).to_have_text("Words 1")
            await page.keyboard.press("Alt+n")
            await expect(page.locator("#empty")).to_be_visible()

    async def test_a_search_shows_marked_snippets_and_leads_to_the_message(
        self, browser: Browser, world: WebWorld
    ) -> None:
        session = world.add(title="Kitchen")
        for index in range(40):
            world.keep(session, "assistant", f"Filler {index}\n\n" * 4)
        match = world.keep(session, "user", "Use <b>lemon</b> & salt")
        for index in range(40):
            world.keep(session, "assistant", f"More {index}\n\n" * 4)
        async with owner(browser, world) as page:
            await page.keyboard.press("Control+k")
            await page.keyboard.type("lemon")
            await expect(page.locator(".snippet")).to_have_text("Use <b>lemon</b> & salt")
            await expect(page.locator("mark")).to_have_text("lemon")
            await page.click(".hit")
            await expect(page.locator(f"[data-message='{match}']")).to_be_in_viewport()
            await page.focus("#search")
            await page.keyboard.press("Escape")
            await expect(page.locator(".hit")).to_have_count(0)

    async def test_a_conversation_is_renamed_archived_and_deleted_from_its_menu(
        self, browser: Browser, world: WebWorld
    ) -> None:
        session = world.add(title="Old name")
        world.keep(session, "user", "Hello")
        async with owner(browser, world) as page:
            await page.click("text=Old name")
            await page.click("#more")
            await page.click("[data-action=rename]")
            await page.fill("#rename", "New name")
            await page.press("#rename", "Enter")
            await expect(page.locator("#title")).to_have_text("New name")
            await expect(page.locator(".row .name")).to_have_text("New name")
            await page.click("#more")
            await page.click("[data-action=archive]")
            await expect(page.locator(".row")).to_have_count(0)
            await page.click("#archived")
            await expect(page.locator(".row")).to_have_count(1)
            for choice, left in (("Keep", 1), ("Delete", 0)):
                await page.click("#more")
                await page.click("[data-action=delete]")
                await page.click(f"dialog button:text('{choice}')")
                await expect(page.locator(".row")).to_have_count(left)
            assert world.talks == {}


class TestLooks:
    @pytest.mark.parametrize("scheme", ["light", "dark"])
    async def test_the_page_follows_the_system_and_the_toggle(
        self, browser: Browser, world: WebWorld, scheme: str
    ) -> None:
        async with owner(browser, world, color_scheme=scheme) as page:
            background = "getComputedStyle(document.body).backgroundColor"
            before = await page.evaluate(background)
            assert (before == "rgb(255, 255, 255)") == (scheme == "light")
            await page.click("#theme")
            after = await page.evaluate(background)
            assert after != before
            await page.reload()
            await expect(page.locator("#app")).to_be_visible()
            assert await page.evaluate(background) == after

    async def test_on_a_phone_the_list_is_a_drawer_and_nothing_is_wider_than_the_window(
        self, browser: Browser, world: WebWorld, tmp_path: Path
    ) -> None:
        session = world.add(title="Wide things")
        world.keep(
            session, "assistant", "| a | b |\n|--|--|\n| " + "wide " * 40 + " | " + "x" * 300 + " |\n\n" + "y" * 900
        )
        async with owner(browser, world, viewport={"width": 390, "height": 844}) as page:
            await expect(page.locator("#sidebar")).not_to_be_in_viewport()
            await page.click("#drawer")
            await expect(page.locator("#sidebar")).to_be_in_viewport()
            await page.click("text=Wide things")
            await expect(page.locator("#sidebar")).not_to_be_in_viewport()
            await expect(page.locator("table")).to_be_visible()
            assert await page.evaluate("document.documentElement.scrollWidth") == 390
            assert await page.evaluate("document.getElementById('scroller').scrollWidth") == 390
            await page.screenshot(path=tmp_path / "phone.png")
            assert (tmp_path / "phone.png").stat().st_size > 10_000


HOSTILE = """<script>window.pwned = 1</script>

<img src=x onerror="window.pwned = 1"> <svg onload=alert(1)> <iframe src="javascript:alert(1)"></iframe>

[click](javascript:window.pwned=1) [data](data:text/html,<script>1</script>) [v](vbscript:x) [tab](java\tscript:1)

![picture](https://127.0.0.1:1/track.png) ![x](javascript:1) <javascript:alert(1)> <https://ok.example/"onclick=1>

| <script>1</script> | b |
|---|---|
| <img src=x onerror=1> | `<b>` |

```html" onload="x
<script>window.pwned = 1</script>
"""


class TestMarkdown:
    async def test_hostile_text_becomes_text(self, browser: Browser, world: WebWorld) -> None:
        requests: list[str] = []
        async with owner(browser, world) as page:
            page.on("request", lambda request: requests.append(request.url))
            question = await ask(page, world, HOSTILE)
            text = HOSTILE + "```\n\n" + "*_[`<![~~" * 1_000 + "x" * 100_000
            for start in range(0, len(HOSTILE), 40):
                world.glimpse(question, HOSTILE[start : start + 40])
            await world.answer(question, text)
            await expect(page.locator(".stored .prose figure")).to_be_visible(timeout=20_000)
            assert await page.locator("#log :is(script, img, iframe, svg[onload], [onerror], [onclick])").count() == 0
            links = await page.eval_on_selector_all("#log a", "all => all.map(a => [a.protocol, a.rel, a.target])")
            assert links
            assert all(link == ["https:", "noopener noreferrer nofollow", "_blank"] for link in links)
            assert await page.evaluate("window.pwned") is None
        assert [url for url in requests if not url.startswith(world.url)] == []

    @pytest.mark.parametrize(
        ("text", "html"),
        [
            ("# One #\ntwo", "<h3>One</h3><p>two</p>"),
            ("a *b* **c** ~~d~~", "<p>a <em>b</em> <strong>c</strong> <del>d</del></p>"),
            ("`e*f*` _g_ snake_case_name", "<p><code>e*f*</code> <em>g</em> snake_case_name</p>"),
            ("***both*** 2 * 3 * 4 \\*no\\*", "<p><strong><em>both</em></strong> 2 * 3 * 4 *no*</p>"),
            ("**粗体**文字", "<p><strong>粗体</strong>文字</p>"),
            ("one\ntwo<br>three", "<p>one<br>two<br>three</p>"),
            ("- a\n  - b\n- c", "<ul><li>a<ul><li>b</li></ul></li><li>c</li></ul>"),
            ("3. a\n4. b", '<ol start="3"><li>a</li><li>b</li></ol>'),
            ("- a\n\n  b\n- c", "<ul><li><p>a</p><p>b</p></li><li>c</li></ul>"),
            ("- [x] done", '<ul><li class="task"><input type="checkbox" disabled="">done</li></ul>'),
            ("> a\n> > b", "<blockquote><p>a</p><blockquote><p>b</p></blockquote></blockquote>"),
            ("a\n\n---\n\nb", "<p>a</p><hr><p>b</p>"),
            (
                "|a|b|\n|-|-:|\n|`x\\|y`|2|",
                (
                '<div class="table" tabindex="0"><table>'
                 '<thead><tr><th class="">a</th><th class="right">b</th></tr></thead>'
                 '<tbody><tr><td class=""><code>x|y</code></td><td class="right">2</td></tr></tbody></table></div>'
                ),
            ),
            ("It was\n1984. A year", "<p>It was<br>1984. A year</p>"),
            ("<b>raw</b> & text", "<p>&lt;b&gt;raw&lt;/b&gt; &amp; text</p>"),
            ("**open", "<p>**open</p>"),
        ],
    )  # fmt: skip
    async def test_markdown_becomes_nodes(self, renderer: Page, text: str, html: str) -> None:
        assert await renderer.evaluate("text => renderMarkdown(text).innerHTML", text) == html

    @pytest.mark.parametrize(
        ("text", "address", "label"),
        [
            ("see https://a.example/x_(y). Good", "https://a.example/x_(y)", "https://a.example/x_(y)"),
            ("(https://a.example/b)", "https://a.example/b", "https://a.example/b"),
            ("[a *b*](http://a.example 'title')", "http://a.example", "a b"),
            ("[https://a.example](https://b.example)", "https://b.example", "https://a.example"),
            ("<mailto:me@a.example>", "mailto:me@a.example", "me@a.example"),
            ("![A cat](https://a.example/cat.png)", "https://a.example/cat.png", "🖼 A cat"),
            ("网址https://a.example/路径。", "https://a.example/路径", "https://a.example/路径"),
            ("xhttps://a.example", None, None),
            ("看 https://a.example/x。好", "https://a.example/x", "https://a.example/x"),
        ],
    )
    async def test_links_lead_where_they_say(
        self, renderer: Page, text: str, address: str | None, label: str | None
    ) -> None:
        found = await renderer.evaluate(
            "text => [...renderMarkdown(text).querySelectorAll('a')]"
            ".map(link => [link.getAttribute('href'), link.textContent])",
            text,
        )
        assert found == ([] if address is None else [[address, label]])

    async def test_a_streamed_text_ends_as_the_whole_text_does_and_keeps_finished_blocks(self, renderer: Page) -> None:
        blocks = (
            "# T",
            "Words *and* more",
            "- a\n  - b",
            "- c",
            "```\nx = 1\n\ny = 2\n```",
            "|a|b|\n|-|-|\n|1|2|",
            "> q",
            "End.",
        )
        text = "\n\n".join(blocks)
        streamed, whole, kept = await renderer.evaluate(
            """text => {
              const root = document.createElement("div");
              const view = new MarkdownView(root);
              let first = null;
              for (const character of text) {
                view.append(character);
                if (!first && root.children.length > 1) first = root.firstChild;
              }
              return [root.innerHTML, renderMarkdown(text).innerHTML, root.firstChild === first];
            }""",
            text,
        )
        assert streamed == whole
        assert kept

    @pytest.mark.parametrize(
        "pattern", ["*a ", "[", "`", "**", "_a*", "[a](", "![", "<", "~~x", "> ", "- ", "|", "`` ` ", "(((", "https://"]
    )
    async def test_a_hundred_kilobytes_of_marks_are_shown_within_a_second(self, renderer: Page, pattern: str) -> None:
        line = (pattern * 100_000)[:100_000]
        milliseconds = await renderer.evaluate(
            "line => { const start = performance.now(); renderMarkdown(line); return performance.now() - start; }",
            line,
        )
        assert milliseconds < 1000

    async def test_an_unfinished_code_block_is_code_already(self, renderer: Page) -> None:
        assert await renderer.evaluate("renderMarkdown('```sh\\nls -l').querySelector('code').textContent") == "ls -l"
