# Many prompts from one file: a recording each, settings of each, and going on where a run stopped.
M=$FIXTURES/qwen2-trained
clean() { sed 's/ in [0-9.]* s (.*//'; }
capture() { vernier capture ref "$@" 2>&1 | clean; echo "[${PIPESTATUS[0]}]"; }
fact() { vernier show "$1" | grep -E "^  (scenario|decode|decoding|temperature|seed) "; }
cat >p.jsonl <<'P'
{"name": "cold", "prompt": "The quick brown fox", "decode": 3}
{"name": "warm", "prompt": "The quick brown fox", "decode": 3, "temperature": 0.7, "seed": 1}

{"ids": [1, 2, 3]}
P
echo "== JSONL"
capture "$M" --prompts p.jsonl -o many
for f in many/*.h5; do echo "$f"; fact "$f"; done
echo "== each is the recording that a command of its own makes"
vernier capture ref "$M" --prompt "The quick brown fox" --decode 3 --temperature 0.7 --seed 1 -o one.h5 2>/dev/null
vernier compare one.h5 many/warm.h5 --bitwise --allow itself | grep ^verdict
vernier capture ref "$M" --ids 1,2,3 -o one3.h5 2>/dev/null
vernier compare one3.h5 many/003.h5 --bitwise --allow itself | grep ^verdict
echo "== again: nothing to do; one lost: one to do"
capture "$M" --prompts p.jsonl -o many
rm many/warm.h5; capture "$M" --prompts p.jsonl -o many
cp many/cold.h5 many/warm.h5; capture "$M" --prompts p.jsonl -o many
capture "$M" --prompts p.jsonl -o many --force
echo "== a prompt or the weights are others by now"
sed 's/brown/green/' p.jsonl >q.jsonl
cp p.jsonl kept
cp q.jsonl p.jsonl
capture "$M" --prompts p.jsonl -o many
cp kept p.jsonl
cp -r "$M" m; chmod -R u+w m
capture m --prompts p.jsonl -o own >/dev/null
$PYTHON -c "
f = open('m/model.safetensors', 'r+b'); f.seek(-2, 2); b = f.read(1); f.seek(-2, 2); f.write(bytes([b[0] ^ 1]))"
capture m --prompts p.jsonl -o own
echo "== interrupted, and the same command again"
cat >long.txt <<'P'
one
The quick brown fox jumps over the lazy dog
three
P
$PYTHON - "$VERNIER" "$M" <<'P'
import os, signal, subprocess, sys, time
p = subprocess.Popen([sys.argv[1], "capture", "ref", sys.argv[2], "--prompts", "long.txt", "-o", "long", "--decode",
                      "300"],
                     stderr=subprocess.PIPE, text=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
while p.poll() is None and not os.path.exists("long/002.h5.partial"):
    time.sleep(0.001)
p.send_signal(signal.SIGINT)
print(p.communicate()[1].splitlines()[-1], p.returncode)
P
ls long/*.h5
capture "$M" --prompts long.txt -o long --decode 300 | tail -n 2
ls long/*.h5
echo "== each decodes what its namesake in a folder decoded"
cat >follow.jsonl <<'P'
{"name": "hot", "prompt": "one two", "decode": 4, "temperature": 1.5, "seed": 3}
{"name": "none", "ids": [5, 6, 7]}
P
capture "$M" --prompts follow.jsonl -o led >/dev/null
capture "$M" --prompts follow.jsonl --inject M1@layer0 -o free >/dev/null
vernier compare led free -q --summary s.json 2>&1 | sed -n '1s/: number.*//p'
for i in 1 2; do
	capture "$M" --prompts follow.jsonl --inject M1@layer0 --force-ids-from led -o followed | tail -n 1
done
vernier compare led followed -q --summary s.json --force; echo "[$?]"
vernier show followed/hot.h5 | grep '^  decoding'
capture "$M" --prompts follow.jsonl --inject M1@layer0 --force-ids-from free -o followed
capture "$M" --prompts follow.jsonl --force-ids-from led -o led
sed 's/"decode": 4/"decode": 3/' follow.jsonl >fewer.jsonl
capture "$M" --prompts fewer.jsonl --force-ids-from led -o fewer
ls fewer
sed 's/, "decode": 4.*}/}/' follow.jsonl >unsaid.jsonl
capture "$M" --prompts unsaid.jsonl --force-ids-from led -o unsaid | tail -n 1
cp led/none.h5 free/hot.h5
capture "$M" --prompts follow.jsonl --force-ids-from free -o other
vernier capture ref "$M" --ids 5,6,7,8 -o led/none.h5 --force 2>/dev/null # a longer prompt decoded nothing
capture "$M" --prompts follow.jsonl --force-ids-from led -o other
echo "== one prompt a line"
printf 'one\r\n\n  two words\n' >p.txt
capture "$M" --prompts p.txt -o lines
vernier show lines/002.h5 | grep '^  text'
echo "== refused before anything runs"
wrong() { printf '%s\n' "$@" >wrong.jsonl; capture "$M" --prompts wrong.jsonl -o wrong; ls wrong 2>/dev/null; }
wrong '{"promt": "x"}'
wrong '{"prompt": "x"' 
wrong '{"prompt": "x", "ids": [1]}'
wrong '{"name": "a"}'
wrong '{"ids": [1, -2]}'
wrong '{"ids": []}'
wrong '{"ids": [511]}' '{"ids": [512]}'
wrong '{"name": "../a", "ids": [1]}'
wrong '{"name": "a", "ids": [1]}' '{"name": "b", "ids": [1]}' '{"name": "a", "ids": [2]}'
wrong '{"name": "002", "ids": [1]}' '{"ids": [2]}'
wrong '{"prompt": ""}'
wrong '{"prompt": "x", "temperature": 1}'
wrong '{"prompt": "x", "decode": 1.5}'
wrong '{"prompt": "x", "decode": 100000}'
wrong '{"prompt": "x"}' '[1]'
wrong ''
capture "$M" --prompts nofile -o wrong
touch file; capture "$M" --prompts p.txt -o file
capture "$M" --prompts p.txt --ids 1 -o wrong
capture "$M" --prompts p.txt --force-ids 1 -o wrong
