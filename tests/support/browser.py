"""Headless Chromium for tests, controlled by the DevTools protocol over two pipes."""

import contextlib
import functools
import http.server
import json
import os
import select
import shutil
import subprocess
import threading

import pytest

FLAGS = ("--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
         "--disable-component-update --disable-sync").split()


def find():
    """The browser, which tools/browser.sh installs. After that, its absence is a failure."""
    for name in ("chromium", "chromium-browser", "google-chrome", "chrome"):
        if found := shutil.which(name):
            return found
    if os.environ.get("CYGRAD_BROWSER"):            # .ci/run has installed one
        pytest.fail("no browser to open pages in: sh tools/browser.sh installs one")
    pytest.skip("no Chromium on this machine (sh tools/browser.sh installs it)")


class Browser:
    """One tab. `call` runs a command of the protocol, and `events` are the events since then."""

    def __init__(self, directory):
        # The browser reads commands from descriptor 3 and answers on 4, each message ended by a zero byte.
        command = ["sh", "-c", 'exec "$0" "$@" 3<&0 4>&1 </dev/null >/dev/null', find(), *FLAGS,
                   f"--user-data-dir={directory}", "--remote-debugging-pipe", "about:blank"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL)
        self.session, self.number, self.rest, self.events = {}, 0, b"", []
        targets = self.call("Target.getTargets")["targetInfos"]
        target = next(t["targetId"] for t in targets if t["type"] == "page")
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = {"sessionId": attached["sessionId"]}

    def read(self):
        """The next message."""
        while b"\0" not in self.rest:
            assert select.select([self.process.stdout], [], [], 60)[0], "the browser has said nothing for a minute"
            more = os.read(self.process.stdout.fileno(), 1 << 16)
            assert more, "the browser has ended"
            self.rest += more
        message, _, self.rest = self.rest.partition(b"\0")
        return json.loads(message)

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters} | self.session
        self.process.stdin.write(json.dumps(message).encode() + b"\0")
        self.process.stdin.flush()
        while (answer := self.read()).get("id") != self.number: self.events.append(answer)
        assert "error" not in answer, f"{method}: {answer['error']}"
        return answer["result"]

    def open(self, url):
        """Open a page, and wait until it is loaded."""
        self.events.clear()
        if "loaderId" not in self.call("Page.navigate", url=url): return           # only within the page
        while not any(e["method"] == "Page.loadEventFired" for e in self.events): self.events.append(self.read())

    def run(self, script):
        """The value of a JavaScript expression in the page, awaited."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def close(self):
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout): pipe.close()


BACKGROUND = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number)"


def look(browser, width, scheme):
    browser.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 800)
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])


def complaints(browser, served):
    """The browser's reports about the page: errors, exceptions, failed loads, and requests to other hosts."""
    found = []
    for event in browser.events:
        told = event.get("params", {})
        match event["method"]:
            case "Runtime.exceptionThrown": found.append(told["exceptionDetails"]["text"])
            case "Runtime.consoleAPICalled" if told["type"] in ("error", "warning"): found.append(told["args"])
            case "Log.entryAdded" if told["entry"]["level"] in ("error", "warning"): found.append(told["entry"]["text"])
            case "Network.loadingFailed": found.append(told["errorText"])
            case "Network.responseReceived" if told["response"]["status"] >= 400: found.append(told["response"]["url"])
            case "Network.requestWillBeSent" if not told["request"]["url"].startswith((served, "data:")):
                found.append(told["request"]["url"])
    return found


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args): pass


@contextlib.contextmanager
def serving(directory):
    """The address of a server of the files in `directory`."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=directory))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()
