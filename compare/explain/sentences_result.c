/* sentences_result.c: see sentence_writers.h: slots of a cache, ranks, orders, factors. */
#include "compare/explain/sentence_writers.h"
#include "compare/rearrange/rearranged.h"
#include "compare/replayed/variants.h"

#include "libref/base/text.h"
#include "libref/plan/fault.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void put_slots(const vn_sentence *s, const char *what, int by)
{
	VN_PUT(s, VN_FORM(C1), what, abs(by), abs(by) > 1 ? "s" : "", by < 0 ? "before" : "after");
}

void vn_sentence_slots(const vn_sentence *s)
{
	static const char *const what[] = { "tokens", "keys", "values" };
	const int by = (int)vn_trial_constant(s->h, "cache_block"), of = (int)vn_trial_constant(s->h, "cache_of");

	put_slots(s, what[of], vn_trial_constant(s->h, "cache_form") == VN_CACHE_NEXT ? -by : by);
}

/* Are tokens after the first call as many slots late as there are such tokens? Then none is read,
 * as if they were farther late. */
static bool none_is_read(const vn_sentence *s, int by)
{
	const vn_step *step;

	return by > 1 && vn_recording_steps(s->opened->cand, &step) > 1 &&
	       by >= vn_recording_tokens(s->opened->cand, NULL, NULL) - step[1].position;
}

void vn_sentence_new_slots(const vn_sentence *s)
{
	static const char *const what[][2] = { { "tokens after the first call", "the newest tokens" },
		                                   { "keys of tokens after the first call", "keys of the newest tokens" },
		                                   { "values of tokens after the first call", "values of the newest tokens" } };
	const vn_applied_slots  *c = &s->h->applied.slots;

	put_slots(s, what[c->of][c->newest], c->by);
	vn_text_add(s->text, s->size, "%s, so a slot that is read was never written",
	            none_is_read(s, c->by) ? " or farther" : "");
}

void vn_sentence_exchanged_blocks(const vn_sentence *s)
{
	static const char *const alone[] = { "", ", keys only", ", values only" };

	VN_PUT(s, VN_FORM(C4_PAIRS), (int)vn_trial_constant(s->h, "cache_block"));
	vn_text_add(s->text, s->size, "%s", alone[(int)vn_trial_constant(s->h, "cache_of")]);
}

void vn_sentence_blocks(const vn_sentence *s)
{
	static const char *const alone[] = { "", " of keys", " of values" };
	const vn_block_table    *b = &s->h->applied.blocks;
	char                     list[120] = "";
	size_t                   used = 0;

	for (int i = 0; i < b->n && (used = strlen(list)) < sizeof list - 8; i++)
		vn_text_add(list, sizeof list, "%s%d", i ? ", " : "", b->from[i]);
	VN_PUT(s, VN_FORM(C4), b->block, alone[b->of], list);
	vn_text_add(s->text, s->size, "%s", strlen(list) < sizeof list - 8 ? "" : "...");
}

void vn_sentence_cache(const vn_sentence *s)
{
	static const char *const what[][2] = {
		{ "keys and values", "key and value are" },
		{ "values (not their keys)", "value (not its key) is" },
		{ "keys (not their values)", "key (not its value) is" },
		{ "keys (and perhaps values)", "key (and perhaps its value) is" }, /* seen without the values */
		{ "keys", "key is" },
		{ "values", "value is" }, /* of a recorded cache */
	};
	const vn_applied_cached *k = &s->h->applied.cached;
	const int                n = k->n;
	const long long          a = k->first, b = a + n - 1, c = k->holds, d = c + n - 1;
	char                     few[40] = "";
	const vn_node           *node = &s->p->node[s->h->node];
	const int                shown = vn_plan_find(s->p, s->result->checkpoints.of[s->x->checkpoint].name);
	const bool               both = shown == node->out[VN_ATTN_CONTEXT], values = shown == node->out[VN_ATTN_V_CACHE];
	const char *const       *whose = what[values || shown == node->out[VN_ATTN_K_CACHE] ? 4 + values
	                                      : !both                                       ? 3
	                                      : k->holds == VN_HOLDS_NO_VALUES              ? 1
	                                      : k->holds == VN_HOLDS_NO_KEYS                ? 2
	                                                                                    : 0];
	if (k->others)
		snprintf(few, sizeof few, " or one of %d others", k->others);
	if (s->h->finding == VN_FINDING_KEYS_UNSEEN && n > 1)
		VN_PUT(s, "keys %lld-%lld are not seen: masked, evicted, or overwritten with keys that no query attends to", a,
		       b);
	else if (s->h->finding == VN_FINDING_KEYS_UNSEEN)
		VN_PUT(s, "key %lld%s is not seen: masked, evicted, or overwritten with a key that no query attends to", a,
		       few);
	else if (s->h->finding == VN_FINDING_CACHE_EMPTY && n > 1)
		VN_PUT(s, "tokens %lld-%lld are missing from the cache: their %s are 0", a, b, whose[0]);
	else if (s->h->finding == VN_FINDING_CACHE_EMPTY)
		VN_PUT(s, "token %lld%s is missing from the cache: its %s 0", a, few, whose[1]);
	else if (n > 1)
		VN_PUT(s, "the cache holds %stokens %lld-%lld in place of tokens %lld-%lld",
		       both     ? ""
		       : values ? "values of "
		                : "keys of ",
		       c, d, a, b);
	else
		VN_PUT(s, "the cache holds %stoken %lld in place of token %lld%s",
		       both     ? ""
		       : values ? "the value of "
		                : "the key of ",
		       c, a, k->others ? " (other pairs fit these numbers as well)" : "");
}

void vn_sentence_cap(const vn_sentence *s)
{
	const vn_node *n = &s->p->node[s->h->node];
	const double   cap = s->h->applied.attend.number, unscaled = n->c.attention.cap * n->c.attention.scale;

	if (unscaled != 0 && fabs(cap / unscaled - 1) < 0.01) /* of three digits */
		VN_PUT(s, "scores are capped before they are scaled");
	else
		VN_PUT(s, "scores capped: %g tanh(score / %g)", cap, cap);
}

void vn_sentence_stale(const vn_sentence *s)
{
	VN_PUT(s, VN_FORM(C5_STALE), -vn_trial_constant(s->h, "ahead"));
}

void vn_sentence_state(const vn_sentence *s)
{
	const vn_other_state *o = &s->h->applied.state;

	switch (o->kind) {
	case VN_STATE_EARLIER:
		VN_PUT(s, VN_FORM(G19_EARLIER), o->calls, o->calls > 1 ? "s" : "", o->calls > 1 ? "ones are" : "one is");
		break;
	case VN_STATE_FIRST: VN_PUT(s, "%s", VN_TITLE(G19_FIRST)); break;
	case VN_STATE_ROUNDED: VN_PUT(s, VN_FORM(G19_ROUNDED), vn_format_words[o->format]); break;
	case VN_STATE_TIMES: VN_PUT(s, VN_FORM(G19_TIMES), o->factor); break;
	case VN_STATE_TURNED: VN_PUT(s, VN_FORM(G19_TURNED)); break;
	case VN_STATE_ROLLED:
		if (o->calls)
			VN_PUT(s, VN_FORM(G19_ROLLED), abs(o->calls), abs(o->calls) > 1 ? "s" : "",
			       o->calls > 0 ? "before" : "after");
		else
			VN_PUT(s, VN_FORM(G19_REVERSED));
		break;
	case VN_STATE_AGAIN: VN_PUT(s, "%s", o->calls > 1 ? VN_TITLE(G19_DRAFTS) : VN_TITLE(G19_AGAIN)); break;
	case VN_STATE_PADDING: VN_PUT(s, VN_FORM(G19_PADDING)); break;
	case VN_STATE_PACKED: VN_PUT(s, VN_FORM(G19_PACKED)); break;
	case VN_STATE_USUAL: break;
	}
}

/* "keys of tokens of the first call in the cache are multiplied by 0.1" */
void vn_sentence_changed(const vn_sentence *s)
{
	static const char *const what[] = { "keys and values", "keys", "values" }, *const columns[] = {
		"rolled", "reversed", "in the order i, i + K/2", "in the order of even ones, then odd ones"
	};
	const vn_applied_changed *c = &s->h->applied.changed;
	const long long           a = c->first, b = a + c->n - 1;
	char                      whose[64] = "of all tokens";

	if (c->slots == VN_SLOTS_RANGE && c->n > 1)
		snprintf(whose, sizeof whose, "of tokens %lld-%lld", a, b);
	else if (c->slots == VN_SLOTS_RANGE)
		snprintf(whose, sizeof whose, "of token %lld", a);
	else if (c->slots != VN_SLOTS_ALL)
		snprintf(whose, sizeof whose, "of %s",
		         c->slots == VN_SLOTS_FIRST_CALL ? "the first call"
		         : c->slots == VN_SLOTS_LATER    ? "later calls"
		                                         : "the newest token");
	switch (c->kind) {
	case VN_CHANGED_SCALED:
		if (c->of)
			VN_PUT(s, VN_FORM(C10), what[c->of], whose, c->number);
		else
			VN_PUT(s, VN_FORM(C10_BOTH), whose, c->number, c->values);
		break;
	case VN_CHANGED_UNSCALED:
		VN_PUT(s, VN_FORM(C7_UNSCALED), what[c->of], whose,
		       c->format == VN_FORMAT_INT8   ? "int8"
		       : c->format == VN_FORMAT_E4M3 ? "float8 (e4m3)"
		                                     : "8 bits");
		break;
	case VN_CHANGED_ROUNDED:
		VN_PUT(s, c->number < 0 ? VN_FORM(C7_CAST) : VN_FORM(C7_ROUNDED), what[c->of], whose,
		       vn_format_words[c->format]);
		if (c->number > 0)
			vn_text_add(s->text, s->size, ", but are read by the scale largest number / %g", c->number);
		break;
	case VN_CHANGED_EMPTY: VN_PUT(s, "cached %s %s are 0: never written", what[c->of], whose); break;
	case VN_CHANGED_TWICE: VN_PUT(s, VN_FORM(C11), whose); break;
	case VN_CHANGED_MOVED: break; /* VN_FINDING_NEW_SLOTS_MOVED says it */
	case VN_CHANGED_ROLLED:
		if (c->number == 0) {
			VN_PUT(s, VN_FORM(C14_REVERSED), what[c->of], whose);
			break;
		}
		VN_PUT(s, VN_FORM(C14), what[c->of], whose, c->number, c->number > 1 ? "s" : "");
		break;
	case VN_CHANGED_REVERSED: VN_PUT(s, VN_FORM(C15), whose); break;
	case VN_CHANGED_HEADS_FIRST:
		VN_PUT(s, c->number > 0 ? VN_FORM(C6_WHOLE) : VN_FORM(C6_BACK), what[c->of], whose);
		break;
	case VN_CHANGED_COLUMNS:
		VN_PUT(s, VN_FORM(C16), what[c->of], whose, columns[c->n]);
		if (c->n == VN_COLUMN_ROLLED)
			vn_text_add(s->text, s->size, " by %g", c->number);
		break;
	case VN_CHANGED_EXCHANGED: VN_PUT(s, VN_FORM(C4_TWO), whose, (int)c->number, (int)c->number + c->n - 1); break;
	}
}

/* "the cache holds the key of token 64 in place of token 3's; token 3's value is right" */
void vn_sentence_one_alone(const vn_sentence *s)
{
	const vn_one_cached *k = &s->h->applied.one_cached;
	const char          *what = k->of == 1 ? "key" : "value";
	const bool           both = vn_plan_find(s->p, s->result->checkpoints.of[s->x->checkpoint].name) ==
	                  s->p->node[s->h->node].out[VN_ATTN_CONTEXT]; /* shows both */
	char few[40] = "", right[40] = "";

	if (both)
		snprintf(right, sizeof right, "; token %d's %s is right", k->slot, k->of == 1 ? "value" : "key");
	if (k->others)
		snprintf(few, sizeof few, " or one of %d others", k->others);
	if (k->holds == VN_HOLDS_UNKNOWN)
		VN_PUT(s, "the cache holds an unknown %s in place of token %d's: stale or overwritten%s", what, k->slot, right);
	else
		VN_PUT(s, "the cache holds the %s of token %d%s in place of token %d's%s", what, k->holds, few, k->slot, right);
}

void vn_sentence_not_cached(const vn_sentence *s)
{
	const bool late = vn_trial_constant(s->h, "cache_form") == VN_CACHE_LATE;

	VN_PUT(s, "%s (%s)", late ? VN_TITLE(C5) : VN_TITLE(C5_BEFORE),
	       vn_trial_constant(s->h, "cache_of") == 1 ? "keys only" : "values only");
}

/* Which ranks of how many: the present ones if these are few, else the missing ones. */
void vn_sentence_ranks(const vn_sentence *s)
{
	const vn_rank_sum sum = vn_rank_sum_of(s->h->applied.number.value);
	const int         n = sum.ranks;
	char              list[120] = "";
	int               there = 0;

	for (int i = 0; i < n; i++)
		there += (int)(sum.present >> i & 1);
	const bool few = there <= n / 2;
	const int  some = few ? there : n - there;
	for (int i = 0, said = 0; i < n; i++)
		if ((sum.present >> i & 1) == few)
			vn_text_add(list, sizeof list, "%s%d", said++ ? ", " : "", i);
	const char *plural = some > 1 ? "s" : "";
	if (few)
		VN_PUT(s, VN_FORM(P15), plural, plural, list, n);
	else
		VN_PUT(s, VN_FORM(P15_OTHERS), plural, plural, list, n);
	vn_text_add(s->text, s->size, "%s", sum.no_bias ? ", and no bias" : "");
}

void vn_sentence_shard_order(const vn_sentence *s)
{
	VN_PUT(s, VN_FORM(P18_ORDER), s->h->applied.result.n);
	vn_text_add(s->text, s->size, ": ");
	vn_sentence_list(s, s->h->applied.result.list, s->h->applied.result.n);
}

void vn_sentence_head_order(const vn_sentence *s)
{
	VN_PUT(s, "heads in another order: ");
	vn_sentence_list(s, s->h->applied.result.list, s->h->applied.result.n);
}

void vn_sentence_factor(const vn_sentence *s)
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
	const int    factor = s->h->applied.result.factor;
	const char  *name = names[factor];
	const double x = s->h->applied.result.number, within = s->h->applied.result.within;
	const bool   rough = within > 1e-5 * fabs(x) && factor != VN_PLAIN_FACTOR;

	if (name && rough)
		VN_PUT(s, "every element is multiplied by %.5g +- %.1g, in which %s = %.6g lies", s->h->applied.result.measured,
		       within, name, x);
	else if (rough)
		VN_PUT(s, "every element is multiplied by %.5g +- %.1g", s->h->applied.result.measured, within);
	else
		VN_PUT(s, "every element is multiplied by %.6g%s%s", x, name ? ", which is " : "", name ? name : "");
}

void vn_sentence_axes(const vn_sentence *s)
{
	const char *axes = vn_entry_axes(
		vn_recording_entry(s->opened->ref, s->result->checkpoints.of[s->x->checkpoint].ref));
	char order[80] = "";

	for (int k = 0; k < s->h->applied.result.n; k++) {
		size_t n;
		if (!s->p) {
			vn_text_add(order, sizeof order, "%s%d", k ? ", " : "", s->h->applied.result.list[k]);
			continue;
		}
		const char *word = vn_axes_word(axes, s->h->applied.result.list[k], &n);
		vn_text_add(order, sizeof order, "%s%.*s", k ? " " : "", (int)n, word);
	}
	const char *title = vn_mistake_title(vn_trial_mistake(s->h));
	if (!s->p)
		VN_PUT(s, "the elements are in the order of axes (%s): transposed", order);
	else
		VN_PUT(s, "the elements are in the order (%s)%s%s", order, *title ? ": " : "", title);
}

/* Adds the runs of the list: "32-47, 64-79..." */
static void add_runs(const vn_sentence *s)
{
	const int *list = s->h->applied.result.list;

	for (int i = 0; i + 1 < s->h->applied.result.n; i += 2)
		vn_text_add(s->text, s->size, list[i + 1] > list[i] ? "%s%d-%d" : "%s%d", i ? ", " : "", list[i], list[i + 1]);
	vn_text_add(s->text, s->size, "%s", s->h->applied.result.more ? "..." : "");
}

/* "partly written: tokens 32-47, 64-79 are 0" */
void vn_sentence_rows(const vn_sentence *s)
{
	VN_PUT(s, VN_FORM(P9), s->p ? "tokens " : "rows ");
	add_runs(s);
	vn_text_add(s->text, s->size, " are %s",
	            s->h->finding == VN_FINDING_PARTLY_ZERO ? "0" : "another checkpoint's, bit for bit");
}

/* "channels 0-7 of 48 are 0 in every token". Not written, or weights of 0: no id. */
void vn_sentence_channels(const vn_sentence *s)
{
	const int *list = s->h->applied.result.list, n = s->h->applied.result.n;
	const bool one = n == 2 && list[0] == list[1];

	VN_PUT(s, "channel%s ", one ? "" : "s");
	add_runs(s);
	vn_text_add(s->text, s->size, " of %.0f %s 0 in every %s", s->h->applied.result.number, one ? "is" : "are",
	            s->p ? "token" : "row");
}

void vn_sentence_clamped(const vn_sentence *s)
{
	static const char *const which[] = {
		[VN_CLAMP_ABOVE] = "above %.6g", [VN_CLAMP_BELOW] = "below %.6g", [VN_CLAMP_BOTH] = "beyond +-%.6g"
	};
	char limit[40];

	snprintf(limit, sizeof limit, which[s->h->applied.result.clamp], s->h->applied.result.number);
	VN_PUT(s, "clamped: numbers %s are set to this bound", limit);
}

/* Adds the two or more products of one input whose results together are as wide: ", the width of
 * q_proj + k_proj + v_proj". */
static void put_whose(const vn_sentence *s, int64_t width)
{
	const vn_plan *p = s->p;
	const vn_node *me = &p->node[s->h->node];

	for (int i = 0; i < p->n_nodes; i++) {
		char    names[120] = "";
		int64_t all = 0;
		int     met = 0;
		for (int k = i; k < p->n_nodes && all < width; k++) {
			const vn_node *n = &p->node[i], *o = &p->node[k];
			if (n->op != VN_OP_LINEAR || n->layer != me->layer || o->op != VN_OP_LINEAR || o->layer != n->layer ||
			    o->in[0] != n->in[0])
				continue;
			vn_text_add(names, sizeof names, "%s%s", met++ ? " + " : "", vn_name_in_layer(p->value[o->out[0]].name));
			all += vn_value_row(&p->value[o->out[0]]);
		}
		if (all == width && met > 1) {
			vn_text_add(s->text, s->size, ", the width of %s", names);
			return;
		}
	}
}

void vn_sentence_leading(const vn_sentence *s)
{
	static const char *const of[] = { "lda: the rows of the input are read", "ldb: the rows of the matrix are read",
		                              "ldc: the rows of the result are written" };
	const int64_t            apart = (int64_t)s->h->applied.result.number, own = s->h->applied.result.list[0];

	if (!apart) {
		VN_PUT(s, "the input is read column by column, but stored row by row");
		return;
	}
	VN_PUT(s, "%s %lld numbers apart, not %lld", of[s->h->applied.result.factor], (long long)apart, (long long)own);
	put_whose(s, apart);
	if (s->h->applied.result.factor == VN_LEADING_RESULT && s->h->recorder_fault)
		vn_text_add(s->text, s->size, ": the first numbers of a wider buffer were recorded as if they were packed");
}

void vn_sentence_recorded_part(const vn_sentence *s)
{
	const int first = (int)s->h->applied.result.number, own = s->h->applied.result.list[0];

	if (first < 0)
		VN_PUT(s, "the first numbers of a wider buffer were recorded");
	else
		VN_PUT(s, "columns %d-%d of another buffer were recorded", first, first + own - 1);
}

/* "the activation is gelu_tanh, not gelu" */
void vn_sentence_variant(const vn_sentence *s)
{
	VN_PUT(s, vn_variant_form(s->h->applied.variant.row), s->h->applied.variant.is, s->h->applied.variant.due);
	vn_text_clean(s->text, s->size);
}

/* "columns 0-15 hold columns 15-0" */
void vn_sentence_reordered(const vn_sentence *s)
{
	const int  *list = s->h->applied.result.list;
	const char *what = s->h->applied.result.number == 0 ? "rows" : "columns";
	const int   rule = s->h->applied.result.factor;

	if (rule == VN_AXIS_INTERLEAVED || rule == VN_AXIS_HALVED) {
		VN_PUT(s,
		       rule == VN_AXIS_INTERLEAVED ? "halves of each %d %s alternate: interleaved where they should be halves"
		                                   : "even and odd of each %d %s are halves where they should alternate",
		       list[0], what);
		return;
	}
	if (s->p && s->p->value[s->p->node[s->h->node].out[0]].rank > 2)
		VN_PUT(s, "of the product (heads x dim): ");
	else if (s->h->applied.result.number > 1)
		VN_PUT(s, "on axis %.0f of its shape: ", s->h->applied.result.number - 2);
	for (int i = 0; i + 3 < s->h->applied.result.n; i += 4) {
		const int   first = list[i], last = list[i + 1], from = list[i + 2], to = from + (last - first) * list[i + 3];
		const bool  one = first == last;
		const char *each = s->h->applied.result.number == 0 ? "row" : "column";
		vn_text_add(s->text, s->size, "%s%s ", i ? ", " : "", one ? each : what);
		vn_text_add(s->text, s->size, one ? "%d" : "%d-%d", first, last);
		vn_text_add(s->text, s->size, one ? " holds %s " : " hold %s ", from == to ? each : what);
		vn_text_add(s->text, s->size, from == to ? "%d" : "%d-%d", from, to);
	}
	const int late = list[0] - list[2];
	if (s->h->applied.result.number == 0 && s->h->applied.result.n == 4 && list[3] == 1)
		vn_text_add(s->text, s->size, ": %d row%s %s", abs(late), abs(late) > 1 ? "s" : "",
		            late > 0 ? "late" : "early");
	vn_text_add(s->text, s->size, "%s", s->h->applied.result.more ? "..." : "");
}
