/* test_weights_lines.c: tests compare/weights/weights_lines.c. */
#include "tests/support/weights_help.h"

#include <stdlib.h>
#include <string.h>

enum { LAYERS = 12, MOST = 80 };

static vn_weight_row  rows[MOST];
static vn_weight_name names[MOST];
static int            n_rows, n_names;

/* A weight of 2 x 3 numbers of that format. layer -1: outside layers. */
static const vn_weight_row *row_in(int layer, const char *part, vn_dtype dtype)
{
	vn_weight_row *r = &rows[n_rows++];
	char           name[VN_NAME_MAX];

	*r = (vn_weight_row) { .dtype = dtype, .shape = { 2, { 2, 3 } } };
	if (layer < 0)
		snprintf(name, sizeof name, "%s", part);
	else
		snprintf(name, sizeof name, "model.layers.%d.%s", layer, part);
	r->name = vn_intern(name);
	return r;
}

static void add_difference(vn_weights *w, int layer, const char *part, const char *words, vn_dtype cand)
{
	vn_weight_difference *d = &w->found[w->n_found++];
	const vn_weight_row  *a = row_in(layer, part, VN_BF16);

	*d = (vn_weight_difference) { .row = { a, row_in(layer, part, cand) },
		                          .layer = layer,
		                          .part = part,
		                          .kind = "rounded",
		                          .proof = VN_PROOF_NUMBERS };
	d->words = words;
	d->key = (uint64_t)*words;
}

/* Every layer has all of these parts on one of the sides. */
static void begin(vn_weights *w, const char *const *part, int n_parts)
{
	*w = (vn_weights) { .found = calloc(MOST, sizeof *w->found) };
	n_rows = n_names = 0;
	for (int layer = 0; layer < LAYERS; layer++)
		for (int i = 0; i < n_parts; i++)
			names[n_names++] = (vn_weight_name) { .layer = layer, .tail = part[i] };
}

static void group(vn_weights *w)
{
	vn_weights_group(w, names, n_names);
}

static void end(vn_weights *w)
{
	for (int i = 0; i < w->n_lines; i++)
		free(w->line[i].which);
	free(w->line);
	free(w->found);
}

static void layers_are_ranges(void)
{
	static const char *const part[] = { "q.weight" };
	static const int         layer[] = { 7, 0, 2, 1, 9 };
	vn_weights               w;

	begin(&w, part, 1);
	for (int i = 0; i < 5; i++)
		add_difference(&w, layer[i], "q.weight", "rounded", VN_F16);
	group(&w);
	CU_ASSERT_EQUAL_FATAL(w.n_lines, 1);
	CU_ASSERT_STRING_EQUAL(w.line[0].which, "layers 0-2, 7, 9: q.weight");
	CU_ASSERT_STRING_EQUAL(w.line[0].side[0], "bf16 (2, 3)");
	CU_ASSERT_STRING_EQUAL(w.line[0].side[1], "f16 (2, 3)");
	CU_ASSERT_EQUAL(w.line[0].n, 5);
	for (int i = 1; i < 5; i++)
		CU_ASSERT_TRUE(w.found[i].layer > w.found[i - 1].layer);
	end(&w);
}

static void all_layers_are_counted(void)
{
	static const char *const part[] = { "q.weight" };
	vn_weights               w;

	begin(&w, part, 1);
	for (int layer = 0; layer < LAYERS; layer++)
		add_difference(&w, layer, "q.weight", "rounded", VN_F16);
	group(&w);
	CU_ASSERT_EQUAL_FATAL(w.n_lines, 1);
	CU_ASSERT_STRING_EQUAL(w.line[0].which, "all 12 layers: q.weight");
	end(&w);
}

/* Three parts are named. */
static void parts_that_differ_in_the_same_layers_share_a_line(void)
{
	static const char *const part[] = { "a", "b", "c", "d", "e" };
	vn_weights               w;

	begin(&w, part, 2);
	for (int i = 0; i < 5; i++) {
		add_difference(&w, 3, part[i], "rounded", VN_F16);
		add_difference(&w, 4, part[i], "rounded", i == 4 ? VN_F32 : VN_F16);
	}
	group(&w);
	CU_ASSERT_EQUAL_FATAL(w.n_lines, 1);
	CU_ASSERT_STRING_EQUAL(w.line[0].which, "layers 3-4: a, b, c and 2 more");
	CU_ASSERT_STRING_EQUAL(w.line[0].side[1], "various");
	CU_ASSERT_EQUAL(w.line[0].n, 10);
	end(&w);
}

/* A different change, or different layers, is another line. Lines come by their first layer; what
 * lies outside layers first. */
static void what_differs_otherwise_has_its_own_line(void)
{
	static const char *const part[] = { "a", "b" };
	vn_weights               w;

	begin(&w, part, 2);
	add_difference(&w, 5, "a", "transposed", VN_BF16);
	add_difference(&w, 2, "b", "rounded", VN_F16);
	add_difference(&w, 2, "a", "rounded", VN_F16);
	add_difference(&w, 3, "b", "rounded", VN_F16);
	add_difference(&w, -1, "lm_head", "zero", VN_BF16);
	w.found[4].row[1] = NULL;
	group(&w);
	CU_ASSERT_EQUAL_FATAL(w.n_lines, 4);
	CU_ASSERT_STRING_EQUAL(w.line[0].which, "lm_head");
	CU_ASSERT_STRING_EQUAL(w.line[0].side[1], "-");
	CU_ASSERT_STRING_EQUAL(w.line[1].which, "layer 2: a");
	CU_ASSERT_STRING_EQUAL(w.line[2].which, "layers 2-3: b");
	CU_ASSERT_STRING_EQUAL(w.line[3].which, "layer 5: a");
	int at = 0;
	for (int i = 0; i < w.n_lines; at += w.line[i++].n)
		CU_ASSERT_EQUAL(w.line[i].first, at);
	CU_ASSERT_EQUAL(at, w.n_found);
	end(&w);
}

/* Both lists begin with layers 0, 2, ..., 22, which fill the room for words. */
static void long_lists_of_layers_that_begin_alike_are_two_lines(void)
{
	static const int         q[] = { 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28 };
	static const int         k[] = { 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 31, 41, 43, 45, 47 };
	static const char *const part[] = { "k", "q" };
	vn_weights               w;

	begin(&w, part, 2);
	for (size_t i = 0; i < sizeof q / sizeof *q; i++)
		add_difference(&w, q[i], "q", "zero", VN_BF16);
	for (size_t i = 0; i < sizeof k / sizeof *k; i++)
		add_difference(&w, k[i], "k", "zero", VN_BF16);
	group(&w);
	CU_ASSERT_EQUAL_FATAL(w.n_lines, 2);
	CU_ASSERT_STRING_EQUAL(w.line[0].which, "layers 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22 and more: q");
	CU_ASSERT_STRING_EQUAL(w.line[1].which, "layers 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22 and more: k");
	CU_ASSERT_EQUAL(w.line[0].n, 15);
	CU_ASSERT_EQUAL(w.line[1].n, 17);
	end(&w);
}

/* a has layers 0 to 5, b layers 6 to 11. */
static void parts_with_as_many_layers_but_others_are_two_lines(void)
{
	vn_weights w = { .found = calloc(MOST, sizeof *w.found) };

	n_rows = n_names = 0;
	for (int layer = 0; layer < LAYERS; layer++) {
		const char *part = layer < LAYERS / 2 ? "a" : "b";
		names[n_names++] = (vn_weight_name) { .layer = layer, .tail = part };
		add_difference(&w, layer, part, "rounded", VN_F16);
	}
	group(&w);
	CU_ASSERT_EQUAL_FATAL(w.n_lines, 2);
	CU_ASSERT_STRING_EQUAL(w.line[0].which, "all 6 layers: a");
	CU_ASSERT_STRING_EQUAL(w.line[1].which, "all 6 layers: b");
	end(&w);
}

static void the_finding_decides_and_not_its_words(void)
{
	static const char *const part[] = { "a", "b" };
	vn_weights               w;

	begin(&w, part, 2);
	add_difference(&w, 2, "a", "rounded", VN_F16);
	add_difference(&w, 3, "a", "rounded to float16", VN_F16);
	add_difference(&w, 2, "b", "rounded", VN_F16);
	add_difference(&w, 3, "b", "rounded", VN_F16);
	w.found[3].key++;
	group(&w);
	CU_ASSERT_EQUAL_FATAL(w.n_lines, 3);
	CU_ASSERT_STRING_EQUAL(w.line[0].which, "layer 2: b");
	CU_ASSERT_STRING_EQUAL(w.line[1].which, "layers 2-3: a");
	CU_ASSERT_STRING_EQUAL(w.line[2].which, "layer 3: b");
	end(&w);
}

/* A missing bias has the words of a missing weight, and an id. */
static void lines_with_the_same_words_come_by_their_id(void)
{
	static const char *const part[] = { "a", "b" };
	vn_weights               w;

	begin(&w, part, 2);
	add_difference(&w, 2, "a", "missing", VN_F16);
	add_difference(&w, 2, "b", "missing", VN_F16);
	snprintf(w.found[0].id, sizeof w.found[0].id, "W6");
	w.found[0].key--;
	group(&w);
	CU_ASSERT_EQUAL_FATAL(w.n_lines, 2);
	CU_ASSERT_STRING_EQUAL(w.line[0].which, "layer 2: b");
	CU_ASSERT_STRING_EQUAL(w.line[1].which, "layer 2: a");
	end(&w);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(layers_are_ranges),
		TEST(all_layers_are_counted),
		TEST(parts_that_differ_in_the_same_layers_share_a_line),
		TEST(what_differs_otherwise_has_its_own_line),
		TEST(long_lists_of_layers_that_begin_alike_are_two_lines),
		TEST(parts_with_as_many_layers_but_others_are_two_lines),
		TEST(the_finding_decides_and_not_its_words),
		TEST(lines_with_the_same_words_come_by_their_id),
		CU_TEST_INFO_NULL,
	};
	return run_suite("weights_lines", tests);
}
