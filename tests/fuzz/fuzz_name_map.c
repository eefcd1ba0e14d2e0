/* fuzz_name_map.c: any bytes as a name map: read, or refused with one line that says where.
 *
 * Built with -fsanitize=fuzzer it is a libFuzzer target (-DVERNIER_LIBFUZZER); otherwise main
 * cuts and bends a few files by a fixed recipe, and reads files given as arguments. */
#include "capture/name_map.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const name[] = { "model.layers.3.self_attn.q_proj.0", "Qcur-3.2", "layer3.q_rope", "", "99999999999999999999" };
	vn_name_map *m = NULL;
	vn_error     err = { "" };
	char         to[VN_NAME_MAX];
	int          n;
	if (vn_name_map_parse("fuzz.yaml", (const char *)data, size, &m, &err)) {
		if (m || !err.text[0] || strchr(err.text, '\n'))
			abort(); /* not an assert: release builds have none */
		return 0;
	}
	for (int i = 0; i < m->n; i++)
		for (size_t k = 0; k < sizeof name / sizeof *name; k++)
			if (vn_map_rule_match(&m->rule[i], name[k], &n) && m->rule[i].to && vn_map_name(m->rule[i].to, n, to, sizeof to)
			    && (!*to || strchr(to, '*') || (n >= 0 && strstr(to, "{n}"))))
				abort(); /* a name that is none */
	vn_name_map_destroy(m);
	return 0;
}

#ifndef VERNIER_LIBFUZZER
static const char seed[] =
	"version: 1\nname: x\nrules:\n  - { from: \"{model,m.l}.layers.{n}.self_attn.q_proj{,.0}\", to: \"layer{n}.q_proj\", axes: \"batch token (head dim)\" }\n"
	"  - from: \"Qcur-{n}*\"\n    op: ROPE\n    to: \"layer{n}.q_rope\"\n    axes: \"token head (freq 2)\"\n    to_axes: \"token head (2 freq)\"\n"
	"  - { from: \"a.{n}\", plus: [\"b.{n}\"], to: \"layer{n}.output\", cut: key, fallback: true }\n"
	"  - { from: \"k-{n}\", either: [{ to: \"layer{n}.a\" }, { to: \"layer{n}.b\", axes: \"token (head dim)\" }] }\n"
	"  - { from: qkv, parts: [q, k, v], along: qkv, axes: \"token qkv\" }\n  - { from: \"*drop\", ignore: true }\n";
static const char *const piece[] = { "&a ", "*a", "!!x ", "[", "{", "- ", ": ", "(", ")", "\xff", "\0", "---\n", "{n}", "| ",
                                     "from: ", "99999999999", "}", "\"", "plus: ", "{ to: x }", "axes: " };

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
