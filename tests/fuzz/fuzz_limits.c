/* fuzz_limits.c: any bytes as a limits file: read, or refused with one line that says where.
 *
 * Built with -fsanitize=fuzzer it is a libFuzzer target (-DVERNIER_LIBFUZZER); otherwise main
 * cuts and bends a few files by a fixed recipe, and reads files given as arguments. */
#include "compare/limits.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	vn_limits   *l = NULL;
	vn_limit_set set;
	vn_error     err = { "" };
	if (vn_limits_parse("fuzz.yaml", (const char *)data, size, &l, &err)) {
		if (l || !err.text[0] || strchr(err.text, '\n'))
			abort(); /* not an assert: release builds have none */
		return 0;
	}
	l->layers = 7;
	vn_limits_for(l, "layer3.q_rope", &set);
	for (int f = 0; f < VN_N_FORMS; f++)
		for (int m = 0; m < VN_N_METRICS; m++)
			if (set.limit[f][m].rule && !isfinite(set.limit[f][m].value))
				abort(); /* a limit that nothing breaks */
	vn_limits_for(l, "logits", &set);
	vn_limits_destroy(l);
	return 0;
}

#ifndef VERNIER_LIBFUZZER
static const char seed[] =
	"version: 1\nname: x\ndefaults: { nmse_over_floor: 4, nonfinite: 0, without_floor: { nmse: 2.0e-3 }, worst_token_nmse: { first: 1.0e-6, last: 1.0e-3 }, why: \"a\" }\n"
	"rules:\n  - match: \"layer*.{q,k}_rope\"\n    cosine: 0.99999\n    max_abs: 2.5e-2\n    why: >\n      folded\n"
	"  - { match: logits, kl_mean: 1.0e-3, missing: allowed, nmse: none }\n";
static const char *const piece[] = { "&a ", "*a", "!!x ", "[", "{", "- ", ": ", "\t", "\xff", "\0", "---\n", "? ", "| ",
                                     "nmse: ", "1e999", "%YAML 9.9\n", "\"", "<<: ", "{ first: 1, last: 2 }", "first: " };

static int file(const char *path)
{
	FILE *f = fopen(path, "rb");
	static uint8_t data[1 << 20];
	if (!f)
		return 1;
	const size_t n = fread(data, 1, sizeof data, f);
	fclose(f);
	return LLVMFuzzerTestOneInput(data, n);
}

int main(int argc, char **argv)
{
	uint64_t r = 88172645463325252u;
	uint8_t  data[2 * sizeof seed];
	for (int i = 1; i < argc; i++)
		if (file(argv[i]))
			return 1;
	for (size_t n = 0; n < sizeof seed; n++)
		LLVMFuzzerTestOneInput((const uint8_t *)seed, n);
	const char *seconds = getenv("FUZZ_SECONDS"), *other = getenv("FUZZ_SEED");
	const time_t end = time(NULL) + (seconds ? atoi(seconds) : 0);
	long i = 0;
	if (other)
		r += 2654435761u * strtoull(other, NULL, 10);
	for (; i < 200000 || time(NULL) < end; i++) {
		size_t n = sizeof seed - 1;
		memcpy(data, seed, n);
		for (long k = 0; k < 1 + i % 4; k++) {
			r ^= r << 13;
			r ^= r >> 7;
			r ^= r << 17;
			const size_t at = (size_t)(r >> 8) % n;
			const char  *p = piece[(r >> 40) % (sizeof piece / sizeof *piece)];
			const size_t len = *p ? strlen(p) : 1;
			if (r & 1) {
				data[at] = (uint8_t)(r >> 32);
			} else if (r & 2 && n + len <= sizeof data) {
				memmove(data + at + len, data + at, n - at);
				memcpy(data + at, p, len);
				n += len;
			} else if (n > 1) {
				memmove(data + at, data + at + 1, n - at - 1);
				n--;
			}
		}
		LLVMFuzzerTestOneInput(data, n);
	}
	printf("%ld bent files, none believed by mistake\n", i);
	return 0;
}
#endif
