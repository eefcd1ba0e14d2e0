/* sentences_operation.c: see sentences_operation.h: its constants, its matrix, its formats, what it reads. */
#include "compare/explain/sentences_operation.h"
#include "compare/hypothesis/apply_computed.h"

#include "libref/base/text.h"
#include "libref/plan/fault.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *vn_sentence_range(int64_t one, int64_t first, int64_t last, char text[64])
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

static const char *name_of(const vn_plan *p, int value)
{
	return p->value[value].name;
}

static void say_fault(const vn_sentence *s)
{
	const vn_hypothesis *h = s->h;
	char                 text[64];

	VN_PUT(s, "%s%s%s", vn_fault_means(h->fault[0] - 1), h->fault[1] ? "; and " : "",
	       h->fault[1] ? vn_fault_means(h->fault[1] - 1) : "");
	if (h->last)
		vn_text_add(s->text, s->size, "; a window of %s keys fits as well",
		            vn_sentence_range(0, h->first, h->last, text));
}

static void say_later(const vn_sentence *s)
{
	const int by = s->h->change.kind == VN_BY_ROWS ? s->h->change.rows : (int)vn_constant_of(s->h, "step_offset");
	VN_PUT(s, "%spositions after the first call are %d too %s", s->h->change.kind == VN_BY_ROWS ? "learned " : "",
	       abs(by), by > 0 ? "high" : "low");
}

static void say_stretch(const vn_sentence *s)
{
	VN_PUT(s, "every angle is %.5g times the right angle%s", vn_constant_of(s->h, "turn"),
	       s->h->change.later ? ", after the first call" : "");
}

static void say_width(const vn_sentence *s)
{
	VN_PUT(s, "RoPE turns %.0f of %d columns", vn_constant_of(s->h, "rotary_dim"),
	       s->p->value[s->p->node[s->h->node].out[0]].size[2]);
}

static void say_sinks(const vn_sentence *s)
{
	const vn_hypothesis *h = s->h;
	char                 width[64], keys[64];

	VN_PUT(s, "a sliding window of %s key%s and the first %s keys (attention sinks)",
	       vn_sentence_range(0, h->first, h->last, width), h->last == 1 ? "" : "s",
	       vn_sentence_range(0, h->first_also, h->last_also, keys));
}

static void say_reads(const vn_sentence *s)
{
	const vn_plan *p = s->p;
	const vn_node *n = &p->node[s->h->node];
	const int     *in = s->h->change.reads.in;
	int            input = 0;

	while (input < VN_MAX_IN - 1 && !in[input])
		input++;
	if (s->h->finding == VN_OTHER_WEIGHTS)
		VN_PUT(s, "weights of layer %d", p->node[s->h->change.reads.weights - 1].layer);
	else if (s->h->change.reads.matrix)
		VN_PUT(s, "computed with the matrix of %s%s", name_of(p, p->node[s->h->change.reads.weights - 1].out[0]),
		       n->w[1] >= 0 ? "; the bias is right" : "");
	else if (s->h->finding == VN_OTHER_CACHE)
		VN_PUT(s, "it reads the keys and values of layer %d: %s and %s", p->value[in[VN_ATTN_K] - 1].layer,
		       name_of(p, in[VN_ATTN_K] - 1), name_of(p, in[VN_ATTN_V] - 1));
	else if (s->h->finding == VN_OTHER_INPUT)
		VN_PUT(s, "it reads %s in place of %s", name_of(p, in[input] - 1), name_of(p, vn_plan_root(p, n->in[input])));
	else
		VN_PUT(s, "it reads %s in place of %s of its own layer", name_of(p, in[input] - 1),
		       s->h->finding == VN_OTHER_VALUES ? "the values" : "the keys");
}

/* "the matrices of layer1.q_proj, layer1.k_proj and layer1.v_proj, fused", or "the matrix" */
static void say_matrix(const vn_sentence *s)
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

static void say_tail(const vn_sentence *s)
{
	const vn_shape *w = &s->p->weight[s->p->node[s->h->node].w[0]].shape;
	const int64_t   N = w->dim[s->p->node[s->h->node].c.linear.transposed ? 0 : 1];

	VN_PUT(s, "the last %d of %lld inputs are not in the sum", s->h->change.matrix.n, (long long)N);
}

static void say_crossed(const vn_sentence *s)
{
	const vn_matrix_edit *e = &s->h->change.matrix;

	VN_PUT(s,
	       "shards of %d ranks are in the wrong order: the inputs of ranks 0 to %d are multiplied by the weights of "
	       "ranks ",
	       e->n, e->n - 1);
	for (int i = 0; i < e->n; i++)
		vn_text_add(s->text, s->size, "%s%d", i ? ", " : "", e->from[i]);
}

static void say_rows_reordered(const vn_sentence *s)
{
	const vn_matrix_edit *e = &s->h->change.matrix;

	VN_PUT(s, "rows of the matrix are in the wrong order, in shards of %d ranks:", e->n);
	for (int i = 0; i < e->n; i++)
		vn_text_add(s->text, s->size, " %d", e->from[i]);
	vn_text_add(s->text, s->size, "; the bias is right");
}

static const char *const formats[VN_N_FORMATS] = {
	[VN_FORMAT_BF16] = "bfloat16",
	[VN_FORMAT_F16] = "float16",
	[VN_FORMAT_TF32] = "TF32 (10 bits of mantissa)",
	[VN_FORMAT_TF32_AWAY] = "TF32 (10 bits of mantissa, ties away from 0)",
	[VN_FORMAT_TF32_CUT] = "TF32 (10 bits of mantissa, the others cut off)",
	[VN_FORMAT_E4M3] = "float8 (e4m3)",
	[VN_FORMAT_E5M2] = "float8 (e5m2)",
	[VN_FORMAT_INT8] = "int8",
	[VN_FORMAT_INT8_128] = "int8 (128 steps to the largest number, and no 128)",
};

static void say_format(const vn_sentence *s)
{
	static const char *const of[] = {
		[VN_OF_WEIGHTS] = "weights", [VN_OF_INPUTS] = "inputs", [VN_OF_BOTH] = "inputs and weights"
	};
	const vn_matrix_edit *e = &s->h->change.matrix;

	VN_PUT(s, "%s rounded to %s", of[e->of], formats[e->format]);
	if (e->scaled && e->of != VN_OF_INPUTS)
		vn_text_add(s->text, s->size, ", with one scale for each %s",
		            e->scaled == VN_SCALE_OF_ALL ? "matrix" : "output channel");
	if (e->scaled && e->of != VN_OF_WEIGHTS)
		vn_text_add(s->text, s->size, "%s one scale for each token", e->of == VN_OF_BOTH ? " and" : ", with");
}

/* "calls of 35 tokens" */
static void say_which_calls(int call, char text[60])
{
	if (call == VN_OWN_CALLS)
		snprintf(text, 60, "calls of several tokens");
	else
		snprintf(text, 60, "calls of %d tokens", call);
}

static void say_attend(const vn_sentence *s)
{
	const vn_attend_edit *e = &s->h->change.attend;

	char calls[60];

	say_which_calls(e->call, calls);
	if (e->kind == VN_ATTEND_CALLS_FROM_ZERO)
		VN_PUT(s, "%s, in %s", VN_TITLE(A3_CHUNK), calls);
	else if (e->kind == VN_ATTEND_FIRST_KEY)
		VN_PUT(s, "%s", "every query sees the first key alone");
	else if (e->kind == VN_ATTEND_LARGEST)
		VN_PUT(s, "%s",
		       "a query attends to its largest score alone: argmax in place of softmax, or scores scaled by so "
		       "much that it is the same");
	else if (e->kind == VN_ATTEND_ONE_OWN)
		VN_PUT(s, "%s", "calls of one token see their own key alone: the cache is not read");
	else if (e->kind == VN_ATTEND_ONE_FIRST)
		VN_PUT(s, "%s: calls of one token see the first key that is cached alone", VN_TITLE(A3_CHUNK));
	else if (e->kind == VN_ATTEND_ONE_PROMPT)
		VN_PUT(s, "%s", "calls of one token see the keys of the first call alone: nothing is appended to the cache");
	else if (e->kind == VN_ATTEND_CALLS_ALONE)
		VN_PUT(s, "%s do not see the keys of earlier calls: the cache is not read", calls);
	else if (e->kind == VN_ATTEND_CALLS_FUTURE)
		VN_PUT(s, "%s in %s after the first: a query sees all keys of its call", VN_TITLE(A2), calls);
	else if (e->kind == VN_ATTEND_SINK)
		VN_PUT(s, "softmax with an attention sink: one more score, %g, that has no value", e->number);
	else if (e->kind == VN_ATTEND_SUM_PLUS)
		VN_PUT(s, "softmax with %g added to its sum, after the largest score was subtracted", e->number);
	else if (e->kind == VN_ATTEND_CAP)
		VN_PUT(s, "scores capped: %g tanh(score / %g)", e->number, e->number);
	else if (e->cache)
		VN_PUT(s, "a cache in %s%s, read after the first call", formats[e->cache],
		       e->scaled ? ", with one scale for each token and head" : "");
	else if (e->inputs)
		VN_PUT(s, "the operands of both products of attention are rounded to %s", formats[e->inputs]);
	else if (e->exps && e->sum)
		VN_PUT(s, "softmax wholly in %s: scores, exponentials, their sum and probabilities are rounded",
		       formats[e->exps]);
	else if (e->exps || e->sum)
		VN_PUT(s, "the %s of softmax rounded to %s", e->exps ? "exponentials" : "sum",
		       formats[e->exps ? e->exps : e->sum]);
	else
		VN_PUT(s, "%s%s%s rounded to %s", e->scores ? "scores" : "", e->scores && e->probs ? " and " : "",
		       e->probs ? "probabilities" : "", formats[e->scores ? e->scores : e->probs]);
}

static void say_activation(const vn_sentence *s)
{
	VN_PUT(s, "%s in place of the activation", vn_activation_name(s->h->change.activation));
}

static void say_scaled(const vn_sentence *s)
{
	VN_PUT(s, "the weights are multiplied by %.6g, the bias is not", s->h->change.matrix.factor);
}

static void say_narrow(const vn_sentence *s)
{
	const vn_narrow_edit *e = &s->h->change.narrow;

	if (!e->whole)
		VN_PUT(s, "stored as %s", formats[e->format]);
	else
		VN_PUT(s, "computed in %s: inputs%s and result are rounded", formats[e->format],
		       s->p->node[s->h->node].n_w ? ", weights" : "");
}

static void say_calls(const vn_sentence *s)
{
	if (s->h->change.rotate.call == VN_OWN_CALLS)
		VN_PUT(s, "%s of several tokens", VN_TITLE(R3B_ZERO));
	else
		VN_PUT(s, "%s of %d tokens", VN_TITLE(R3B_ZERO), s->h->change.rotate.call);
}

/* "token 20 is", "tokens 30-45 are", "tokens from 40 on are" rotated as ... */
static void say_moved(const vn_sentence *s)
{
	const vn_position_map *m = &s->h->change.rotate.map;
	const bool             one = m->first == m->last && !m->open;
	const double           from = m->times != 1 ? m->plus / (1 - m->times) : 0; /* is rotated as it should be */

	if (one)
		VN_PUT(s, "token %lld is rotated as ", (long long)m->first);
	else if (m->open)
		VN_PUT(s, "tokens from %lld on are rotated as ", (long long)m->first);
	else
		VN_PUT(s, "tokens %lld-%lld are rotated as ", (long long)m->first, (long long)m->last);
	if (m->times == 1)
		vn_text_add(s->text, s->size, "if %g position%s %s", fabs(m->plus), fabs(m->plus) == 1 ? "" : "s",
		            m->plus < 0 ? "earlier" : "later");
	else if (m->times == 0)
		vn_text_add(s->text, s->size, "if at position %g", m->plus);
	else if (fabs(from) < 0.5)
		vn_text_add(s->text, s->size, "if at %.4g times %s position%s%s", m->times, one ? "its" : "their",
		            one ? "" : "s", m->whole ? ", rounded down" : "");
	else
		vn_text_add(s->text, s->size, "if %.4g times as far from position %.0f", m->times, from);
}

static void say_rotation(const vn_sentence *s)
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

static void say_outside(const vn_sentence *s)
{
	VN_PUT(s, "%s, and is %.4g", VN_TITLE(N2), vn_constant_of(s->h, "eps"));
}

static void say_token(const vn_sentence *s)
{
	const int by = s->h->change.tokens;
	char      which[40];

	if (abs(by) == 1)
		snprintf(which, sizeof which, "the %s token", by < 0 ? "previous" : "next");
	else
		snprintf(which, sizeof which, "the token %d places %s", abs(by), by < 0 ? "before" : "after");
	VN_PUT(s, "the embedding of %s%s", which, s->h->change.later ? ", after the first call" : "");
}

static void say_ids(const vn_sentence *s)
{
	VN_PUT(s, "%s%s",
	       s->h->finding == VN_TURNED_BY_IDS ? "rotated by the token id, not by the position"
	                                         : "the embedding is read at the position, not at the token id",
	       s->h->change.later ? ", after the first call" : "");
}

/* clang-format off */
const vn_sentence_row vn_sentences_of_operations[VN_N_FINDINGS] = {
	[VN_FAULT] = { .say = say_fault },
	[VN_THETA] = { .words = "RoPE with theta %g", .with = VN_NUMBER, .constant = "theta" },
	[VN_THETA_PLAIN] = { .words = "RoPE with theta %g and without its scaling", .with = VN_NUMBER,
		.constant = "theta" },
	[VN_ROPE_FACTOR] = { .words = "RoPE with llama3 scaling by factor %g", .with = VN_NUMBER, .constant = "factor" },
	[VN_ROPE_CONTEXT] = { .words = "RoPE with llama3 scaling from an original context of %g", .with = VN_NUMBER,
		.constant = "original_context" },
	[VN_ROPE_LOW] = { .words = "RoPE with llama3 scaling, low_freq_factor %g", .with = VN_NUMBER,
		.constant = "low_freq_factor" },
	[VN_ROPE_HIGH] = { .words = "RoPE with llama3 scaling, high_freq_factor %g", .with = VN_NUMBER,
		.constant = "high_freq_factor" },
	[VN_OFFSET] = { .words = "positions count from %s", .with = VN_WITH_RANGE, .constant = "offset" },
	[VN_OFFSET_LATER] = { .say = say_later },
	[VN_ONE_POSITION] = { .words = "every token is rotated as token %.0f", .with = VN_NUMBER, .constant = "offset" },
	[VN_ANY_POSITION] = { .words = "every token is rotated as if at one and the same position" },
	[VN_STRETCH] = { .say = say_stretch },
	[VN_ROTARY_WIDTH] = { .say = say_width },
	[VN_TABLE_OFFSET] = { .words = "learned positions count from %s", .with = VN_WITH_RANGE },
	[VN_TABLE_OFFSET_LATER] = { .say = say_later },
	[VN_EPS] = { .words = "eps is %.4g", .with = VN_NUMBER, .constant = "eps" },
	[VN_EPS_OUTSIDE] = { .say = say_outside },
	[VN_SCORE_SCALE] = { .words = "scores scaled by %.6g", .with = VN_NUMBER, .constant = "scale" },
	[VN_DELTA_SCALE] = { .words = "queries of the delta rule scaled by %.6g", .with = VN_NUMBER, .constant = "scale" },
	[VN_WINDOW] = { .words = "a sliding window of %s keys", .with = VN_WITH_RANGE, .constant = "window" },
	[VN_WINDOW_AND_SINKS] = { .say = say_sinks },
	[VN_KEYS_OF_PADDING] = { .words = "padding keys are seen: %s", .with = VN_WITH_RANGE, .constant = "padding" },
	[VN_PADDING_SEEN] = { .words = "keys of padding are seen, the batch's own padding rows" },
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
	[VN_CALLS_ALONE] = { .say = say_attend }, [VN_CALLS_SEE_FUTURE] = { .say = say_attend },
	[VN_LARGEST_ALONE] = { .say = say_attend },
	[VN_FIRST_KEY_ALONE] = { .say = say_attend }, [VN_NOTHING_APPENDED] = { .say = say_attend },
	[VN_SOFTMAX_SINK] = { .say = say_attend },
	[VN_SUM_PLUS] = { .say = say_attend },
	[VN_SCORE_CAP] = { .say = say_attend },
	[VN_SOFTMAX_ROUNDED] = { .say = say_attend }, [VN_ATTENTION_ROUNDED] = { .say = say_attend },
	[VN_PROBS_ROUNDED] = { .say = say_attend }, [VN_CACHE_ROUNDED] = { .say = say_attend },
	[VN_OTHER_ACTIVATION] = { .say = say_activation },
	[VN_NARROW] = { .say = say_narrow },
	[VN_ANGLES_ROUNDED] = { .say = say_rotation },
	[VN_CALLS_FROM_ZERO] = { .say = say_calls },
	[VN_POSITIONS_OF_SOME] = { .say = say_moved },
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
