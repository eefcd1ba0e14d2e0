/* test_sentences.c: tests compare/explain/sentences.c, with the functions of both other files. */
#include "compare/explain/cache_slots.h"
#include "compare/rearrange/rearranged.h"
#include "compare/explain/sentence_writers.h"
#include "compare/explain/sentences.h"
#include "tests/support/explain_help.h"

#include <math.h>

static explained e;

/* The explanation of a checkpoint, in words. */
static vn_findings of_point(const char *name, int step, vn_trial *by, int n)
{
	return (vn_findings) { .checkpoint = (int)(checkpoint_at(&e, name, step) - e.compared.c.result.checkpoints.of),
		                   .by = by,
		                   .n = n,
		                   .n_fit = n,
		                   .n_alias = n };
}

static void put_sentences(vn_findings *x, int n)
{
	vn_explain_put_sentences(&e.compared.c.opened, &e.compared.c.result, &(vn_all_findings) { .of = x, .n = n });
}

/* Checks that a trial at a value has these words. */
static void expect_words(vn_trial h, const char *name, const char *want)
{
	const vn_plan *p = vn_model_plan(e.compared.c.opened.model);

	h.node = p->value[vn_plan_root(p, vn_plan_find(p, name))].node;
	vn_findings x = of_point(name, 0, &h, 1);
	put_sentences(&x, 1);
	CU_ASSERT_STRING_EQUAL(h.words, want);
}

/* A constant, as a fit leaves it. */
static vn_trial with(vn_finding finding, const char *constant, double value)
{
	vn_trial h = { .finding = finding };
	vn_trial_constant_put(&h, constant, value);
	return h;
}

static vn_trial number(vn_finding finding, double x)
{
	return (vn_trial) { .finding = finding, .applied = { .kind = VN_BY_NUMBER, .number.value = x } };
}

static vn_trial of_result(vn_finding finding, double x)
{
	return (vn_trial) { .finding = finding, .applied = { .kind = VN_BY_RESULT, .result.number = x } };
}

/* The catalogue has some numbers of a finding as rows: both are one mistake,
 * and are told in the same words. */
static void a_number_of_the_catalogue_is_told_as_its_title(void)
{
	const char *const q = "layer1.q_rope", *const a = "layer1.attn_context", *const w = "layer1.q_proj";
	vn_trial slots = with(VN_FINDING_SLOTS_MOVED, "cache_block", 1),
			 blocks = with(VN_FINDING_BLOCKS_EXCHANGED, "cache_block", 16),
			 late = with(VN_FINDING_NEW_NOT_CACHED, "cache_of", 2);

	vn_trial_constant_put(&slots, "cache_of", 2);
	vn_trial_constant_put(&slots, "cache_form", VN_CACHE_NEXT);
	vn_trial_constant_put(&blocks, "cache_of", 0);
	vn_trial_constant_put(&late, "cache_form", VN_CACHE_LATE);
	expect_words(with(VN_FINDING_THETA, "theta", 1e4), q, vn_mistake_title(VN_MISTAKE_R2_1E4));
	expect_words(with(VN_FINDING_OFFSET, "offset", 1), q, vn_mistake_title(VN_MISTAKE_R3_PLUS));
	expect_words(with(VN_FINDING_OFFSET_LATER, "step_offset", 1), q, vn_mistake_title(VN_MISTAKE_R3B_NEXT));
	expect_words((vn_trial) { .finding = VN_FINDING_TABLE_OFFSET, .applied = { .kind = VN_BY_ROWS, .rows = 1 } }, q,
	             vn_mistake_title(VN_MISTAKE_R15_SHIFTED));
	expect_words((vn_trial) { .finding = VN_FINDING_ANGLES_ROUNDED,
	                          .applied = { .kind = VN_BY_ROTATION,
	                                       .rotate = { .positions = VN_FORMAT_F16,
	                                                   .frequencies = VN_FORMAT_F16,
	                                                   .angles = VN_FORMAT_F16 } } },
	             q, vn_mistake_title(VN_MISTAKE_R13));
	expect_words(with(VN_FINDING_EPS, "eps", 1e-12), "layer1.attn_norm", vn_mistake_title(VN_MISTAKE_N1_1E_12));
	expect_words(with(VN_FINDING_DELTA_SCALE, "scale", 1), a, vn_mistake_title(VN_MISTAKE_G6));
	expect_words(with(VN_FINDING_KEYS_OF_PADDING, "padding", 8), a, vn_mistake_title(VN_MISTAKE_A14));
	expect_words((vn_trial) { .finding = VN_FINDING_PROBS_ROUNDED,
	                          .applied = { .kind = VN_BY_ATTEND,
	                                       .attend = { .kind = VN_ATTEND_ROUNDED, .probs = VN_FORMAT_F16 } } },
	             a, vn_mistake_title(VN_MISTAKE_A13_F16));
	expect_words(slots, a, vn_mistake_title(VN_MISTAKE_C3));
	expect_words(blocks, a, vn_mistake_title(VN_MISTAKE_C4));
	expect_words(late, a, "attention of later calls runs before their tokens are cached: it reads zeros (values only)");
	expect_words(number(VN_FINDING_BIAS_TIMES, 4), w, vn_mistake_title(VN_MISTAKE_W7_FOUR));
	expect_words(number(VN_FINDING_RANKS_SUMMED, VN_RANKS_MOST + 2), w, vn_mistake_title(VN_MISTAKE_P15));
	expect_words(number(VN_FINDING_SHARDS_ALONG_TOKENS, 2), w, vn_mistake_title(VN_MISTAKE_P18_AXIS));
	expect_words(number(VN_FINDING_ROWS_PADDED, 8), w, vn_mistake_title(VN_MISTAKE_W18));
	expect_words((vn_trial) { .finding = VN_FINDING_MATRIX_TRANSPOSED, .applied.kind = VN_BY_MATRIX }, w,
	             vn_mistake_title(VN_MISTAKE_W1B));
	expect_words(of_result(VN_FINDING_CAP, 30), w, vn_mistake_title(VN_MISTAKE_M9_CAP));
	expect_words(of_result(VN_FINDING_TEMPERATURE, 1 / 0.7), w, vn_mistake_title(VN_MISTAKE_M9_0_7));
	expect_words(of_result(VN_FINDING_SUM_TIMES, 2), w, vn_mistake_title(VN_MISTAKE_P16_TWICE));
	expect_words(of_result(VN_FINDING_AVERAGE, 0.5), w, vn_mistake_title(VN_MISTAKE_P16_AVERAGE));
}

/* Words without a place for their number would leave it out. */
static void a_sentence_with_a_number_has_a_place_for_it(void)
{
	enum { NO_NUMBER, NUMBER, INVERSE, RANGE };
	static const struct {
		vn_mistake  titled;
		const char *words;
		int         with;
	} rows[] = {
#define FINDING(name, mistake, digits, with, constant, words) { VN_NO_MISTAKE, words, with },
#define TITLED(name, mistake, digits, with, constant, words)  { mistake, words, with },
#define SAID(name, mistake, digits, say)
#include "compare/trial/findings.def"
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		CU_ASSERT_EQUAL(strchr(rows[i].words, '%') || strchr(vn_mistake_title(rows[i].titled), '%'),
		                rows[i].with != NO_NUMBER);
}

static void numbers_of_operations_are_told(void)
{
	vn_trial h;

	expect_words(with(VN_FINDING_STRETCH, "turn", 0.25), "layer1.q_rope",
	             "every angle is 0.25 times the correct angle");
	expect_words(with(VN_FINDING_ROTARY_WIDTH, "rotary_dim", 4), "layer1.q_rope",
	             "RoPE over another part of a head: 4 of 8 columns");
	expect_words(with(VN_FINDING_EPS, "eps", 1e-3), "layer1.attn_norm", "eps is 0.001");
	expect_words(with(VN_FINDING_OFFSET_LATER, "step_offset", -2), "layer1.q_rope",
	             "positions after the first call are shifted by -2");
	h = with(VN_FINDING_WINDOW, "window", 40);
	expect_words(h, "layer1.attn_context", "a sliding window of 40 keys");
	h.first = 40;
	h.last = 41;
	expect_words(h, "layer1.attn_context", "a sliding window of 40 or 41 keys");
	h.last = 44;
	expect_words(h, "layer1.attn_context", "a sliding window of 40 to 44 keys");
	h.finding = VN_FINDING_WINDOW_AND_SINKS;
	h.first_also = h.last_also = 4;
	expect_words(h, "layer1.attn_context", "a sliding window of 40 to 44 keys and the first 4 keys (attention sinks)");
	h = with(VN_FINDING_THETA, "theta", 1e6);
	h.paired = true;
	expect_words(h, "layer1.q_rope", "RoPE with theta 1e+06; and pairs columns 2i and 2i + 1");
}

static void changes_of_a_matrix_are_told(void)
{
	vn_trial h = { .finding = VN_FINDING_INPUTS_MISSING,
		           .applied = { .kind = VN_BY_MATRIX, .matrix = { .kind = VN_MATRIX_TAIL, .n = 5 } } };

	expect_words(h, "layer1.down_proj", "the last 5 of 128 inputs are not in the sum");
	h.finding = VN_FINDING_RANKS_CROSSED;
	h.applied.matrix = (vn_applied_matrix) { .kind = VN_MATRIX_RANKS, .n = 3, .from = { 2, 0, 1 } };
	expect_words(
		h, "layer1.down_proj",
		"shards of 3 ranks are joined in the wrong order: the inputs of ranks 0 to 2 are multiplied by the weights "
		"of ranks 2, 0, 1");
	h.finding = VN_FINDING_PRODUCT_ROUNDED;
	h.applied.matrix = (vn_applied_matrix) {
		.kind = VN_MATRIX_FORMAT, .format = VN_FORMAT_INT8, .of = VN_OF_BOTH, .scaled = VN_SCALE_OF_ROWS
	};
	expect_words(
		h, "layer1.down_proj",
		"inputs and weights in int8: rounded, with one scale for each output channel and one scale for each token");
	h.finding = VN_FINDING_MATRIX_TRANSPOSED;
	h.applied.matrix = (vn_applied_matrix) { .kind = VN_MATRIX_TRANSPOSED, .fused = true };
	expect_words(
		h, "layer1.gate_proj",
		"the bytes of a matrix are read as those of its transpose, fused: gate_proj, up_proj, before the fused "
		"matrix is split");
}

static void changes_of_attention_are_told(void)
{
	vn_trial h = { .finding = VN_FINDING_SOFTMAX_ROUNDED,
		           .applied = {
					   .kind = VN_BY_ATTEND,
					   .attend = { .kind = VN_ATTEND_ROUNDED, .scores = VN_FORMAT_F16, .probs = VN_FORMAT_F16 } } };

	expect_words(h, "layer1.attn_context", "scores and probabilities rounded to float16");
	h.applied.attend.exps = h.applied.attend.sum = VN_FORMAT_F16;
	expect_words(h, "layer1.attn_context",
	             "softmax wholly in float16: scores, exponentials, their sum and probabilities are rounded");
	h.finding = VN_FINDING_CACHE_ROUNDED;
	h.applied.attend = (vn_applied_attention) { .kind = VN_ATTEND_ROUNDED, .cache = VN_FORMAT_E4M3, .scaled = true };
	expect_words(h, "layer1.attn_context",
	             "a cache in float8 (e4m3), with one scale for each token and head, read after the first call");
	h.finding = VN_FINDING_SCORE_CAP;
	h.applied.attend = (vn_applied_attention) { .kind = VN_ATTEND_CAP, .number = 30 };
	expect_words(h, "layer1.attn_context", "scores capped: 30 tanh(score / 30)");
}

static void one_slot_is_told(void)
{
	vn_trial h = { .finding = VN_FINDING_CACHE_ONE_ALONE,
		           .applied = { .kind = VN_BY_ONE_CACHED, .one_cached = { .slot = 3, .of = 1, .holds = 64 } } };

	expect_words(h, "layer1.attn_scores", "the cache holds the key of token 64 in place of token 3's");
	h.applied.one_cached.of = 2;
	h.applied.one_cached.others = 2;
	expect_words(
		h, "layer1.attn_context",
		"the cache holds the value of token 64 or one of 2 others in place of token 3's; token 3's key is right");
}

static void positions_of_some_tokens_are_told(void)
{
	vn_trial         h = { .finding = VN_FINDING_POSITIONS_OF_SOME, .applied = { .kind = VN_BY_ROTATION } };
	vn_position_map *m = &h.applied.rotate.map;
	h.applied.rotate.moved = true;
	*m = (vn_position_map) { .first = 20, .last = 20, .times = 1, .plus = 3 };

	expect_words(h, "layer1.q_rope", "token 20 is rotated as if 3 positions later");
	m->last = 45;
	m->plus = -1;
	expect_words(h, "layer1.q_rope", "tokens 20-45 are rotated as if 1 position earlier");
	*m = (vn_position_map) { .first = 48, .last = 60, .open = true, .times = 0.25, .plus = 36 };
	expect_words(h, "layer1.q_rope",
	             "tokens from 48 on are rotated as if their distance from position 48 were 0.25 times as large");
	m->plus = 0;
	m->whole = true;
	expect_words(h, "layer1.q_rope", "tokens from 48 on are rotated as if at 0.25 times their positions, rounded down");
	*m = (vn_position_map) { .first = 30, .last = 45, .plus = 30 };
	expect_words(h, "layer1.q_rope", "tokens 30-45 are rotated as if at position 30");
}

static void what_was_read_instead_is_told(void)
{
	const vn_plan *p = vn_model_plan(e.compared.c.opened.model);
	vn_trial       h = { .finding = VN_FINDING_OTHER_INPUT, .applied.kind = VN_BY_READS };

	h.applied.reads.in[0] = 1 + vn_plan_find(p, "layer0.attn_norm");
	expect_words(h, "layer1.q_proj", "layer0.attn_norm is read in place of layer1.attn_norm");
	h = (vn_trial) { .finding = VN_FINDING_OTHER_WEIGHTS, .applied.kind = VN_BY_READS };
	h.applied.reads.weights = 1 + p->value[vn_plan_find(p, "layer0.q_proj")].node;
	expect_words(h, "layer1.q_proj", "weights of layer 0");
	h = (vn_trial) { .finding = VN_FINDING_OTHER_TOKEN, .applied = { .kind = VN_BY_TOKENS, .tokens = -1 } };
	expect_words(h, "embed", "the embedding of the previous token");
	h.applied.tokens = 3;
	h.applied.later = true;
	expect_words(h, "embed", "the embedding of the token 3 places after, after the first call");
}

static void ranks_blocks_and_slots_are_told(void)
{
	vn_trial h = number(VN_FINDING_RANKS_SUMMED, 64 * 0xd + 4); /* ranks 0, 2 and 3 of 4 */

	expect_words(h, "layer1.down_proj", "the sum without the part of rank 1 of 4");
	h.applied.number.value = 64 * 0x2 + 4;
	expect_words(h, "layer1.down_proj", "the part of rank 1 of 4, not the sum");
	h.applied.number.value = -(64 * 0x12 + 8); /* ranks 1 and 4 of 8 */
	expect_words(h, "layer1.down_proj", "the parts of ranks 1, 4 of 8, not the sum, and no bias");
	h = (vn_trial) { .finding = VN_FINDING_BLOCKS_REORDERED,
		             .applied = { .kind = VN_BY_BLOCKS,
		                          .blocks = { .block = 4, .of = 1, .n = 3, .from = { 2, 0, 1 } } } };
	expect_words(h, "layer1.attn_context", "blocks of 4 tokens of keys are in another order: 2, 0, 1");
	h = (vn_trial) { .finding = VN_FINDING_NEW_SLOTS_MOVED,
		             .applied = { .kind = VN_BY_SLOTS, .slots = { .of = 2, .by = -1, .newest = true } } };
	expect_words(
		h, "layer1.attn_context",
		"values of the newest tokens are written 1 slot before their own, so a slot that is read was never written");
}

static void changes_of_a_result_are_told(void)
{
	vn_trial h = { .finding = VN_FINDING_FACTOR,
		           .applied = { .kind = VN_BY_RESULT,
		                        .result = { .number = sqrt(8.0), .factor = VN_ROOT_HEAD_WIDTH } } };

	expect_words(h, "layer1.attn_out", "every element is multiplied by 2.82843, which is sqrt(head width)");
	h.finding = VN_FINDING_CLAMPED;
	h.applied.result.number = 3;
	h.applied.result.clamp = VN_CLAMP_BOTH;
	expect_words(h, "layer1.attn_out", "clamped: numbers beyond +-3 are set to this bound");
	h.finding = VN_FINDING_AVERAGE;
	h.applied.result.number = 0.25;
	expect_words(h, "layer1.attn_out", "the average of 4 ranks, not their sum");
	h.finding = VN_FINDING_TOKENS_MOVED;
	h.applied.result.number = -1;
	expect_words(h, "layer1.attn_out", "tokens out of order: token t has the values of token t -1");
	h = (vn_trial) { .finding = VN_FINDING_PARTLY_ZERO,
		             .applied = { .kind = VN_BY_RESULT, .result = { .n = 4, .list = { 3, 5, 9, 9 } } } };
	expect_words(h, "layer1.attn_out", "partly written: tokens 3-5, 9 are 0");
	h = (vn_trial) { .finding = VN_FINDING_AXES_OF_HEADS,
		             .applied = { .kind = VN_BY_RESULT, .result = { .n = 3, .list = { 0, 2, 1 } } } };
	expect_words(h, "layer1.q_proj",
	             "the elements are in the order (token dim head): heads are joined innermost: column k H + h");
}

static void where_else_and_in_which_heads_is_told(void)
{
	const vn_plan *p = vn_model_plan(e.compared.c.opened.model);
	vn_trial       h = with(VN_FINDING_THETA, "theta", 1e4);

	h.node = p->value[vn_plan_find(p, "layer1.q_rope")].node;
	h.other = p->value[vn_plan_find(p, "layer1.k_rope")].node;
	h.places = 2;
	h.heads = 8;
	h.part[1] = h.part[4] = h.part[5] = h.part[6] = true;
	vn_findings x = of_point("layer1.q_rope", 0, &h, 1);
	put_sentences(&x, 1);
	CU_ASSERT_STRING_EQUAL(h.also, " and layer1.k_rope");
	CU_ASSERT_STRING_EQUAL(h.heads_only, "in heads 1, 4-6 of 8 only");
	CU_ASSERT_STRING_EQUAL(h.id, "R2");
	h.places = 4;
	put_sentences(&x, 1);
	CU_ASSERT_STRING_EQUAL(h.also, " and 3 more operations");
}

/* Of a rotation of queries, the keys tell more. */
static void what_would_separate_two_answers_is_told(void)
{
	vn_trial       by[2] = { with(VN_FINDING_THETA, "theta", 1e4), with(VN_FINDING_OFFSET, "offset", 2) };
	const vn_plan *p = vn_model_plan(e.compared.c.opened.model);

	by[0].node = by[1].node = p->value[vn_plan_find(p, "layer1.q_rope")].node;
	vn_findings x = of_point("layer1.q_rope", 0, by, 2);
	put_sentences(&x, 1);
	CU_ASSERT_STRING_EQUAL(x.separating_input, "look at layer1.k_rope, which is right here");
	by[1].node = p->value[vn_plan_find(p, "layer1.q_proj")].node;
	put_sentences(&x, 1);
	CU_ASSERT_STRING_EQUAL(x.separating_input, "look at layer1.q_proj, which is right here");
	x = of_point("layer1.attn_norm", 0, by, 2);
	by[0].node = by[1].node = p->value[vn_plan_find(p, "layer1.attn_norm")].node;
	put_sentences(&x, 1);
	CU_ASSERT_STRING_EQUAL(x.separating_input, /* of 19 tokens */
	                       "a prompt of 70 tokens or more, another layer, or another model");
	x = of_point("layer1.attn_norm", 0, by, 1);
	put_sentences(&x, 1);
	CU_ASSERT_STRING_EQUAL(x.separating_input, ""); /* one answer */
}

static void what_speaks_against_it_is_told(void)
{
	vn_trial a = { .finding = VN_FINDING_FACTOR,
		           .applied = { .kind = VN_BY_RESULT, .result.number = 1.5 },
		           .speaks_against = VN_ANOTHER_NUMBER,
		           .against_step = 1 },
			 b = a;
	vn_findings x[2] = { of_point("layer1.attn_out", 0, &a, 1), of_point("layer1.attn_out", 1, &b, 1) };

	b.applied.result.number = 1.75;
	b.speaks_against = VN_RIGHT_THERE;
	b.against_step = 2;
	put_sentences(x, 2);
	CU_ASSERT_STRING_EQUAL(a.contradicted_by, "different in step 1: every element is multiplied by 1.75");
	CU_ASSERT_STRING_EQUAL(b.contradicted_by, "step 2 is right, but this mistake would change it");
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(a_number_of_the_catalogue_is_told_as_its_title),
		TEST(a_sentence_with_a_number_has_a_place_for_it),
		TEST(numbers_of_operations_are_told),
		TEST(changes_of_a_matrix_are_told),
		TEST(changes_of_attention_are_told),
		TEST(one_slot_is_told),
		TEST(positions_of_some_tokens_are_told),
		TEST(what_was_read_instead_is_told),
		TEST(ranks_blocks_and_slots_are_told),
		TEST(changes_of_a_result_are_told),
		TEST(where_else_and_in_which_heads_is_told),
		TEST(what_would_separate_two_answers_is_told),
		TEST(what_speaks_against_it_is_told),
		CU_TEST_INFO_NULL,
	};
	return run_suite_of_correct("sentences", tests, &e);
}
