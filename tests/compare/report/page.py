#!/usr/bin/env python3
"""page.py VERNIER [SHOTS]: the page of `compare --format html`, as people and their keys find it in a Chromium.

With SHOTS, a folder, screenshots of every page in light, dark and on a phone go there, to be looked at.
Status 77, skipped: there is no Chromium (Debian: chromium-headless-shell), or no h5py.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
SUPPORT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support")
sys.path.insert(0, SUPPORT)
import browser  # noqa: E402

try:
    import editing as h5py
    import numpy as np
    import any_model
except ImportError:
    print("page.py: no h5py, or no xxhash; skipped")
    sys.exit(77)

HERE = os.path.dirname(os.path.abspath(__file__))
MODEL = os.path.join(HERE, "..", "..", "..", "fixtures", "qwen2-trained")
IDS = "@" + os.path.join(HERE, "..", "..", "..", "fixtures", "prompts", "p017.ids")
EVIL = "</script><script>document.title='stolen'</script><img src=x onerror=document.title='stolen'>"
HIDDEN = "\x1b\u009b\u202e\u200b\u2028\U000e0041"
SCREENS = {"light": (1280, 900, False, False), "dark": (1280, 900, True, False), "phone": (390, 844, False, True)}


def vernier(*args, status=0):
    done = subprocess.run([VERNIER, *args], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == status, (args, done.returncode, done.stderr)


def capture(out, *args, model=MODEL):
    vernier("capture", "ref", model, "--ids", IDS, "-o", out, *args)


def change(source, out, **tensors):
    """A copy in which tensors (double underscores for slashes) went through functions."""
    shutil.copy(source, out)
    with h5py.File(out, "r+") as f:
        for name, function in tensors.items():
            d = f[name.replace("__", "/").replace("step", "step.")]
            del d.attrs["digest"]
            d[...] = function(d[()].astype(np.float32))


def compare(ref, cand, out, *args, status=1):
    vernier("compare", ref, cand, "-q", "-o", out, "-o", out.replace(".html", ".json"), *args, status=status)


def make_pages():
    """The pairs, and a page of each: two faults, correct, deep, decoded, hostile, several candidates."""
    capture("ref.h5")
    capture("half.h5", "--precision", "f16")
    capture("stopped.h5", "--precision", "f16", "--inject", "R1@layer1.q_rope", "--against", "ref.h5",
            "--stop-at-first")
    compare("ref.h5", "stopped.h5", "stopped.html", "--model", MODEL)
    capture("floor.h5", "--precision", "f16")  # the same bits, and not the candidate itself

    def heads(x):
        x[:, 4:6] *= 1.2
        return x

    def nan(x):
        x[3, 7] = np.nan
        return x

    change("half.h5", "bad.h5", step0__layer0__q_rope=heads, step0__layer1__mlp_act=nan)
    with h5py.File("bad.h5", "r+") as f:
        f["step.0/layer0/q_rope"].attrs["source_line"] = "engine.py:123"
    compare("ref.h5", "bad.h5", "bad.html", "--floor", "half.h5")
    compare("ref.h5", "bad.h5", "replay.html", "--model", MODEL)
    capture("wrong.h5", "--precision", "f16", "--points", "*", "--inject", "R1@layer1.q_rope")
    capture("all.h5", "--points", "*")
    compare("all.h5", "wrong.h5", "explain.html", "--model", MODEL, "--explain")
    shutil.copy("half.h5", "missing.h5")
    with h5py.File("missing.h5", "r+") as f:
        del f["step.0/layer1"]
    compare("ref.h5", "missing.h5", "missing.html", "--floor", "half.h5")
    compare("ref.h5", "half.h5", "correct.html", "--floor", "floor.h5", status=0)
    compare("ref.h5", "bad.h5", "known.html", "--floor", "half.h5", "--baseline", "bad.json", status=0)

    capture("late.h5", "--precision", "f16", "--inject", "R1@layer1.q_rope")
    vernier("compare", "ref.h5", "half.h5", "bad.h5", "missing.h5", "late.h5", "floor.h5", "-q", "-o", "several.html",
            status=1)
    shutil.copy("half.h5", "half2.h5")
    vernier("compare", "ref.h5", "half.h5", "half2.h5", "floor.h5", "late.h5", "missing.h5", "bad.h5", "-q", "-o",
            "worst.html", status=1)
    for name in "ref", "bad":
        shutil.copy(name + ".h5", name + "-bare.h5")
        with h5py.File(name + "-bare.h5", "r+") as f:
            del f["model"], f["plan"]
    compare("ref-bare.h5", "bad-bare.h5", "bare.html", "--model", MODEL)
    vernier("compare", "ref.h5", "half.h5", "half2.h5", "-q", "-o", "agree.html")

    for name, *fault in ("deep",), ("faulty", "7"):
        subprocess.run([sys.executable, os.path.join(SUPPORT, "deep_model.py"), MODEL, "80", name, *fault], check=True)
    capture("deep.h5", model="deep")
    capture("deep-half.h5", "--precision", "f16", model="deep")
    capture("faulty.h5", "--precision", "f16", model="faulty")
    compare("deep.h5", "faulty.h5", "deep.html", "--floor", "deep-half.h5", "--allow", "weights")
    # an error near the limits through 72 layers has no further origin
    with open("deep.json", encoding="utf-8") as f:
        assert json.load(f)["origins"] == ["layer7.q_proj"]

    capture("steps.h5", "--force-ids", "5,6,7,8", model="deep")
    capture("steps-half.h5", "--force-ids", "5,6,7,8", "--precision", "f16", model="deep")
    change("steps-half.h5", "steps-bad.h5", step3__layer1__v_proj=lambda x: 2 * x)
    compare("steps.h5", "steps-bad.h5", "steps.html", "--floor", "steps-half.h5")

    graph, inputs = any_model.model(layers=5), any_model.tokens()  # a model that vernier has no plan of
    any_model.record("any-ref.h5", graph, any_model.run(graph, inputs, "f64"), "f64")
    twice = lambda n, _, out: [2 * x for x in out] if n.path == "model.layers.3.proj" else None
    any_model.record("any.h5", graph, any_model.run(graph, inputs, "f32", twice), "f32")
    compare("any-ref.h5", "any.h5", "any.html")

    shutil.copy("half.h5", "evil.h5")
    with h5py.File("evil.h5", "r+") as f:
        f["run"].attrs["engine"] = EVIL
        f["step.0"]["`|" + EVIL.replace("/", "_")] = f["step.0/logits"][()]
        f["step.0/layer0"]["q_rope"].attrs["axes"] = "token head <b>"
        f["step.0"][b"\xff\xfe"] = f["step.0/logits"][()]
    compare("ref.h5", "evil.h5", "evil.html")
    with h5py.File("evil.h5", "r+") as f:
        f["run"].attrs["device"] = HIDDEN
        f["step.0"]["hidden" + HIDDEN[1:]] = f["step.0/logits"][()]
    compare("ref.h5", "evil.h5", "hidden.html")


def contrast(b, selector):
    """The contrast of an element's text to its background, by WCAG: 4.5 is readable."""
    return b.ask("""(() => {
        const light = (c) => { const k = c.match(/[\\d.]+/g).slice(0, 3).map((x) => x / 255)
            .map((x) => x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
            return 0.2126 * k[0] + 0.7152 * k[1] + 0.0722 * k[2]; };
        const e = document.querySelector(%s);
        let behind = e;
        while (behind && /rgba\\(0, 0, 0, 0\\)/.test(getComputedStyle(behind).backgroundColor))
            behind = behind.parentElement;
        const [a, z] = [light(getComputedStyle(e).color), light(getComputedStyle(behind).backgroundColor)]
            .sort((x, y) => y - x);
        return (a + 0.05) / (z + 0.05); })()""" % json.dumps(selector))


def text(b, selector):
    return b.ask(f"document.querySelector({json.dumps(selector)}).innerText")


def is_quiet_and_fits(b, name):
    for screen, look in SCREENS.items():
        b.screen(*look)
        b.open(f"{name}.html")
        assert not b.complaints, (name, screen, b.complaints)
        assert len(b.requests()) == 1, b.requests()
        assert b.ask("document.documentElement.scrollWidth <= innerWidth"), (name, screen, "scrolls sideways")
        assert not b.ask("document.querySelector('main').hidden") and text(b, "#detail-body")
        for selector in "h1", ".dim", "#detail-body dd", "#pointed", "#runs td", "#found td", "#legend li":
            assert contrast(b, selector) >= 4.5, (name, screen, selector, contrast(b, selector))
        # Tables of the details are read without a finger on them: on a phone, too.
        b.ask("document.querySelectorAll('#detail-body details').forEach((x) => { x.open = true; })")
        wide = b.ask("[...document.querySelectorAll('#detail-body .scroll')].filter((x) => x.scrollWidth > "
                     "x.clientWidth + 1).map((x) => x.innerText.slice(0, 40) + ' ' + x.scrollWidth + ' in ' + "
                     "x.clientWidth)")
        assert not wide, (name, screen, wide)
        if SHOTS:
            b.screen(look[0], min(4000, b.ask("document.documentElement.scrollHeight")), *look[2:])
            b.shot(os.path.join(SHOTS, f"{name}-{screen}.png"), whole=False)


def every_page_is_quiet_and_fits(b, name):
    is_quiet_and_fits(b, name)
    with open(f"{name}.json", encoding="utf-8") as f:
        report = json.load(f)
    data = b.ask("JSON.parse(document.getElementById('report').textContent)")
    assert [data[k] for k in ("schema", "verdict", "first_divergence",
                              "origins")] == [report[k] for k in ("schema", "verdict", "first_divergence", "origins")]
    assert text(b, "h1") == {"within": "within limits",
                             "known": "no worse than the baseline"}.get(report["verdict"], "OUTSIDE limits")
    cells = b.ask("document.querySelectorAll('#map td[data-at]').length + document.querySelectorAll('#strip "
                  "button').length")
    assert cells == len({c["name"] for c in report["checkpoints"]}), (name, cells)


def what_the_baseline_knows_is_told_from_what_fails(b):
    b.open("known.html")
    marks = b.ask("[...document.querySelectorAll('#map td[data-at], #strip button')].map((x) => "
                  "x.textContent).join('')")
    assert marks.count("\u25cb") == 2 and "\u25c6" not in marks and "\u2022" not in marks, marks
    assert "\u25cb known" in text(b, "#legend") and "null" not in text(b, "#legend")
    assert "2 outside as before" in text(b, "header")
    b.open("bad.html")
    assert "known" not in text(b, "#legend") and "null" not in text(b, "#legend"), text(b, "#legend")


def what_agreed_is_told_from_what_was_not_run(b):
    b.open("stopped.html")
    colour = lambda name: b.ask(f"document.querySelector(\"[aria-label^='{name}:']\").className")
    assert [colour(x)
            for x in ("layer 0, output", "layer 1, k_proj", "layer 1, k_rope")] == ["agreed", "agreed", "absent"]
    legend = text(b, "#legend")
    assert "agreed" in legend and "in one recording" in legend and "no limit" not in legend, legend
    b.open("bad.html")
    assert "agreed" not in text(b, "#legend")


def a_click_opens_a_cell(b):
    b.screen(*SCREENS["light"])
    b.open("bad.html")
    assert text(b, "#detail-title") == "layer0.q_rope" and "heads 4-5 of 6" in text(b, "#detail-body")
    assert "engine.py:123" in text(b, "#detail-body") and "recorded at (reference)" not in text(b, "#detail-body")
    b.click("[aria-label^='layer 1, mlp_act:']")
    assert text(b, "#detail-title") == "layer1.mlp_act"
    for words in ("OUTSIDE limits", "nonfinite", "fp16-acc32.yaml:", "ffn 7: reference",
                  "the NaN and infinities are in token 3 of 17", "layer1.gate_proj"):
        assert words in text(b, "#detail-body"), (words, text(b, "#detail-body"))
    assert b.ask("document.getElementById('growth-point').value") == "mlp_act"
    b.click("#detail-body li button.link")  # what it was computed from
    assert text(b, "#detail-title") == "layer1.gate_proj" and "within limits" in text(b, "#detail-body")
    b.click("header button.link")
    assert text(b, "#detail-title") == "layer0.q_rope"
    b.click("#strip button[data-label=logits]")
    assert text(b, "#detail-title") == "logits" and "kl_mean" in text(b, "#detail-body")
    assert b.ask("[...document.querySelectorAll('svg[role=img]')].every((s) => s.getAttribute('aria-label').length > "
                 "20)")


def what_an_operation_added_itself_is_told(b):
    b.open("replay.html")
    assert "Local or inherited error" in text(b, "#detail-body") and "captured wrongly" in text(
        b, "#detail-body"), text(b, "#detail-body")
    assert b.ask("document.querySelector('#growth "
                 "path.local').getAttribute('d').length") > 5 and "replayed" in text(b, ".wide .key")
    b.click("[aria-label^='layer 1, q_rope:']")
    assert "local error" in text(b, "#detail-body") and "inherited" in text(b, "#detail-body")
    b.open("bad.html")
    assert "local error" not in text(b, "#detail-body") and not b.ask(
        "document.querySelector('.wide .k-local').checkVisibility()")


def a_layer_that_is_missing_has_its_place(b):
    b.screen(*SCREENS["light"])
    b.open("missing.html")
    b.click("[aria-label^='layer 1, q_proj:']")
    assert "not in the candidate" in text(b, "#detail-body"), text(b, "#detail-body")
    here, axis = b.ask("(() => { const s = document.querySelector('#growth svg'), "
                       "l = s.querySelector('.here').getAttribute('x1');"
                       "return [Number(l), [...s.querySelectorAll('text:not(.axis)')].filter((t) => "
                       "t.getAttribute('text-anchor') === 'middle').map((t) => [t.textContent, "
                       "Number(t.getAttribute('x'))])]; })()")
    assert dict(axis) == {"0": 56, "1": here} and 56 < here <= b.ask("Number(document.querySelector('#growth "
                                                                     "svg').getAttribute('width'))"), (here, axis)


def keys_reach_every_cell(b):
    active = "document.activeElement.getAttribute('aria-label')"
    b.screen(*SCREENS["light"])
    b.open("deep.html")
    for _ in range(12):
        b.key("Tab", 9)
        if b.ask("document.activeElement.role === 'gridcell'"):
            break
    assert b.ask(active).startswith("layer 7, q_proj: OUTSIDE limits"), b.ask(active)
    assert b.ask("document.querySelectorAll('#map [tabindex=\"0\"]').length") == 1
    for key, where in (("ArrowRight", "layer 8, q_proj"), ("ArrowDown", "layer 8, k_proj"), ("End", "layer 79, k_proj"),
                       ("ArrowRight", "layer 79, k_proj"),
                       ("Home", "layer 0, k_proj"), ("ArrowUp", "layer 0, q_proj"), ("ArrowLeft", "layer 0, q_proj")):
        b.key(key)
        assert b.ask(active).startswith(where + ":"), (key, b.ask(active))
        assert text(b, "#detail-title") == where.replace("layer ", "layer").replace(", ", "."), key
    b.key("Enter", 13)
    assert b.ask("document.activeElement.id") == "detail-title"
    b.key("Escape", 27)
    assert b.ask(active).startswith("layer 0, q_proj: within limits")
    tree = b.call("Accessibility.getFullAXTree")["nodes"]
    names = [n["name"]["value"] for n in tree if n.get("role", {}).get("value") == "gridcell" and not n.get("ignored")]
    assert len([n for n in names if n.startswith("layer ")]) == 80 * 15, len(names)
    assert not b.complaints, b.complaints


def on_a_phone_layers_go_down_and_a_tap_shows_details(b):
    b.screen(*SCREENS["phone"])
    b.open("deep.html")
    assert b.ask("document.querySelectorAll('#map tbody tr').length") == 80
    assert b.ask("document.querySelector('#map td[data-at]').getBoundingClientRect().height") >= 20
    b.click("[aria-label^='layer 9, v_proj:']")
    assert text(b, "#detail-title") == "layer9.v_proj"
    assert -1 < b.ask("document.getElementById('detail').getBoundingClientRect().top") < 500  # scrolled by whole pixels
    b.click("#back")
    assert b.ask("document.activeElement.getAttribute('aria-label')").startswith("layer 9, v_proj:")
    assert 0 <= b.ask("document.activeElement.getBoundingClientRect().top") < 844


def steps_can_be_chosen(b):
    b.screen(*SCREENS["light"])
    b.open("steps.html")
    assert text(b, "#detail-title") == "step.3/layer1.v_proj"
    b.ask("(() => { const s = document.getElementById('step'); s.value = '1'; s.dispatchEvent(new Event('change')); "
          "})()")
    assert b.ask("document.querySelectorAll('#map td[aria-label*=OUTSIDE]').length") == 0
    b.click("[aria-label^='step 1, layer 0, k_proj:']")
    assert text(b, "#detail-title") == "step.1/layer0.k_proj" and "in step 1" in text(b, "#growth")
    assert "headroom" in text(b, "#detail-body") and "All metrics" in text(b, "#detail-body")
    # The last step's checkpoints, of 6015, are on the page as rows.
    b.ask("(() => { const s = document.getElementById('step'); s.value = '4'; s.dispatchEvent(new Event('change')); "
          "})()")
    b.click("[aria-label^='step 4, layer 79, k_proj:']")
    assert "the page is brief about most checkpoints" in text(b, "#detail-body") and "nmse" in text(b, "#detail-body")
    assert "in step 4" in text(b, "#growth") and not b.complaints, b.complaints


def keys_are_of_what_is_drawn(b, box, drawn):
    said = b.ask("[...document.getElementById('%s').closest('section').querySelectorAll('.key li')]"
                 ".filter((x) => !x.hidden).map((x) => x.className.slice(2))" % box)
    assert [x for x in said if x not in ("error", "other")] == drawn, (box, said)


def error_grows_over_steps_too(b):
    b.screen(*SCREENS["light"])
    b.open("steps.html")
    assert b.ask("document.getElementById('steps').checkVisibility()")
    words = text(b, "#steps p")
    assert words.startswith("nmse of layer1.v_proj from step 0 to 4:") and "the largest 1 in step 3" in words, words
    assert b.ask("document.querySelector('#steps path.error').getAttribute('d').match(/[ML]/g).length") == 5
    keys_are_of_what_is_drawn(b, "steps", ["floor", "beyond"])  # the limit of a single step is no line
    b.click("#strip button[data-label$=logits]")
    assert text(b, "#steps p").startswith("nmse of logits from step 0 to 4:"), text(b, "#steps p")
    b.open("bad.html")
    assert not b.ask("document.getElementById('steps').checkVisibility()")
    keys_are_of_what_is_drawn(b, "growth", ["floor", "limit", "beyond"])
    b.open("correct.html")
    keys_are_of_what_is_drawn(b, "growth", ["floor", "limit"])


OUTSIDE_OF_ALL = ("(data = JSON.parse(document.getElementById('report').textContent), data.checkpoints.filter((c) => "
                  "c.fails).length + data.rows.filter((x, i) => i % 9 === 1 && data.kinds[x].fails).length)")
FADED = "[...document.querySelectorAll('#map-box td[data-at]:not(.off)')].map((x) => x.getAttribute('aria-label'))"


def chips_leave_what_they_name(b):
    b.screen(*SCREENS["light"])
    b.open("deep.html")
    all_of_them = b.ask(FADED)
    outside = [x for x in all_of_them if "OUTSIDE" in x]
    b.click("#chip-outside")
    assert b.ask(FADED) == outside and 2 < len(outside) < len(all_of_them), b.ask(FADED)
    assert b.ask("document.getElementById('chip-outside').getAttribute('aria-pressed')") == "true"
    found = text(b, "#found")
    assert found.startswith(f"{b.ask(OUTSIDE_OF_ALL)} checkpoints") and "OUTSIDE, an origin" in found, found
    assert b.ask("document.querySelector('#found tbody tr').innerText").startswith("layer7.q_proj")
    b.click("#chip-origins")
    assert [x.split(":")[0] for x in b.ask(FADED)] == ["layer 7, q_proj"], b.ask(FADED)
    b.click("#chip-outside")
    b.click("#chip-origins")
    assert b.ask(FADED) == all_of_them and text(b, "#found").startswith("1203 checkpoints;"), text(b, "#found")
    b.click("#chip-layer")
    assert all(x.startswith("layer 7,") for x in b.ask(FADED))
    b.click("[aria-label^='layer 12, mlp_act:']")
    assert all(x.startswith("layer 12,") for x in b.ask(FADED)) and len(b.ask(FADED)) == 15
    b.ask("(() => { const s = document.getElementById('search'); s.value = 'attn_norm'; "
          "s.dispatchEvent(new Event('input')); })()")
    b.click("#found td button.link")
    assert text(b, "#detail-title") == "layer12.attn_norm"


LISTED = "[...document.querySelectorAll('#found tbody tr')].map((x) => x.cells[0].innerText)"


def write(b, selector, value, event="input"):
    b.ask(f"(() => {{ const s = document.querySelector({json.dumps(selector)}); s.value = {json.dumps(value)}; "
          f"s.dispatchEvent(new Event('{event}')); }})()")


def the_list_is_searched_sorted_and_folded(b):
    b.screen(*SCREENS["light"])
    b.open("deep.html")
    assert b.ask(LISTED)[0] == "layer7.q_proj", b.ask(LISTED)[:3]  # what is worst comes first
    write(b, "#search", "layer 3 proj")
    assert b.ask(LISTED) == [f"layer3.{x}_proj" for x in ("q", "k", "v", "gate", "up", "down")], b.ask(LISTED)
    write(b, "#search", "layer*7.q_*")
    assert len(b.ask(LISTED)) == 16, b.ask(LISTED)
    write(b, "#search", "nothing like it")
    assert b.ask(LISTED) == [] and text(b, "#found p").startswith("0 checkpoints")
    write(b, "#search", "")
    b.click("#found th:nth-child(4) button")
    nmse = b.ask("[...document.querySelectorAll('#found tbody tr')].map((x) => Number(x.cells[3].innerText))")
    assert len(nmse) == 100 and nmse == sorted(nmse, reverse=True) and nmse[0] > nmse[-1], nmse
    assert b.ask("document.activeElement.closest('th').ariaSort") == "descending"
    b.key("Enter", 13)
    nmse = b.ask("[...document.querySelectorAll('#found tbody tr')].map((x) => Number(x.cells[3].innerText))")
    assert nmse == sorted(nmse) and 0 < nmse[0] < nmse[-1], nmse
    b.click("#more")
    assert len(b.ask(LISTED)) == 1100
    b.open("steps.html")
    assert b.ask(LISTED)[0] == "step.3/layer1.v_proj" and "v_proj in steps 0 to 4, layers 0 to 79 (399)" in b.ask(
        LISTED), b.ask(LISTED)
    write(b, "#fold", "steps", "change")
    write(b, "#search", "layer 5 q_rope")
    assert b.ask(LISTED) == ["q_rope in steps 0 to 4, layer 5"], b.ask(LISTED)
    assert not b.complaints, b.complaints


def a_checkpoint_has_an_address(b):
    b.screen(*SCREENS["light"])
    b.open("bad.html")
    title = "document.getElementById('detail-title').innerText"
    assert b.ask("location.hash") == "" and b.ask(title) == "layer0.q_rope"
    for name in "layer1.mlp_act", "layer1.k_proj":
        b.click(f"[aria-label^='{name.replace('layer', 'layer ').replace('.', ', ')}:']")
        assert b.ask("location.hash") == "#" + name, b.ask("location.hash")
    arrived = "new Promise((done) => { addEventListener('popstate', () => setTimeout(done), { once: true }); "
    for move, name in ("back", "layer1.mlp_act"), ("back", "layer0.q_rope"), ("forward", "layer1.mlp_act"):
        b.ask(arrived + f"history.{move}(); }})")
        assert b.ask(title) == name, (move, b.ask(title))
    for page, address, name in (("bad", "layer1.up_proj", "layer1.up_proj"), ("bad", "logits", "logits"),
                                ("steps", "step.2/layer7.q_rope", "step.2/layer7.q_rope"),
                                ("several", "D:layer1.v_proj", "layer1.v_proj"),
                                ("bad", "layer9.q_proj", "layer0.q_rope"), ("bad", "%%", "layer0.q_rope")):
        b.open("correct.html")  # another page: of the same one, only the address would change
        b.open(f"{page}.html", "#" + address)
        assert b.ask(title) == name and not b.complaints, (address, b.ask(title), b.complaints)
        there = b.ask("Boolean(document.querySelector('#detail-body [role=alert]'))")
        assert there == (address in ("layer9.q_proj", "%%")), address
        if page == "several":
            assert "Candidate D: late.h5" in text(b, "#detail-body")
    b.open("evil.html", "#%3Cimg%20src=x%20onerror=alert(1)%3E")
    assert "<img src=x onerror=alert(1)>" in b.ask(
        "decodeURIComponent(document.querySelector('#detail-body [role=alert]').innerText)")
    assert b.ask("document.images.length") == 0 and not b.complaints


def point_at(b, selector, part=0.5):
    """Moves the mouse to an element; returns what the tip says."""
    x, y = b.ask(f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.scrollIntoView({{ block: "
                 f"'center' }}); const b = e.getBoundingClientRect(); return [b.x + b.width * {part}, "
                 "b.y + b.height / 2]; })()")
    b.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    return b.ask("document.getElementById('tip').hidden ? '' : document.getElementById('tip').innerText")


def the_pointer_shows_values(b):
    b.screen(*SCREENS["light"])
    b.open("steps.html")
    said = point_at(b, "[aria-label^='step 3, layer 1, v_proj:']")
    assert said.startswith("step.3/layer1.v_proj\noutside, an origin\n") and "nmse 1, " in said, said
    assert point_at(b, "h1") == ""
    said = point_at(b, "#steps svg", 0.75)
    assert said.startswith("step 3\nnmse 1, floor "), said
    said = point_at(b, "#detail-body svg", 0.99)
    assert "nmse " in said, said
    assert [b.ask(f"[...document.querySelectorAll('{x} .axis')].map((x) => x.textContent)") for x in
            ("#steps", "#growth")] == [["nmse", "step"], ["nmse", "layer"]]
    b.click("#growth svg")
    layer = int(text(b, "#detail-title").removeprefix("step.3/layer").removesuffix(".v_proj"))
    assert 36 <= layer <= 42, layer  # in the middle of 80
    assert not b.complaints, b.complaints


def details_stand_beside_the_map_and_growth_on_the_first_screen(b):
    top = "document.querySelector('%s').getBoundingClientRect().top"
    for name in "bad", "deep", "steps":
        b.screen(*SCREENS["light"])
        b.open(f"{name}.html")
        right = b.ask("document.querySelector('#map-box').getBoundingClientRect().right <= "
                      "document.querySelector('#detail').getBoundingClientRect().left")
        assert right and b.ask(top % "#right") == b.ask(top % "#left"), name
    assert b.ask("document.querySelector('#steps svg').getBoundingClientRect().top") < 700
    b.screen(*SCREENS["phone"])
    b.open("steps.html")
    assert b.ask(top % "#detail") > b.ask("document.querySelector('#map').getBoundingClientRect().bottom")


def the_first_screen_answers(b):
    """Where it began, what it is and what to type stand there, on a phone too."""
    for screen in "light", "phone":
        b.screen(*SCREENS[screen])
        b.open("explain.html")
        said = text(b, "header")
        assert said.index("first divergence") < said.index("explained") < said.index("vernier capture ref"), said
        end = b.ask("Math.max(...[...document.querySelectorAll('dd.next')].map((x) => "
                    "x.getBoundingClientRect().bottom))")
        assert end < SCREENS[screen][1], (screen, end)


def within_is_cold_and_the_worst_is_strongest(b):
    """A perfect run has no warm cell; on a dark page the worst is the brightest of the warm ones."""
    colour = ("(() => { const i = document.createElement('i'); i.className = '%s'; document.body.append(i); const c = "
              "getComputedStyle(i).backgroundColor.match(/\\d+/g).map(Number); i.remove(); return c; })()")
    for dark in False, True:
        b.screen(1280, 900, dark)
        b.open("correct.html")
        ramp = [b.ask(colour % f"m{i}") for i in range(9)]
        assert all(blue >= red for red, _, blue in ramp[:5]) and all(red > blue for red, _, blue in ramp[5:]), ramp
        light = [0.21 * r + 0.72 * g + 0.07 * b_ for r, g, b_ in ramp]
        assert (light[8] == max(light[5:]) if dark else light[8] == min(light)), (dark, light)
        used = b.ask("[...document.querySelectorAll('#map td[data-at], #strip i')].map((x) => x.className)")
        assert used and not set(used) & {"m5", "m6", "m7", "m8"}, used


def commands_are_copied(b):
    os.makedirs("a b", exist_ok=True)
    vernier("compare", "ref.h5", "bad.h5", "--model", MODEL, "-q", "-o", "a b/page.html", status=1)
    b.screen(*SCREENS["light"])
    b.open("a b/page.html")
    typed = b.ask("[...document.querySelectorAll('dd.next code')].map((x) => x.textContent)")
    assert typed[0] == f"vernier explain ../ref.h5 ../bad.h5 --model {MODEL}", typed
    b.click("dd.next button.copy")
    said = "new Promise((done) => setTimeout(() => done(document.querySelector('button.copy').textContent), 100))"
    assert b.ask(said) in ("copied", "selected")
    done = subprocess.run(["sh", "-c", typed[-1].replace("vernier", VERNIER, 1)], cwd="a b", capture_output=True,
                          text=True)
    assert done.returncode == 0, (typed[-1], done.stderr)
    b.open("several.html")
    assert b.ask("document.querySelectorAll('dd.next code').length == document.querySelectorAll('button.copy').length"
                 " && document.querySelector('dd.next code').textContent.startsWith('vernier explain ref.h5 ')")


def the_graph_shows_the_layer_and_the_way_to_the_logits(b):
    b.screen(*SCREENS["light"])
    b.open("bad.html")
    assert text(b, "#graph-title") == "Graph of layer 0"
    path = text(b, "#path")
    assert path.startswith("From the origin to the logits: layer0.q_rope \u2192 attn_context "
                           "\u2192") and path.endswith("\u2192 layer 1 \u2192 final_norm \u2192 logits"), path
    where = "document.querySelector('#graph .box[aria-label*=\"%s:\"] rect').%s"
    assert b.ask(where % ("layer 0, q_rope",
                          "classList.contains('m8')")), b.ask("document.getElementById('graph').innerHTML")
    ys = [b.ask(where % (f"layer 0, {p}", "y.baseVal.value"))
          for p in ("attn_norm", "q_proj", "q_rope", "attn_context", "attn_out", "output")]
    assert ys == sorted(ys) and len(set(ys)) == len(ys), ys
    assert b.ask("document.querySelectorAll('#graph .edge.path').length") >= 8
    # q_proj, k_proj and v_proj are correct
    assert b.ask("document.querySelectorAll('#graph .edge:not(.path)').length") >= 4
    b.click("#graph .box[aria-label*='layer 0, k_rope:']")
    assert text(b, "#detail-title") == "layer0.k_rope" and b.ask(
        "document.querySelector('#graph .box.here').getAttribute('aria-label')").startswith("rope: layer 0, k_rope")
    b.ask("document.querySelector('#graph .box[aria-label*=\"v_proj:\"]').focus()")
    b.key("Enter", 13)
    assert text(b, "#detail-title") == "layer0.v_proj"
    b.open("correct.html")
    assert "no path to show" in text(b, "#path") and b.ask("document.querySelectorAll('#graph .edge.path').length") == 0


def several_candidates_have_one_selection(b):
    is_quiet_and_fits(b, "several")
    b.screen(*SCREENS["light"])
    b.open("several.html")
    # The details stand beside every map, and stay there; on a phone, a name of a file is one line.
    b.ask("document.querySelector('#map-box figure:last-child').scrollIntoView()")
    box = "document.querySelector('{}').getBoundingClientRect()".format
    assert b.ask(box("#map-box") + ".right <= " + box("#detail") + ".left"), "the details stand below the maps"
    assert b.ask(f"{box('#detail-title')}.top >= 0 && {box('#detail-title')}.bottom < innerHeight"), "scrolled away"
    b.screen(*SCREENS["phone"])
    assert b.ask("document.querySelector('.many td code').getClientRects().length") == 1, "a name is broken"
    b.screen(*SCREENS["light"])
    b.open("several.html")
    assert b.ask("document.title") == "OUTSIDE limits: 5 candidates" and "floor.h5" in text(b, "header")
    assert b.ask("[...document.querySelectorAll('#map-box figcaption b')].map((x) => x.textContent).join('')") == "ABCD"
    # B is the first that is outside, and the same checkpoint is marked in all.
    assert text(b, "#detail-title") == "layer0.q_rope" and "Candidate B: bad.h5" in text(b, "#detail-body"), text(
        b, "#detail-body")
    marked = ("[...document.querySelectorAll('#map-box [aria-selected=true]')].map((x) => "
              "x.getAttribute('aria-label').split(':')[0])")
    assert b.ask(marked) == [f"candidate {x}, layer 0, q_rope" for x in "ABCD"], b.ask(marked)
    rows = b.ask("[...document.querySelectorAll('#beside tbody tr')].slice(0, 4).map((x) => x.cells[1].textContent)")
    assert rows == ["within", "outside, origin", "within", "within"], rows
    assert "B: values" in text(b, "#beside") and "around token" in text(b, "#beside")
    b.click("[aria-label^='candidate D, layer 1, q_rope:']")
    assert text(b, "#detail-title") == "layer1.q_rope" and "Candidate D: late.h5" in text(b, "#detail-body")
    assert b.ask("document.querySelector('#map-box figure.current b').textContent") == "D"
    for key, where in ("ArrowRight", "layer 1, q_rope"), ("ArrowDown", "layer 1, k_rope"):
        b.key(key)
        assert b.ask("document.activeElement.getAttribute('aria-label')").startswith(f"candidate D, {where}:"), key
    b.click("[aria-label^='candidate D, layer 1, q_rope:']")
    b.click("#beside tbody tr:nth-child(2) button.link")
    assert "Candidate B: bad.h5" in text(b, "#detail-body") and text(b, "#detail-title") == "layer1.q_rope"
    drawn = b.ask("[...document.querySelectorAll('#growth path.error')].map((x) => x.getAttribute('d').length > 5)")
    assert drawn == [True, True, True, True], drawn
    letters = "[...document.querySelectorAll('#growth text[class]:not(.axis)')].map((x) => x.textContent).join('')"
    assert b.ask(letters) == "ABCD"
    # C has no layer 1.
    b.click("[aria-label^='candidate C, layer 1, q_rope:']")
    assert "not in the candidate" in text(b, "#detail-body"), text(b, "#detail-body")
    b.click("#chip-origins")
    found = text(b, "#found")
    assert "B layer0.q_rope" in found and "D layer1.q_rope" in found and "A layer" not in found, found
    heads = b.ask("[...document.querySelectorAll('#runs thead th')].map((x) => x.textContent)")
    assert heads == ["", "reference", "candidate A", "candidate B", "candidate C", "candidate D"], heads
    b.click("header details.all summary")
    assert "layer1.mlp_act" in text(b, "header details.all") and "origin" in text(b, "header details.all")
    assert not b.complaints and len(b.requests()) == 1, (b.complaints, b.requests())
    is_quiet_and_fits(b, "agree")
    assert text(b, "h1") == "all within limits"
    b.call("Emulation.setScriptExecutionDisabled", value=True)
    b.open("several.html")
    said = " ".join(n["name"]["value"] for n in b.call("Accessibility.getFullAXTree")["nodes"]
                    if n.get("role", {}).get("value") == "StaticText")
    for word in "OUTSIDE limits", "B leaves at layer0.q_rope", "D leaves at layer1.q_rope", "C leaves at":
        assert word in said, (word, said)
    b.call("Emulation.setScriptExecutionDisabled", value=False)


def names_stay_text(b):
    b.screen(*SCREENS["light"])
    b.open("evil.html")
    assert b.ask("document.title") == "OUTSIDE limits: evil.h5", b.ask("document.title")
    assert b.ask("document.images.length + document.querySelectorAll('b').length") == 0
    assert b.ask("document.scripts.length") == 2
    assert "onerror" in text(b, "#strip") and EVIL in text(b, "#runs") and "\\xff\\xfe" in text(b, "#strip")
    b.ask("try { const s = document.createElement('script'); s.textContent = 'document.title = \"stolen\"'; "
          "document.body.append(s); } catch { 0 }")
    b.ask("try { document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"document.title=1\">'); "
          "} catch { 0 }")
    assert b.ask("document.title") == "OUTSIDE limits: evil.h5"


def of_more_than_four_candidates_the_worst_are_shown(b):
    is_quiet_and_fits(b, "worst")
    b.screen(*SCREENS["light"])
    b.open("worst.html")
    assert b.ask("[...document.querySelectorAll('#map-box figcaption b')].map((x) => x.textContent).join('')") == "ADEF"
    assert "Side by side below are A, D, E, F, the four worst" in text(
        b, "header") and "values of B, C compare them alone" in text(b, "header"), text(b, "header")


def the_model_gives_the_graph_where_no_file_has_a_plan(b):
    is_quiet_and_fits(b, "bare")
    b.screen(*SCREENS["light"])
    b.open("bare.html")
    b.click("[aria-label^='layer 1, q_rope:']")
    assert text(b, "#graph-title") == "Graph of layer 1", text(b, "#graph-title")
    assert b.ask("document.querySelectorAll('#graph svg g').length") > 10 and not b.complaints, b.complaints


def layers_of_a_model_without_a_plan_are_the_map(b):
    is_quiet_and_fits(b, "any")
    b.screen(*SCREENS["light"])
    b.open("any.html")
    layers = b.ask("[...document.querySelectorAll('#map thead th')].map((x) => x.textContent)")
    assert layers == list("01234"), layers
    rows = b.ask("[...document.querySelectorAll('#map tbody th')].map((x) => x.textContent)")
    assert "proj" in rows and "gate:1" in rows and "embed" not in rows, rows
    assert "model.embed" in text(b, "#strip") and "layers" not in text(b, "#strip"), text(b, "#strip")
    b.click("[aria-label^='model.layers.4.gate:1']")
    assert text(b, "#detail-title") == "model.layers.4.gate:1"


def weights_are_lines_on_a_phone(b):
    b.screen(*SCREENS["phone"])
    b.open("deep.html")
    assert "q_proj.weight" in text(b, ".weights") and not b.ask("document.querySelector('.weights thead')"
                                                                ".checkVisibility()")
    cut = b.ask("[...document.querySelectorAll('.weights td')].filter((x) => x.clientHeight > 60).map((x) => "
                "x.innerText)")
    assert not cut, cut


def what_is_not_printable_is_marked(b):
    b.screen(*SCREENS["light"])
    b.open("hidden.html")
    codes = "\\u{1b}\\u{9b}\\u{202e}\\u{200b}\\u{2028}\\u{e0041}"
    assert codes in text(b,
                         "#runs") and "hidden" + codes[6:] in text(b, "#strip"), (text(b, "#runs"), text(b, "#strip"))
    shown = b.ask("[...document.querySelectorAll('#runs .unprintable')].map((x) => x.textContent).join('')")
    assert shown == codes, shown
    everything = b.ask("[...document.querySelectorAll('body *:not(script)')].map((e) => [...e.attributes].map((a) => "
                       "a.value).join(' ')).join(' ') + document.title + document.querySelector('header').textContent "
                       "+ document.querySelector('main').textContent")
    assert not [c for c in HIDDEN if c in everything], [hex(ord(c)) for c in HIDDEN if c in everything]
    assert not b.complaints, b.complaints


def the_story_needs_no_script(b):
    b.call("Emulation.setScriptExecutionDisabled", value=True)
    b.open("bad.html")
    words = b.call("Accessibility.getFullAXTree")["nodes"]
    said = " ".join(n["name"]["value"] for n in words if n.get("role", {}).get("value") == "StaticText")
    for word in "OUTSIDE limits", "layer0.q_rope", "nmse_over_floor", "heads 4-5 of 6":
        assert word in said, (word, said)
    b.call("Emulation.setScriptExecutionDisabled", value=False)


def which_mistake_it_is_stands_with_the_details(b):
    b.screen(*SCREENS["light"])
    b.open("explain.html")
    assert "R1: RoPE pairs columns" in text(b, "header"), text(b, "header")
    b.click("[aria-label^='layer 1, q_rope:']")
    assert "Which mistake it is" in text(b, "#detail-body") and "R1: RoPE pairs columns" in text(b, "#detail-body")
    b.ask("[...document.querySelectorAll('#detail-body summary')].find((x) => x.textContent.startsWith('The best "
          "of')).click()")
    assert "times worse" in text(b, "#detail-body") and "R12" in text(b, "#detail-body")
    assert not b.complaints, b.complaints


def main():
    program = browser.find()
    if not program:
        print("page.py: no Chromium (Debian: chromium-headless-shell); skipped")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        make_pages()
        b = browser.Browser(program)
        try:
            for name in "bad", "replay", "explain", "correct", "known", "missing", "stopped", "deep", "steps", "evil":
                every_page_is_quiet_and_fits(b, name)
            for test in (what_the_baseline_knows_is_told_from_what_fails, what_agreed_is_told_from_what_was_not_run,
                         a_click_opens_a_cell, what_an_operation_added_itself_is_told,
                         which_mistake_it_is_stands_with_the_details, a_layer_that_is_missing_has_its_place,
                         keys_reach_every_cell, on_a_phone_layers_go_down_and_a_tap_shows_details, steps_can_be_chosen,
                         error_grows_over_steps_too, chips_leave_what_they_name, the_list_is_searched_sorted_and_folded,
                         a_checkpoint_has_an_address, the_pointer_shows_values,
                         details_stand_beside_the_map_and_growth_on_the_first_screen,
                         the_first_screen_answers,
                         within_is_cold_and_the_worst_is_strongest, commands_are_copied,
                         the_graph_shows_the_layer_and_the_way_to_the_logits, several_candidates_have_one_selection,
                         of_more_than_four_candidates_the_worst_are_shown,
                         the_model_gives_the_graph_where_no_file_has_a_plan,
                         layers_of_a_model_without_a_plan_are_the_map, weights_are_lines_on_a_phone,
                         names_stay_text, what_is_not_printable_is_marked, the_story_needs_no_script):
                test(b)
                print(f"{test.__name__}: passed")
        finally:
            b.close()
        os.chdir("/")


if __name__ == "__main__":
    VERNIER = os.path.abspath(sys.argv[1])
    SHOTS = os.path.abspath(sys.argv[2]) if len(sys.argv) > 2 else None
    if SHOTS:
        os.makedirs(SHOTS, exist_ok=True)
    main()
