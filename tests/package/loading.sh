#!/usr/bin/env bash
# loading.sh VERNIER: OpenBLAS is loaded by what runs a model on the CPU, the Vulkan loader by what
# asks for a GPU, and both by nothing else. Where they are missing or broken, or OpenBLAS chooses
# kernels far below the processor's, that is said or mended.
set -u
vernier=$(realpath "$1")
model=$(cd "$(dirname "$0")/../.." && pwd)/fixtures/qwen2-trained
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2

# A person's choice of kernels, and of how threads wait, comes before ours: without one, except
# where a case makes one.
unset OPENBLAS_CORETYPE OPENBLAS_NUM_THREADS OMP_WAIT_POLICY

bad=0
complain() {
	echo "$1"
	bad=1
}
capture() { "$vernier" capture ref "$model" --ids 1,2,3 --force -o "$@"; }

readelf -dW "$vernier" | grep -qE 'NEEDED.*(blas|vulkan)' && complain "vernier is linked with a BLAS or with Vulkan"
capture a.h5 2>/dev/null || complain "capture ref fails"

# A library of the name that cannot be loaded.
mkdir broken && echo "no library" >broken/libopenblas.so.0
export LD_LIBRARY_PATH=$work/broken
for command in '--version' 'points model' 'show a.h5' 'compare a.h5 a.h5 --allow itself' 'limits fp32.yaml'; do
	# shellcheck disable=SC2086 # words
	"$vernier" ${command/model/$model} >/dev/null 2>err || complain "vernier $command needs OpenBLAS: $(cat err)"
done
capture b.h5 2>err
status=$?
[ $status = 2 ] && [ "$(grep -c 'OpenBLAS, which runs the model, cannot be loaded' err)" = 1 ] &&
	[ "$(wc -l <err)" = 1 ] && [ ! -e b.h5 ] ||
	complain "a broken library: exit status $status: $(cat err)"

# The same for the Vulkan loader.
unset LD_LIBRARY_PATH
if "$vernier" help | grep -q '^  devices '; then
	mkdir broken_gpu && echo "no library" >broken_gpu/libvulkan.so.1
	for command in 'devices' 'capture gpu model --ids 1,2,3 -o b.h5'; do
		# shellcheck disable=SC2086 # words
		LD_LIBRARY_PATH=$work/broken_gpu "$vernier" ${command/model/$model} >/dev/null 2>err
		status=$?
		[ $status = 2 ] &&
			[ "$(grep -c 'the Vulkan loader cannot be loaded.*install it and a driver: Debian.* mesa-vulkan-drivers' \
			err)" = 1 ] && [ "$(wc -l <err)" = 1 ] && [ ! -e b.h5 ] ||
			complain "vernier $command with a broken Vulkan loader: exit status $status: $(cat err)"
	done
	LD_LIBRARY_PATH=$work/broken_gpu capture b.h5 2>err || complain "capture ref needs the Vulkan loader: $(cat err)"
	rm -f b.h5
fi

# One that is no OpenBLAS.
mkdir other && echo 'int nothing;' | cc -shared -fPIC -x c - -o other/libopenblas.so.0
LD_LIBRARY_PATH=$work/other capture b.h5 2>err
status=$?
[ $status = 2 ] && [ "$(grep -c 'libopenblas.so.0 is not OpenBLAS' err)" = 1 ] && [ "$(wc -l <err)" = 1 ] ||
	complain "another library: exit status $status: $(cat err)"

# An OpenBLAS that knows no processor, and that reports its environment while it was loaded.
mkdir old
cat >old.c <<'C'
#include <stdio.h>
#include <stdlib.h>
static char core[80];
__attribute__((constructor)) static void begin(void)
{
	const char *asked = getenv("OPENBLAS_CORETYPE"), *threads = getenv("OPENBLAS_NUM_THREADS");
	FILE       *f = fopen("loads", "a");
	snprintf(core, sizeof core, "%s", asked ? asked : "Prescott");
	fprintf(f, "%s %s\n", core, threads ? threads : "unset");
	if (getenv("ASK_SPIN"))
		fprintf(f, "spins %s\n", getenv("GOMP_SPINCOUNT") ? getenv("GOMP_SPINCOUNT") : "as libgomp does");
	fclose(f);
}
char *openblas_get_corename(void) { return core; }
char *openblas_get_config(void) { return "OpenBLAS 0.0.0"; }
void openblas_set_num_threads(int n) { (void)n; }
#define GEMM(name, real) void name(int order, int ta, int tb, int m, int n, int k, real x, const real *a, int lda, \
		const real *b, int ldb, \
                                   real y, real *c, int ldc) \
{ \
	(void)order; (void)ta; (void)y; \
	for (int i = 0; i < m; i++) \
		for (int j = 0; j < n; j++) { \
			real s = 0; \
			for (int l = 0; l < k; l++) \
				s += a[i * lda + l] * (tb == 112 ? b[j * ldb + l] : b[l * ldb + j]); \
			c[i * ldc + j] = x * s; \
		} \
}
GEMM(cblas_sgemm, float)
GEMM(cblas_dgemm, double)
C
cc -O2 -shared -fPIC old.c -o old/libopenblas.so.0
export LD_LIBRARY_PATH=$work/old
if grep -qw avx2 /proc/cpuinfo; then
	grep -qw avx512f /proc/cpuinfo && better=SKYLAKEX || better=HASWELL
	OPENBLAS_NUM_THREADS=7 capture b.h5 2>err || complain "kernels of 2004: $(cat err)"
	[ "$(cat loads)" = "Prescott 1
$better 1" ] || complain "kernels of 2004: loaded as $(cat loads)"
	unset LD_LIBRARY_PATH
	"$vernier" show b.h5 --format json | grep -q "\"blas_kernel\": *\"$better\"" ||
		complain "the recording does not name $better"
	"$vernier" compare a.h5 b.h5 >/dev/null || complain "other numbers by another library"
	export LD_LIBRARY_PATH=$work/old
fi
rm -f loads
OPENBLAS_CORETYPE=Nehalem capture b.h5 2>err || complain "kernels of the person's choice: $(cat err)"
[ "$(cat loads)" = "Nehalem 1" ] || complain "kernels of the person's choice: loaded as $(cat loads)"

# Threads that wait spin briefly, unless the person has chosen how they wait.
rm -f loads
OPENBLAS_CORETYPE=Nehalem ASK_SPIN=1 capture b.h5 2>err || complain "a short wait: $(cat err)"
OPENBLAS_CORETYPE=Nehalem ASK_SPIN=1 OMP_WAIT_POLICY=active capture b.h5 2>err || complain "a chosen wait: $(cat err)"
[ "$(grep spins loads | tr '\n' ';')" = "spins 2000;spins as libgomp does;" ] ||
	complain "how threads wait: $(grep spins loads)"

[ $bad = 0 ] && echo "loading: OpenBLAS where a model is run, Vulkan where a GPU is asked for, and nowhere else"
exit $bad
