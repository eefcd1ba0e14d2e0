# --force replaces files of the same kind, and nothing that somebody will miss.
cp -r "$FIXTURES/qwen2-trained" m
cp "$FIXTURES/gguf/qwen2-trained.f32.gguf" m.gguf
vernier capture ref m --ids 3,1,4 -o ref.h5 2>/dev/null
vernier capture ref m --ids 3,1,4 --precision f16 -o half.h5 2>/dev/null
cp ref.h5 ref.txt; printf 3,1,4 >ids
printf '### What I saw\n\nthe one that says vernier: is mine\n' >notes.md
printf 'version: 1\ndefaults: { cosine: 0.9 }\n' >limits.yaml
mkdir npy; ${PYTHON:-python3} -c "
import numpy as np
np.save('npy/logits.npy', np.ones((3, 512), 'f4'))
np.savez('a.npz', logits=np.ones((3, 512), 'f4'))"
before=$(find . -type f | sort | xargs md5sum)
say capture ref m --ids 3,1,4 -o m/model.safetensors --force
say capture ref m --ids 3,1,4 -o m/config.json --force
say capture ref m.gguf --ids 3,1,4 -o m.gguf --force
say capture ref m --prompt @ids -o ids --force
say import a.npz --ids 3,1,4 --precision f32 -o a.npz --force
say import npy --ids 3,1,4 --precision f32 -o npy/logits.npy --force
say show ref.txt logits --values ref.txt --force
say compare ref.h5 half.h5 --model m --format text -o m/model.safetensors --force
say table ref.h5 half.h5 -o m.gguf --force --format text
say evaluate m --ids 3,1,4 --candidate ref -o m/model.safetensors --force --format text
say calibrate ref.h5 half.h5 -o m.gguf --force
say isolate m --ids 3,1 -o m/model.safetensors --force --format text
say compare ref.h5 half.h5 -o m/config.json --force
say table ref.h5 half.h5 -o ids --force
say evaluate m --ids 3,1,4 --candidate ref --format text -o notes.md --force
say isolate m --ids 3,1 --format text -o limits.yaml --force
say calibrate ref.h5 half.h5 -o limits.yaml --force
[ "$(find . -type f | sort | xargs md5sum)" = "$before" ] && echo "nothing was replaced"
echo "== of the same kind, and empty"
vernier capture ref m --ids 3,1,4 -o half.h5 --force 2>/dev/null; echo $?
: >empty; vernier compare ref.h5 half.h5 -q -o empty --force; echo $?
: >empty.h5
vernier import a.npz --ids 3,1,4 --precision f32 -o empty.h5 --force 2>/dev/null; echo $?
vernier show ref.h5 logits --values npy/logits.npy --force; echo $?
echo "== a text that vernier did not write, and an input"
printf '# Notes\nreference, candidate\n' >notes.md
cp notes.md notes.txt
cp notes.md notes.csv
echo '{"mine": 1}' >mine.json
printf '<!doctype html>\n<title>mine</title>\n' >mine.html
printf '<?xml version="1.0"?>\n<testsuites name="other"/>\n' >mine.xml
printf 'version: 1\nrules: [{match: "*", nmse: 1, why: "mine"}]\n' >limits.yaml
printf 'version: 1\nnames: [{from: "x", to: "embed"}]\n' >map.yaml
vernier capture ref m --ids 3,1,4 --precision f16 -o half.h5 --force 2>/dev/null
vernier compare ref.h5 half.h5 -q -o base.json; cp base.json now.json
vernier calibrate ref.h5 half.h5 -o fitted.yaml >/dev/null
before=$(find . -type f | sort | xargs md5sum)
for to in notes.md notes.txt notes.csv mine.json mine.html mine.xml; do
	say compare ref.h5 half.h5 -q -o $to --force
done
for to in limits.yaml map.yaml fitted.yaml; do
	say compare ref.h5 half.h5 -q --format text -o $to --force
done
say compare ref.h5 half.h5 -q --limits limits.yaml --format text -o limits.yaml --force
say compare ref.h5 half.h5 -q --baseline base.json -o base.json --force
say table ref.h5 half.h5 -o notes.csv --force
say evaluate m --ids 3,1,4 --candidate ref -o notes.txt --force
say calibrate ref.h5 half.h5 -o limits.yaml --force
say calibrate ref.h5 half.h5 -o base.json --force
say isolate m --ids 3,1 --check true -o mine.json --force
say show ref.h5 logits --values notes.csv --force
say show ref.h5 -o notes.txt --force
say show ref.h5 --format json -o ref.h5 --force
say weights ref.h5 half.h5 -o mine.json --force
say capture ref m --ids-from ref.h5 -o ref.h5 --force
say capture ref m --ids 3,1,4 --force-ids-from ref.h5 -o ./ref.h5 --force
[ "$(find . -type f | sort | xargs md5sum)" = "$before" ] && echo "nothing was replaced"
say compare ref.h5 half.h5 -q -o now.json -o ./now.json --force
echo "== every form of every command replaces its own, and no other kind"
cat >check.sh <<'END'
#!/bin/sh
exit 1
END
chmod +x check.sh
replaced() { # FILE COMMAND...: twice, the second time with --force; the file of the first must be gone
	local to=$1; shift
	"$@" >said 2>&1; echo "$?" >status
	local inode=$(stat -c %i "$to")
	"$@" --force >said 2>&1
	[ $? = "$(cat status)" ] && [ "$(stat -c %i "$to")" != "$inode" ] && echo "$to: replaced" ||
		{ echo "$to: NOT REPLACED"; head -3 said; }
}
for form in txt json xml md html csv; do
	replaced r.$form vernier compare ref.h5 half.h5 -q -o r.$form
done
for form in txt json xml md html csv; do
	replaced outside.$form vernier compare ref.h5 half.h5 -q --bitwise -o outside.$form
done
cp half.h5 other.h5
for form in txt json md html; do
	replaced many.$form vernier compare ref.h5 half.h5 other.h5 -q -o many.$form
	replaced vote.$form vernier compare --vote ref.h5 half.h5 other.h5 -q -o vote.$form
done
mkdir one two; cp ref.h5 one/a.h5; cp half.h5 two/a.h5; cp ref.h5 one/b.h5
for form in txt json xml md html csv; do
	replaced each.b.$form vernier compare one two -q -o each.$form
done
for form in txt json md html csv; do
	replaced table.$form vernier table ref.h5 half.h5 -o table.$form
	replaced tables.$form vernier table ref.h5 half.h5 other.h5 -o tables.$form
done
for form in txt json; do
	replaced e.$form vernier evaluate m --ids 3,1,4 --candidate ref -o e.$form
	replaced er.$form vernier evaluate --recordings ref.h5 half.h5 -o er.$form
	replaced ers.$form vernier evaluate --recordings ref.h5 half.h5 other.h5 -o ers.$form
	replaced i.$form vernier isolate m --ids 3,1 --check ./check.sh -o i.$form
done
for form in txt json; do
	replaced w.$form vernier weights ref.h5 half.h5 -o w.$form
	replaced s.$form vernier show ref.h5 -o s.$form
	replaced st.$form vernier show ref.h5 logits -o st.$form
	replaced sc.$form vernier show ref.h5 --check -o sc.$form
done
replaced ss.txt vernier show ref.h5 step.0 -o ss.txt
replaced sw.txt vernier show ref.h5 --weights -o sw.txt
vernier synth tiny -o other >/dev/null 2>&1
replaced wd.txt vernier weights m other -o wd.txt
replaced l.yaml vernier calibrate ref.h5 half.h5 -o l.yaml
for form in txt csv npy; do
	replaced v.$form vernier show ref.h5 logits --values v.$form
done
echo "== a recording that an option reads is kept"
say import dump --ids-from ref.h5 -o ref.h5 --force
say capture ref m --ids-from half.h5 --against ref.h5 -o ref.h5 --force
echo "== reports of older versions"
sed '/name="generator"/d' r.html >old.html; { echo "verdict    OUTSIDE limits"; cat outside.txt; } >old.txt
head -n 1 outside.txt
for form in html txt; do vernier compare ref.h5 half.h5 -q -o old.$form --force; echo $?; done
echo "== where a read returns a byte at a time"
cat >drip.c <<'P'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>

ssize_t read(int fd, void *to, size_t n)
{
	return ((ssize_t(*)(int, void *, size_t))dlsym(RTLD_NEXT, "read"))(fd, to, n > 1 ? 1 : n);
}
ssize_t __read_chk(int fd, void *to, size_t n, size_t room)
{
	(void)room;
	return read(fd, to, n);
}
P
cc -O1 -shared -fPIC -o drip.so drip.c -ldl || exit
LD_PRELOAD=$PWD/drip.so vernier calibrate ref.h5 half.h5 -o l.yaml --force; echo $?
