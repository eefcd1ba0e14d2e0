# A recording that another program touches all the time: no command gives a verdict on it. The
# time of writing is set back.
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
ls
