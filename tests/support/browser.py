"""browser.py: a headless Chromium, driven through its own pipe; only Python's own library.

The DevTools protocol: https://chromedevtools.github.io/devtools-protocol/. Messages are JSON, each
followed by a NUL.
"""
import base64
import json
import os
import shutil
import subprocess
import tempfile
import urllib.parse

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


def find():
    """A Chromium, or None."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Browser:
    """One page. Whatever its console or its scripts complain of is collected in `complaints`."""

    def __init__(self, program):
        self.profile = tempfile.TemporaryDirectory()
        to_read, self.to = os.pipe()
        self.back, to_write = os.pipe()

        def pipes():  # it reads from 3 and writes to 4
            a, b = os.dup(to_read), os.dup(to_write)
            os.dup2(a, 3)
            os.dup2(b, 4)

        # No sandbox: containers of CI systems forbid making one, and the page is our own.
        self.process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--hide-scrollbars",
             f"--user-data-dir={self.profile.name}", "--remote-debugging-pipe", "about:blank"],
            preexec_fn=pipes, close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.number, self.rest, self.complaints, self.events, self.session = 0, b"", [], [], None
        target = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in "Page", "Runtime", "Log", "Network":
            self.call(f"{domain}.enable")

    def receive(self):
        while b"\0" not in self.rest:
            more = os.read(self.back, 1 << 20)
            if not more:
                raise RuntimeError("the browser has ended")
            self.rest += more
        line, self.rest = self.rest.split(b"\0", 1)
        return json.loads(line)

    def note(self, message):
        method, p = message.get("method"), message.get("params", {})
        self.events.append((method, p))
        if method == "Runtime.exceptionThrown":
            self.complaints.append(p["exceptionDetails"].get("exception", {}).get("description")
                                   or p["exceptionDetails"]["text"])
        elif method == "Runtime.consoleAPICalled":
            self.complaints.append(" ".join(str(a.get("value")) for a in p["args"]))
        elif method == "Log.entryAdded":
            self.complaints.append(p["entry"]["text"])

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.note(answer)

    def screen(self, width, height, dark=False, phone=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def open(self, path, address=""):
        """address: what follows the file's in the URL, "#layer0.q_rope"."""
        self.complaints, self.events = [], []
        self.call("Page.navigate", url="file://" + urllib.parse.quote(os.path.abspath(path)) + address)
        while not any(method == "Page.loadEventFired" for method, _ in self.events):
            self.note(self.receive())

    def requests(self):
        """Addresses that the page asked for."""
        return [p["request"]["url"] for method, p in self.events if method == "Network.requestWillBeSent"]

    def ask(self, expression):
        """The value of a JavaScript expression."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def key(self, name, code=0):
        text = "\r" if name == "Enter" else None
        for kind in "keyDown", "keyUp":
            self.call("Input.dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode=code,
                      **({"text": text} if text and kind == "keyDown" else {}))

    def click(self, selector):
        x, y = self.ask(f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.scrollIntoView({{ "
                        f"block: 'center' }});"
                        "const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })()")
        for kind in "mousePressed", "mouseReleased":
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def processor_seconds(self):
        """What the processes of the browser have used so far."""
        children, used = {}, {}
        for entry in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{entry}/stat", encoding="ascii", errors="replace") as f:
                    words = f.read().rsplit(")", 1)[1].split()
            except OSError:
                continue
            children.setdefault(int(words[1]), []).append(int(entry))
            used[int(entry)] = (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
        total, todo = 0, [self.process.pid]
        while todo:
            at = todo.pop()
            total += used.get(at, 0)
            todo += children.get(at, [])
        return total

    def shot(self, path, whole=True):
        data = self.call("Page.captureScreenshot", captureBeyondViewport=whole)["data"]
        with open(path, "wb") as f:
            f.write(base64.b64decode(data))

    def close(self):
        try:
            self.call("Browser.close")
        except (RuntimeError, OSError):
            pass
        self.process.wait(10)
        os.close(self.to)
        os.close(self.back)
        self.profile.cleanup()
