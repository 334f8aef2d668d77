"""A headless Chromium, driven through a pair of pipes by the DevTools protocol: no driver and no library."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
OPTIONS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"),
    *("--no-first-run", "--disable-extensions", "--disable-background-networking", "--remote-debugging-pipe"),
)
SECONDS = 60  # for one answer


def program() -> str | None:
    """Chromium's program: what CHROMIUM names, or one of the usual names; None where there is none."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


class Chromium:
    """One page of one browser. `events` are those that arrived since the last `open`, (method, parameters)."""

    def __init__(self) -> None:
        self.profile = tempfile.mkdtemp(prefix="chromium-")
        read_there, self.write = os.pipe()
        self.read, write_there = os.pipe()

        def connect() -> None:  # Chromium reads commands from 3 and writes answers to 4
            there = os.dup(read_there), os.dup(write_there)
            os.dup2(there[0], 3)
            os.dup2(there[1], 4)

        self.process = subprocess.Popen(
            [program() or "chromium", *OPTIONS, f"--user-data-dir={self.profile}", "about:blank"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(3, 4, read_there, write_there),
            preexec_fn=connect,
            start_new_session=True,
        )
        os.close(read_there)
        os.close(write_there)
        self.number, self.buffer, self.events, self.session = 0, b"", [], None
        page = next(item for item in self("Target.getTargets")["targetInfos"] if item["type"] == "page")
        self.session = self("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "Accessibility"):
            self(f"{domain}.enable")

    def __call__(self, method: str, **parameters) -> dict:
        """Send a command; returns its result."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write, json.dumps(message).encode() + b"\0")
        return self._until(lambda item: item.get("id") == self.number)["result"]

    def _until(self, wanted) -> dict:
        end = time.monotonic() + SECONDS
        while True:
            while b"\0" in self.buffer:
                text, _, self.buffer = self.buffer.partition(b"\0")
                item = json.loads(text)
                if "method" in item:
                    self.events.append((item["method"], item["params"]))
                if item.get("error"):
                    raise RuntimeError(item["error"]["message"])
                if wanted(item):
                    return item
            if not select.select([self.read], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError(f"Chromium did not answer within {SECONDS} s")
            part = os.read(self.read, 1 << 20)
            if not part:
                raise RuntimeError("Chromium ended")
            self.buffer += part

    def open(self, path: Path | str, width: int = 1280, dark: bool = False, media: str = "screen") -> None:
        """Load a file, or what a URL names, in a window of `width` pixels."""
        self("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 500)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self("Emulation.setEmulatedMedia", media=media, features=[scheme])
        self.events.clear()
        self("Page.navigate", url=path if isinstance(path, str) else path.resolve().as_uri())
        if not any(method == "Page.loadEventFired" for method, _ in self.events):
            self._until(lambda item: item.get("method") == "Page.loadEventFired")

    def js(self, expression: str):
        """The value of an expression on the page; a promise is waited for."""
        answer = self("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"])[:800])
        return answer["result"].get("value")

    def press(self, key: str, code: int) -> None:
        """Press and release a key: `Tab`, 9; `ArrowRight`, 39."""
        text = {"text": " "} if key == " " else {}
        for kind in ("keyDown", "keyUp"):
            self("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **text)

    def screenshot(self, path: Path, whole: bool = True) -> None:
        """Write a PNG of the page."""
        data = self("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        path.write_bytes(base64.b64decode(data))

    def complaints(self) -> list[str]:
        """Exceptions, console errors and warnings, and requests for anything but the page itself."""
        lines = []
        for method, item in self.events:
            if method == "Runtime.exceptionThrown":
                lines.append(item["exceptionDetails"]["text"])
            elif method == "Log.entryAdded" and item["entry"]["level"] in ("error", "warning"):
                lines.append(item["entry"]["text"])
            elif method == "Runtime.consoleAPICalled" and item["type"] in ("error", "warning", "assert"):
                lines.append(str(item["args"]))
            elif method == "Network.requestWillBeSent" and item["request"]["url"].startswith(("http:", "https:", "ws")):
                lines.append(f"request of {item['request']['url']}")
        return lines

    def close(self) -> None:
        """End the browser and remove what it wrote."""
        for end in (self.write, self.read):
            os.close(end)
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)
