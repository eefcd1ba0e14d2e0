/* hypothesis.c: see hypothesis.h. */
#include "compare/explain/activation.h"
#include "compare/explain/attend.h"
#include "compare/explain/edit_matrix.h"
#include "compare/explain/narrow.h"
#include "compare/explain/rotate.h"
#include "compare/explain/search.h"
#include "compare/explain/trial.h"

#include "libref/plan/fault.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what it is ----------------------------------------------------------------------------------------- */

/* The catalogue id, and the number of digits in which its number is printed; numbers with equal
 * digits count as the same. */
/* clang-format off */
static const struct { vn_mistake id; int digits; } findings[VN_N_FINDINGS] = {
#define IS(name, digits) { VN_MISTAKE_##name, digits }
	[VN_THETA] = IS(R2, 6), [VN_THETA_PLAIN] = IS(R2, 6), [VN_ROPE_FACTOR] = IS(R6, 6), [VN_ROPE_CONTEXT] = IS(R6, 6),
	[VN_ROPE_LOW] = IS(R6, 6), [VN_ROPE_HIGH] = IS(R6, 6), [VN_OFFSET] = IS(R3, 6), [VN_OFFSET_LATER] = IS(R3B, 6),
	[VN_ONE_POSITION] = IS(R3, 6), [VN_ANY_POSITION] = IS(R3, 6), [VN_STRETCH] = IS(R5, 5),
		[VN_ROTARY_WIDTH] = IS(R4, 6),
	[VN_TABLE_OFFSET] = IS(R15, 6), [VN_TABLE_OFFSET_LATER] = IS(R15, 6), [VN_EPS] = IS(N1, 4),
		[VN_EPS_OUTSIDE] = IS(N2, 4),
	[VN_SCORE_SCALE] = IS(A1, 6), [VN_DELTA_SCALE] = IS(G6, 6), [VN_WINDOW] = IS(A5, 6),
		[VN_WINDOW_AND_SINKS] = IS(A5, 6),
	[VN_KEYS_OF_PADDING] = IS(A14, 6), [VN_PADDING_SEEN] = IS(A14, 6), [VN_BLOCKS_EXCHANGED] = IS(C4, 6),
		[VN_BLOCKS_REORDERED] = IS(C4, 6), [VN_OWN_KEY_MISSING] = IS(C5, 6),
	[VN_SHARDS_REORDERED] = IS(P18_ORDER, 6), [VN_TEMPERATURE] = IS(M9, 6), [VN_CAP] = IS(M9, 6),
		[VN_SUM_TIMES] = IS(P16, 6),
	[VN_AVERAGE] = IS(P16, 6), [VN_TOKENS_MOVED] = IS(P14, 6), [VN_TOKENS_REVERSED] = IS(P14, 6),
		[VN_AXES_RECORDED] = IS(P11, 6),
	[VN_AXES_OF_HEADS] = IS(A8, 6), [VN_AXES_BEFORE_TOKENS] = IS(A9, 6), [VN_RECORDED_LATER] = IS(P7, 6),
		[VN_RECORDED_BEFORE] = IS(P6, 6), [VN_PARTLY_ZERO] = IS(P9, 6),
	[VN_PARTLY_OTHER] = IS(P9, 6), [VN_OTHER_WEIGHTS] = IS(W9, 6), [VN_PARTNERS_MATRIX] = IS(W4, 6),
		[VN_UNNORMED] = IS(G5_MISSING, 6),
		[VN_OTHER_CACHE] = IS(C9, 6),
		[VN_OTHER_KEYS] = IS(C9, 6),
	[VN_OTHER_VALUES] = IS(C9, 6), [VN_OTHER_INPUT] = IS(P22, 6), [VN_STEP_STALE] = IS(P8, 6),
		[VN_STEP_LATE] = IS(P8, 6),
	[VN_OTHER_TOKEN] = IS(M5, 6), [VN_POSITION_FOR_ID] = IS(M5, 6), [VN_MATRIX_TURNED] = IS(W1B, 6),
		[VN_RANKS_CROSSED] = IS(P18_ORDER, 6), [VN_ROWS_REORDERED] = IS(P18_ORDER, 6), [VN_NEVER_LOADED] = IS(W11, 6),
	[VN_WEIGHTS_ROUNDED] = IS(W13, 6), [VN_WEIGHTS_QUANTISED] = IS(W15, 6), [VN_PARALLEL_BLOCK] = IS(N19, 6),
	[VN_MASK_FROM_CALL] = IS(A3_CHUNK, 6), [VN_ANGLES_ROUNDED] = IS(R13, 6), [VN_CALLS_FROM_ZERO] = IS(R3B_ZERO, 6),
	[VN_CACHE_ROUNDED] = IS(C7, 6), [VN_OTHER_ACTIVATION] = IS(M1, 6),
};
/* clang-format on */

static vn_mistake slots_id(bool alone, bool after)
{
	return after ? alone ? VN_MISTAKE_C3_AFTER : VN_MISTAKE_C1_AFTER : alone ? VN_MISTAKE_C3 : VN_MISTAKE_C1_BEFORE;
}

/* Moved cache slots: of tokens, or of keys or values alone. */
static vn_mistake moved_slots(const vn_hypothesis *h)
{
	const bool alone = vn_constant_of(h, "cache_of") > 0;

	return slots_id(alone, vn_constant_of(h, "cache_form") == VN_CACHE_PAST);
}

const char *vn_hypothesis_id(const vn_hypothesis *h, char id[VN_ID])
{
	if (h->finding == VN_FAULT)
		snprintf(id, VN_ID, "%s%s%s", vn_fault_id(h->fault[0] - 1), h->fault[1] ? "+" : "",
		         h->fault[1] ? vn_fault_id(h->fault[1] - 1) : "");
	else if (h->change.kind == VN_BY_NUMBER)
		snprintf(id, VN_ID, "%s", vn_fault_id(h->change.number.row));
	else if (h->finding == VN_SLOTS_MOVED)
		snprintf(id, VN_ID, "%s", vn_mistake_id(moved_slots(h)));
	else if (h->finding == VN_NEW_SLOTS_MOVED)
		snprintf(id, VN_ID, "%s", vn_mistake_id(slots_id(h->change.slots.of > 0, h->change.slots.by > 0)));
	else if (h->finding == VN_PROBS_ROUNDED)
		snprintf(id, VN_ID, "%s",
		         vn_mistake_id(h->change.attend.probs == VN_FORMAT_F16 ? VN_MISTAKE_A13_F16 : VN_MISTAKE_A13_BF16));
	else if (h->finding == VN_NARROW)
		snprintf(id, VN_ID, "%s",
		         !h->change.narrow.whole && h->change.narrow.format == VN_FORMAT_F16 ? vn_mistake_id(VN_MISTAKE_P1)
		                                                                             : "");
	else if (h->fault[0])
		snprintf(id, VN_ID, "%s+%s", vn_mistake_id(findings[h->finding].id), vn_fault_id(h->fault[0] - 1));
	else
		snprintf(id, VN_ID, "%s%s%s", h->paired ? vn_mistake_id(VN_MISTAKE_R1) : "", h->paired ? "+" : "",
		         vn_mistake_id(findings[h->finding].id));
	return id;
}

int vn_hypothesis_row(const vn_hypothesis *h)
{
	char      id[VN_ID];
	const int row = *vn_hypothesis_id(h, id) ? vn_fault_find(id) : -1;

	return row >= 0 && strcmp(vn_fault_id(row), id) == 0 ? row : -1;
}

bool vn_hypothesis_is_fitted(const vn_hypothesis *h)
{
	return h->change.kind != VN_BY_CATALOGUE && h->change.kind != VN_BY_RESULT;
}

/* ---- sameness ----------------------------------------------------------------------------------------------- */

static bool same_number(double a, double b, int digits)
{
	return vn_in_digits(a, digits) == vn_in_digits(b, digits);
}

static bool same_constants(const vn_hypothesis *a, const vn_hypothesis *b, int digits)
{
	const vn_change *x = &a->change, *y = &b->change;
	bool             same = x->constants.reach == y->constants.reach && x->constants.n == y->constants.n;

	for (int i = 0; same && i < x->constants.n; i++)
		same = strcmp(x->constants.set[i].name, y->constants.set[i].name) == 0 &&
		       (a->last || same_number(x->constants.set[i].value, y->constants.set[i].value, digits));
	return same;
}

static bool same_change(const vn_hypothesis *a, const vn_hypothesis *b)
{
	const vn_change *x = &a->change, *y = &b->change;
	const int        digits = findings[a->finding].digits ? findings[a->finding].digits : 6;

	if (x->kind != y->kind || x->later != y->later)
		return false;
	switch (x->kind) {
	case VN_BY_NUMBER: return x->number.row == y->number.row && same_number(x->number.value, y->number.value, digits);
	case VN_BY_CONSTANTS: return same_constants(a, b, digits);
	case VN_BY_ROWS: return a->last || x->rows == y->rows;
	case VN_BY_MATRIX: return memcmp(&x->matrix, &y->matrix, sizeof x->matrix) == 0;
	case VN_BY_ROTATION: return memcmp(&x->rotate, &y->rotate, sizeof x->rotate) == 0;
	case VN_BY_ATTEND:
		return x->attend.kind == y->attend.kind && x->attend.call == y->attend.call &&
		       x->attend.scores == y->attend.scores && x->attend.exps == y->attend.exps &&
		       x->attend.sum == y->attend.sum && x->attend.probs == y->attend.probs &&
		       x->attend.inputs == y->attend.inputs && x->attend.cache == y->attend.cache &&
		       x->attend.scaled == y->attend.scaled && same_number(x->attend.number, y->attend.number, digits);
	case VN_BY_ACTIVATION: return x->activation == y->activation;
	case VN_BY_NARROW: return x->narrow.format == y->narrow.format && x->narrow.whole == y->narrow.whole;
	case VN_BY_READS: return memcmp(&x->reads, &y->reads, sizeof x->reads) == 0;
	case VN_BY_BLOCKS:
		return x->blocks.block == y->blocks.block && x->blocks.of == y->blocks.of && x->blocks.n == y->blocks.n &&
		       memcmp(x->blocks.from, y->blocks.from, (size_t)x->blocks.n * sizeof *x->blocks.from) == 0;
	case VN_BY_SLOTS:
		return x->slots.of == y->slots.of && x->slots.by == y->slots.by && x->slots.newest == y->slots.newest;
	case VN_BY_STEP: return x->step.due == y->step.due;
	case VN_BY_TOKENS: return x->tokens == y->tokens;
	case VN_BY_RESULT:
		return same_number(x->result.number, y->result.number, digits) && x->result.n == y->result.n &&
		       memcmp(x->result.list, y->result.list, (size_t)x->result.n * sizeof *x->result.list) == 0;
	default: return true;
	}
}

static bool same_part(const vn_hypothesis *a, const vn_hypothesis *b)
{
	return a->heads == b->heads && memcmp(a->part, b->part, sizeof a->part) == 0;
}

bool vn_hypothesis_same(const vn_hypothesis *a, const vn_hypothesis *b)
{
	return a->finding == b->finding && a->paired == b->paired && a->fault[0] == b->fault[0] &&
	       a->fault[1] == b->fault[1] && a->first == b->first && a->last == b->last && a->first_also == b->first_also &&
	       a->last_also == b->last_also && same_part(a, b) && same_change(a, b);
}

bool vn_hypothesis_same_mistake(const vn_hypothesis *a, const vn_hypothesis *b)
{
	char id[VN_ID], other[VN_ID];

	if (a->node != b->node || (a->finding == VN_FAULT) == (b->finding == VN_FAULT) || !same_part(a, b))
		return false;
	vn_hypothesis_id(a, id);
	return *id && strcmp(id, vn_hypothesis_id(b, other)) == 0;
}

bool vn_hypothesis_same_place(const vn_hypothesis *a, const vn_hypothesis *b)
{
	const bool fitted = vn_hypothesis_is_fitted(a);
	char       id[VN_ID], other[VN_ID];

	if (a->node != b->node || a->places != b->places || (a->places == 2 && a->other != b->other) ||
	    fitted != vn_hypothesis_is_fitted(b) || !same_part(a, b))
		return false;
	return fitted ? vn_hypothesis_same(a, b) : strcmp(vn_hypothesis_id(a, id), vn_hypothesis_id(b, other)) == 0;
}

/* ---- its numbers ---------------------------------------------------------------------------------------------- */

void vn_constant_put(vn_hypothesis *h, const char *name, double value)
{
	int i = 0;

	h->change.kind = VN_BY_CONSTANTS;
	while (i < h->change.constants.n && strcmp(h->change.constants.set[i].name, name) != 0)
		i++;
	assert(i < VN_CONSTANTS_MOST);
	h->change.constants.set[i].name = name;
	h->change.constants.set[i].value = value;
	h->change.constants.n = i == h->change.constants.n ? i + 1 : h->change.constants.n;
}

double vn_constant_of(const vn_hypothesis *h, const char *name)
{
	for (int i = 0; h->change.kind == VN_BY_CONSTANTS && i < h->change.constants.n; i++)
		if (strcmp(h->change.constants.set[i].name, name) == 0)
			return h->change.constants.set[i].value;
	return (double)NAN;
}

void vn_number_put(vn_hypothesis *h, double number)
{
	if (h->change.kind == VN_BY_NUMBER)
		h->change.number.value = number;
	else if (h->change.kind == VN_BY_CONSTANTS)
		h->change.constants.set[h->change.constants.n - 1].value = number;
	else if (h->change.kind == VN_BY_ROWS)
		h->change.rows = (int)number;
}

/* ---- a plan --------------------------------------------------------------------------------------------------- */

static bool reached(const vn_plan *p, const vn_hypothesis *h, int node)
{
	const vn_node *a = &p->node[h->node], *n = &p->node[node];
	const vn_reach reach = h->change.constants.reach;

	return reach == VN_AT_NODE ? node == h->node : n->op == a->op && (reach == VN_EVERYWHERE || n->layer == a->layer);
}

vn_status vn_hypothesis_plan(const vn_explain_trial *t, const vn_hypothesis *h, vn_plan **plan, vn_error *err)
{
	const vn_change *by = &h->change;
	vn_status        st = vn_plan_clone(t->site->plan, plan, err);

	if (!st && by->kind == VN_BY_READS) {
		vn_node *n = &(*plan)->node[h->node];
		if (by->reads.weights)
			memcpy(n->w, (*plan)->node[by->reads.weights - 1].w, by->reads.matrix ? sizeof *n->w : sizeof n->w);
		for (int i = 0; i < VN_MAX_IN; i++)
			n->in[i] = by->reads.in[i] ? by->reads.in[i] - 1 : n->in[i];
	}
	for (int i = 0; !st && by->kind == VN_BY_CONSTANTS && i < (*plan)->n_nodes; i++)
		for (int k = 0; !st && k < by->constants.n && reached(*plan, h, i); k++)
			st = vn_const_set(&(*plan)->node[i], by->constants.set[k].name, by->constants.set[k].value, err);
	if (st) {
		vn_plan_destroy(*plan);
		*plan = NULL;
	}
	return st;
}

/* The table of learned positions with its rows moved. Rows that would come from outside the
 * table stay. */
static vn_status move_rows(const vn_tensor *table, int by, vn_tensor *moved, void **rows, vn_error *err)
{
	const int64_t C = table->shape.dim[0];
	const size_t  row = (size_t)(vn_shape_count(&table->shape) / C) * vn_dtype_size(table->dtype);
	char         *x = *rows = malloc((size_t)C * row + 1);

	if (!x)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for a table of positions");
	for (int64_t p = 0; p < C; p++) {
		const int64_t from = p + by >= 0 && p + by < C ? p + by : p;
		memcpy(x + (size_t)p * row, (const char *)table->data + (size_t)from * row, row);
	}
	*moved = *table;
	moved->data = x;
	return VN_OK;
}

static vn_status apply_rows(const vn_explain_trial *t, const vn_hypothesis *h, vn_made *made, vn_error *err)
{
	const vn_plan *p = t->site->plan;
	const int      w = p->node[h->node].w[0];

	made->plan = p;
	if (w < 0)
		return VN_OK;
	if (!(made->table = malloc((size_t)p->n_weights * sizeof *made->table)))
		return vn_fail(err, VN_ERR_NOMEM, "no memory for %d weights", p->n_weights);
	memcpy(made->table, made->weights, (size_t)p->n_weights * sizeof *made->table);
	const vn_status st = move_rows(&made->weights[w], h->change.rows, &made->table[w], &made->rows, err);
	made->weights = made->table;
	return st;
}

/* The table of weights with another tensor in the place of weight w. */
static vn_status replace_weight(const vn_plan *p, int w, vn_made *made, vn_error *err)
{
	if (!(made->table = malloc((size_t)p->n_weights * sizeof *made->table)))
		return vn_fail(err, VN_ERR_NOMEM, "no memory for %d weights", p->n_weights);
	memcpy(made->table, made->weights, (size_t)p->n_weights * sizeof *made->table);
	made->table[w].data = made->rows;
	made->table[w].dtype = VN_F32;
	made->weights = made->table;
	made->plan = p;
	return VN_OK;
}

/* Where the candidate's product can be compared: T rows of input and result. x NULL: nowhere. */
typedef struct product_rows {
	double          *x; /* (T,N) */
	int64_t          T;
	const vn_tensor *bias, *cand;
} product_rows;

static double element(const vn_tensor *t, int64_t i)
{
	double x;
	vn_to_f64(&x, (const char *)t->data + (size_t)i * vn_dtype_size(t->dtype), t->dtype, 1);
	return x;
}

/* How much of the error of channel m changing weight n by `by` removes; if it does, `off` (T)
 * changes. */
static bool improves(const product_rows *p, int64_t N, int64_t n, double by, double *off)
{
	double before = 0, after = 0;

	for (int64_t t = 0; t < p->T; t++) {
		const double with = off[t] + by * p->x[t * N + n];
		before += off[t] * off[t];
		after += with * with;
	}
	for (int64_t t = 0; after < before && t < p->T; t++)
		off[t] += by * p->x[t * N + n];
	return after < before;
}

/* Row m of the edited matrix. Weights that lie so near the middle between two numbers of a format
 * that an engine's last bit decides are rounded to what fits the candidate better. row: (N); room:
 * (2 N + T) */
static void settled_row(vn_edited *e, const vn_matrix_edit *edit, int64_t m, const product_rows *p, double *row,
                        double *room)
{
	double *low = room, *high = room + e->N, *off = room + 2 * e->N;
	bool    ties = false;

	vn_edited_row(e, edit, m, row);
	if (!p->x || edit->kind != VN_EDIT_FORMAT || !edit->scaled || edit->of == VN_OF_INPUTS)
		return;
	e->nudge = -VN_NUDGE;
	vn_edited_row(e, edit, m, low);
	e->nudge = VN_NUDGE;
	vn_edited_row(e, edit, m, high);
	e->nudge = 0;
	for (int64_t n = 0; n < e->N && !ties; n++)
		ties = low[n] != high[n];
	for (int64_t t = 0; ties && t < p->T; t++) {
		off[t] = (p->bias ? element(p->bias, m) : 0) - element(p->cand, t * e->M + m);
		for (int64_t n = 0; n < e->N; n++)
			off[t] += p->x[t * e->N + n] * row[n];
	}
	for (int64_t n = 0; ties && n < e->N; n++) {
		const double other = row[n] == low[n] ? high[n] : low[n];
		if (other != row[n] && improves(p, e->N, n, other - row[n], off))
			row[n] = other;
	}
}

/* Reads the inputs of the product, if its result is the checkpoint. The caller frees p->x. */
static vn_status read_rows(const vn_explain_trial *t, const vn_node *node, int64_t N, int64_t M, product_rows *p,
                           vn_error *err)
{
	vn_tensor in;
	vn_status st;

	*p = (product_rows) { .T = t->site->cand.shape.dim[0],
		                  .cand = &t->site->cand,
		                  .bias = node->w[1] >= 0 ? &t->site->weights[node->w[1]] : NULL };
	if (p->T * M != vn_shape_count(&t->site->cand.shape) || node->out[0] != t->site->target ||
	    t->site->first + p->T > t->site->tokens)
		return VN_OK;
	if ((st = vn_recompute_input(t->recompute, 0, VN_FINE_WIDTH, &in, err)))
		return st;
	if (!(p->x = malloc((size_t)(p->T * N) * sizeof *p->x + 1)))
		return vn_fail(err, VN_ERR_NOMEM, "no memory for a product");
	vn_to_f64(p->x, (const char *)in.data + (size_t)(t->site->first * N) * vn_dtype_size(in.dtype), in.dtype,
	          (size_t)(p->T * N));
	return VN_OK;
}

static vn_status apply_to_weights(const vn_explain_trial *t, const vn_hypothesis *h, vn_edited *e, vn_made *made,
                                  vn_error *err)
{
	const vn_plan *p = t->site->plan;
	product_rows   rows;
	vn_status      st = read_rows(t, &p->node[h->node], e->N, e->M, &rows, err);
	double        *row = malloc((size_t)(3 * e->N + rows.T) * sizeof *row + 1);
	float         *x = made->rows = malloc((size_t)(e->M * e->N) * sizeof *x + 1);

	for (int64_t m = 0; !st && row && x && m < e->M; m++) {
		settled_row(e, &h->change.matrix, m, &rows, row, row + e->N);
		for (int64_t n = 0; n < e->N; n++)
			x[e->transposed ? n * e->M + m : m * e->N + n] = (float)row[n];
	}
	free(row);
	free(rows.x);
	return st         ? st
	       : row && x ? replace_weight(p, p->node[h->node].w[0], made, err)
	                  : vn_fail(err, VN_ERR_NOMEM, "no memory for a matrix");
}

/* y = x w for all rows, in double. w: room for settled_row. */
static void multiply(vn_edited *e, const vn_matrix_edit *edit, const product_rows *p, double *w, double *y)
{
	for (int64_t m = 0; m < e->M; m++) {
		const double b = p->bias ? element(p->bias, m) : 0;
		settled_row(e, edit, m, p, w, w + e->N);
		for (int64_t t = 0; t < p->T; t++) {
			double s = 0;
			for (int64_t n = 0; n < e->N; n++)
				s += p->x[t * e->N + n] * w[n];
			y[t * e->M + m] = s + b;
		}
	}
}

/* Allocates the numbers that are computed here: made->fine in double, and made->own as the
 * engine stores them. */
static vn_status make_room(const vn_explain_trial *t, vn_made *made, vn_error *err)
{
	const size_t n = (size_t)vn_shape_count(&t->site->cand.shape);

	made->own = (vn_tensor) { VN_F64, t->site->cand.shape, malloc(n * sizeof(double) + 1) };
	made->fine = (vn_tensor) { VN_F64, t->site->cand.shape, malloc(n * sizeof(double) + 1) };
	return made->own.data && made->fine.data ? VN_OK : vn_fail(err, VN_ERR_NOMEM, "no memory for %zu numbers", n);
}

static void round_own(const vn_explain_trial *t, vn_made *made)
{
	const size_t   n = (size_t)vn_shape_count(&t->site->cand.shape);
	const vn_dtype as = t->c->opened.policy.storage;
	const double  *fine = made->fine.data;
	double        *own = (double *)made->own.data;

	for (size_t i = 0; i < n; i++) {
		float f = (float)fine[i];
		vn_round_f32(&f, as, as != VN_F64);
		own[i] = as == VN_F64 ? fine[i] : (double)f;
	}
}

/* An input, x[t * N + n], that lies so near the middle between two numbers of a format that an engine's
 * last bit decides: it would be greater by `by`. removed: how much less the squared error of its token
 * would be. */
typedef struct input_tie {
	int64_t t, n;
	double  by, removed;
} input_tie;

typedef struct input_ties {
	input_tie *of;
	size_t     n, room;
} input_ties;

static vn_status add_tie(input_ties *list, input_tie tie, vn_error *err)
{
	if (list->n == list->room) {
		const size_t room = list->room ? 2 * list->room : 64;
		input_tie   *more = realloc(list->of, room * sizeof *more);
		if (!more)
			return vn_fail(err, VN_ERR_NOMEM, "no memory for %zu inputs", room);
		list->of = more;
		list->room = room;
	}
	list->of[list->n++] = tie;
	return VN_OK;
}

/* Edits the inputs, and lists the ties. room: (2 N) */
static vn_status edit_inputs(const vn_matrix_edit *edit, int64_t N, product_rows *p, double *room, input_ties *ties,
                             vn_error *err)
{
	double   *low = room, *high = room + N;
	vn_status st = VN_OK;

	for (int64_t t = 0; t < p->T; t++) {
		double *x = p->x + t * N;
		memcpy(low, x, (size_t)N * sizeof *x);
		memcpy(high, x, (size_t)N * sizeof *x);
		vn_edited_input(edit, 0, x, N);
		vn_edited_input(edit, -VN_NUDGE, low, N);
		vn_edited_input(edit, VN_NUDGE, high, N);
		for (int64_t n = 0; !st && n < N; n++)
			if (low[n] != high[n])
				st = add_tie(ties, (input_tie) { t, n, (x[n] == low[n] ? high[n] : low[n]) - x[n], 0 }, err);
	}
	return st;
}

/* Rounds the tied inputs to what fits the candidate better, and changes y accordingly. w: room for settled_row. */
static void settle_inputs(vn_edited *e, const vn_matrix_edit *edit, const product_rows *p, const input_ties *ties,
                          double *w, double *y)
{
	for (int64_t m = 0; ties->n && m < e->M; m++) {
		settled_row(e, edit, m, p, w, w + e->N);
		for (size_t k = 0; k < ties->n; k++) {
			input_tie   *tie = &ties->of[k];
			const double step = tie->by * w[tie->n], off = y[tie->t * e->M + m] - element(p->cand, tie->t * e->M + m);
			tie->removed -= step * (2 * off + step);
		}
	}
	for (int64_t m = 0; ties->n && m < e->M; m++) {
		settled_row(e, edit, m, p, w, w + e->N);
		for (size_t k = 0; k < ties->n; k++)
			if (ties->of[k].removed > 0)
				y[ties->of[k].t * e->M + m] += ties->of[k].by * w[ties->of[k].n];
	}
}

/* The hypothesis changes the inputs, which no plan expresses, so the product is computed here. */
static vn_status apply_to_inputs(const vn_explain_trial *t, const vn_hypothesis *h, vn_edited *e, vn_made *made,
                                 vn_error *err)
{
	const vn_matrix_edit *edit = &h->change.matrix;
	input_ties            ties = { 0 };
	product_rows          p;
	vn_status             st = read_rows(t, &t->site->plan->node[h->node], e->N, e->M, &p, err);

	if (st || !p.x)
		return st;
	double *w = malloc((size_t)(3 * e->N + p.T) * sizeof *w + 1);
	st = w ? make_room(t, made, err) : vn_fail(err, VN_ERR_NOMEM, "no memory for a product");
	if (!st && !(st = edit_inputs(edit, e->N, &p, w, &ties, err))) {
		multiply(e, edit, &p, w, (double *)made->fine.data);
		settle_inputs(e, edit, &p, &ties, w, (double *)made->fine.data);
		round_own(t, made);
	}
	free(ties.of);
	free(p.x);
	free(w);
	return st;
}

/* Attention is computed here, in double, from everything that it read. */
static vn_status apply_attend(const vn_explain_trial *t, const vn_hypothesis *h, vn_made *made, vn_error *err)
{
	const vn_attend_edit *edit = &h->change.attend;
	bool                  makes;
	vn_attend             a;
	vn_status             st = vn_attend_open(&a, t, h->node, &makes, err);

	if (st || !makes)
		return st;
	const int64_t width = vn_attend_width(&a), H = a.n->c.attention.heads,
				  T = vn_shape_count(&t->site->cand.shape) / (width * H);
	double *y = malloc((size_t)(width * H) * sizeof *y + 1), *is = malloc((size_t)(width * H) * sizeof *is + 1);
	if (!y || !is)
		st = vn_fail(err, VN_ERR_NOMEM, "no memory for attention");
	else if ((edit->kind != VN_ATTEND_PADDING || a.padding) && !(st = vn_attend_prepare(&a, edit, err)) &&
	         !(st = make_room(t, made, err))) {
		double *all = (double *)made->fine.data;
		for (int64_t row = 0; row < T; row++) {
			for (int head = 0; head < (int)H; head++)
				vn_to_f64(is + head * width,
				          (const char *)t->site->cand.data +
				              (size_t)vn_attend_at(&a, T, row, head) * vn_dtype_size(t->site->cand.dtype),
				          t->site->cand.dtype, (size_t)width);
			vn_attend_row(&a, edit, t->site->first + row, is, y);
			for (int head = 0; head < (int)H; head++)
				memcpy(all + vn_attend_at(&a, T, row, head), y + head * width, (size_t)width * sizeof *y);
		}
		round_own(t, made);
	}
	free(y);
	free(is);
	vn_attend_close(&a);
	return st;
}

static vn_status apply_narrow(const vn_explain_trial *t, const vn_hypothesis *h, vn_made *made, vn_error *err)
{
	vn_error  none = { "" };
	int64_t   off;
	vn_status st = make_room(t, made, err);

	if (st)
		return st;
	if ((st = vn_narrow_make(t, &h->change.narrow, (double *)made->own.data, &off, &none)) == VN_OK)
		memcpy((double *)made->fine.data, made->own.data, (size_t)vn_shape_count(&made->own.shape) * sizeof(double));
	else
		vn_made_finish(made);
	if (st && st != VN_ERR_UNSUPPORTED)
		*err = none;
	return st == VN_ERR_UNSUPPORTED ? VN_OK : st;
}

static vn_status apply_activation(const vn_explain_trial *t, const vn_hypothesis *h, vn_made *made, vn_error *err)
{
	const int64_t n = vn_shape_count(&t->site->cand.shape);
	vn_error      none = { "" };
	vn_status     st = make_room(t, made, err);

	if (st)
		return st;
	if (!(st = vn_activation_make(t, h->change.activation, n, 1, (double *)made->fine.data, &none)))
		round_own(t, made);
	else
		vn_made_finish(made);
	if (st && st != VN_ERR_UNSUPPORTED)
		*err = none;
	return st == VN_ERR_UNSUPPORTED ? VN_OK : st;
}

static vn_status apply_rotation(const vn_explain_trial *t, const vn_hypothesis *h, vn_made *made, vn_error *err)
{
	const vn_plan *p = t->site->plan;
	const vn_node *n = &p->node[h->node];
	const vn_shape s = t->site->cand.shape;
	const int32_t *ids;
	vn_tensor      in;
	vn_status      st;

	if (n->op != VN_OP_ROPE || n->out[0] != t->site->target || s.rank != 3)
		return VN_OK;
	if (vn_recording_tokens(t->c->opened.cand, &ids, NULL) < t->site->first + s.dim[0])
		return VN_OK;
	if ((st = vn_recompute_input(t->recompute, 0, VN_FINE_WIDTH, &in, err)) || (st = make_room(t, made, err)))
		return st;
	const size_t row = (size_t)(s.dim[1] * s.dim[2]), all = (size_t)s.dim[0] * row;
	double      *x = malloc(all * sizeof *x + 1);
	if (x)
		vn_to_f64(x, (const char *)in.data + (size_t)t->site->first * row * vn_dtype_size(in.dtype), in.dtype, all);
	if (!x || !vn_rotate_rows(p, n, &h->change.rotate, ids + t->site->first, x, t->site->first, s.dim[0],
	                          t->site->tokens, s.dim[1], s.dim[2], (double *)made->fine.data))
		st = vn_fail(err, VN_ERR_NOMEM, "no memory for a rotation");
	else
		round_own(t, made);
	free(x);
	return st;
}

static vn_status apply_matrix(const vn_explain_trial *t, const vn_hypothesis *h, vn_made *made, vn_error *err)
{
	vn_edited e;

	if (!vn_edited_open(&e, t->site->plan, t->site->weights, h->node, h->change.matrix.fused,
	                    t->c->opened.policy.storage))
		return VN_OK;
	return h->change.matrix.of == VN_OF_WEIGHTS ? apply_to_weights(t, h, &e, made, err)
	                                            : apply_to_inputs(t, h, &e, made, err);
}

/* A fault of the catalogue, and then constants of the operation with that fault. */
static vn_status apply_fault_and_constants(const vn_explain_trial *t, const vn_hypothesis *h, vn_made *made,
                                           vn_error *err)
{
	const vn_plan *p = t->site->plan;
	const int      out = p->node[h->node].out[0];
	char           what[VN_NAME_MAX + 40];
	vn_status      st;

	snprintf(what, sizeof what, "%s@%s", vn_fault_id(h->fault[0] - 1), p->value[out].name);
	if ((st = vn_faulty_create(p, made->weights, &made->faulty, err)) ||
	    (st = vn_faulty_inject(made->faulty, what, err)) ||
	    (st = vn_plan_clone(vn_faulty_plan(made->faulty), &made->copy, err)))
		return st;
	vn_node *n = &made->copy->node[made->copy->value[out].node];
	for (int k = 0; !st && k < h->change.constants.n; k++)
		st = vn_const_set(n, h->change.constants.set[k].name, h->change.constants.set[k].value, err);
	made->plan = st ? NULL : made->copy;
	made->weights = vn_faulty_weights(made->faulty);
	return st;
}

static vn_status apply_number(const vn_explain_trial *t, const vn_hypothesis *h, vn_made *made, vn_error *err)
{
	const vn_plan *p = t->site->plan;
	vn_status      st;

	if (vn_fault_why_not(h->change.number.row, p, h->node))
		return VN_OK;
	if ((st = vn_faulty_create(p, made->weights, &made->faulty, err)) ||
	    (st = vn_faulty_make(made->faulty, h->change.number.row, h->node, h->change.number.value, err)))
		return st;
	made->plan = vn_faulty_plan(made->faulty);
	made->weights = vn_faulty_weights(made->faulty);
	return VN_OK;
}

/* ---- numbers -------------------------------------------------------------------------------------------------- */

/* The token whose numbers slot j holds. Blocks that are missing in the table are in their own
 * place. */
static int64_t token_of(const vn_block_table *b, int64_t j, int64_t S)
{
	const int64_t block = j / b->block, at = block < b->n ? b->from[block] * b->block + j % b->block : j;
	return at < S ? at : -1;
}

static vn_status apply_blocks(const vn_explain_trial *t, const vn_hypothesis *h, vn_made *made, vn_error *err)
{
	const vn_block_table *b = &h->change.blocks;
	const vn_plan        *p = t->site->plan;
	const vn_node        *n = &p->node[h->node];
	const int64_t         S = t->site->tokens;
	int64_t              *token;
	vn_status             st;

	if (t->part || n->op != VN_OP_ATTENTION || n->out[VN_ATTN_CONTEXT] != t->site->target)
		return VN_OK;
	if (!(token = malloc((size_t)S * sizeof *token)))
		return vn_fail(err, VN_ERR_NOMEM, "no memory for %lld tokens", (long long)S);
	for (int64_t j = 0; j < S; j++)
		token[j] = token_of(b, j, S);
	const int64_t *keys = b->of == 2 ? NULL : token, *values = b->of == 1 ? NULL : token;
	if (!(st = vn_recompute_run_slots(t->recompute, p, keys, values, VN_OWN_WIDTH, &made->own, err)))
		st = vn_recompute_run_slots(t->recompute, p, keys, values, VN_FINE_WIDTH, &made->fine, err);
	free(token);
	return st;
}

/* The token whose numbers slot j holds if the tokens from `from` on are written elsewhere. -1:
 * none. */
static int64_t token_in_slot(const vn_slot_change *c, int64_t j, int64_t from, int64_t S)
{
	if (c->by < 0)
		return j < from - 1 ? j : j + 1 < S ? j + 1 : -1;
	return j < from ? j : j > from ? j - 1 : -1;
}

static vn_status apply_slots(const vn_explain_trial *t, const vn_hypothesis *h, vn_made *made, vn_error *err)
{
	const vn_slot_change *c = &h->change.slots;
	const vn_plan        *p = t->site->plan;
	const int64_t         S = t->site->tokens;
	const vn_step        *step;
	int64_t              *token;
	vn_status             st;

	if (t->part || p->node[h->node].op != VN_OP_ATTENTION || p->value[t->site->target].node != h->node ||
	    vn_recording_steps(t->c->opened.cand, &step) < 2)
		return VN_OK;
	if (!(token = malloc((size_t)S * sizeof *token)))
		return vn_fail(err, VN_ERR_NOMEM, "no memory for %lld tokens", (long long)S);
	for (int64_t j = 0; j < S; j++)
		token[j] = token_in_slot(c, j, c->newest ? S - 1 : step[1].position, S);
	const int64_t *keys = c->of == 2 ? NULL : token, *values = c->of == 1 ? NULL : token;
	if (!(st = vn_recompute_run_slots(t->recompute, p, keys, values, VN_OWN_WIDTH, &made->own, err)))
		st = vn_recompute_run_slots(t->recompute, p, keys, values, VN_FINE_WIDTH, &made->fine, err);
	free(token);
	return st;
}

/* The same checkpoint, with the same shape, in the step before. -1: none. */
static int point_before(const vn_explain_trial *t)
{
	const vn_comparison *c = t->c;
	const vn_checkpoint *me = &c->result.point[t->x->point];
	const vn_step       *step;
	const int            n = vn_recording_steps(c->opened.cand, &step);
	int                  before = -1;

	for (int i = 1; i < n; i++)
		before = step[i].number == me->step ? step[i - 1].number : before;
	for (int i = 0; before >= 0 && i < c->result.n_points; i++) {
		const vn_checkpoint *p = &c->result.point[i];
		if (p->step == before && p->m.n && strcmp(p->name, me->name) == 0 &&
		    vn_shape_equal(&vn_recording_entry(c->opened.cand, p->cand)->shape,
		                   &vn_recording_entry(c->opened.cand, me->cand)->shape))
			return i;
	}
	return -1;
}

/* One number everywhere, usually 0, means a buffer that is not written, in each step anew. */
static bool is_one_number(const double *x, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (!(x[i] == x[0]))
			return false;
	return true;
}

static vn_status apply_recorded(const vn_explain_trial *t, int point, vn_made *made, vn_error *err)
{
	const int entry = t->c->result.point[point].cand;
	vn_tensor x;
	vn_status st = vn_entry_tensor(t->c->opened.cand, entry, &x, err);

	if (st)
		return st;
	const size_t n = (size_t)vn_shape_count(&x.shape);
	double      *copy = malloc(n * sizeof *copy + 1);
	if (!copy)
		st = vn_fail(err, VN_ERR_NOMEM, "no memory for the tensors of the step before");
	else
		vn_to_f64(copy, x.data, x.dtype, n);
	if (!st && vn_shape_equal(&x.shape, &t->site->cand.shape) && !is_one_number(copy, n))
		made->own = made->fine = (vn_tensor) { VN_F64, x.shape, copy };
	else
		free(copy);
	vn_recording_release(t->c->opened.cand, entry);
	return st;
}

/* What the operation should have made at another point: moves the probe there and back. */
static vn_status apply_due(const vn_explain_trial *t, int point, vn_made *made, vn_error *err)
{
	const vn_plan *p = t->site->plan;
	vn_error       none = { "" };
	vn_status      st = vn_recompute_at(t->recompute, point, &none);

	if (!st && !(st = vn_recompute_run(t->recompute, p, made->weights, VN_OWN_WIDTH, &made->own, &none)))
		st = vn_recompute_run(t->recompute, p, made->weights, VN_FINE_WIDTH, &made->fine, &none);
	const vn_status back = vn_recompute_at(t->recompute, t->x->point, err);
	if (st || back || !vn_shape_equal(&made->own.shape, &t->site->cand.shape))
		vn_made_finish(made);
	if (st && st != VN_ERR_UNSUPPORTED)
		*err = none;
	return back ? back : st == VN_ERR_UNSUPPORTED ? VN_OK : st;
}

static vn_status apply_step(const vn_explain_trial *t, const vn_hypothesis *h, vn_made *made, vn_error *err)
{
	const int before = point_before(t);
	return before < 0           ? VN_OK
	       : h->change.step.due ? apply_due(t, before, made, err)
	                            : apply_recorded(t, before, made, err);
}

/* Rows of the table for the tokens `by` places further on, or for positions instead of ids; 0
 * outside the text. x: the rows of the checkpoint. */
static void embed(const vn_explain_trial *t, const vn_tensor *table, const vn_hypothesis *h, double *x)
{
	const int64_t  D = table->shape.dim[1], V = table->shape.dim[0], rows = t->site->cand.shape.dim[0];
	const int32_t *ids;
	const int64_t  n = vn_recording_tokens(t->c->opened.cand, &ids, NULL);

	for (int64_t i = 0; i < rows; i++) {
		const int64_t at = t->site->first + i + h->change.tokens, row = h->finding == VN_POSITION_FOR_ID ? at
		                                                                : at >= 0 && at < n              ? ids[at]
		                                                                                                 : -1;
		if (row >= 0 && row < V)
			vn_to_f64(x + i * D, (const char *)table->data + vn_dtype_bytes(table->dtype, (size_t)(row * D)),
			          table->dtype, (size_t)D);
		else
			memset(x + i * D, 0, (size_t)D * sizeof *x);
	}
}

static vn_status apply_tokens(const vn_explain_trial *t, const vn_hypothesis *h, vn_made *made, vn_error *err)
{
	const vn_plan   *p = t->site->plan;
	const vn_node   *node = &p->node[p->value[t->site->target].node];
	const vn_tensor *table = &made->weights[node->w[0]];
	const vn_shape   s = t->site->cand.shape;
	const size_t     n = (size_t)vn_shape_count(&s);
	const vn_dtype   as = t->c->opened.policy.storage;

	if (node->op != VN_OP_EMBED || s.rank != 2 || table->shape.dim[1] != s.dim[1])
		return VN_OK; /* the checkpoint is not made from a table by token ids alone */
	double *fine = malloc(n * sizeof *fine + 1), *own = malloc(n * sizeof *own + 1);
	made->own = (vn_tensor) { VN_F64, s, own };
	made->fine = (vn_tensor) { VN_F64, s, fine };
	if (!fine || !own)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for embeddings");
	embed(t, table, h, fine);
	for (size_t i = 0; i < n; i++) {
		float x = (float)fine[i];
		vn_round_f32(&x, as, as != VN_F64);
		own[i] = as == VN_F64 ? fine[i] : (double)x;
	}
	return VN_OK;
}

/* ---- all of them ----------------------------------------------------------------------------------------------- */

vn_status vn_hypothesis_apply(const vn_explain_trial *t, const vn_hypothesis *h, vn_made *made, vn_error *err)
{
	const vn_step *s = vn_recording_step(t->c->opened.cand, t->c->result.point[t->x->point].step);
	vn_error       none = { "" };
	vn_status      st = VN_OK;

	*made = (vn_made) { .weights = t->site->weights };
	if (h->change.later && s && s->position == 0)
		return VN_OK; /* the first call knows nothing of it */
	switch (h->change.kind) {
	case VN_BY_NUMBER: st = apply_number(t, h, made, &none); break;
	case VN_BY_CONSTANTS:
		if (h->fault[0]) {
			st = apply_fault_and_constants(t, h, made, &none);
			break;
		}
		/* fall through */
	case VN_BY_READS:
		st = vn_hypothesis_plan(t, h, &made->copy, &none);
		made->plan = made->copy;
		break;
	case VN_BY_MATRIX: return apply_matrix(t, h, made, err);
	case VN_BY_ROTATION: return apply_rotation(t, h, made, err);
	case VN_BY_ATTEND: return apply_attend(t, h, made, err);
	case VN_BY_ACTIVATION: return t->part || t->x->unmodified.local.bad ? VN_OK : apply_activation(t, h, made, err);
	case VN_BY_NARROW: return t->part || t->x->unmodified.local.bad ? VN_OK : apply_narrow(t, h, made, err);
	case VN_BY_ROWS: return apply_rows(t, h, made, err);
	case VN_BY_BLOCKS: return apply_blocks(t, h, made, err);
	case VN_BY_SLOTS: return apply_slots(t, h, made, err);
	case VN_BY_STEP: return t->part || t->x->unmodified.local.bad ? VN_OK : apply_step(t, h, made, err);
	case VN_BY_TOKENS: return t->part || t->x->unmodified.local.bad ? VN_OK : apply_tokens(t, h, made, err);
	default: break;
	}
	if (st && st != VN_ERR_USAGE)
		*err = none;
	return st == VN_ERR_USAGE ? VN_OK : st; /* a number that does not fit the operation makes nothing */
}

void vn_made_finish(vn_made *made)
{
	if (made->fine.data != made->own.data)
		vn_tensor_free(&made->fine);
	vn_tensor_free(&made->own);
	free(made->rows);
	free(made->table);
	vn_plan_destroy(made->copy);
	vn_faulty_destroy(made->faulty);
	*made = (vn_made) { 0 };
}

/* ---- in another layer -------------------------------------------------------------------------------------------- */

bool vn_could_read(const vn_explain_trial *t, const vn_node *n, int input, int value)
{
	const vn_plan  *p = t->site->plan;
	const int       own = vn_plan_root(p, n->in[input]);
	const vn_value *a = &p->value[own], *b = &p->value[value];

	if (b->alias_of >= 0 || value == own || value == t->site->target || b->node >= (int)(n - p->node) ||
	    a->rank != b->rank)
		return false;
	for (int i = 0; i < a->rank; i++)
		if (a->size[i] != b->size[i])
			return false;
	return vn_recompute_has(t->recompute, value);
}

/* The value of the same point that many layers further on. -1: none. */
static int value_beside(const vn_plan *p, int value, int layers)
{
	int found = -1;

	for (int k = 0; p->value[value].layer >= 0 && k < p->n_values; k++)
		if (p->value[k].alias_of < 0 && p->value[k].point == p->value[value].point &&
		    p->value[k].layer == p->value[value].layer + layers)
			found = k;
	return found;
}

bool vn_hypothesis_move(const vn_explain_trial *t, vn_hypothesis *h, int node)
{
	const vn_plan *p = t->site->plan;
	const int      layers = p->node[node].layer - p->node[h->node].layer;

	if (h->change.kind == VN_BY_READS && layers) {
		for (int i = 0; i < VN_MAX_IN; i++) {
			const int to = h->change.reads.in[i] ? value_beside(p, h->change.reads.in[i] - 1, layers) : -1;
			if (h->change.reads.in[i] && (to < 0 || !vn_could_read(t, &p->node[node], i, to)))
				return false;
			h->change.reads.in[i] = 1 + to;
		}
		if (h->change.reads.weights) {
			const vn_node *of = &p->node[h->change.reads.weights - 1],
						  *twin = vn_fault_twin(p, h->change.reads.matrix ? of : &p->node[node], of->layer + layers);
			if (!twin)
				return false;
			h->change.reads.weights = 1 + (int)(twin - p->node);
		}
	}
	h->node = node;
	return true;
}
