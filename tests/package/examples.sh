#!/usr/bin/env bash
# examples.sh BUILD SOURCE: the examples of capture/examples are built from what is installed, as
# their first lines say, without a warning; what they record agrees with the reference by
# `vernier compare`, whatever language and way it came by; and an engine that fails on the way
# leaves nothing that could be taken for a recording.
set -eu
build=$1 source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/usr" >/dev/null
cd "$work"
PATH=$work/usr/bin:$PATH
PKG_CONFIG_PATH=$work/$(dirname "$(find usr -name vernier-capture.pc)")
export PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR=
library="$(pkg-config --cflags --libs vernier-capture) -Wl,-rpath,$(pkg-config --variable=libdir vernier-capture)"
header="-I$work/usr/include"
strict="-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror"
model=$source/fixtures/mistral-trained
vernier capture ref "$model" --ids 12,345,6,78,9,10,111,213,14,415,16,17,318,19,20,21,222 -o ref.h5 2>/dev/null

full() { (ulimit -f 16; trap '' XFSZ; "$@" 2>said) && exit 1; grep -q 'File too large' said; }
judge() { # FILE LANGUAGE
	vernier compare ref.h5 "$1" --limits fp32.yaml >said || { cat said; echo "$1: not within limits"; exit 1; }
	grep -q '33 checkpoints compared' said || { cat said; exit 1; }
	vernier show "$1" >said
	grep -q "language *$2\$" said
}
n=0
try() { # COMPILER STANDARD SUFFIX LANGUAGE
	command -v "$1" >/dev/null || return 0
	"$1" -std="$2" $strict $header "$source/capture/examples/record.$3" -lm -o record
	"$1" -std="$2" $strict $header "$source/capture/examples/capture.$3" $library -lm -o capture
	rm -rf dump cand.h5 direct.h5
	./record "$model" dump
	vernier import dump -o cand.h5 2>/dev/null
	judge cand.h5 "$4"
	./capture "$model" direct.h5
	judge direct.h5 "$4"
	vernier compare cand.h5 direct.h5 --bitwise >/dev/null
	n=$((n + 1))
}
try cc c99 c C
try c++ c++11 cpp 'C++'
[ $n = 2 ]
for one in record capture; do # and what others say of them
	! command -v clang >/dev/null || clang -std=c99 $strict $header -fsyntax-only "$source/capture/examples/$one.c"
	! command -v clang++ >/dev/null ||
		clang++ -std=c++11 $strict $header -fsyntax-only "$source/capture/examples/$one.cpp"
done

# In Rust, as its first lines say: the same numbers, lists of weights, errors and remains.
cat >weights.c <<'C'
#define VERNIER_RECORD_IMPLEMENTATION
#include "vernier_record.h"
int main(void)
{
	static unsigned char b[70016];
	char                 name[32];
	vernier_record       r;
	int64_t              n, shape[2];
	size_t               k;
	static const char *const dtypes[] = { "f16", "bf16", "f32", "i32", "f64" };
	static const int         width[] = { 2, 2, 4, 4, 8 };
	for (n = 0; n < (int64_t)sizeof b; n++)
		b[n] = (unsigned char)(n * 7 + n / 251);
	vernier_record_open(&r, "listed", "x", "f32");
	for (n = 0; n < 1100; n += n < 700 ? 1 : 57) {
		snprintf(name, sizeof name, "w%d", (int)n);
		vernier_record_weight(&r, name, "f8_e4m3", b, 1, &n);
	}
	for (k = 0; k < 5; k++) {
		shape[0] = 2;
		shape[1] = 35000 / width[k];
		vernier_record_weight(&r, dtypes[k], dtypes[k], b, 2, shape);
	}
	if (vernier_record_close(&r))
		fprintf(stderr, "%s\n", vernier_record_error(&r));
	return 0;
}
C
cc -std=c99 $strict $header weights.c -o list-weights
./list-weights
cat >weights-capture.c <<'C'
#include "vernier_capture.h"
#include <stdio.h>
int main(void)
{
	static unsigned char b[4096];
	const int32_t        id = 3;
	const float          x[6] = { 0 };
	const int64_t        shape[] = { 1, 6 }, half[] = { 4, 5 }, wide[] = { 1024 };
	vernier_capture     *c = vernier_capture_open("weights.h5", 0, "x", "f32");
	int                  i;
	for (i = 0; i < (int)sizeof b; i++)
		b[i] = (unsigned char)(i * 7 + i / 251);
	vernier_capture_weight(c, "b", "f16", b, 2, half);
	vernier_capture_weight(c, "a", "f32", b, 1, wide);
	vernier_capture_step(c, &id, 1);
	vernier_capture_put(c, "embed", NULL, "f32", x, 2, shape);
	printf("%d %s\n", vernier_capture_commit(c), vernier_capture_error(c));
	vernier_capture_free(c);
	c = vernier_capture_open("twice.h5", 0, "x", "f32");
	vernier_capture_weight(c, "b", "f16", b, 2, half);
	vernier_capture_weight(c, "b", "f16", b, 2, half);
	vernier_capture_step(c, &id, 1);
	vernier_capture_put(c, "embed", NULL, "f32", x, 2, shape);
	printf("%d %s\n", vernier_capture_commit(c), vernier_capture_error(c));
	vernier_capture_free(c);
	c = vernier_capture_open("twice.h5", 0, "x", "f32");
	printf("%d", vernier_capture_weight(c, "b", "f17", b, 2, half));
	printf(" %s\n", vernier_capture_error(c));
	vernier_capture_free(c);
	return 0;
}
C
cc -std=c99 $strict $header weights-capture.c $library -o weights-capture
./weights-capture >said
diff - said <<'T'
0 
-1 twice.h5: the weight b is listed twice
-1 twice.h5: b: dtype 'f17' is not one of f32, f16, bf16, f64, i32, f8_e4m3, f8_e5m2
T
cat >table.py <<'P'
import h5py
import numpy as np
import xxhash
raw = np.array([i * 7 + i // 251 for i in range(4096)]).astype("u1").tobytes()
rows = {r["name"].decode(): r for r in h5py.File("weights.h5", "r")["model/weights"][()]}
assert sorted(rows) == ["a", "b"], rows
for name, n, kind, shape in (("a", 4096, "<f4", b"1024"), ("b", 40, "<f2", b"4x5")):
    x = np.frombuffer(raw[:n], kind).astype("f8")
    assert rows[name]["digest"].decode() == xxhash.xxh3_128_hexdigest(raw[:n]) and rows[name]["shape"] == shape
    assert rows[name]["max"] == x[np.isfinite(x)].max()
print("good")
P
cat >listed.py <<'P'
import json
import sys
import numpy as np
import xxhash
n, bytes_of = 0, np.array([i * 7 + i // 251 for i in range(70016)]).astype("u1").tobytes()
for line in open(sys.argv[1] + "/manifest.jsonl", encoding="utf-8"):
    w = json.loads(line)
    if "weight" not in w:
        continue
    kind = {"f8_e4m3": "u1", "f16": "<f2", "bf16": "<u2", "f32": "<f4", "i32": "<i4", "f64": "<f8"}[w["dtype"]]
    raw = bytes_of[:int(np.prod(w["shape"])) * np.dtype(kind).itemsize]
    assert xxhash.xxh3_128_hexdigest(raw) == w["digest"], w
    n += 1
    if kind == "u1":
        assert "min" not in w, w
        continue
    a = np.frombuffer(raw, kind)
    x = ((a.astype("u4") << 16).view("<f4") if w["dtype"] == "bf16" else a).astype("f8")
    good = x[np.isfinite(x)]
    with np.errstate(over="ignore"):
        rms = np.sqrt(np.mean(good * good))
    if not np.isfinite(rms):
        assert "rms" not in w, w
        continue
    assert (w["nan"], w["inf"]) == (np.isnan(x).sum(), np.isinf(x).sum()), w
    assert (w["min"], w["max"]) == (good.min(), good.max()), w
    assert np.allclose([w["mean"], w["rms"]], [good.mean(), rms], rtol=1e-12, atol=1e-12 * rms), w
print(n, "weights")
P
python=${PYTHON:-python3}
"$python" -c 'import h5py, numpy, xxhash' 2>/dev/null || python=
[ -z "$python" ] || [ "$("$python" listed.py listed)" = "713 weights" ]
[ -z "$python" ] || [ "$("$python" table.py)" = good ]
if command -v rustc >/dev/null; then
	cp usr/include/vernier_record.rs "$source/capture/examples/record.rs" .
	rustc --edition 2021 -O -D warnings record.rs
	rm -rf dump cand.h5
	./record "$model" dump
	vernier import dump -o cand.h5 2>/dev/null
	judge cand.h5 Rust
	grep -q '^weights *21, all equal' <<<"$(vernier compare ref.h5 cand.h5 --limits fp32.yaml)"
	vernier show cand.h5 logits | grep -q "recorded at      record.rs:$(grep -n 'rec.here' record.rs | cut -d: -f1)\$"
	# A weight that was not loaded, and one with other numbers, are named.
	cp -r dump lost
	sed -i '/"weight":"model.layers.1.self_attn.o_proj.weight"/d' lost/manifest.jsonl
	vernier import lost -o lost.h5 2>/dev/null
	vernier compare ref.h5 lost.h5 >said 2>&1 && exit 1
	grep -q 'refused: weights: layer 1: self_attn.o_proj.weight: .*not in the candidate' said
	full ./record "$model" dump-full
	! vernier import dump-full -o full.h5 2>said
	grep -q 'incomplete' said
	! ./record "$source/fixtures/prompts" gone 2>/dev/null
	cat >wrong.rs <<'R'
mod vernier_record;
use vernier_record::Recorder;
fn say(what: Result<(), vernier_record::Error>) {
    println!("{}", what.map_or_else(|e| e.to_string(), |_| "good".to_string()));
}
fn main() {
    let x = [0f32; 6];
    let mut r = Recorder::open("rs-wrong", "x", Some("f32"));
    r.put("embed", None, &x, &[1, 6]);
    r.step(&[3]);
    say(r.close());
    say(Recorder::open("rs-wrong", "x", None).close());
    let open = |i: i32| {
        let mut r = Recorder::open(format!("rs-none{}", i), "x", None);
        r.step(&[3]);
        r
    };
    let bad: [&dyn Fn(&mut Recorder); 8] = [
        &|r| r.put("", None, &[0f32; 6], &[1, 6]),
        &|r| r.put_bytes("embed", None, "f31", &[0; 24], &[1, 6]),
        &|r| r.put("embed", None, &[0f32; 6], &[1, 7]),
        &|r| r.put("embed", None, &[0f32; 6], &[1, usize::MAX, usize::MAX]),
        &|r| r.put("embed", None, &[0f32; 1], &[1; 7]),
        &|r| r.put_strided("embed", None, &[0f32; 6], &[2, 3], &[4, 1], None),
        &|r| r.say("a key that is longer than thirty-one bytes", "x"),
        &|r| r.step_at(&[1, 2], &[0]),
    ];
    for (i, f) in bad.iter().enumerate() {
        let mut r = open(i as i32);
        f(&mut r);
        r.put("logits", None, &x, &[1, 6]); // does nothing
        say(r.close());
    }
    say(Recorder::open("nowhere/wrong", "x", None).close());
    say(Recorder::open("/dev/full", "x", None).close());
    let mut r = Recorder::open("rs-good", "\u{e4} \"quoted\" \\ \n", Some("f32"));
    r.step(&[3, 4]);
    let y: Vec<f32> = (0..6).map(|i| i as f32).collect();
    r.put_strided("embed", Some("token hidden"), &y, &[2, 3], &[1, 2], Some("COPY"));
    r.put_bits("half", Some("token hidden"), "bf16", &[0x3f80, 0xc000], &[2, 1]);
    r.put("none", Some("token hidden"), &y[..0], &[2, 0]);
    println!("{:?}", r.error());
    say(r.close());
    let mut r = Recorder::open("rs-listed", "x", Some("f32"));
    let b: Vec<u8> = (0..70016).map(|n| (n * 7 + n / 251) as u8).collect();
    let mut n = 0;
    while n < 1100 {
        r.weight_bytes(&format!("w{}", n), "f8_e4m3", &b[..n], &[n]);
        n += if n < 700 { 1 } else { 57 };
    }
    for (dtype, width) in [("f16", 2), ("bf16", 2), ("f32", 4), ("i32", 4), ("f64", 8)] {
        r.weight_bytes(dtype, dtype, &b[..2 * (35000 / width) * width], &[2, 35000 / width]);
    }
    say(r.close());
    let mut r = Recorder::open("rs-killed", "x", Some("f32"));
    r.step(&[3]);
    r.put("embed", None, &x, &[1, 6]);
    std::process::abort();
}
R
	rustc --edition 2021 -D warnings wrong.rs -o wrong-rs
	{ ./wrong-rs >said 2>/dev/null && exit 1; } 2>/dev/null # it aborts
	diff - said <<'T'
embed: no step was begun before this tensor
rs-wrong: already holds a recording
a tensor has no name
embed: dtype 'f31' is not one of f32, f16, bf16, f64, i32, f8_e4m3, f8_e5m2
embed: 24 bytes of f32 for the shape [1,7]
embed: 24 bytes of f32 for the shape [1,18446744073709551615,18446744073709551615]
embed: rank 7; expected 0 to 6
embed: its strides leave the data
'a key that is longer than thirty-one byt' is not a key of up to 31 bytes
a step of 2 tokens with another number of positions
nowhere/wrong: cannot be made: No such file or directory (os error 2)
/dev/full/manifest.jsonl: cannot be written: Not a directory (os error 20)
None
good
good
T
	vernier import rs-good --unmapped keep -o rs-good.h5 2>/dev/null
	vernier show rs-good.h5 embed --values embed.csv >/dev/null 2>&1
	[ "$(grep -v '^#' embed.csv | tr -s ', \n' ' ')" = '0 2 4 1 3 5 ' ] || { cat embed.csv; exit 1; }
	vernier import rs-killed --partial -o rs-killed.h5 2>&1 | grep -q '1 tensor.*incomplete'
	[ -z "$python" ] || [ "$("$python" listed.py rs-listed)" = "713 weights" ]
	rust=', Rust'
else
	echo "examples: there is no rustc here: vernier_record.rs is not tried"
	rust=
fi

# Judged while it is recorded: by an equal run, one that differs by rounding, and one with a fault.
vernier capture ref "$model" --ids-from ref.h5 --inject R1@layer1 -o bad.h5 2>/dev/null
./capture "$model" equal.h5 direct.h5 >said
test ! -s said
vernier compare direct.h5 equal.h5 |
	grep -q 'within limits: 0 checkpoints compared, 33 judged while recorded and left out'
./capture "$model" near.h5 ref.h5 >said
grep -qx 'differs first: logits' said # which is not judged by its nmse alone
vernier compare ref.h5 near.h5 >said
grep -q 'within limits: 3 checkpoints compared, 30 judged while recorded and left out' said
grep -q 'not every metric was measured' said
./capture "$model" part.h5 bad.h5 >said
grep -qx 'differs first: layer1.q_rope' said
vernier compare bad.h5 part.h5 >said && exit 1
grep -q 'The error starts at' said
for t in layer0.output layer1.q_proj layer1.q_rope logits; do vernier show part.h5 $t >/dev/null; done
! vernier show part.h5 layer0.q_rope >/dev/null 2>&1
cat >stops.c <<'C'
#include "vernier_capture.h"
#include "tiny_mistral.h"
static int went_on, stopped;
static void record_tensor(void *c, const char *name, const char *dims, const float *x, int rank, const int64_t *shape)
{
	int status;
	VERNIER_CAPTURE_HERE(c);
	status = vernier_capture_put(c, name, dims, "f32", x, rank, shape);
	went_on += status == 0;
	stopped += status == VERNIER_CAPTURE_STOPPED;
}
int main(int argc, char **argv)
{
	static const int32_t ids[] = { 12, 345, 6, 78, 9, 10, 111, 213, 14, 415, 16, 17, 318, 19, 20, 21, 222 };
	vernier_capture *c = vernier_capture_open(argv[2], 0, "tiny mistral", "f32");
	vernier_capture_against(c, argv[argc - 1], 0);
	vernier_capture_stop_at_first(c);
	vernier_capture_step(c, ids, 17);
	tiny_run(argv[1], ids, 17, record_tensor, c);
	printf("%s: %d went on, %d stopped, next step %d, commit", vernier_capture_differs(c), went_on, stopped,
	       vernier_capture_step(c, ids, 1));
	printf(" %d\n", vernier_capture_commit(c));
	vernier_capture_free(c);
	return 0;
}
C
cc -std=c99 $strict $header -I"$source/capture/examples" stops.c $library -lm -o stops
./stops "$model" stop.h5 bad.h5 >said
grep -qx 'layer1.q_rope: 20 went on, 13 stopped, next step 1, commit 0' said || { cat said; exit 1; }
vernier compare bad.h5 stop.h5 >said && exit 1
grep -q "the candidate's run was stopped at layer1.q_rope: 12 checkpoints after it were not run" said ||
	{ cat said; exit 1; }
grep -qx "  recorded at    candidate stops.c:7" said || { cat said; exit 1; }
! vernier show stop.h5 layer1.k_rope >/dev/null 2>&1
! ./capture "$model" none.h5 nothing.h5 2>said
grep -q 'nothing.h5: No such file' said

# A model that is not there: nothing complete.
! ./record "$source/fixtures/prompts" gone 2>/dev/null
cp "$model/config.json" . # and no weights
! ./record . half 2>/dev/null
! vernier import half -o half.h5 2>said
grep -q 'holds no tensor' said
! ./capture . half.h5 2>/dev/null
test ! -e half.h5

# A full disk, imitated by a limit on file sizes: it is reported, no file is marked complete, and
# whole tensors can be read.
rm -rf dump direct.h5*
full ./record "$model" dump
! vernier import dump -o full.h5 2>said
grep -q 'incomplete.* 32 whole tensors' said
vernier import dump --partial -o full.h5 2>said
grep -q 'full.h5: 32 tensors.*incomplete' said
full ./capture "$model" direct.h5
test ! -e direct.h5

# The first failure reports what the program did wrong.
cat >wrong.c <<'C'
#include "vernier_capture.h"
#define VERNIER_RECORD_IMPLEMENTATION
#include "vernier_record.h"
int main(void)
{
	const int32_t  id = 3;
	const float    x[6] = { 0 };
	const int64_t  shape[] = { 1, 6 }, bad[] = { 1, -6 }, two[] = { 2, 3 };
	vernier_record r;
	vernier_capture *c;
	vernier_record_open(&r, "wrong", "x", "f32");
	vernier_record_put(&r, "embed", NULL, "f32", x, 2, shape);
	vernier_record_step(&r, &id, 1);
	printf("%d %s\n", vernier_record_close(&r), vernier_record_error(&r));
	vernier_record_open(&r, "wrong", "x", "f32");
	printf("%d %s\n", vernier_record_close(&r), vernier_record_error(&r));
	vernier_record_open(&r, "wrong2", "x", "f32");
	vernier_record_step(&r, &id, 1);
	vernier_record_put(&r, "embed", NULL, "f31", x, 2, shape);
	printf("%d %s\n", vernier_record_close(&r), vernier_record_error(&r));
	for (int i = 0; i < 5; i++) {
		char folder[] = "none0";
		folder[4] = (char)('0' + i);
		vernier_record_open(&r, folder, "x", "f32");
		if (i == 0 || i > 2)
			vernier_record_step(&r, &id, 1);
		if (i == 0)
			vernier_record_put(&r, NULL, NULL, "f32", x, 2, shape);
		else if (i == 1)
			vernier_record_step(&r, NULL, 1);
		else if (i == 2)
			vernier_record_say(&r, "mine", NULL);
		else if (i == 3)
			vernier_record_put(&r, "embed", NULL, "f32", NULL, 2, shape);
		else
			vernier_record_put(&r, "embed", NULL, "f32", x, 2, NULL);
		printf("%d %s\n", vernier_record_close(&r), vernier_record_error(&r));
	}
	vernier_record_open(&r, "lines", "x", "f32");
	vernier_record_step(&r, &id, 1);
	VERNIER_RECORD_HERE(&r);
	vernier_record_put(&r, "embed", NULL, "f32", x, 2, shape);
	vernier_record_put(&r, "final_norm", NULL, "f32", x, 2, shape);
	vernier_record_at(&r, "\303\244/0123456789/0123456789/0123456789/0123456789/0123456789/"
	                      "0123456789/0123456789/0123456789/0123456789", 7);
	vernier_record_put(&r, "logits", NULL, "f32", x, 2, shape);
	printf("%d %s\n", vernier_record_close(&r), vernier_record_error(&r));
	vernier_record_open(&r, "lines2", "x", "f32");
	vernier_record_at(&r, NULL, 7);
	printf("%d %s\n", vernier_record_close(&r), vernier_record_error(&r));
	vernier_record_open(&r, "nowhere/wrong", "x", "f32");
	printf("%d %s\n", vernier_record_close(&r), vernier_record_error(&r));
	vernier_record_open(&r, "/dev/full", "x", "f32");
	printf("%d %s\n", vernier_record_close(&r), vernier_record_error(&r));
#define TRY(...) (c = vernier_capture_open("w.h5", 0, "x", "f32"), __VA_ARGS__, \
	printf("%d %s\n", vernier_capture_commit(c), vernier_capture_error(c)), vernier_capture_free(c))
	TRY((void)0);
	TRY(vernier_capture_put(c, "embed", NULL, "f32", x, 2, shape));
	TRY(vernier_capture_step(c, &id, 1), vernier_capture_put(c, "embed", "token", "f32", x, 2, shape));
	TRY(vernier_capture_step(c, &id, 1), vernier_capture_put(c, "embed", NULL, "f32", x, 2, bad));
	TRY(vernier_capture_step(c, &id, 1), vernier_capture_put(c, "a/b", NULL, "f32", x, 2, shape));
	TRY(vernier_capture_step(c, &id, 1), vernier_capture_put(c, "embed", NULL, "f32", x, 2, shape),
	    vernier_capture_put(c, "embed", NULL, "f32", x, 2, shape));
	TRY(vernier_capture_step(c, &id, 1), vernier_capture_put(c, "embed", NULL, "f32", x, 2, two));
	TRY(vernier_capture_step(c, &id, 1), vernier_capture_step(c, &id, 1),
	    vernier_capture_put(c, "mine", "token x", "f32", x, 2, two));
	TRY(vernier_capture_step(c, &id, 0));
	TRY(vernier_capture_say(c, "engine", "y"));
	TRY(vernier_capture_step(c, NULL, 3));
	TRY(vernier_capture_say(c, "mine", NULL));
	TRY(vernier_capture_config(c, NULL));
	TRY(vernier_capture_at(c, NULL, 1));
	TRY(vernier_capture_stop_at_first(c));
	TRY(vernier_capture_step(c, &id, 1), vernier_capture_put(c, NULL, NULL, "f32", x, 2, shape));
	TRY(vernier_capture_step(c, &id, 1), vernier_capture_put(c, "embed", NULL, NULL, x, 2, shape));
	TRY(vernier_capture_step(c, &id, 1), vernier_capture_put(c, "embed", NULL, "f32", x, 2, NULL));
	TRY(vernier_capture_step(c, &id, 1), vernier_capture_put(c, "embed", NULL, "f32", NULL, 2, shape));
	TRY(vernier_capture_step(c, &id, 1), vernier_capture_put_strided(c, "embed", NULL, "f32", x, 2, shape, NULL, NULL));
	c = vernier_capture_open("killed.h5", 1, "x", "f32");
	vernier_capture_against(c, "./killed.h5", 0);
	printf("%d %s\n", vernier_capture_commit(c), vernier_capture_error(c));
	vernier_capture_free(c);
	fclose(fopen("mine.h5.partial", "w")); /* an empty one is what a run leaves that was killed at once */
	c = vernier_capture_open("mine.h5", 0, "x", "f32");
	vernier_capture_free(c);
	FILE *mine = fopen("mine.h5.partial", "w");
	fputs("mine", mine);
	fclose(mine);
	c = vernier_capture_open("mine.h5", 0, "x", "f32");
	printf("%d %s\n", vernier_capture_commit(c), vernier_capture_error(c));
	vernier_capture_free(c);
	c = vernier_capture_open("nowhere/w.h5", 0, "x", "f32");
	printf("%d %s\n", vernier_capture_commit(c), vernier_capture_error(c));
	vernier_capture_free(c);
	printf("%d %s\n", vernier_capture_commit(NULL), vernier_capture_error(NULL));
	vernier_capture_free(NULL);
	return 0;
}
C
cat >killed.c <<'C'
#include <signal.h>
#define VERNIER_RECORD_IMPLEMENTATION
#include "vernier_record.h"
int main(void)
{
	const int32_t  id = 3;
	const float    x[6] = { 0 };
	const int64_t  shape[] = { 1, 6 };
	vernier_record r;
	vernier_record_open(&r, "killed.d", "x", "f32");
	vernier_record_step(&r, &id, 1);
	vernier_record_put(&r, "embed", NULL, "f32", x, 2, shape);
	vernier_record_put(&r, "final_norm", NULL, "f32", x, 2, shape);
	return raise(SIGKILL);
}
C
cc -std=c99 $header killed.c -o killed
(./killed) 2>/dev/null && exit 1
! vernier import killed.d -o killed.h5 2>/dev/null
vernier import killed.d --partial -o killed.h5 2>said
grep -q 'killed.h5: 2 tensors.*incomplete' said

cc -std=c99 $header wrong.c $library -o try-wrong
./try-wrong >said
cat >expected <<'T'
-1 embed: no step was begun before this tensor
-1 wrong: already holds a recording
-1 embed: dtype 'f31' is not one of f32, f16, bf16, f64, i32, f8_e4m3, f8_e5m2
-1 a tensor has no name
-1 a step of 1 tokens has no ids (NULL)
-1 'mine' has no key, or no value (NULL)
-1 embed: data is NULL for 6 numbers
-1 embed: rank 2, and no shape (NULL)
0 
-1 a source file that is NULL
-1 nowhere/wrong: cannot be made: No such file or directory
-1 /dev/full/manifest.jsonl: cannot be written: Not a directory
-1 w.h5: no step was begun
-1 w.h5: embed: no step was begun before this tensor
-1 w.h5: embed: its dims 'token' are not 2 axes: another number
-1 w.h5: embed: the shape is too large for any file
-1 w.h5: the name 'a/b' has a slash or a control character
-1 w.h5.partial: embed is given twice in one step
-1 w.h5: embed: 2 rows, but step 0 has 1 tokens
-1 w.h5: mine: 2 rows, but step 1 has 1 tokens
-1 w.h5: step 0 has no token
-1 w.h5: 'engine' is given twice
-1 w.h5: step 0 of 3 tokens has no ids (NULL)
-1 w.h5: 'mine' is not a key of up to 31 bytes with a string of up to 255
-1 w.h5: no config
-1 w.h5: no source file (NULL)
-1 w.h5: stopping at the first difference needs a reference
-1 w.h5: the name '' is missing
-1 w.h5: embed: dtype '' is not one of f32, f16, bf16, f64, i32, f8_e4m3, f8_e5m2
-1 w.h5: embed: rank 2, and no shape (NULL)
-1 w.h5: embed: data is NULL for 6 numbers
-1 w.h5: embed: rank 2, and no strides (NULL)
-1 killed.h5: is the reference, too; give the recording another name
-1 mine.h5.partial: exists, and is not what an interrupted run left; rename it, or give another name than mine.h5
-1 nowhere/w.h5: no directory nowhere: No such file or directory
-1 no memory
T
diff expected said
test ! -e w.h5
vernier import lines -o lines.h5 2>/dev/null
vernier show lines.h5 embed |
	grep -q "recorded at      wrong.c:$(grep -n 'VERNIER_RECORD_HERE' wrong.c | cut -d: -f1)\$"
! vernier show lines.h5 final_norm | grep -q 'recorded at'
vernier show lines.h5 logits | grep -q 'recorded at      /0123456789/.*/0123456789:7$'
echo "examples: C and C++, by the header and by the library$rust"
