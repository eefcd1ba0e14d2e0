# A recording or weights that another program touches all the time: no command gives a verdict on
# them. The time of writing is set back.
M=$FIXTURES/qwen2-trained
ids=$(seq -s, 1 500)
vernier capture ref "$M" --ids "$ids" --points logits -o ref.h5 2>/dev/null
vernier capture ref "$M" --ids "$ids" --points logits --precision f16 -o half.h5 2>/dev/null
cat >touched.py <<'P'
import os, subprocess, sys
was = os.stat(sys.argv[1])
p = subprocess.Popen([os.environ["VERNIER"], *sys.argv[2:]], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
while p.poll() is None:
    os.utime(sys.argv[1], ns=(was.st_atime_ns, was.st_mtime_ns))
lines = p.stderr.read().decode().splitlines()
print(sys.argv[2], p.returncode, *[x[:x.find(",")] for x in lines if "another program changed" in x])
P
${PYTHON:-python3} touched.py half.h5 compare ref.h5 half.h5
${PYTHON:-python3} touched.py half.h5 table ref.h5 half.h5
${PYTHON:-python3} touched.py half.h5 calibrate ref.h5 half.h5 -o fit.yaml
${PYTHON:-python3} touched.py half.h5 evaluate --recordings ref.h5 half.h5
${PYTHON:-python3} touched.py ref.h5 evaluate --recordings ref.h5 half.h5
${PYTHON:-python3} touched.py ref.h5 capture ref "$M" --ids "$ids" --points logits --against ref.h5 -o new.h5
cp -r "$M" m
for command in "compare ref.h5 half.h5 --model m" "compare ref.h5 half.h5 --model m --quiet" \
	"explain ref.h5 half.h5 --model m" "evaluate m --ids $ids --candidate ref --precision f16 --decode 0" \
	"capture ref m --ids $ids --points logits -o new.h5" \
	"isolate m --ids $ids --inject R1@layer1.q_rope"; do
	${PYTHON:-python3} touched.py m/model.safetensors $command
done
vernier show new.h5.partial 2>/dev/null | grep -o INCOMPLETE; ls
${PYTHON:-python3} - <<'P'
import zipfile
from array import array
head = "{'descr': '<f4', 'fortran_order': False, 'shape': (500, 4000), }".ljust(117) + "\n"
with zipfile.ZipFile("d.npz", "w") as z:
    for i in range(5):
        z.writestr(f"t{i}.npy", b"\x93NUMPY\1\0v\0" + head.encode() + array("f", [i] * 2000000).tobytes())
P
${PYTHON:-python3} touched.py d.npz import d.npz --ids "$ids" --unmapped keep -o d.h5
test -e d.h5 -o -e d.h5.partial && echo "LEFT d.h5"
echo "== limits that change while folders are compared"
mkdir refs cands
for p in 1 2 3 4; do cp ref.h5 refs/$p.h5; cp half.h5 cands/$p.h5; done
cat >edited.py <<'P'
import itertools, os, subprocess, sys
def edit(n):
    with open("new.yaml", "w") as f:
        f.write(f"version: 1\nname: x\nrules:\n  - {{ match: '*', nmse: 0.5, why: test {n} }}\n")
    os.replace("new.yaml", "own.yaml")
edit(0)
p = subprocess.Popen([os.environ["VERNIER"], *sys.argv[1:]])
for n in itertools.count(1):
    if p.poll() is not None:
        break
    edit(n)
print(p.returncode)
P
${PYTHON:-python3} edited.py compare refs cands --limits own.yaml -q --summary all.json
test -e all.json && echo "LEFT all.json"
echo "== weights that are replaced between two pairs"
cat >replaced.py <<'P'
import os, shutil, subprocess, sys
shutil.copy("m/model.safetensors", "new")
p = subprocess.Popen([os.environ["VERNIER"], *sys.argv[1:]], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
for line in p.stdout:
    if line == b"== 2.h5\n":
        os.replace("new", "m/model.safetensors")
said = p.stderr.read().decode().splitlines()
print(p.wait(), *sorted({x for x in said if "changed" in x}), sep="\n")
P
${PYTHON:-python3} replaced.py compare refs cands --model m
${PYTHON:-python3} replaced.py compare refs cands --model m --summary all.json
test -e all.json && echo "LEFT all.json"; true
