# Twelve prompts, one of them recorded wrong, compared by several processes: one verdict,
# whatever their number.
# Headline: 11 of 12 within, 007\.h5: first: layer1\.attn_context.*; the same bytes
#            from 1, 2, 3 and 7 processes
#           (, and by mpirun)?
for i in $(seq 12); do echo "{$(prompt "prompt number $i: the quick brown fox")}"; done >prompts.jsonl
vernier capture ref "$M" --prompts prompts.jsonl -o refs
vernier capture ref "$M" --prompts prompts.jsonl -o cands --precision f16
vernier capture ref "$M" --ids-from refs/007.h5 --precision f16 --inject A2@layer1 -o cands/007.h5 --force
vernier compare refs cands -q --summary whole.json || [ $? = 1 ]
for n in 2 3 7; do
	for i in $(seq $n); do
		vernier compare refs cands --part "$i/$n" -q --summary "part$i.json" --force || [ $? = 1 ]
	done
	vernier merge $(seq -f part%g.json $n) -q -o merged.json --force || [ $? = 1 ]
	cmp whole.json merged.json
done
more=
mpi=$(dirname "$VERNIER")/vernier_mpi
if [ -x "$mpi" ] && command -v mpirun >/dev/null; then
	export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
	mpirun -n 4 "$mpi" compare refs cands -q --summary mpi.json 2>/dev/null || [ $? = 1 ]
	cmp whole.json mpi.json
	more=", and by mpirun"
fi
$PYTHON - "$more" <<'P'
import json, sys
pairs = json.load(open("whole.json"))["pairs"]
bad = [p for p in pairs if p["status"]]
print(f"{len(pairs) - len(bad)} of {len(pairs)} within,", "; ".join(p["name"] + ": " + p["words"] for p in bad) + ";",
      "the same bytes from 1, 2, 3 and 7 processes" + sys.argv[1])
P
