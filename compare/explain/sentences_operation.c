/* sentences_operation.c: see sentence_writers.h: its constants, its matrix, its formats, what it
 * reads. */
#include "compare/explain/sentence_writers.h"

#include "libref/base/text.h"
#include "libref/plan/fault.h"

#include <math.h>
#include <stdlib.h>

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

void vn_sentence_list(const vn_sentence *s, const int *number, int n)
{
	for (int i = 0; i < n; i++)
		vn_text_add(s->text, s->size, "%s%d", i ? ", " : "", number[i]);
}

static const char *name_of(const vn_plan *p, int value)
{
	return p->value[value].name;
}

void vn_sentence_fault(const vn_sentence *s)
{
	const vn_trial *h = s->h;
	char            text[64];

	VN_PUT(s, "%s%s%s", vn_fault_means(h->fault[0] - 1), h->fault[1] ? "; and " : "",
	       h->fault[1] ? vn_fault_means(h->fault[1] - 1) : "");
	if (h->last)
		vn_text_add(s->text, s->size, "; a window of %s keys fits as well",
		            vn_sentence_range(0, h->first, h->last, text));
}

void vn_sentence_stretch(const vn_sentence *s)
{
	if (vn_trial_mistake(s->h) == VN_MISTAKE_R8)
		VN_PUT(s, "%s", VN_TITLE(R8));
	else
		VN_PUT(s, VN_TITLE(R5), vn_trial_constant(s->h, "turn"));
	vn_text_add(s->text, s->size, "%s", s->h->applied.later ? ", after the first call" : "");
}

void vn_sentence_rotary_width(const vn_sentence *s)
{
	VN_PUT(s, "%s: %.0f of %d columns", VN_TITLE(R4), vn_trial_constant(s->h, "rotary_dim"),
	       s->p->value[s->p->node[s->h->node].out[0]].size[2]);
}

void vn_sentence_sinks(const vn_sentence *s)
{
	const vn_trial *h = s->h;
	char            width[64], keys[64];

	VN_PUT(s, VN_TITLE(A5), vn_sentence_range(0, h->first, h->last, width));
	vn_text_add(s->text, s->size, " and the first %s keys (attention sinks)",
	            vn_sentence_range(0, h->first_also, h->last_also, keys));
}

void vn_sentence_reads(const vn_sentence *s)
{
	const vn_plan *p = s->p;
	const vn_node *n = &p->node[s->h->node];
	const int     *in = s->h->applied.reads.in;
	int            input = 0;

	while (input < VN_MAX_IN - 1 && !in[input])
		input++;
	if (s->h->finding == VN_FINDING_OTHER_WEIGHTS)
		VN_PUT(s, VN_FORM(W9), p->node[s->h->applied.reads.weights - 1].layer);
	else if (s->h->applied.reads.matrix)
		VN_PUT(s, "the product uses the matrix of %s%s", name_of(p, p->node[s->h->applied.reads.weights - 1].out[0]),
		       n->w[1] >= 0 ? "; the bias is right" : "");
	else if (s->h->finding == VN_FINDING_OTHER_CACHE) {
		VN_PUT(s, VN_FORM(C9), p->value[in[VN_ATTN_K] - 1].layer);
		vn_text_add(s->text, s->size, ": %s and %s", name_of(p, in[VN_ATTN_K] - 1), name_of(p, in[VN_ATTN_V] - 1));
	} else if (s->h->finding == VN_FINDING_OTHER_INPUT)
		VN_PUT(s, VN_FORM(P22), name_of(p, in[input] - 1), name_of(p, vn_plan_root(p, n->in[input])));
	else if (s->h->finding == VN_FINDING_OTHER_VALUES)
		VN_PUT(s, VN_FORM(C9_V), name_of(p, in[input] - 1));
	else
		VN_PUT(s, VN_FORM(C9_K), name_of(p, in[input] - 1));
}

/* "..., fused: q_proj, k_proj, v_proj, before the fused matrix is split" */
void vn_sentence_matrix(const vn_sentence *s)
{
	const vn_node *n = &s->p->node[s->h->node];
	const bool     back = s->h->applied.matrix.kind == VN_MATRIX_BACK, fused = s->h->applied.matrix.fused;
	int            some = 0;

	VN_PUT(s, "%s%s", back ? VN_FORM(W1B) : VN_TITLE(W1B), fused ? ", fused: " : "");
	for (int i = 0; fused && i < s->p->n_nodes; i++) {
		const vn_node *o = &s->p->node[i];
		if (o->op == VN_OP_LINEAR && o->layer == n->layer && o->in[0] == n->in[0])
			vn_text_add(s->text, s->size, "%s%s", some++ ? ", " : "", vn_name_in_layer(name_of(s->p, o->out[0])));
	}
	vn_text_add(s->text, s->size, "%s", fused ? ", before the fused matrix is split" : "");
}

void vn_sentence_missing_inputs(const vn_sentence *s)
{
	const vn_shape *w = &s->p->weight[s->p->node[s->h->node].w[0]].shape;
	const int64_t   N = w->dim[s->p->node[s->h->node].c.linear.transposed ? 0 : 1];

	VN_PUT(s, "the last %d of %lld inputs are not in the sum", s->h->applied.matrix.n, (long long)N);
}

/* Are the blocks those of a x b heads, transposed: block i is block (i mod a) b + i / a? Returns a;
 * 0: they are not. */
static int transposed_heads(const vn_sentence *s)
{
	const vn_applied_matrix *m = &s->h->applied.matrix;
	const vn_plan           *p = s->p;
	const vn_value          *in = &p->value[vn_plan_root(p, p->node[s->h->node].in[0])];

	for (int a = 2; in->point == VN_POINT_ATTN_CONTEXT && in->size[1] == m->n && a < m->n; a++) {
		int i = 0;
		while (m->n % a == 0 && i < m->n && m->from[i] == i % a * (m->n / a) + i / a)
			i++;
		if (i == m->n)
			return a;
	}
	return 0;
}

void vn_sentence_crossed_ranks(const vn_sentence *s)
{
	const int n = s->h->applied.matrix.n, a = transposed_heads(s);

	if (a) {
		VN_PUT(s,
		       "its columns are in another order of heads: %d x %d heads are stored as %d x %d; or %d ranks, as many "
		       "as heads, are joined in this order: ",
		       a, n / a, n / a, a, n);
		vn_sentence_list(s, s->h->applied.matrix.from, n);
		return;
	}

	VN_PUT(s, VN_FORM(P18_ORDER), n);
	vn_text_add(s->text, s->size, ": the inputs of ranks 0 to %d are multiplied by the weights of ranks ", n - 1);
	vn_sentence_list(s, s->h->applied.matrix.from, s->h->applied.matrix.n);
}

void vn_sentence_row_order(const vn_sentence *s)
{
	VN_PUT(s, VN_FORM(P18_ORDER), s->h->applied.matrix.n);
	vn_text_add(s->text, s->size, ": rows of the matrix are those of ranks ");
	vn_sentence_list(s, s->h->applied.matrix.from, s->h->applied.matrix.n);
	vn_text_add(s->text, s->size, "; the bias is right");
}

void vn_sentence_pair_rows(const vn_sentence *s)
{
	const vn_applied_matrix *m = &s->h->applied.matrix;
	const int64_t            M = vn_value_row(&s->p->value[s->p->node[s->h->node].out[0]]);

	VN_PUT(s, "rows of the matrix are permuted for RoPE with %s as %d heads",
	       m->n ? "split halves" : "neighbouring pairs", (int)(M / m->from[0]));
	if (m->from[1])
		vn_text_add(s->text, s->size, ", and back as %d", (int)(M / m->from[1]));
}

const char *const vn_format_words[VN_N_FORMATS] = {
	[VN_FORMAT_BF16] = "bfloat16",
	[VN_FORMAT_F16] = "float16",
	[VN_FORMAT_TF32] = "TF32 (10 bits of mantissa)",
	[VN_FORMAT_TF32_AWAY] = "TF32 (10 bits of mantissa, ties away from 0)",
	[VN_FORMAT_TF32_CUT] = "TF32 (10 bits of mantissa, truncated)",
	[VN_FORMAT_E4M3] = "float8 (e4m3)",
	[VN_FORMAT_E5M2] = "float8 (e5m2)",
	[VN_FORMAT_INT8] = "int8",
	[VN_FORMAT_INT8_128] = "int8 (scale: the largest number / 128; 128 becomes 127)",
	[VN_FORMAT_INT8_HALF] = "int8 (scale: the largest number / 127.5)",
	[VN_FORMAT_F32] = "float32",
};

void vn_sentence_format(const vn_sentence *s)
{
	static const char *const of[] = {
		[VN_OF_WEIGHTS] = "weights", [VN_OF_INPUTS] = "inputs", [VN_OF_BOTH] = "inputs and weights"
	};
	const vn_applied_matrix *e = &s->h->applied.matrix;

	VN_PUT(s, VN_FORM(W15), of[e->of], vn_format_words[e->format]);
	if (e->scaled && e->of != VN_OF_INPUTS)
		vn_text_add(s->text, s->size, ", with one scale for each %s",
		            e->scaled == VN_SCALE_OF_ALL ? "matrix" : "output channel");
	if (e->scaled && e->of != VN_OF_WEIGHTS)
		vn_text_add(s->text, s->size, "%s one scale for each token", e->of == VN_OF_BOTH ? " and" : ", with");
}

/* "calls of 35 tokens" */
static void put_calls(int call, char text[60])
{
	if (call == VN_OWN_CALLS)
		snprintf(text, 60, "calls of several tokens");
	else
		snprintf(text, 60, "calls of %d tokens", call);
}

void vn_sentence_mask(const vn_sentence *s)
{
	const vn_applied_attention *e = &s->h->applied.attend;
	char                        calls[60];

	put_calls(e->call, calls);
	if (e->kind == VN_ATTEND_CALLS_FROM_ZERO)
		VN_PUT(s, "%s, in %s", VN_TITLE(A3_CHUNK), calls);
	else if (e->kind == VN_ATTEND_ONE_FIRST)
		VN_PUT(s, "%s: calls of one token see only the first cached key", VN_TITLE(A3_CHUNK));
	else if (e->kind == VN_ATTEND_ONE_OWN)
		VN_PUT(s, "calls of one token see only their own key: the cache is not read");
	else if (e->kind == VN_ATTEND_CALLS_ALONE)
		VN_PUT(s, "%s do not see the keys of earlier calls: the cache is not read", calls);
	else
		VN_PUT(s, "%s in %s after the first: a query sees all keys of its call", VN_TITLE(A2), calls);
}

void vn_sentence_unseen(const vn_sentence *s)
{
	const vn_applied_attention *e = &s->h->applied.attend;

	VN_PUT(s, "later calls do not see key%s %.0f", e->unseen > 1 ? "s" : "", e->number);
	if (e->unseen > 1)
		vn_text_add(s->text, s->size, "-%.0f", e->number + e->unseen - 1);
	vn_text_add(s->text, s->size, ": masked, evicted, or overwritten with keys that no query attends to");
}

void vn_sentence_rounded_attention(const vn_sentence *s)
{
	const vn_applied_attention *e = &s->h->applied.attend;

	if (e->cache) {
		VN_PUT(s, VN_TITLE(C7), vn_format_words[e->cache]);
		vn_text_add(s->text, s->size, "%s, read after the first call",
		            e->scaled ? ", with one scale for each token and head" : "");
	} else if (e->inputs)
		VN_PUT(s, "the operands of both products of attention are rounded to %s", vn_format_words[e->inputs]);
	else if (e->exps && e->sum)
		VN_PUT(s, "softmax wholly in %s: scores, exponentials, their sum and probabilities are rounded",
		       vn_format_words[e->exps]);
	else if (e->exps || e->sum)
		VN_PUT(s, "the %s of softmax rounded to %s", e->exps ? "exponentials" : "sum",
		       vn_format_words[e->exps ? e->exps : e->sum]);
	else
		VN_PUT(s, VN_FORM(A13),
		       !e->scores ? "probabilities"
		       : e->probs ? "scores and probabilities"
		                  : "scores",
		       vn_format_words[e->scores ? e->scores : e->probs]);
}

void vn_sentence_head_roll(const vn_sentence *s)
{
	const double q = vn_trial_constant(s->h, "query_roll"), k = vn_trial_constant(s->h, "key_roll"),
				 v = vn_trial_constant(s->h, "value_roll"),
				 by = !isnan(q)  ? q
	                  : isnan(k) ? v
	                             : k;

	VN_PUT(s, VN_FORM(A24),
	       !isnan(q)  ? "queries"
	       : isnan(v) ? "keys"
	       : isnan(k) ? "values"
	                  : "keys and values",
	       !isnan(q) ? "head" : "key head", fabs(by), fabs(by) > 1 ? "s" : "", by < 0 ? "after" : "before");
}

void vn_sentence_heads_first(const vn_sentence *s)
{
	static const char *const of[8] = { "",
		                               "queries",
		                               "keys",
		                               "queries and keys",
		                               "values",
		                               "queries and values",
		                               "keys and values",
		                               "queries, keys, and values" };
	const int                number = (int)s->h->applied.attend.number;

	if (number & 8)
		VN_PUT(s, VN_FORM(A9_BACK), of[number & 7]);
	else
		VN_PUT(s, VN_FORM(A9), of[number & 7]);
}

void vn_sentence_activation(const vn_sentence *s)
{
	VN_PUT(s, VN_TITLE(M1), vn_act_name((vn_act)s->h->applied.activation));
}

void vn_sentence_narrow(const vn_sentence *s)
{
	const vn_applied_format *e = &s->h->applied.narrow;

	if (!e->whole)
		VN_PUT(s, VN_FORM(P1), vn_format_words[e->format]);
	else
		VN_PUT(s, "computed in %s: inputs%s and result are rounded", vn_format_words[e->format],
		       s->p->node[s->h->node].n_w ? ", weights" : "");
}

void vn_sentence_calls(const vn_sentence *s)
{
	const vn_other_rotation *e = &s->h->applied.rotate;
	char                     calls[60];

	put_calls(e->call, calls);
	if (e->twice)
		VN_PUT(s, "%s, in %s", VN_TITLE(R3B_TWICE), calls);
	else if (e->call == VN_OWN_CALLS)
		VN_PUT(s, "%s of several tokens", VN_TITLE(R3B_ZERO));
	else
		VN_PUT(s, "%s of %d tokens", VN_TITLE(R3B_ZERO), e->call);
}

void vn_sentence_theta_from(const vn_sentence *s)
{
	VN_PUT(s, VN_FORM(R2_FROM), vn_trial_constant(s->h, "other_theta"), vn_trial_constant(s->h, "theta_from"));
}

/* "token 20 is", "tokens 30-45 are", "tokens from 40 on are" rotated as ... */
void vn_sentence_moved_tokens(const vn_sentence *s)
{
	const vn_position_map *m = &s->h->applied.rotate.map;
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
		vn_text_add(s->text, s->size, "if their distance from position %.0f were %.4g times as large", from, m->times);
}

void vn_sentence_rotation(const vn_sentence *s)
{
	const vn_other_rotation *e = &s->h->applied.rotate;
	const struct {
		vn_rounding_format in;
		const char        *name;
	} of[] = {
		{ e->positions, "positions" },
		{ e->frequencies, "frequencies" },
		{ e->angles, "angles" },
		{ e->table, "sines and cosines" },
	};
	vn_rounding_format in = VN_FORMAT_NONE;
	char               what[80] = "";
	int                left = 0;

	for (size_t i = 0; i < sizeof of / sizeof *of; i++)
		left += of[i].in != VN_FORMAT_NONE;
	for (size_t i = 0; i < sizeof of / sizeof *of; i++)
		if (of[i].in) {
			in = of[i].in;
			vn_text_add(what, sizeof what, "%s%s", !*what ? "" : --left > 1 ? ", " : " and ", of[i].name);
		}
	VN_PUT(s, VN_FORM(R13), what, vn_format_words[in]);
}

void vn_sentence_token(const vn_sentence *s)
{
	const int by = s->h->applied.tokens;
	char      which[40];

	if (abs(by) == 1)
		snprintf(which, sizeof which, "the %s token", by < 0 ? "previous" : "next");
	else
		snprintf(which, sizeof which, "the token %d places %s", abs(by), by < 0 ? "before" : "after");
	VN_PUT(s, VN_FORM(M5), which);
	vn_text_add(s->text, s->size, "%s", s->h->applied.later ? ", after the first call" : "");
}

void vn_sentence_ids(const vn_sentence *s)
{
	if (s->h->finding == VN_FINDING_ROTATED_BY_IDS)
		VN_PUT(s, "rotated by the token id, not by the position");
	else
		VN_PUT(s, VN_FORM(M5), "the position, not of the token id");
	vn_text_add(s->text, s->size, "%s", s->h->applied.later ? ", after the first call" : "");
}

void vn_sentence_scale_tiles(const vn_sentence *s)
{
	const double rows = s->h->applied.number.value;

	VN_PUT(s, rows > 0 ? VN_FORM(W21) : VN_FORM(W21_BACK), fabs(rows));
}

void vn_sentence_rounded(const vn_sentence *s)
{
	VN_PUT(s, "the result is rounded to %s", vn_format_words[(int)s->h->applied.result.number]);
}
