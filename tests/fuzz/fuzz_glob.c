/* fuzz_glob.c: any pattern on any name.
 *
 * Input: pattern, a NUL, name. For short patterns, the matcher must agree with a slow one that is
 * obviously right. */
#include "libref/base/glob.h"
#include "tests/fuzz/mutate.h"

/* Tries every way. Returns -1 after `steps` steps. */
static int slow(const char *p, const char *s, int *steps)
{
	char joined[64];
	int  depth, r;

	if (--*steps < 0)
		return -1;
	if (!*p)
		return !*s;
	if (*p == '*') {
		if ((r = slow(p + 1, s, steps)) != 0)
			return r;
		return *s ? slow(p, s + 1, steps) : 0;
	}
	if (*p == '{') {
		const char *end = p, *from = p + 1;
		for (depth = 0; *end; end++) {
			depth += *end == '{';
			depth -= *end == '}';
			if (depth == 0)
				break;
		}
		depth = 0;
		for (const char *q = p + 1; q <= end; q++) {
			if ((depth == 0 && *q == ',') || q == end) {
				snprintf(joined, sizeof joined, "%.*s%s", (int)(q - from), from, end + 1);
				if ((r = slow(joined, s, steps)) != 0)
					return r;
				from = q + 1;
			}
			depth += *q == '{';
			depth -= *q == '}';
		}
		return 0;
	}
	return *s && (*p == '?' || *p == *s) ? slow(p + 1, s + 1, steps) : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char     pattern[400], name[400];
	size_t   n = 0;
	vn_error e = { "" };

	while (n < size && data[n])
		n++;
	snprintf(pattern, sizeof pattern, "%.*s", (int)(n < 399 ? n : 399), (const char *)data);
	snprintf(name, sizeof name, "%.*s", n < size ? (int)(size - n - 1 < 399 ? size - n - 1 : 399) : 0,
	         n < size ? (const char *)data + n + 1 : "");
	const vn_status st = vn_glob_check(pattern, &e);
	const bool      hit = vn_glob_match(pattern, name);
	int             steps = 3000;
	if (st ? !fuzz_one_line(e.text) : *e.text != '\0')
		abort();
	if (st == VN_OK && strlen(pattern) < 40 && strlen(name) < 40) {
		const int want = slow(pattern, name, &steps);
		if (want >= 0 && want != hit) {
			fprintf(stderr, "'%s' on '%s': %d, should be %d\n", pattern, name, hit, want);
			abort();
		}
	}
	return 0;
}

#ifndef VERNIER_LIBFUZZER
static const char *const seeds[] = {
	"layer*.{q,k}_rope\0layer3.q_rope",
	"*\0logits",
	"{a,b{c,d}}e\0bde",
	"*a*a*a*b\0aaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	"x{,y}?\0xyz",
	"{{a,b},{c,*}}{,}\0cab",
	"{\0a",
	"}{\0a",
	"layer?.attn_*\0layer1.attn_probs",
	"{*,?}{*,?}{*,?}\0abc",
};
static const size_t lengths[] = { 32, 8, 15, 37, 10, 20, 3, 4, 31, 19 };

static size_t make_seed(int i, uint8_t *out)
{
	memcpy(out, seeds[i], lengths[i]);
	return lengths[i];
}

int main(int argc, char **argv)
{
	const fuzz_plan plan = { make_seed, (int)(sizeof seeds / sizeof *seeds), NULL, NULL };
	return fuzz_main(argc, argv, &plan);
}
#endif
