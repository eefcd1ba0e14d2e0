# evaluate: the same digits for any number of threads, reports, models that go wrong,
# and what is refused.
M=$FIXTURES/qwen2-trained
T=@$FIXTURES/prompts/text.ids
ev() { vernier evaluate "$@" --candidate ref; }
json() { $PYTHON -c "
import json, sys
j = json.load(open(sys.argv[1]))
for s in ('reference', 'candidate'): del j[s]['run']
print(json.dumps(j, sort_keys=True))" "$1"; }
# Numbers of perplexity depend in their last digits on the processor.
masked() { sed -E '/^(perplexity|           )/s/[0-9]\.?[0-9]*(e[+-]?[0-9]+)?/N/g; s/N+/N/g'; }

echo "== a candidate that is the reference"
ev "$M" --ids $T --precision f32 | masked

echo "== a text, and its tokens"
ev "$M" --text "$FIXTURES/prompts/text.txt" --precision f16-acc16 -o text.json
ev "$M" --ids $T --precision f16-acc16 -o ids.json
$PYTHON -c "
import json
a, b = (json.load(open(f)) for f in ('text.json', 'ids.json'))
first = a['argmax']['first_difference']
print({k for k in a if a[k] != b[k] and k not in ('reference', 'candidate')}, first['near_tie'],
      isinstance(first['reference_text'], str), a['reference']['loss'] == b['reference']['loss'])"
printf 'We speak of \377\376 freedom.' >bytes
ev "$M" --text bytes --decode 0 2>&1 | sed -n 2p
: >empty
ev "$M" --text empty; echo "[$?]"
cp -r "$M" mute; rm mute/tokenizer*.json
ev mute --text bytes; echo "[$?]"
ev mute --ids 1,2,3 --decode 0 2>&1 | sed -n 2p
rm -r mute bytes empty text.json ids.json

echo "== the same digits: run after run, 1 thread and 2"
ev "$M" --ids $T --threads 1 -o a.json
ev "$M" --ids $T --threads 1 -o b.json
ev "$M" --ids $T --threads 2 --format json >c.json
cmp <(json a.json) <(json b.json) && cmp <(json a.json) <(json c.json) && echo same

echo "== a report does not replace another by itself"
ev "$M" --ids 1,2,3 -o a.json; echo "[$?]"
ev "$M" --ids 1,2,3 -o a.json --force; echo "[$?]"
ev "$M" --ids 1,2,3 --decode 0 --format text -o a.txt; echo "[$?]"
masked <a.txt | head -n 3
$PYTHON -c "
import json
j = json.load(open('a.json'))
print(j['schema'], j['tokens'], j['scored'], j['windows'], j['window'], j['stride'], sorted(j),
      j['reference']['run']['engine'], j['candidate']['run']['precision'])"
ls

# A copy of the model with some weights set to a number.
spoil() { cp -r "$M" "$1"; $PYTHON -c "
import json, re, struct, sys
import numpy as np
path, pattern, value = sys.argv[1] + '/model.safetensors', sys.argv[2], float(sys.argv[3])
b = bytearray(open(path, 'rb').read())
n = struct.unpack('<Q', b[:8])[0]
for name, t in json.loads(b[8:8 + n]).items():
    if name != '__metadata__' and re.search(pattern, name):
        a, z = (8 + n + x for x in t['data_offsets'])
        b[a:z] = np.full((z - a) // 4, value, '<f4').tobytes()
open(path, 'wb').write(b)" "$@"; }
echo "== layers that add nothing: the head sees the embedding"
spoil echo '(o_proj|down_proj)' 0
ev echo --ids $T 2>&1 | grep -E '^(echo|warning)'
echo "== scores that are no numbers"
spoil nan 'model.norm' nan
ev nan --ids $T 2>&1 | grep -vE '^(model|text)'; echo "[${PIPESTATUS[0]}]"
ev nan --ids $T --format json 2>/dev/null | $PYTHON -c "
import json, sys
j = json.load(sys.stdin)
print(j['reference']['perplexity'], j['reference']['nonfinite'], j['gap']['loss'], j['kl']['max'], j['argmax'],
      j['greedy'])"
rm -r echo nan *.json a.txt

echo "== silent in a pipe; on a terminal, how far and how long"
ev "$M" --ids $T 2>said >/dev/null; cat said
seq -s, 0 511 >long.ids
$PYTHON -c "
import os, pty, re, sys
try:
    pid, fd = pty.fork()
except OSError: # a machine without pseudo-terminals
    print(True)
    sys.exit()
if pid == 0:
    os.execv('$VERNIER', ['vernier', 'evaluate', '$M', '--ids', '@long.ids', '--window', '300', '--stride', '2',
                          '--candidate', 'ref'])
seen = b''
while True:
    try:
        part = os.read(fd, 65536)
    except OSError:
        break
    if not part:
        break
    seen += part
os.waitpid(pid, 0)
print(bool(re.search(rb'\rwindow|window \d+ of 107, [0-9.e+]+/s, \d+ s left', seen)))"

echo "== an interrupt"
for i in $(seq 20); do seq -s, 0 511; done >long.ids
$PYTHON -c "
import signal, subprocess
p = subprocess.Popen(['$VERNIER', 'evaluate', '$M', '--ids', '@long.ids', '--window', '300', '--stride', '1',
                      '--candidate', 'ref', '-o', 'cut.txt'],
                     stderr=subprocess.PIPE, text=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
caught = False # until it wants to hear of it
while p.poll() is None and not caught:
    with open(f'/proc/{p.pid}/status') as f:
        caught = any(l.startswith('SigCgt') and int(l.split()[1], 16) & 2 for l in f)
p.send_signal(signal.SIGINT)
said = p.communicate()[1]
print(said.rstrip().split(': ')[-1], p.returncode)"
ls

echo "== refused"
try() {
	echo "\$ vernier evaluate $*"
	vernier evaluate "$@" </dev/null >said 2>&1
	s=$?
	head -n 1 said
	rm said
	echo "[$s]"
}
try
try "$M"
try "$M" --ids 1,2 extra
try "$M" --ids 1,2 --text words
try "$M" --ids 1,2 --no-special-tokens
try "$M" --text nowhere.txt
try "$M" --ids 1,2 --no-such
try "$M" --ids 1,2 --window
try "$M" --ids 1 --candidate ref
try "$M" --ids 1,x
try "$M" --ids 1,512 --candidate ref
try "$M" --ids @nowhere
try nowhere --ids 1,2
try "$M" --ids 1,2 --window 1
try "$M" --ids 1,2 --window 513 --candidate ref
try "$M" --ids 1,2 --window 8 --stride 9 --candidate ref
try "$M" --ids 1,2 --stride 0
try "$M" --ids 1,2 --decode -1
try "$M" --ids 1,2 --candidate cpu
try "$M" --ids 1,2 --precision f8
try "$M" --ids 1,2 --candidate ref --device 0
try "$M" --ids 1,2 --candidate ref --replay-routing
try "$M" --ids 1,2 --format html
try "$M" --ids 1,2 --threads 0
try "$M" --ids 1,2 -o nowhere/a.txt
try --help

echo "== one token alone has no interval"
vernier evaluate "$M" --ids 5,6 --candidate ref --decode 1 | sed -n '/^perplexity/,/^greedy/p'
