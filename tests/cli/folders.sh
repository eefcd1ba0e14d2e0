# Two folders of recordings, paired by name.
M=$FIXTURES/qwen2-trained
mkdir ref cand floor other empty
for p in p002 p017; do
	vernier capture ref "$M" --ids "@$FIXTURES/prompts/$p.ids" -o ref/$p.h5 2>/dev/null
	vernier capture ref "$M" --ids "@$FIXTURES/prompts/$p.ids" -o cand/$p.h5 --precision f16 2>/dev/null
	cp cand/$p.h5 floor/
done
touch ref/notes.txt
say() { say_lines '^(==|not looked|verdict|within |OUTSIDE |trouble |refused|vernier compare)|folder' compare "$@"; }
say ref cand
say ref cand --floor floor
mkdir cand/old cand/older
cp cand/p017.h5 cand/old
mkdir ref5 cand5
cp ref/p002.h5 ref5/a.h5
cp ref/p002.h5 ref5/b.hdf5
cp cand/p002.h5 cand5/b.hdf5
cp cand/p002.h5 cand5/a.h5
touch cand5/.hidden.h5
say ref5 cand5 -o five.json
ls five*
say ref cand --floor floor/p002.h5
cp ref/p002.h5 ref/p003.h5
say ref cand
say ref cand --allow missing
$PYTHON -c "
import editing as h5py
x = h5py.File('cand/p017.h5', 'r+')['step.0/layer1/q_rope']; y = x[()]; y[:, 2] *= 1.5; x[...] = y"
say ref cand --allow missing -o out.json -o out.xml
ls out*
say ref cand --allow missing --format json
mkdir reports
say ref cand -o nowhere/r.html -o nowhere/r.json
say ref cand -o reports
say ref cand -q -o reports/
ls -A reports
say ref empty
say empty other
echo no >cand/p003.h5
say ref cand --quiet
# A file with a recording's name counts as a recording even if it cannot be read.
mkdir link_ref link_cand pipe_ref pipe_cand
for side in ref cand; do
	cp $side/p002.h5 link_$side/a.h5
	cp $side/p002.h5 pipe_$side/a.h5
	ln -s ../objects/b.h5 link_$side/b.h5
done
mkfifo pipe_ref/b.h5
mkdir pipe_cand/b.h5
say link_ref link_cand --quiet
say pipe_ref pipe_cand --quiet
# One of a pair is not there: its reports say so.
mkdir one_ref one_cand
cp ref/p002.h5 one_ref/a.h5
cp ref/p002.h5 one_ref/b.h5
cp cand/p002.h5 one_cand/a.h5
cp cand/p002.h5 one_cand/c.h5
say one_ref one_cand -q -o one.xml -o one.md -o one.json -o one.html -o one.txt
ls one.*
grep -o 'tests="[0-9]*" failures="[0-9]*"' one.a.xml one.b.xml one.c.xml | uniq
head -3 one.b.md
grep -h '^verdict\|^warning\|^next' one.b.txt one.c.txt
$PYTHON -c "
import json
for n in 'ab':
    j = json.load(open(f'one.{n}.json'))
    print(n, j['verdict'], j['summary'], j['candidate']['path'], {c['status'] for c in j['checkpoints']})"
say one_ref one_cand --allow missing,extra -q -o allowed.json
say one_ref one_cand -q -o more.json --baseline one.json
ln -s nowhere one_ref/d.h5
say one_ref one_cand --allow missing,extra -q
# However many pairs run at the same time, the bytes are the same, and so are those of
# both streams in one.
for n in 1 2 7; do
	vernier compare ref5 cand5 --threads $n 2>&1 | cksum
	vernier compare one_ref one_cand --threads $n 2>&1 | cksum
done | sort | uniq -c | awk '{ print $1 }'
