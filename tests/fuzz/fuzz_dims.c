/* fuzz_dims.c: any two dims strings with groups and any shape: a rearranged tensor holds every
 * number of the source once.
 *
 * Input: a byte of rank, a byte for each of six axes, the one string, a NUL, the other. */
#include "capture/view/dims.h"
#include "tests/fuzz/mutate.h"

enum { MOST = 4096 };

static int64_t size_of(void *context, const char *word)
{
	(void)context;
	return strcmp(word, "dim") == 0 ? 4 : strcmp(word, "head") == 0 ? 2 : strcmp(word, "freq") == 0 ? 3 : -1;
}

static void check_parsed(const vn_dims *d)
{
	MUST(d->rank > 0 && d->n >= d->rank && d->n <= VN_MOST_ATOMS);
	for (int i = 0; i < d->n; i++)
		MUST(*d->atom[i].word && d->atom[i].axis >= 0 && d->atom[i].axis < d->rank &&
		     vn_dims_find(d, d->atom[i].word) >= 0);
}

/* Checks one box: each of its numbers comes from a place of its own and goes to a place of its
 * own. */
static void fill(const vn_piece *p, const vn_shape *to, int64_t n_from, unsigned char *made, unsigned char *used)
{
	int64_t index[VN_MAX_RANK] = { 0 }, box = 1;

	for (int a = 0; a < to->rank; a++)
		box *= p->size[a];
	for (int64_t k = 0; k < box; k++) {
		int64_t at = 0, from = p->from, rest = k;
		for (int a = to->rank - 1; a >= 0; a--) {
			index[a] = rest % p->size[a];
			rest /= p->size[a];
			from += index[a] * p->stride[a];
		}
		for (int a = 0; a < to->rank; a++)
			at = at * to->dim[a] + p->to[a] + index[a];
		MUST(at >= 0 && at < MOST && from >= 0 && from < n_from && !made[at]++ && !used[from]++);
	}
}

/* Every number of the source is in the result, once. */
static void check_pieces(const vn_piece *piece, int n, const vn_shape *from, const vn_shape *to)
{
	static unsigned char made[MOST], used[MOST];
	const int64_t        count = vn_shape_count(from);

	MUST(vn_shape_count(to) == count);
	if (count > MOST)
		return;
	memset(made, 0, sizeof made);
	memset(used, 0, sizeof used);
	for (int i = 0; i < n; i++)
		fill(&piece[i], to, count, made, used);
	for (int64_t i = 0; i < count; i++)
		MUST(made[i] && used[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	vn_shape    shape = { 0 }, made = { 0 };
	vn_dims     from, to;
	const char *why = NULL;
	int         n = 0;

	if (size < 8)
		return 0;
	shape.rank = data[0] % (VN_MAX_RANK + 1);
	for (int i = 0; i < shape.rank; i++)
		shape.dim[i] = data[1 + i] % 13;
	char *text = fuzz_text(data + 7, size - 7), *other = memchr(text, 0, size - 7);
	other = other && other < text + size - 7 ? other + 1 : text + size - 7;
	const bool good = vn_dims_parse(text, &from, &why), both = good && vn_dims_parse(other, &to, &why);
	MUST(both || (why && *why));
	if (good)
		check_parsed(&from);
	if (both && vn_dims_fit(&from, &shape, size_of, NULL)) {
		vn_piece *p = vn_dims_pieces(&from, &to, 0, 0, &made, &n);
		if (p)
			check_pieces(p, n, &shape, &made);
		free(p);
	}
	free(text);
	return 0;
}

#ifndef VERNIER_LIBFUZZER
static size_t make_seed(int i, uint8_t *out)
{
	static const char *const seeds[][3] = {
		{ "\x03\x01\x05\x08\x01\x01\x01", "batch token (head dim)", "token head dim" },
		{ "\x02\x05\x06\x01\x01\x01\x01", "token (freq 2)", "token (2 freq)" },
		{ "\x03\x04\x02\x03\x01\x01\x01", "a b c", "c (a b)" },
	};
	return (size_t)sprintf((char *)out, "%s%s%c%s", seeds[i][0], seeds[i][1], 0, seeds[i][2]);
}

int main(int argc, char **argv)
{
	const fuzz_plan plan = { make_seed, 3, NULL, NULL };
	return fuzz_main(argc, argv, &plan);
}
#endif
