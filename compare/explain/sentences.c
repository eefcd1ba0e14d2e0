/* sentences.c: see sentences.h. */
#include "compare/explain/sentences.h"
#include "compare/explain/activation.h"
#include "compare/explain/cache_slots.h"
#include "compare/explain/rearrange_number.h"

#include "libref/base/text.h"
#include "libref/plan/fault.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct sentence {
	const vn_comparison  *c;
	const vn_explanation *x;
	const vn_plan        *p;
	const vn_hypothesis  *h;
	char                 *text;
	size_t                size;
} sentence;

#define PUT(s, ...) snprintf((s)->text, (s)->size, __VA_ARGS__)

static const char *name_of(const vn_plan *p, int value)
{
	return p->value[value].name;
}

/* "40", "40 or 41", "40 to 42" */
static const char *range(int64_t one, int64_t first, int64_t last, char text[64])
{
	if (!last && !first)
		first = last = one;
	snprintf(text, 64,
	         first == last       ? "%lld"
	         : last == first + 1 ? "%lld or %lld"
	                             : "%lld to %lld",
	         (long long)first, (long long)last);
	return text;
}

/* ---- findings that are more than a number ------------------------------------------------------------------- */

static void say_fault(const sentence *s)
{
	const vn_hypothesis *h = s->h;
	char                 text[64];

	PUT(s, "%s%s%s", vn_fault_means(h->fault[0] - 1), h->fault[1] ? "; and " : "",
	    h->fault[1] ? vn_fault_means(h->fault[1] - 1) : "");
	if (h->last)
		vn_text_add(s->text, s->size, "; a window of %s keys fits as well", range(0, h->first, h->last, text));
}

static void say_later(const sentence *s)
{
	const int by = s->h->change.kind == VN_BY_ROWS ? s->h->change.rows : (int)vn_constant_of(s->h, "step_offset");
	PUT(s, "%spositions after the first call are %d too %s", s->h->change.kind == VN_BY_ROWS ? "learned " : "", abs(by),
	    by > 0 ? "high" : "low");
}

static void say_width(const sentence *s)
{
	PUT(s, "RoPE turns %.0f of %d columns", vn_constant_of(s->h, "rotary_dim"),
	    s->p->value[s->p->node[s->h->node].out[0]].size[2]);
}

static void say_sinks(const sentence *s)
{
	const vn_hypothesis *h = s->h;
	char                 width[64], keys[64];

	PUT(s, "a sliding window of %s key%s and the first %s keys (attention sinks)", range(0, h->first, h->last, width),
	    h->last == 1 ? "" : "s", range(0, h->first_also, h->last_also, keys));
}

static void say_slots(const sentence *s)
{
	static const char *const what[] = { "tokens", "keys", "values" };
	const int                by = (int)vn_constant_of(s->h, "cache_block"), of = (int)vn_constant_of(s->h, "cache_of");

	PUT(s, "%s are written %d slot%s %s their own", what[of], by, by > 1 ? "s" : "",
	    vn_constant_of(s->h, "cache_form") == VN_CACHE_NEXT ? "before" : "after");
}

static void say_new_slots(const sentence *s)
{
	static const char *const what[] = { "", "keys of ", "values of " };
	const vn_slot_change    *c = &s->h->change.slots;

	PUT(s, "%s%s %s written one slot %s, and a slot that is read holds nothing", what[c->of],
	    c->newest ? "the newest token" : "tokens after the first call", c->newest && !c->of ? "is" : "are",
	    c->by < 0 ? "early" : "late");
}

static void say_exchanged(const sentence *s)
{
	static const char *const alone[] = { "", ", keys only", ", values only" };
	PUT(s, "blocks of %.0f tokens exchanged in pairs%s", vn_constant_of(s->h, "cache_block"),
	    alone[(int)vn_constant_of(s->h, "cache_of")]);
}

static void say_blocks(const sentence *s)
{
	static const char *const alone[] = { "", " of keys", " of values" };
	const vn_block_table    *b = &s->h->change.blocks;
	char                     list[120] = "";
	size_t                   used = 0;

	for (int i = 0; i < b->n && (used = strlen(list)) < sizeof list - 8; i++)
		vn_text_add(list, sizeof list, " %d", b->from[i]);
	PUT(s, "blocks of %d tokens%s are in another order:%s%s", b->block, alone[b->of], list,
	    strlen(list) < sizeof list - 8 ? "" : "...");
}

static void say_cache(const sentence *s)
{
	static const char *const what[][2] = {
		{ "keys and values", "key and value are" },
		{ "values (not their keys)", "value (not its key) is" },
		{ "keys (not their values)", "key (not its value) is" },
		{ "keys (and perhaps values)", "key (and perhaps its value) is" }, /* seen without the values */
	};
	const int      *list = s->h->change.result.list, n = list[1], others = list[3];
	const long long a = list[0], b = a + n - 1, c = list[2], d = c + n - 1;
	char            few[40] = "";

	const vn_node     *node = &s->p->node[s->h->node];
	const bool         values = vn_plan_find(s->p, s->c->result.point[s->x->point].name) == node->out[VN_ATTN_CONTEXT];
	const char *const *whose = what[!values                         ? 3
	                                : list[2] == VN_CACHE_NO_VALUES ? 1
	                                : list[2] == VN_CACHE_NO_KEYS   ? 2
	                                                                : 0];
	if (others)
		snprintf(few, sizeof few, " or one of %d others", others);
	if (s->h->finding == VN_KEYS_UNSEEN && n > 1)
		PUT(s, "keys %lld-%lld are not seen: masked, evicted, or overwritten with keys that no query attends to", a, b);
	else if (s->h->finding == VN_KEYS_UNSEEN)
		PUT(s, "key %lld%s is not seen: masked, evicted, or overwritten with a key that no query attends to", a, few);
	else if (s->h->finding == VN_CACHE_EMPTY && n > 1)
		PUT(s, "tokens %lld-%lld are missing from the cache: their %s are 0", a, b, whose[0]);
	else if (s->h->finding == VN_CACHE_EMPTY)
		PUT(s, "token %lld%s is missing from the cache: its %s 0", a, few, whose[1]);
	else if (n > 1)
		PUT(s, "the cache holds tokens %lld-%lld in place of tokens %lld-%lld", c, d, a, b);
	else
		PUT(s, "the cache holds token %lld in place of token %lld%s", c, a,
		    others ? " (other pairs fit these numbers as well)" : "");
}

/* Which ranks of how many: the present ones if these are few, else the missing ones. */
static void say_ranks(const sentence *s)
{
	const double number = s->h->change.number.value;
	const int    n = (int)fmod(fabs(number), VN_RANKS_MOST);
	const double mask = (fabs(number) - n) / VN_RANKS_MOST;
	char         list[120] = "";
	int          there = 0;

	for (int i = 0; i < n; i++)
		there += fmod(floor(ldexp(mask, -i)), 2) != 0;
	const bool few = there <= n / 2;
	const int  some = few ? there : n - there;
	for (int i = 0, said = 0; i < n; i++)
		if ((fmod(floor(ldexp(mask, -i)), 2) != 0) == few)
			vn_text_add(list, sizeof list, "%s%d", said++ ? ", " : "", i);
	PUT(s, "%s %s of rank%s %s of %d%s%s", few ? "the" : "the sum without the", some > 1 ? "parts" : "part",
	    some > 1 ? "s" : "", list, n, few ? ", not the sum" : "", number < 0 ? ", and no bias" : "");
}

static void say_shards(const sentence *s)
{
	const bool gate = s->h->change.number.row == vn_mistake_fault(VN_MISTAKE_P17_GATE);
	PUT(s, "shards of a fused %s joined rank by rank (%.0f ranks)", gate ? "gate and up" : "product",
	    s->h->change.number.value);
}

static void say_list(const sentence *s)
{
	const int n = s->h->change.result.n;
	char      list[160] = "";

	for (int i = 0; i < n; i++)
		vn_text_add(list, sizeof list, "%s%d", i ? " " : "", s->h->change.result.list[i]);
	if (s->h->finding == VN_SHARDS_REORDERED)
		PUT(s, "shards of %d ranks joined in the wrong order: %s", n, list);
	else
		PUT(s, "heads in another order: %s", list);
}

static void say_factor(const sentence *s)
{
	/* clang-format off */
	static const char *const names[VN_N_FACTOR_NAMES] = {
		[VN_HEAD_WIDTH] = "the head width", [VN_OVER_HEAD_WIDTH] = "1 / head width",
			[VN_ROOT_HEAD_WIDTH] = "sqrt(head width)",
		[VN_OVER_ROOT_HEAD_WIDTH] = "1 / sqrt(head width)", [VN_MODEL_WIDTH] = "the model width",
		[VN_OVER_MODEL_WIDTH] = "1 / model width", [VN_ROOT_MODEL_WIDTH] = "sqrt(model width)",
		[VN_OVER_ROOT_MODEL_WIDTH] = "1 / sqrt(model width)",
			[VN_ROOT_MODEL_OVER_HEAD] = "sqrt(model width / head width)",
		[VN_ROOT_HEAD_OVER_MODEL] = "sqrt(head width / model width)", [VN_QUERY_HEADS] = "the query heads per key head",
		[VN_OVER_QUERY_HEADS] = "1 / query heads per key head", [VN_127_OVER_128] = "127/128",
			[VN_128_OVER_127] = "128/127",
		[VN_OVER_LAYERS_AND_ONE] = "1 / (layers + 1)", [VN_ROOT_2] = "sqrt(2)", [VN_OVER_ROOT_2] = "1 / sqrt(2)",
	};
	/* clang-format on */
	const char *name = names[s->h->change.result.list[0]];

	PUT(s, "every element is multiplied by %.6g%s%s", s->h->change.result.number, name ? ", which is " : "",
	    name ? name : "");
}

static void say_axes(const sentence *s)
{
	const char *axes = vn_entry_axes(vn_recording_entry(s->c->opened.ref, s->c->result.point[s->x->point].ref));
	char        order[80] = "";

	for (int k = 0; k < s->h->change.result.n; k++) {
		size_t      n;
		const char *word = vn_axes_word(axes, s->h->change.result.list[k], &n);
		vn_text_add(order, sizeof order, "%s%.*s", k ? " " : "", (int)n, word);
	}
	PUT(s, "its elements are in the order (%s)%s", order,
	    s->h->finding == VN_AXES_OF_HEADS        ? ": heads joined innermost, column k H + h"
	    : s->h->finding == VN_AXES_BEFORE_TOKENS ? ": heads before tokens, read as tokens before heads"
	                                             : "");
}

/* "partly written: tokens 32-47, 64-79 are 0" */
static void say_rows(const sentence *s)
{
	const int *list = s->h->change.result.list, n = s->h->change.result.n;
	char       rows[120] = "";

	for (int i = 0; i + 1 < n; i += 2)
		vn_text_add(rows, sizeof rows, list[i + 1] > list[i] ? "%s%d-%d" : "%s%d", i ? ", " : "", list[i], list[i + 1]);
	PUT(s, "partly written: tokens %s%s are %s", rows, n % 2 ? "..." : "",
	    s->h->finding == VN_PARTLY_ZERO ? "0" : "another checkpoint's, bit for bit");
}

/* "partly written: channels 0-7 of 48 are 0 in every token" */
static void say_channels(const sentence *s)
{
	const int *list = s->h->change.result.list, n = s->h->change.result.n;
	char       all[120] = "";

	for (int i = 0; i + 1 < n; i += 2)
		vn_text_add(all, sizeof all, list[i + 1] > list[i] ? "%s%d-%d" : "%s%d", i ? ", " : "", list[i], list[i + 1]);
	PUT(s, "partly written: channel%s %s%s of %.0f %s 0 in every token", n == 2 && list[0] == list[1] ? "" : "s", all,
	    n % 2 ? "..." : "", s->h->change.result.number, n == 2 && list[0] == list[1] ? "is" : "are");
}

static void say_reads(const sentence *s)
{
	const vn_plan *p = s->p;
	const vn_node *n = &p->node[s->h->node];
	const int     *in = s->h->change.reads.in;
	int            input = 0;

	while (input < VN_MAX_IN - 1 && !in[input])
		input++;
	if (s->h->finding == VN_OTHER_WEIGHTS)
		PUT(s, "weights of layer %d", p->node[s->h->change.reads.weights - 1].layer);
	else if (s->h->change.reads.matrix)
		PUT(s, "computed with the matrix of %s%s", name_of(p, p->node[s->h->change.reads.weights - 1].out[0]),
		    n->w[1] >= 0 ? "; the bias is right" : "");
	else if (s->h->finding == VN_OTHER_CACHE)
		PUT(s, "it reads the keys and values of layer %d: %s and %s", p->value[in[VN_ATTN_K] - 1].layer,
		    name_of(p, in[VN_ATTN_K] - 1), name_of(p, in[VN_ATTN_V] - 1));
	else if (s->h->finding == VN_OTHER_INPUT)
		PUT(s, "it reads %s in place of %s", name_of(p, in[input] - 1), name_of(p, vn_plan_root(p, n->in[input])));
	else
		PUT(s, "it reads %s in place of %s of its own layer", name_of(p, in[input] - 1),
		    s->h->finding == VN_OTHER_VALUES ? "the values" : "the keys");
}

/* "the matrices of layer1.q_proj, layer1.k_proj and layer1.v_proj, fused", or "the matrix" */
static void say_matrix(const sentence *s)
{
	const vn_node *n = &s->p->node[s->h->node];
	const bool     back = s->h->change.matrix.kind == VN_EDIT_BACK;
	int            some = 0;

	vn_text_add(s->text, s->size, "%s", s->h->change.matrix.fused ? "the fused matrix of " : "the matrix");
	for (int i = 0; s->h->change.matrix.fused && i < s->p->n_nodes; i++) {
		const vn_node *o = &s->p->node[i];
		const char    *dot = strchr(name_of(s->p, o->out[0]), '.');
		if (o->op == VN_OP_LINEAR && o->layer == n->layer && o->in[0] == n->in[0])
			vn_text_add(s->text, s->size, "%s%s", some++ ? ", " : "", dot ? dot + 1 : name_of(s->p, o->out[0]));
	}
	vn_text_add(s->text, s->size,
	            back ? " was transposed%s, but its bytes are read as if it were not"
	                 : " is read as its transpose%s: the bytes are right, the axes exchanged",
	            some ? " before it was split" : "");
}

static void say_tail(const sentence *s)
{
	const vn_shape *w = &s->p->weight[s->p->node[s->h->node].w[0]].shape;
	const int64_t   N = w->dim[s->p->node[s->h->node].c.linear.transposed ? 0 : 1];

	PUT(s, "the last %d of %lld inputs are not in the sum", s->h->change.matrix.n, (long long)N);
}

static void say_crossed(const sentence *s)
{
	const vn_matrix_edit *e = &s->h->change.matrix;

	PUT(s,
	    "shards of %d ranks are in the wrong order: the inputs of ranks 0 to %d are multiplied by the weights of "
	    "ranks ",
	    e->n, e->n - 1);
	for (int i = 0; i < e->n; i++)
		vn_text_add(s->text, s->size, "%s%d", i ? ", " : "", e->from[i]);
}

static void say_rows_reordered(const sentence *s)
{
	const vn_matrix_edit *e = &s->h->change.matrix;

	PUT(s, "rows of the matrix are in the wrong order, in shards of %d ranks:", e->n);
	for (int i = 0; i < e->n; i++)
		vn_text_add(s->text, s->size, " %d", e->from[i]);
	vn_text_add(s->text, s->size, "; the bias is right");
}

static const char *const formats[VN_N_FORMATS] = {
	[VN_FORMAT_BF16] = "bfloat16",
	[VN_FORMAT_F16] = "float16",
	[VN_FORMAT_TF32] = "TF32 (10 bits of mantissa)",
	[VN_FORMAT_TF32_CUT] = "TF32 (10 bits of mantissa, the others cut off)",
	[VN_FORMAT_E4M3] = "float8 (e4m3)",
	[VN_FORMAT_E5M2] = "float8 (e5m2)",
	[VN_FORMAT_INT8] = "int8",
};

static void say_format(const sentence *s)
{
	static const char *const of[] = {
		[VN_OF_WEIGHTS] = "weights", [VN_OF_INPUTS] = "inputs", [VN_OF_BOTH] = "inputs and weights"
	};
	const vn_matrix_edit *e = &s->h->change.matrix;

	PUT(s, "%s rounded to %s", of[e->of], formats[e->format]);
	if (e->scaled && e->of != VN_OF_INPUTS)
		vn_text_add(s->text, s->size, ", with one scale for each %s",
		            e->scaled == VN_SCALE_OF_ALL ? "matrix" : "output channel");
	if (e->scaled && e->of != VN_OF_WEIGHTS)
		vn_text_add(s->text, s->size, "%s one scale for each token", e->of == VN_OF_BOTH ? " and" : ", with");
}

static void say_attend(const sentence *s)
{
	const vn_attend_edit *e = &s->h->change.attend;

	if (e->kind == VN_ATTEND_CALLS_FROM_ZERO)
		PUT(s, "the mask counts queries from the first of the call, not of the sequence, in calls of %d tokens",
		    e->call);
	else if (e->kind == VN_ATTEND_CALLS_ALONE)
		PUT(s, "calls of %d tokens do not see the keys of earlier calls", e->call);
	else if (e->kind == VN_ATTEND_SINK)
		PUT(s, "softmax with an attention sink: one more score, %g, that has no value", e->number);
	else if (e->kind == VN_ATTEND_SUM_PLUS)
		PUT(s, "softmax with %g added to its sum, after the largest score was subtracted", e->number);
	else if (e->kind == VN_ATTEND_CAP)
		PUT(s, "scores capped: %g tanh(score / %g)", e->number, e->number);
	else if (e->cache)
		PUT(s, "a cache in %s%s, read after the first call", formats[e->cache],
		    e->scaled ? ", with one scale for each token and head" : "");
	else if (e->inputs)
		PUT(s, "the operands of both products of attention are rounded to %s", formats[e->inputs]);
	else if (e->exps && e->sum)
		PUT(s, "softmax wholly in %s: scores, exponentials, their sum and probabilities are rounded", formats[e->exps]);
	else if (e->exps || e->sum)
		PUT(s, "the %s of softmax rounded to %s", e->exps ? "exponentials" : "sum",
		    formats[e->exps ? e->exps : e->sum]);
	else
		PUT(s, "%s%s%s rounded to %s", e->scores ? "scores" : "", e->scores && e->probs ? " and " : "",
		    e->probs ? "probabilities" : "", formats[e->scores ? e->scores : e->probs]);
}

static void say_activation(const sentence *s)
{
	PUT(s, "%s in place of the activation", vn_activation_name(s->h->change.activation));
}

static void say_scaled(const sentence *s)
{
	PUT(s, "the weights are multiplied by %.6g, the bias is not", s->h->change.matrix.factor);
}

static void say_clamped(const sentence *s)
{
	static const char *const which[] = { "above %.6g", "below %.6g", "beyond +-%.6g" };
	char                     limit[40];

	snprintf(limit, sizeof limit, which[s->h->change.result.list[0]], s->h->change.result.number);
	PUT(s, "clamped: numbers %s become that", limit);
}

static void say_narrow(const sentence *s)
{
	const vn_narrow_edit *e = &s->h->change.narrow;

	if (!e->whole)
		PUT(s, "stored as %s", formats[e->format]);
	else
		PUT(s, "computed in %s: inputs%s and result are rounded", formats[e->format],
		    s->p->node[s->h->node].n_w ? ", weights" : "");
}

static void say_calls(const sentence *s)
{
	PUT(s, "positions count from 0 in every call of %d tokens", s->h->change.rotate.call);
}

static void say_rotation(const sentence *s)
{
	static const char *const names[VN_N_FORMATS] = { [VN_FORMAT_BF16] = "bfloat16", [VN_FORMAT_F16] = "float16" };
	const vn_rotate_edit    *e = &s->h->change.rotate;
	const struct {
		vn_weight_format in;
		const char      *name;
	} of[] = {
		{ e->positions, "positions" },
		{ e->frequencies, "frequencies" },
		{ e->angles, "angles" },
		{ e->table, "sines and cosines" },
	};
	vn_weight_format in = VN_FORMAT_NONE;
	int              some = 0, left = 0;

	for (size_t i = 0; i < sizeof of / sizeof *of; i++)
		left += of[i].in != VN_FORMAT_NONE;
	for (size_t i = 0; i < sizeof of / sizeof *of; i++)
		if (of[i].in) {
			in = of[i].in;
			vn_text_add(s->text, s->size, "%s%s", !some ? "" : --left > 1 ? ", " : " and ", of[i].name);
			some++;
		}
	vn_text_add(s->text, s->size, " in %s", names[in]);
}

static void say_token(const sentence *s)
{
	const int by = s->h->change.tokens;
	char      which[40];

	if (abs(by) == 1)
		snprintf(which, sizeof which, "the %s token", by < 0 ? "previous" : "next");
	else
		snprintf(which, sizeof which, "the token %d places %s", abs(by), by < 0 ? "before" : "after");
	PUT(s, "the embedding of %s%s", which, s->h->change.later ? ", after the first call" : "");
}

static void say_ids(const sentence *s)
{
	PUT(s, "%s%s",
	    s->h->finding == VN_TURNED_BY_IDS ? "rotated by the token id, not by the position"
	                                      : "the embedding is read at the position, not at the token id",
	    s->h->change.later ? ", after the first call" : "");
}

/* ---- one sentence for each finding ----------------------------------------------------------------------------- */

/* A text with a place for one number: that of a constant, or (no name) that of the change.
 * INVERSE: 1 divided by it. RANGE: with the whole numbers that fit as well. */
/* clang-format off */
static const struct row {
	const char *words;
	enum { TEXT, NUMBER, INVERSE, RANGE } with;
	const char *constant;
	void      (*say)(const sentence *s);
} rows[VN_N_FINDINGS] = {
	[VN_FAULT] = { .say = say_fault },
	[VN_THETA] = { .words = "RoPE with theta %g", .with = NUMBER, .constant = "theta" },
	[VN_THETA_PLAIN] = { .words = "RoPE with theta %g and without its scaling", .with = NUMBER, .constant = "theta" },
	[VN_ROPE_FACTOR] = { .words = "RoPE with llama3 scaling by factor %g", .with = NUMBER, .constant = "factor" },
	[VN_ROPE_CONTEXT] = { .words = "RoPE with llama3 scaling from an original context of %g", .with = NUMBER,
		.constant = "original_context" },
	[VN_ROPE_LOW] = { .words = "RoPE with llama3 scaling, low_freq_factor %g", .with = NUMBER,
		.constant = "low_freq_factor" },
	[VN_ROPE_HIGH] = { .words = "RoPE with llama3 scaling, high_freq_factor %g", .with = NUMBER,
		.constant = "high_freq_factor" },
	[VN_OFFSET] = { .words = "positions count from %s", .with = RANGE, .constant = "offset" },
	[VN_OFFSET_LATER] = { .say = say_later },
	[VN_ONE_POSITION] = { .words = "every token is rotated as token %.0f", .with = NUMBER, .constant = "offset" },
	[VN_ANY_POSITION] = { .words = "every token is rotated as if at one and the same position" },
	[VN_STRETCH] = { .words = "every angle is %.5g times the right angle", .with = NUMBER, .constant = "turn" },
	[VN_ROTARY_WIDTH] = { .say = say_width },
	[VN_TABLE_OFFSET] = { .words = "learned positions count from %s", .with = RANGE },
	[VN_TABLE_OFFSET_LATER] = { .say = say_later },
	[VN_EPS] = { .words = "eps is %.4g", .with = NUMBER, .constant = "eps" },
	[VN_EPS_OUTSIDE] = { .words = "eps is added outside the square root, and is %.4g", .with = NUMBER,
		.constant = "eps" },
	[VN_SCORE_SCALE] = { .words = "scores scaled by %.6g", .with = NUMBER, .constant = "scale" },
	[VN_DELTA_SCALE] = { .words = "queries of the delta rule scaled by %.6g", .with = NUMBER, .constant = "scale" },
	[VN_WINDOW] = { .words = "a sliding window of %s keys", .with = RANGE, .constant = "window" },
	[VN_WINDOW_AND_SINKS] = { .say = say_sinks },
	[VN_KEYS_OF_PADDING] = { .words = "padding keys are seen: %s", .with = RANGE, .constant = "padding" },
	[VN_PADDING_SEEN] = { .words = "keys of padding are seen, the batch's own padding rows" },
	[VN_SLOTS_MOVED] = { .say = say_slots },
	[VN_NEW_SLOTS_MOVED] = { .say = say_new_slots },
	[VN_BLOCKS_EXCHANGED] = { .say = say_exchanged },
	[VN_BLOCKS_REORDERED] = { .say = say_blocks },
	[VN_OWN_KEY_MISSING] = { .words = "a token's own key and value are not yet in the cache when it is read" },
	[VN_KEYS_UNSEEN] = { .say = say_cache },
	[VN_CACHE_EMPTY] = { .say = say_cache },
	[VN_CACHE_OTHER_TOKENS] = { .say = say_cache },
	[VN_BIAS_TIMES] = { .words = "bias added %.6g times", .with = NUMBER },
	[VN_RANKS_SUMMED] = { .say = say_ranks },
	[VN_SHARDS_JOINED] = { .say = say_shards },
	[VN_SHARDS_ALONG_TOKENS] = { .words = "shards of %.0f ranks joined along the token axis", .with = NUMBER },
	[VN_SHARDS_REORDERED] = { .say = say_list },
	[VN_ROWS_PADDED] = { .words = "padding of %.0f after each row of a matrix is read as data", .with = NUMBER },
	[VN_TEMPERATURE] = { .words = "logits at a temperature of %.6g", .with = INVERSE },
	[VN_CAP] = { .words = "logits capped: %1$.6g tanh(x / %1$.6g)", .with = NUMBER },
	[VN_SUM_TIMES] = { .words = "the sum of ranks is taken %.0f times", .with = NUMBER },
	[VN_AVERAGE] = { .words = "the average of %.0f ranks, not their sum", .with = INVERSE },
	[VN_FACTOR] = { .say = say_factor },
	[VN_CLAMPED] = { .say = say_clamped },
	[VN_ADDEND] = { .words = "%.6g is added to every element", .with = NUMBER },
	[VN_ONE_VALUE] = { .words = "every element is %.6g", .with = NUMBER },
	[VN_ZERO] = { .words = "every element is 0: never written" },
	[VN_HEADS_REORDERED] = { .say = say_list },
	[VN_TOKENS_MOVED] = { .words = "token t has the values of token t %+.0f", .with = NUMBER },
	[VN_TOKENS_REVERSED] = { .words = "tokens in reverse order" },
	[VN_AXES_RECORDED] = { .say = say_axes },
	[VN_AXES_OF_HEADS] = { .say = say_axes },
	[VN_AXES_BEFORE_TOKENS] = { .say = say_axes },
	[VN_AXES] = { .say = say_axes },
	[VN_RECORDED_LATER] = { .words = "another checkpoint is recorded, bit for bit" },
	[VN_RECORDED_BEFORE] = { .words = "another checkpoint is recorded, bit for bit" },
	[VN_PARALLEL_BLOCK] = { .words = "a parallel block: the feed-forward part reads the input of the layer" },
	[VN_PARTLY_ZERO] = { .say = say_rows },
	[VN_PARTLY_OTHER] = { .say = say_rows },
	[VN_CHANNELS_ZERO] = { .say = say_channels },
	[VN_MATRIX_TURNED] = { .say = say_matrix },
	[VN_INPUTS_MISSING] = { .say = say_tail },
	[VN_RANKS_CROSSED] = { .say = say_crossed },
	[VN_ROWS_REORDERED] = { .say = say_rows_reordered },
	[VN_NEVER_LOADED] = { .words = "the weights are 0: never loaded" },
	[VN_WEIGHTS_SCALED] = { .say = say_scaled },
	[VN_WEIGHTS_ROUNDED] = { .say = say_format },
	[VN_WEIGHTS_QUANTISED] = { .say = say_format },
	[VN_PRODUCT_ROUNDED] = { .say = say_format },
	[VN_MASK_FROM_CALL] = { .say = say_attend },
	[VN_CALLS_ALONE] = { .say = say_attend },
	[VN_SOFTMAX_SINK] = { .say = say_attend },
	[VN_SUM_PLUS] = { .say = say_attend },
	[VN_SCORE_CAP] = { .say = say_attend },
	[VN_SOFTMAX_ROUNDED] = { .say = say_attend }, [VN_ATTENTION_ROUNDED] = { .say = say_attend },
	[VN_PROBS_ROUNDED] = { .say = say_attend }, [VN_CACHE_ROUNDED] = { .say = say_attend },
	[VN_OTHER_ACTIVATION] = { .say = say_activation },
	[VN_NARROW] = { .say = say_narrow },
	[VN_ANGLES_ROUNDED] = { .say = say_rotation },
	[VN_CALLS_FROM_ZERO] = { .say = say_calls },
	[VN_TURNED_BY_IDS] = { .say = say_ids },
	[VN_SINE_FOR_COSINE] = { .words = "sines and cosines exchanged" },
	[VN_STATE_LOST] = { .words = "calls after the first begin with an empty state" },
	[VN_UNNORMED] = { .words = "queries and keys of the delta rule not normed, though they are recorded so" },
	[VN_OTHER_WEIGHTS] = { .say = say_reads },
	[VN_PARTNERS_MATRIX] = { .say = say_reads },
	[VN_OTHER_MATRIX] = { .say = say_reads },
	[VN_OTHER_CACHE] = { .say = say_reads },
	[VN_OTHER_KEYS] = { .say = say_reads },
	[VN_OTHER_VALUES] = { .say = say_reads },
	[VN_OTHER_INPUT] = { .say = say_reads },
	[VN_STEP_STALE] = { .words = "the values of the previous step: the buffer was not updated" },
	[VN_STEP_LATE] = { .words = "the values that belong to the previous step: one step late" },
	[VN_OTHER_TOKEN] = { .say = say_token },
	[VN_POSITION_FOR_ID] = { .say = say_ids },
};
/* clang-format on */

static double number_of(const vn_hypothesis *h, const char *constant)
{
	return constant                         ? vn_constant_of(h, constant)
	       : h->change.kind == VN_BY_NUMBER ? h->change.number.value
	       : h->change.kind == VN_BY_ROWS   ? h->change.rows
	                                        : h->change.result.number;
}

static void put_words(const sentence *s)
{
	const struct row *r = &rows[s->h->finding];
	char              text[64];

	if (r->say)
		r->say(s);
	else if (r->with == TEXT)
		PUT(s, "%s", r->words);
	else if (r->with == NUMBER)
		PUT(s, r->words, number_of(s->h, r->constant));
	else if (r->with == INVERSE)
		PUT(s, r->words, 1 / number_of(s->h, r->constant));
	else
		PUT(s, r->words, range((int64_t)number_of(s->h, r->constant), s->h->first, s->h->last, text));
	if (s->h->finding != VN_FAULT && s->h->fault[0])
		vn_text_add(s->text, s->size, "; and %s", vn_fault_means(s->h->fault[0] - 1));
	if (s->h->paired)
		vn_text_add(s->text, s->size, "; and pairs columns 2i and 2i + 1");
}

/* ---- where, and what speaks against it --------------------------------------------------------------------------- */

static void put_also(const vn_plan *p, vn_hypothesis *h)
{
	if (h->places == 2)
		snprintf(h->also, sizeof h->also, " and %s", name_of(p, p->node[h->other].out[0]));
	else if (h->places > 2)
		snprintf(h->also, sizeof h->also, " and %d more operations", h->places - 1);
}

/* "in heads 1, 4-7 of 8 only" */
static void put_part(vn_hypothesis *h)
{
	char which[40] = "";
	int  n = 0;

	for (int i = 0; i < h->heads; i++) {
		int last = i;
		n += h->part[i];
		if (!h->part[i] || (i && h->part[i - 1]))
			continue;
		while (last + 1 < h->heads && h->part[last + 1])
			last++;
		vn_text_add(which, sizeof which, last > i ? "%s%d-%d" : "%s%d", *which ? ", " : "", i, last);
	}
	if (strlen(which) >= sizeof which - 1)
		snprintf(h->in_part, sizeof h->in_part, "in %d of %d heads only", n, h->heads);
	else if (h->heads)
		snprintf(h->in_part, sizeof h->in_part, "in head%s %s of %d only", n > 1 ? "s" : "", which, h->heads);
}

/* The answer of that step at the same point that differs in its number only. */
static const vn_hypothesis *in_step(const vn_comparison *c, const vn_explanations *all, const vn_explanation *x,
                                    const vn_hypothesis *h)
{
	for (int i = 0; i < all->n; i++) {
		const vn_checkpoint *p = &c->result.point[all->of[i].point];
		for (int k = 0; p->step == h->against_step && strcmp(p->name, c->result.point[x->point].name) == 0 &&
		                k < all->of[i].n_alias;
		     k++)
			if (vn_hypothesis_same_place(&all->of[i].by[k], h) && !vn_hypothesis_same(&all->of[i].by[k], h))
				return &all->of[i].by[k];
	}
	return NULL;
}

static void put_against(const vn_comparison *c, const vn_explanations *all, const vn_explanation *x, vn_hypothesis *h)
{
	const vn_hypothesis *there;

	switch (h->speaks_against) {
	case VN_WRONG_OTHERWISE:
		snprintf(h->against, sizeof h->against, "step %d is wrong too, but not by this mistake", h->against_step);
		break;
	case VN_RIGHT_THERE:
		snprintf(h->against, sizeof h->against, "step %d is right, but this mistake would change it", h->against_step);
		break;
	case VN_ONE_QUERY:
		snprintf(h->against, sizeof h->against, "measured on a single query; no other step confirms it");
		break;
	case VN_ANOTHER_NUMBER:
		there = in_step(c, all, x, h);
		snprintf(h->against, sizeof h->against, "different in step %d: %.80s", h->against_step,
		         there ? there->words : "");
		break;
	case VN_NOTHING_AGAINST: break;
	}
}

/* ---- what would tell answers apart
 * -------------------------------------------------------------------------------- */

enum { ENOUGH_TOKENS = 70 }; /* the fewest tokens that show masks, windows and chunks (specs/models.md 9.10) */

const char *vn_counterpart(const vn_comparison *c, const vn_explanation *x, char text[VN_NAME_MAX],
                           const vn_checkpoint **found)
{
	char *at;

	*found = NULL;
	snprintf(text, VN_NAME_MAX, "%s", c->result.point[x->point].name);
	if ((at = strstr(text, "q_rope")) || (at = strstr(text, "k_rope")))
		*at = *at == 'q' ? 'k' : 'q';
	else if ((at = strstr(text, "k_cache")) || (at = strstr(text, "v_cache")))
		*at = *at == 'k' ? 'v' : 'k';
	for (int i = 0; at && i < c->result.n_points; i++)
		if (c->result.point[i].step == c->result.point[x->point].step && strcmp(c->result.point[i].name, text) == 0)
			*found = &c->result.point[i];
	return at ? text : NULL;
}

static bool by_capture(const vn_explanation *x)
{
	for (int i = 1; i < x->n_alias; i++)
		if (x->by[i].capture != x->by[0].capture)
			return true;
	return false;
}

/* Where they are made elsewhere than at the checkpoint's own operation: names such a place. */
static const char *uncaptured(const vn_comparison *c, const vn_explanation *x)
{
	const vn_plan *p = vn_model_plan(c->opened.model);
	const int v = vn_plan_find(p, c->result.point[x->point].name), own = v < 0 ? -1 : p->value[vn_plan_root(p, v)].node;
	bool      apart = x->by[0].node != own; /* the point that the operation itself makes says most */
	int       other = -1;

	for (int i = 0; i < x->n_alias; i++) {
		apart = apart || x->by[i].node != x->by[0].node || x->by[i].places != x->by[0].places ||
		        x->by[i].other != x->by[0].other;
		other = other < 0 && x->by[i].node != own ? x->by[i].node : other;
	}
	return apart && other >= 0 ? p->value[p->node[other].out[0]].name : NULL;
}

static void put_separate(const vn_comparison *c, vn_explanation *x)
{
	char                 other[VN_NAME_MAX];
	const char          *name;
	const vn_checkpoint *beside;
	const char          *id = strchr(c->result.point[x->point].name, '.');

	if (x->n_alias < 2)
		return;
	if ((name = uncaptured(c, x)))
		snprintf(x->separate, sizeof x->separate, "a recording that includes %s", name);
	else if (by_capture(x))
		snprintf(x->separate, sizeof x->separate, "a recording that includes what reads %s",
		         id ? id + 1 : c->result.point[x->point].name);
	else if ((name = vn_counterpart(c, x, other, &beside)) && beside)
		snprintf(x->separate, sizeof x->separate, "%s, which is %s here", name,
		         beside->origin ? "also wrong" : "right");
	else if (name)
		snprintf(x->separate, sizeof x->separate, "a recording that includes %s", name);
	else if (vn_recording_tokens(c->opened.cand, NULL, NULL) < ENOUGH_TOKENS)
		snprintf(x->separate, sizeof x->separate, "a prompt of %d tokens or more", ENOUGH_TOKENS);
	else
		snprintf(x->separate, sizeof x->separate,
		         "another layer or another model; in this one both compute the same numbers");
}

void vn_put_sentences(const vn_comparison *c, vn_explanations *x)
{
	const vn_plan *p = vn_model_plan(c->opened.model);

	for (int i = 0; i < x->n; i++) {
		for (int k = 0; k < x->of[i].n; k++) {
			vn_hypothesis *h = &x->of[i].by[k];
			vn_hypothesis_id(h, h->id);
			put_words(&(sentence) { c, &x->of[i], p, h, h->words, sizeof h->words });
			put_also(p, h);
			put_part(h);
		}
		put_separate(c, &x->of[i]);
	}
	for (int i = 0; i < x->n; i++) /* which may quote one of another step */
		for (int k = 0; k < x->of[i].n; k++)
			put_against(c, x, &x->of[i], &x->of[i].by[k]);
}
