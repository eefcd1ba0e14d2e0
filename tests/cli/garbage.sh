# Chosen tokens that do not look like text: reported if the reference's do, and not reported for
# correct runs.
M=$FIXTURES/qwen2-trained
capture() { vernier capture ref "$@" --points logits --points embed 2>/dev/null; }
capture "$M" --ids @$FIXTURES/prompts/p017.ids --decode 60 -o ref.h5
capture "$M" --ids @$FIXTURES/prompts/p017.ids --decode 60 --precision f16 -o near.h5
capture "$M" --ids @$FIXTURES/prompts/p017.ids --decode 60 -o weak.h5 --inject A2@layer1
cat >edit.py <<'END_PYTHON'
import shutil, sys, h5py, numpy as np
out, source, kind = sys.argv[1:]
shutil.copy(source, out)
f = h5py.File(out, 'r+')
V, n = 512, 17
def choose(which):
    """Moves the highest score of each row to the token which(number of the row)."""
    row = 0
    for step in sorted((s for s in f if s.startswith('step.')), key=lambda s: int(s[5:])):
        d = f[step]['logits']
        x = d[...]
        for y in x.reshape(-1, V):
            y[which(row)] = np.abs(y).max() * 2
            row += 1
        d[...] = x
        for a in [a for a in d.attrs if a in ('digest', 'xxh3', 'min', 'max', 'absmax', 'mean', 'rms', 'nan',
                                              'inf')]: del d.attrs[a]
def text(words):
    t = f['run/token_text'][...].astype(object)
    t[n:] = [words[i % len(words)] for i in range(len(t) - n)]
    at = dict(f['run/token_text'].attrs)
    del f['run/token_text']
    f['run'].create_dataset('token_text', data=t, dtype=h5py.string_dtype())
    for k, v in at.items(): f['run/token_text'].attrs[k] = v
if kind == 'token': choose(lambda i: 7)
if kind == 'phrase': choose(lambda i: (70, 71, 99)[i % 3])
if kind == 'fewer': choose(lambda i: 7 if i % 3 else 8 + i)
if kind == 'ends': choose(lambda i: 511 if i % 2 else 30 + i)
if kind == 'some': choose(lambda i: 511 if i % 40 == 3 else 30 + i)
if kind == 'replaced': text(['a', '\ufffd', r'\xff', 'b'])
if kind == 'unknown':
    text([''])
    for s in [s for s in f if s.startswith('step.')]: del f[s]['logits']
if kind == 'script': text([' мо', 'роз', 'а'])
if kind == 'code': text(['if (x', '[i]', ') {', ' y = ', 'f(', '); }'])
if kind == 'emoji': text([r'\xf0\x9f', r'\x98\x80', 'a'])
END_PYTHON
for kind in token phrase fewer ends some replaced unknown script code emoji; do
	$PYTHON edit.py $kind.h5 ref.h5 $kind
done
check() {
	echo "show $1"
	vernier show "$1" --check --strict 2>&1 | grep -E 'warning:.*(repeat|garbled|unused|another script|looks like code)'
	echo "[${PIPESTATUS[0]}]"
}
compare() {
	echo "compare $*"
	vernier compare "$@" --allow token_ids 2>&1 | grep -oE "the candidate's (chosen|decoded).*"
	echo "[${PIPESTATUS[0]}]"
}
evaluate() {
	echo "evaluate $*"
	vernier evaluate --recordings "$@" --strict 2>&1 | grep -E "(repeat|garbled|unused|another script|looks like code)"
	echo "[${PIPESTATUS[0]}]"
}
echo "== signs that need no reference"
for kind in token phrase ends replaced unknown; do check $kind.h5; done
for kind in token phrase ends; do compare ref.h5 $kind.h5; evaluate ref.h5 $kind.h5; done
compare ref.h5 replaced.h5
compare ref.h5 replaced.h5 --strict
evaluate ref.h5 replaced.h5
vernier evaluate --recordings ref.h5 token.h5 --format json 2>/dev/null |
	$PYTHON -c 'import json, sys; print(json.load(sys.stdin)["garbage"])'
echo "== another script and code, which a prompt may ask for: only beside a reference"
for kind in script code; do check $kind.h5; compare ref.h5 $kind.h5; evaluate ref.h5 $kind.h5; done
echo "== tokens that the logits do not choose"
for kind in token near; do vernier compare ref.h5 $kind.h5 --allow token_ids 2>&1 | grep -o 'note.*decoded.*'; done
echo "== correct, weak, a little of it, a character in two tokens"
for kind in ref near weak fewer some emoji; do check $kind.h5; done
compare ref.h5 near.h5
compare ref.h5 weak.h5
compare ref.h5 fewer.h5
compare ref.h5 some.h5
evaluate ref.h5 emoji.h5
echo "== the reference shows it too, or it alone"
compare token.h5 phrase.h5
compare token.h5 ref.h5
echo "== a prompt that repeats, a short text, an untrained model, forced tokens"
$PYTHON -c "print(','.join(['7'] * 60))" >same.ids
capture "$M" --ids @same.ids -o same.h5; check same.h5
capture "$M" --ids 5,6,7 --decode 6 -o few.h5
vernier synth tiny -o tied >/dev/null 2>&1
capture tied --ids 1,2,3,4 --decode 40 -o tied.h5; check tied.h5
capture "$M" --ids @$FIXTURES/prompts/p017.ids --force-ids @same.ids -o forced.h5; check forced.h5
check few.h5
