"""A person in a browser, for the tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

PATIENCE = 60_000
SHOWN = """new MutationObserver(() => { window.shownAt = performance.now(); })
    .observe(document, { subtree: true, attributeFilter: ["data-question"] });"""
"""Keeps the moment at which a question was shown."""
SEEN = "() => performance.now() - shownAt > 250"
"""Whether the question takes a key."""
NEXT = """(old) => {
  const id = document.querySelector("[data-testid=question]").dataset.question;
  return id !== undefined && id !== old && !document.querySelector(".progress-words").textContent;
}"""
"""Whether there is another question, and the server has all answers: it is not replaced any more then."""
HOSTILE = [
    "<script>window.harmed = 1; alert(1)</script>",
    "<img src=x onerror=window.harmed=2>",
    "javascript:window.harmed=3",
    "' onmouseover='window.harmed=4",
    "</td></table><iframe srcdoc='<script>parent.harmed=5</script>'>",
]
"""What people put into names and cells."""
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
PLACE = """async (row) => {
    const { unpack } = await import("/page/map.js");
    const { places } = unpack(await (await fetch("/api/map")).arrayBuffer());
    const side = (axis, size) => {
        const all = [...places].filter((_, k) => k % 2 === axis);
        return [all[row ?? 0], (Math.min(...all) + Math.max(...all)) / 2, size / (Math.max(...all) - Math.min(...all))];
    };
    const { clientWidth, clientHeight } = document.querySelector(".points");
    const [x, left, wide] = side(0, clientWidth), [y, low, high] = side(1, clientHeight);
    const zoom = 0.92 * Math.min(wide, high);
    return { x: clientWidth / 2 + (x - left) * zoom, y: clientHeight / 2 - (y - low) * zoom };
}"""
"""Where a row is on the map, in pixels from its corner."""


@dataclass
class Visit:
    """A page of the studio, and what went wrong on it."""

    page: Any
    base: str
    troubles: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)

    @classmethod
    def enter(cls, browser: Any, url: str, script: str = "", **options: Any) -> Visit:
        options.setdefault("reduced_motion", "reduce")  # software draws a map that moves again and again
        context = browser.new_context(viewport=options.pop("viewport", {"width": 1280, "height": 800}), **options)
        context.set_default_timeout(PATIENCE)
        context.add_init_script(f"{SHOWN}\n{script}")
        visit = cls(context.new_page(), url.partition("/?")[0])
        visit.listen()
        visit.page.goto(url)
        visit.page.wait_for_selector("[data-testid=question][data-question]")
        return visit

    def listen(self) -> None:
        self.page.on("console", lambda message: self._console(message.type, message.text, message.location["url"]))
        self.page.on("pageerror", lambda error: self.troubles.append(f"error: {error}"))
        self.page.on("dialog", lambda dialog: (self.troubles.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        self.page.on("request", lambda request: self._request(request.url))

    def _console(self, kind: str, text: str, url: str) -> None:
        if kind in ("error", "warning") and "GPU stall" not in text:
            self.troubles.append(f"{kind}: {text} ({url})")

    def _request(self, url: str) -> None:
        if not url.startswith((self.base + "/", "blob:")):
            self.foreign.append(url)

    @property
    def id(self) -> str:
        return str(self.page.get_attribute("[data-testid=question]", "data-question"))

    @property
    def kind(self) -> str:
        return str(self.page.get_attribute("[data-testid=question]", "data-kind"))

    @property
    def rows(self) -> list[int]:
        shown = self.page.locator("#question [data-row]")
        return [int(shown.nth(k).get_attribute("data-row")) for k in range(shown.count())]

    def wait_count(self, number: int) -> None:
        script = "(n) => document.querySelector('[data-testid=count]').textContent === String(n)"
        self.page.wait_for_function(script, arg=number)

    def wait_chips(self, number: int) -> None:
        self.page.wait_for_function("(n) => document.querySelectorAll('.chip').length === n", arg=number)

    def wait_map(self, answers: int) -> None:
        script = """(n) => { const map = document.querySelector('[data-testid=map]').dataset;
            return +map.points > 0 && +map.answers >= n; }"""
        self.page.wait_for_function(script, arg=answers)

    def settle(self) -> None:
        """Wait until the question takes a key."""
        self.page.wait_for_function(SEEN)

    def act(self, do: Callable[[], Any]) -> None:
        """Do something that answers, and wait for the next question, and until the answer is stored.

        A question that was shown again meanwhile may have been too new to take an answer: a person answers once more.
        """
        from playwright.sync_api import TimeoutError as LateError

        old = self.id
        do()
        try:
            self.page.wait_for_function(NEXT, arg=old, timeout=PATIENCE / 3)
        except LateError:
            do()
            self.page.wait_for_function(NEXT, arg=old)

    def press(self, key: str) -> None:
        self.settle()
        self.act(lambda: self.page.keyboard.press(key))

    def click(self, answer: str) -> None:
        self.settle()
        self.act(lambda: self.page.click(f"#question [data-answer={answer}]"))

    def leave(self) -> None:
        self.page.context.close()
        assert self.troubles == []
        assert self.foreign == []
