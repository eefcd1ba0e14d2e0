/* test_reference_rows.c: tests compare/replay/reference_rows.c. */
#include "compare/replay/reference_rows.h"
#include "tests/support/attention_help.h"

/* Twelve tokens at equal distances are checked: among T tokens 0 and 11, but not 5. */
enum { T = 133, D = H * K, UNSEEN = 5 };

static float embed[T * D], norm[T * D], plain[T * D], rotated[T * D];

static void fill(void)
{
	int64_t n;
	double *table = given_weight("embed", 0, &n), *w = given_weight("layer0.q_proj", 0, &n),
		   *g = given_weight("layer0.attn_norm", 0, &n);

	for (int t = 0; t < T; t++) {
		double square = 0;
		for (int d = 0; d < D; d++) {
			embed[t * D + d] = (float)table[(5 + t) * D + d]; /* token t has the id 5 + t */
			square += (double)embed[t * D + d] * (double)embed[t * D + d] / D;
		}
		for (int d = 0; d < D; d++)
			norm[t * D + d] = (float)((double)embed[t * D + d] * g[d] / sqrt(square + 1e-5));
		for (int m = 0; m < D; m++) {
			double sum = 0;
			for (int d = 0; d < D; d++)
				sum += (double)norm[t * D + d] * w[m * D + d];
			rotated[t * D + m] = plain[t * D + m] = (float)sum;
		}
		for (int h = 0; h < H; h++)
			rotate_row(rotated + t * D + h * K, t, 500000);
	}
	free(table);
	free(w);
	free(g);
}

/* Are these numbers the model's? worst: a token to check in every checkpoint; -1: none. */
static bool agrees(int tokens, int decode, int64_t worst, double most[2])
{
	const given of[] = {
		{ "embed", embed }, { "layer0.attn_norm", norm }, { "layer0.q_proj", plain }, { "layer0.q_rope", rotated }
	};
	double    own[8][2] = { { 0 } };
	int64_t   at_token[8];
	vn_names  names;
	explained e;
	bool      yes = false;

	compare_given(&e, tokens, decode, of, 4);
	vn_comparison *c = &e.compared.c;
	CU_ASSERT_TRUE_FATAL(c->result.checkpoints.n <= 8);
	for (int i = 0; i < 8; i++)
		at_token[i] = worst;
	const vn_floor_parts parts = { .o = &c->opened, .all = &c->result.checkpoints, .model = c->opened.model };
	vn_names_init(&names, vn_model_plan(c->opened.model));
	CU_ASSERT_EQUAL(vn_reference_rows(&parts, &names, at_token, own, &yes, &e.err), VN_OK);
	vn_names_finish(&names);
	for (int i = 0; most && i < 2; i++) {
		most[i] = 0;
		for (int p = 0; p < c->result.checkpoints.n; p++)
			most[i] = fmax(most[i], own[p][i]);
	}
	end_explained(&e);
	return yes;
}

static void rows_of_the_model_agree(void)
{
	double off[2];

	fill();
	CU_ASSERT_TRUE(agrees(T, 0, -1, off));
	CU_ASSERT_TRUE(off[0] < 1e-12 && off[1] < 1e-12);
}

static void a_row_that_is_looked_at_shows_an_error(void)
{
	fill();
	rotated[11 * 12 * D + 3] *= 1.01f; /* of the last token */
	CU_ASSERT_FALSE(agrees(T, 0, -1, NULL));
	fill();
	norm[7] += 1e-3f; /* of the first: what reads it is computed from it, and differs, too */
	CU_ASSERT_FALSE(agrees(T, 0, -1, NULL));
}

static void the_worst_token_is_looked_at(void)
{
	fill();
	rotated[UNSEEN * D + 3] += 0.1f;
	CU_ASSERT_TRUE(agrees(T, 0, -1, NULL));
	CU_ASSERT_FALSE(agrees(T, 0, UNSEEN, NULL));
}

static void short_prompts_and_several_calls_are_not_told(void)
{
	fill();
	CU_ASSERT_FALSE(agrees(VN_REFERENCE_LONG - 1, 0, -1, NULL));
	CU_ASSERT_TRUE(agrees(VN_REFERENCE_LONG, 0, -1, NULL));
	CU_ASSERT_FALSE(agrees(VN_REFERENCE_LONG, 1, -1, NULL));
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(rows_of_the_model_agree),
		TEST(a_row_that_is_looked_at_shows_an_error),
		TEST(the_worst_token_is_looked_at),
		TEST(short_prompts_and_several_calls_are_not_told),
		CU_TEST_INFO_NULL,
	};
	if (!make_folder())
		return 1;
	const int failed = run_suite("reference_rows", tests);
	return !remove_folder() || failed;
}
