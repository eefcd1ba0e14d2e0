# Reports: which go where, and that no name in a recording steers what shows them.
M=$FIXTURES/qwen2-trained
ids=@$FIXTURES/prompts/p017.ids
q() { "$@" 2>/dev/null; }
q vernier capture ref "$M" --ids "$ids" -o ref.h5
q vernier capture ref "$M" --ids "$ids" -o half.h5 --precision f16
cp half.h5 bad.h5
$PYTHON - <<'END'
import editing as h5py, numpy as np
f = h5py.File("bad.h5", "r+")
for name, change in (("layer0/q_rope", lambda x: x.__setitem__((slice(None), slice(4, 6)), x[:, 4:6] * 1.2)),
                     ("layer1/mlp_act", lambda x: x.__setitem__((3, 7), np.nan))):
    d = f["step.0/" + name]
    del d.attrs["digest"]
    x = d[()].astype(np.float32)
    change(x)
    d[...] = x
END

echo "== the first screen"
vernier compare ref.h5 bad.h5 --floor half.h5 | sed '/^$/,$d'

echo "== quiet"
vernier compare ref.h5 half.h5 -q
echo "[$?]"
vernier compare ref.h5 bad.h5 --quiet -o quiet.json
echo "[$?]" quiet.json
vernier compare ref.h5 bad.h5 --quiet --format text
echo "[$?]"
vernier compare ref.h5 nowhere.h5 --quiet
echo "[$?]"

echo "== JUnit"
cat >junit.py <<'END'
import sys
import xml.etree.ElementTree as ET

root = ET.parse(sys.argv[1]).getroot()
assert root.tag == "testsuites" and len(root) == 1, root.tag
suite = root[0]
cases = suite.findall("testcase")
failed, skipped = [c for c in cases
                   if c.find("failure") is not None], [c for c in cases if c.find("skipped") is not None]
for part in root, suite:
    assert [int(part.get(k))
            for k in ("tests", "failures", "errors", "skipped")] == [len(cases), len(failed), 0, len(skipped)]
assert len({(c.get("classname"), c.get("name")) for c in cases}) == len(cases)
assert all(c.get("time") and c.get("classname") for c in cases)
assert [x.tag for x in suite][0] == "properties" and {x.tag for x in suite} == {"properties", "testcase"}
print(suite.get("name"), len(cases), "tests", len(failed), "failures", len(skipped), "skipped")
for p in suite.find("properties"):
    if p.get("name") in ("verdict", "summary", "first_divergence", "origin", "reference.precision",
                         "candidate.precision"):
        print(p.get("name"), "=", p.get("value"))
for c in failed + skipped:
    f = c[0]
    print(c.get("classname"), c.get("name"), f.tag, f.get("type"), "|", f.get("message"), "|",
          (f.text or "").splitlines()[:1])
END
vernier compare ref.h5 bad.h5 --floor half.h5 -o bad.xml
$PYTHON junit.py bad.xml
q vernier capture ref "$M" --ids "$ids" -o some.h5 --points 'layer0.*'
vernier compare ref.h5 some.h5 --allow missing,extra -o some.xml
echo "[$?]"
$PYTHON junit.py some.xml | sed -n 1,3p

echo "== Markdown"
vernier compare ref.h5 bad.h5 --floor half.h5 -o bad.md
grep -v -e '^| `blas' -e '^| `command' -e '`threads`' -e ' \*\*Measured' bad.md |
	sed -n '1,/^<details>/p; /Runs, limits/,$p'

echo "== names that would be markup"
cp half.h5 $'a`|<b>\xff\x1b.h5'
$PYTHON - <<'END'
import editing as h5py
f = h5py.File(b"a`|<b>\xff\x1b.h5", "r+")
f["run"].attrs["engine"] = "</script><script>alert(1)</script>\n# x ]]> & \x1b[2J @everyone"
g = f["step.0/layer0"]
g["`` ]]>|<img src=x onerror=alert(1)>|@you&amp;"] = g["q_rope"][()]
g[b"\xff\xfe"] = g["q_rope"][()]
END
vernier compare ref.h5 $'a`|<b>\xff\x1b.h5' -o hostile.xml -o hostile.md -o hostile.json -q
echo "[$?]"
$PYTHON junit.py hostile.xml
grep -e everyone -e onerror -e 'xff' hostile.md

echo "== a comment has 65536 characters"
$PYTHON "$TESTS/support/deep_model.py" "$M" 80 deep
$PYTHON "$TESTS/support/deep_model.py" "$M" 80 faulty 7
q vernier capture ref deep --ids "$ids" -o deep.h5
q vernier capture ref deep --ids "$ids" -o deep-half.h5 --precision f16
q vernier capture ref faulty --ids "$ids" -o faulty.h5 --precision f16
vernier compare deep.h5 faulty.h5 --limits "$TESTS/../specs/limits/fp32.yaml" --allow weights -q -o deep.md -o deep.xml
echo "[$?]"
$PYTHON junit.py deep.xml | sed -n 1,2p
$PYTHON -c "
text = open('deep.md', encoding='utf-8').read()
rows = [l for l in text.splitlines() if l.startswith('| \`layer') and ': ' not in l.split('|')[1]
        or l.startswith('| \`logits') or l.startswith(('| \`final', '| \`embed'))]
left = [l for l in text.splitlines() if 'do not fit' in l]
print(text.splitlines()[0], len(text) < 65536, len(rows) + int(left[0].split()[0]),
      text.rstrip().endswith('</details>'))"

echo "== every key of a report is in its document"
vernier compare ref.h5 bad.h5 --model "$M" -q -o keys.json
vernier compare ref.h5 bad.h5 --model "$M" --baseline keys.json -q -o since.json
$PYTHON - $TESTS/../specs keys.json since.json <<'END'
import json, re, sys
text = open(f"{sys.argv[1]}/json.md", encoding="utf-8").read()
said = {x for pair in re.findall(r'`([a-z_0-9]+)`|"([a-z_0-9]+)"', text) for x in pair}
FREE = "run", "metrics", "floor"  # keyed by what files say, or by metrics (limits.md)
found = set()
def walk(j):
    for k, v in j.items() if isinstance(j, dict) else ():
        found.add(k)
        if not (k in FREE and isinstance(v, dict)) and not k.endswith("not_finite"):
            walk(v)
    for v in j if isinstance(j, list) else ():
        walk(v)
for path in sys.argv[2:]:
    walk(json.load(open(path, encoding="utf-8")))
print(len(found) > 80, "in none:", sorted(k for k in found - said if not k.endswith("_not_finite")))
END
echo "== criteria: yes and no only if measured"
q vernier capture ref "$M" --ids "$ids" -o whole.h5
q vernier capture ref "$M" --ids "$ids" -o bias.h5 --inject W6@layer1.k_proj
q vernier capture ref "$M" --ids "$ids" -o part.h5 --points embed --points logits
cp whole.h5 captured.h5
$PYTHON - <<'END'
import editing as h5py
d = h5py.File("captured.h5", "r+")["step.0/layer1/k_proj"]
del d.attrs["digest"]
d[3] = d[3] * 2
END
for cand in whole bias captured part; do
	q vernier compare ref.h5 $cand.h5 --model "$M" --allow missing --all | sed -n '/^criteria/,/deterministic/p'
done
vernier compare ref.h5 whole.h5 --bitwise --all | grep deterministic
