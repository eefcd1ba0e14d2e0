# Pairs in formats that no engine of ours computes in: float8 as uint8 with a mark, and int32,
# whose numbers must be equal.
make() { $PYTHON - "$@" <<'P'
import h5py, numpy as np, sys
path, kind, change = sys.argv[1:4]
f = h5py.File(path, 'w')
f.attrs['format'], f.attrs['format_version'], f.attrs['complete'] = 'vernier-checkpoint', 1, 1
run = f.create_group('run')
run.attrs['engine'], run.attrs['precision'] = 'somebody', 'f32'
run['token_ids'] = run['positions'] = np.arange(8, dtype='i4')
ids = (np.arange(8 * 40, dtype='i4') * 97 + 100000).reshape(8, 40)
codes = (np.arange(8 * 40) % 40 + 32).astype('u1').reshape(8, 40)  # 0.125 to 3.75 in e4m3, 0.0078 to 7 in e5m2
if change == 'one':
    ids[5, 3] += 1
    codes[5, 3] += 1
x = {'i32': ids, 'i32-as-f32': ids.astype('f4'), 'i32-as-f64': ids.astype('f8'), 'f8_e4m3': codes, 'f8_e5m2': codes,
     'u1': codes}[kind]
d = f.create_dataset('step.0/x', data=x)
if kind.startswith('f8'):
    d.attrs['dtype'] = kind
P
}
say() { say_lines '^(rule|OUTSIDE|verdict|within)|^  (worst element|spread|reference  )' compare "$@"; }
for kind in i32 f8_e4m3 f8_e5m2; do
	make $kind.h5 $kind none
	make $kind-one.h5 $kind one
	say $kind.h5 $kind.h5 --allow itself
	say $kind.h5 $kind-one.h5 --bitwise
done
vernier show f8_e4m3.h5 step.0/x | grep -E 'dtype|min|max|absmax|^ *0 '
vernier show i32.h5 step.0/x | grep -E 'dtype|min|max|absmax'
echo "== one id of 320 is another, by 1 in 100000"
say i32.h5 i32-one.h5
printf 'version: 1\nname: loose\nrules:\n  - { match: x, max_abs: 1, why: "counted from 1 in some engines" }\n' \
	> loose.yaml
say i32.h5 i32-one.h5 --limits loose.yaml
echo "== ids that the candidate keeps as floats: equal, and one off by 1 in 100000"
for kind in i32-as-f32 i32-as-f64; do
	make $kind.h5 $kind none
	make $kind-one.h5 $kind one
	say i32.h5 $kind.h5
	say i32.h5 $kind-one.h5
done
echo "== the codes of one as those of the other"
say f8_e4m3.h5 f8_e5m2.h5
make plain.h5 u1 none
vernier show plain.h5
echo "[$?]"
