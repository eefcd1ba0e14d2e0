# Results that cannot be written are trouble for any reason: status 2 and one line. Only a reader
# that left is no trouble: SIGPIPE (141 to the shell) and no line, as with other programs.
model=$FIXTURES/qwen2-trained
vernier capture ref "$model" --ids 1,2,3 -o a.h5 2>/dev/null
vernier capture ref "$model" --ids 1,2,3 --precision f16 -o b.h5 2>/dev/null
mkdir dump; ${PYTHON:-/usr/bin/python3} -c 'import numpy as np; np.save("dump/embed.npy", np.zeros((3, 4), "f4"))'
try() {
	echo "== $*"
	"$VERNIER" "$@" >&- 2>err; echo "closed $? $(wc -l <err) $(cat err)"
	"$VERNIER" "$@" >/dev/full 2>err; echo "full $? $(wc -l <err) $(cat err)"
	mkfifo pipe; : <pipe & exec 9>pipe; wait $!   # a reader that has left
	"$VERNIER" "$@" >&9 2>err; echo "pipe $? $(wc -l <err) $(cat err)"
	exec 9>&-; rm pipe
}
try compare a.h5 b.h5
try compare a.h5 b.h5 --format json
try compare a.h5 b.h5 --format html
try explain a.h5 b.h5 --model "$model"
try show a.h5
try show a.h5 --format json
try show a.h5 --check
try weights a.h5 b.h5
try weights a.h5 b.h5 --format json
try limits fp32.yaml
try limits fp32.yaml --format json
try limits fp32.yaml --recording a.h5
try points
try points "$model"
try evaluate "$model" --ids 1,2,3,4 --candidate ref --decode 0
try import dump --dry-run --unmapped keep --ids 1,2,3
try synth --help
try --version
try help
echo "== a reader that leaves in the middle"
vernier capture ref "$model" --ids 1,2,3 --points '*' --decode 12 -o e.h5 2>/dev/null
vernier show e.h5 --format json | wc -c |
	awk '{ print ($1 > 131072 ? "more than a pipe holds" : "too little to tell") }'
"$VERNIER" show e.h5 --format json 2>err | head -c 1; echo " ${PIPESTATUS[0]} $(wc -l <err)"
cp e.h5 f.h5; "$VERNIER" compare e.h5 f.h5 --all --format json 2>err | head -c 1; echo " ${PIPESTATUS[0]} $(wc -l <err)"
rm e.h5 f.h5
echo "== a reader that has left: trouble stays trouble, and who ignores SIGPIPE is told"
mkfifo pipe; : <pipe & exec 9>pipe; wait $!
"$VERNIER" compare a.h5 nothing.h5 >&9; echo $?
(trap '' PIPE; "$VERNIER" show a.h5 >&9; echo $?)
"$VERNIER" import dump --unmapped keep --ids 1,2,3 -o d.h5 >&9; [ -s d.h5 ] && echo written; rm -f d.h5
"$VERNIER" calibrate a.h5 b.h5 -o l.yaml >&9 2>/dev/null; [ -s l.yaml ] && echo written; rm -f l.yaml
exec 9>&-; rm pipe
echo "== nothing to print"
vernier compare a.h5 b.h5 -q >&-; echo $?
vernier compare a.h5 b.h5 -q -o r.json >/dev/full; echo $?
vernier compare a.h5 b.h5 -o r.md >&-; echo $?
vernier capture ref "$model" --ids 1,2,3 -o c.h5 >&- 2>/dev/null; echo $?
echo "== no standard error: the answer is the same, and no file takes its number"
vernier compare a.h5 b.h5 -q -o s.json 2>&-; echo $?
cmp r.json s.json && echo same
vernier compare a.h5 nothing.h5 >&- 2>&- <&-; echo $?
echo "== places"
mkdir folder
for o in - /dev/full /dev/null nowhere/r.json a.h5/r.json folder a.h5 ''; do
	case $o in *.h5) vernier compare a.h5 b.h5 -q --format text -o "$o" 2>&1 ;;
		*) vernier compare a.h5 b.h5 -q -o "$o" 2>&1 ;; esac
	echo $?
done
vernier capture ref "$model" --ids 1,2,3 -o - 2>&1; echo $?
vernier calibrate a.h5 b.h5 -o - 2>&1; echo $?
vernier import dump -o - --ids 1,2,3 2>&1; echo $?
ls
