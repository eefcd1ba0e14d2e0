/* test_replay_columns.c: tests compare/replay/replay_columns.c. */
#include "tests/support/attention_help.h"

/* Queries of both layers of the llama, before and after their rotation. */
enum { T = 8, D = H * K, N = T * D };

typedef struct queries {
	float plain[N], rotated[N];
} queries;

static float   norm[N];
static queries ref[2], cand[2];

/* Half of a head's columns, and the other half: here in turn. */
static void in_pairs(float *row)
{
	float to[K];
	for (int i = 0; i < K / 2; i++) {
		to[2 * i] = row[i];
		to[2 * i + 1] = row[K / 2 + i];
	}
	memcpy(row, to, sizeof to);
}

static void rotate_all(queries *q_of)
{
	memcpy(q_of->rotated, q_of->plain, sizeof q_of->plain);
	for (int i = 0; i < T * H; i++)
		rotate_row(q_of->rotated + i * K, i / H, 500000);
}

/* Both runs are correct, except that the candidate's plain queries of these layers have paired
 * columns. */
static void fill(bool first, bool second)
{
	for (int i = 0; i < N; i++)
		norm[i] = given_number(i, 1);
	for (int layer = 0; layer < 2; layer++) {
		int64_t n;
		double *w = given_weight(layer ? "layer1.q_proj" : "layer0.q_proj", 0, &n);
		for (int i = 0; i < N; i++) {
			double sum = 0;
			for (int d = 0; d < D; d++)
				sum += (double)norm[i / D * D + d] * w[i % D * D + d];
			ref[layer].plain[i] = (float)sum;
		}
		free(w);
		rotate_all(&ref[layer]);
		cand[layer] = ref[layer];
		for (int i = 0; (layer ? second : first) && i < T * H; i++)
			in_pairs(cand[layer].plain + i * K);
	}
}

static void compare(explained *e)
{
	given of[2][6];

	for (int side = 0; side < 2; side++) {
		queries *x = side ? cand : ref;
		of[side][0] = (given) { "layer0.attn_norm", norm };
		of[side][1] = (given) { "layer1.attn_norm", norm };
		of[side][2] = (given) { "layer0.q_proj", x[0].plain };
		of[side][3] = (given) { "layer0.q_rope", x[0].rotated };
		of[side][4] = (given) { "layer1.q_proj", x[1].plain };
		of[side][5] = (given) { "layer1.q_rope", x[1].rotated };
	}
	compare_two(e, T, 0, of[0], of[1], 6);
}

static bool is_origin(const explained *e, const char *name)
{
	const vn_comparison *c = &e->compared.c;
	for (int i = 0; i < c->result.localised.n_origins; i++)
		if (strcmp(c->result.checkpoints.of[c->result.localised.origins[i]].name, name) == 0)
			return true;
	return false;
}

static void an_order_is_no_mistake_if_its_reader_is_right(void)
{
	explained e;

	fill(true, true);
	compare(&e);
	for (int layer = 0; layer < 2; layer++) {
		const vn_checkpoint *p = checkpoint_at(&e, layer ? "layer1.q_proj" : "layer0.q_proj", 0),
							*r = checkpoint_at(&e, layer ? "layer1.q_rope" : "layer0.q_rope", 0);
		CU_ASSERT_TRUE(p->replayed);
		CU_ASSERT_EQUAL(p->replay.columns, VN_COLUMNS_PAIRS);
		CU_ASSERT_TRUE(vn_local_is_order(p));
		CU_ASSERT_EQUAL(r->replay.columns, VN_COLUMNS_SAME);
		CU_ASSERT_FALSE(vn_local_beyond(r));
	}
	end_explained(&e);
}

/* The rotation used the columns in the recorded order. */
static void an_order_consumed_as_recorded_is_charged(void)
{
	explained e;

	fill(true, false);
	rotate_all(&cand[0]);
	compare(&e);
	const vn_checkpoint *p = checkpoint_at(&e, "layer0.q_proj", 0);
	CU_ASSERT_EQUAL(p->replay.columns, VN_COLUMNS_SAME);
	CU_ASSERT_TRUE(vn_local_beyond(p));
	CU_ASSERT_TRUE(is_origin(&e, "layer0.q_proj"));
	CU_ASSERT_FALSE(is_origin(&e, "layer0.q_rope")); /* right with what was recorded */
	end_explained(&e);
}

/* A mistake behind the queries of layer 1 hides their order, which layer 0 proves. */
static void another_layer_proves_an_order(void)
{
	explained e;

	fill(true, true);
	for (int i = 0; i < N; i++)
		cand[1].rotated[i] *= 1.5f;
	compare(&e);
	const vn_checkpoint *p = checkpoint_at(&e, "layer1.q_proj", 0), *r = checkpoint_at(&e, "layer1.q_rope", 0);
	CU_ASSERT_EQUAL(p->replay.columns, VN_COLUMNS_PAIRS);
	CU_ASSERT_TRUE(vn_local_is_order(p)); /* and nothing else */
	CU_ASSERT_TRUE(is_origin(&e, "layer1.q_rope"));
	/* half of it is added: a quarter of its squares */
	CU_ASSERT_DOUBLE_EQUAL(r->replay.local, 0.25, 1e-5);
	end_explained(&e);
}

/* In the proven order there is an error, too: it is measured in that order. */
static void a_mistake_is_measured_in_the_proven_order(void)
{
	explained e;

	fill(true, true);
	for (int i = 0; i < N; i++)
		cand[1].plain[i] *= 1.25f;
	for (int i = 0; i < N; i++)
		cand[1].rotated[i] *= 1.25f;
	compare(&e);
	const vn_checkpoint *p = checkpoint_at(&e, "layer1.q_proj", 0);
	CU_ASSERT_EQUAL(p->replay.columns, VN_COLUMNS_PAIRS);
	CU_ASSERT_TRUE(p->replay.wrong_in_order);
	CU_ASSERT_DOUBLE_EQUAL(p->replay.local, 0.0625, 1e-5);
	CU_ASSERT_TRUE(is_origin(&e, "layer1.q_proj"));
	CU_ASSERT_FALSE(is_origin(&e, "layer1.q_rope"));
	end_explained(&e);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(an_order_is_no_mistake_if_its_reader_is_right),
		TEST(an_order_consumed_as_recorded_is_charged),
		TEST(another_layer_proves_an_order),
		TEST(a_mistake_is_measured_in_the_proven_order),
		CU_TEST_INFO_NULL,
	};
	if (!make_folder())
		return 1;
	const int failed = run_suite("replay_columns", tests);
	return !remove_folder() || failed;
}
