/* explain_set.c: hypotheses that are made by constants, and how their numbers are said: a whole number with
 * those beside it that fit as well, another with as many digits as these data tell. */
#include "compare/explain/explain_inside.h"

#include "libref/plan/fault.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void vn_hypothesis_say(vn_hypothesis *h, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(h->words, sizeof h->words, format, args);
	va_end(args);
}

void vn_made_put(vn_hypothesis *h, const char *name, double value)
{
	int i = 0;

	while (i < h->made.n && strcmp(h->made.set[i].name, name) != 0)
		i++;
	assert(i < VN_SETTINGS);
	h->made.set[i].name = name;
	h->made.set[i].value = value;
	h->made.n = i == h->made.n ? i + 1 : h->made.n;
}

bool vn_is_made(const vn_hypothesis *h)
{
	bool reads = false;

	for (int i = 0; i < VN_MAX_IN; i++)
		reads = reads || h->made.reads[i];
	return h->made.n || h->made.rows || h->made.fault || h->made.table.block || reads || h->made.weights_of || h->made.late || h->made.tokens;
}

static bool reached(const vn_plan *p, const vn_hypothesis *h, int node)
{
	const vn_node *a = &p->node[h->node], *n = &p->node[node];
	return h->made.reach == VN_AT_NODE ? node == h->node : n->op == a->op && (h->made.reach == VN_EVERYWHERE || n->layer == a->layer);
}

vn_status vn_made_plan(const vn_trial *t, const vn_hypothesis *h, vn_plan **plan, vn_error *err)
{
	vn_status st = vn_plan_clone(vn_probe_plan(t->probe), plan, err);

	if (!st && h->made.weights_of)
		memcpy((*plan)->node[h->node].w, (*plan)->node[h->made.weights_of - 1].w, sizeof (*plan)->node->w);
	for (int i = 0; !st && i < VN_MAX_IN; i++)
		if (h->made.reads[i])
			(*plan)->node[h->node].in[i] = h->made.reads[i] - 1;
	for (int i = 0; !st && i < (*plan)->n_nodes; i++)
		for (int k = 0; !st && k < h->made.n && reached(*plan, h, i); k++)
			st = vn_const_set(&(*plan)->node[i], h->made.set[k].name, h->made.set[k].value, err);
	if (st) {
		vn_plan_destroy(*plan);
		*plan = NULL;
	}
	return st;
}

/* ---- learned positions ------------------------------------------------------------------------- */

/* The table of the node's positions with its rows moved; those that would come from without stay. *rows is the caller's to free. */
static vn_status moved_rows(const vn_tensor *table, int by, vn_tensor *moved, void **rows, vn_error *err)
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

/* ---- made ------------------------------------------------------------------------------------------ */

/* Calls before the checkpoint's own know nothing of it. */
static bool not_yet(const vn_trial *t, const vn_hypothesis *h)
{
	const vn_step *s = vn_recording_step(t->c->cand, t->c->point[t->x->point].step);
	return h->made.later && s && s->position == 0;
}

/* The token whose numbers slot j holds; blocks that the table does not have are where they should be. */
static int64_t token_of(const vn_block_table *b, int64_t j, int64_t S)
{
	const int64_t block = j / b->block, at = block < b->n ? b->from[block] * b->block + j % b->block : j;
	return at < S ? at : -1;
}

static vn_status weigh_table(vn_trial *t, vn_hypothesis *h, vn_error *err)
{
	const vn_block_table *b = &h->made.table;
	const vn_node *n = &vn_probe_plan(t->probe)->node[h->node];
	const int64_t  S = vn_probe_tokens(t->probe);
	int64_t       *token;
	vn_tensor      own = { 0 }, fine = { 0 };
	vn_status      st;

	if (t->part || n->op != VN_OP_ATTENTION || n->out[VN_ATTN_CONTEXT] != vn_probe_target(t->probe))
		return VN_OK;
	if (!(token = malloc((size_t)S * sizeof *token)))
		return vn_fail(err, VN_ERR_NOMEM, "no memory for %lld tokens", (long long)S);
	for (int64_t j = 0; j < S; j++)
		token[j] = token_of(b, j, S);
	const int64_t *keys = b->of == 2 ? NULL : token, *values = b->of == 1 ? NULL : token;
	const vn_plan *p = vn_probe_plan(t->probe);
	if (!(st = vn_probe_run_slots(t->probe, p, keys, values, VN_PROBE_OWN, &own, err)) && !(st = vn_probe_run_slots(t->probe, p, keys, values, VN_PROBE_FINE, &fine, err)))
		st = vn_weigh_numbers(t, &own, &fine, h, err);
	free(token);
	free((void *)(uintptr_t)own.data);
	free((void *)(uintptr_t)fine.data);
	return st;
}

/* Made as a fault of the catalogue is, with its own number. */
static vn_status weigh_fault(vn_trial *t, vn_hypothesis *h, vn_error *err)
{
	const int  fault = h->made.fault - 1;
	vn_faulty *f;
	vn_error   none = { "" };
	vn_status  st = vn_fault_why_not(fault, vn_probe_plan(t->probe), h->node) ? VN_ERR_USAGE : VN_OK;

	if (st)
		return VN_OK;
	if (!(st = vn_faulty_create(vn_probe_plan(t->probe), vn_probe_weights(t->probe), &f, &none)) &&
	    !(st = vn_faulty_make(f, fault, h->node, h->made.number, &none)))
		st = vn_weigh(t, vn_faulty_plan(f), vn_faulty_weights(f), h, &none);
	vn_faulty_destroy(f);
	if (st && st != VN_ERR_USAGE)
		*err = none;
	return st == VN_ERR_USAGE ? VN_OK : st;
}

vn_status vn_weigh_made(vn_trial *t, vn_hypothesis *h, vn_error *err)
{
	const vn_tensor *sound = vn_probe_weights(t->probe);
	vn_tensor       *weights = NULL;
	void            *rows = NULL;
	vn_error         none = { "" };
	vn_plan         *p;
	vn_status        st;

	h->used = (double)NAN;
	if (not_yet(t, h))
		return VN_OK;
	if (h->made.fault)
		return weigh_fault(t, h, err);
	if (h->made.table.block)
		return weigh_table(t, h, err);
	if (h->made.late || h->made.tokens)
		return vn_weigh_late(t, h, err);
	if ((st = vn_made_plan(t, h, &p, &none))) {
		if (st != VN_ERR_USAGE)
			*err = none;
		return st == VN_ERR_USAGE ? VN_OK : st;
	}
	const int w = h->made.rows ? p->node[h->node].w[0] : -1;
	if (w >= 0) {
		if (!(weights = malloc((size_t)p->n_weights * sizeof *weights)))
			st = vn_fail(err, VN_ERR_NOMEM, "no memory for %d weights", p->n_weights);
		else {
			memcpy(weights, sound, (size_t)p->n_weights * sizeof *weights);
			st = moved_rows(&sound[w], h->made.rows, &weights[w], &rows, err);
		}
	}
	if (!st)
		st = vn_weigh(t, p, weights ? weights : sound, h, err);
	free(rows);
	free(weights);
	vn_plan_destroy(p);
	return st;
}

vn_status vn_try_made(vn_trial *t, vn_hypothesis *h, vn_error *err)
{
	const vn_status st = vn_weigh_made(t, h, err);
	if (!st && !isnan(h->used))
		vn_keep(t->x, h);
	return st;
}

/* ---- whole numbers ------------------------------------------------------------------------------- */

enum { BESIDE = 64 }; /* numbers on each side that are looked at */

void vn_made_number(vn_hypothesis *h, double number)
{
	if (h->made.fault)
		h->made.number = number;
	else if (h->made.n)
		h->made.set[h->made.n - 1].value = number;
	else
		h->made.rows = (int)number;
}

/* h with its last number otherwise: is what it leaves within the floor? */
static vn_status within(vn_trial *t, const vn_hypothesis *h, int64_t number, vn_hypothesis *with, vn_error *err)
{
	*with = *h;
	vn_made_number(with, (double)number);
	return vn_weigh_made(t, with, err);
}

/* How far numbers from `from` on in that direction fit as well. *last: the last that does. */
static vn_status beside(vn_trial *t, const vn_hypothesis *h, int64_t from, int64_t to, int64_t *last, vn_error *err)
{
	const int     by = to < from ? -1 : 1;
	vn_hypothesis with;
	vn_status     st = VN_OK;

	*last = from;
	for (int64_t n = from; n != to && (n - from) * by < BESIDE;) {
		n += by;
		if ((st = within(t, h, n, &with, err)) || !(with.used <= 1))
			break;
		*last = n;
	}
	return st;
}

static const char *numbers(int64_t a, int64_t b, char text[64])
{
	snprintf(text, 64, a == b ? "%lld" : b == a + 1 ? "%lld or %lld" : "%lld to %lld", (long long)a, (long long)b);
	return text;
}

vn_status vn_say_whole(vn_trial *t, const vn_hypothesis *h, int64_t low, int64_t high, char text[64], vn_error *err)
{
	const int64_t at = (int64_t)h->made.set[h->made.n - 1].value;
	int64_t       first, last;
	vn_status     st = beside(t, h, at, low, &first, err);

	if (!st && !(st = beside(t, h, at, high, &last, err)))
		numbers(first, last, text);
	return st;
}

vn_status vn_try_whole(vn_trial *t, vn_hypothesis *h, int64_t best, int64_t low, int64_t high, const char *words, vn_error *err)
{
	vn_hypothesis with, least = { .used = (double)INFINITY };
	int64_t       at = best, first, last;
	char          text[64];
	vn_status     st = VN_OK;

	for (int64_t n = best - 1; !st && n <= best + 1; n++)
		if (n >= low && n <= high && !(st = within(t, h, n, &with, err)) && with.used < least.used) {
			least = with;
			at = n;
		}
	first = last = at;
	if (!st && least.used <= 1 && !(st = beside(t, h, at, low, &first, err)))
		st = beside(t, h, at, high, &last, err);
	if (st || !isfinite(least.used))
		return st;
	*h = least;
	if (first != last) {
		h->made.first = first;
		h->made.last = last;
	}
	vn_hypothesis_say(h, words, numbers(first, last, text));
	vn_keep(t->x, h);
	return VN_OK;
}

/* ---- numbers of some digits ------------------------------------------------------------------------- */

#define FROM_IT 0.02 /* so far from what was fitted a number of fewer digits may be */

double vn_three_digits(double x)
{
	char text[32];
	snprintf(text, sizeof text, "%.3g", x);
	return atof(text);
}

/* A person wrote the number: of as few digits as come to the same. */
vn_status vn_try_digits(vn_trial *t, vn_hypothesis *h, double x, const char *words, vn_error *err)
{
	vn_hypothesis exact = *h;
	double        said = x;
	char          text[32];
	vn_status     st;

	vn_made_number(&exact, x);
	if ((st = vn_weigh_made(t, &exact, err)) || isnan(exact.used))
		return st;
	const double most = VN_EXPLAIN_APART * fmax(exact.used, VN_EXPLAIN_LEAST / VN_LOCAL_LIMIT);
	*h = exact;
	for (int digits = 1; !st && digits <= 6; digits++) {
		vn_hypothesis with = exact;
		snprintf(text, sizeof text, "%.*g", digits, x);
		vn_made_number(&with, atof(text));
		if (fabs(atof(text) / x - 1) > FROM_IT || (st = vn_weigh_made(t, &with, err)) || !(with.used < most))
			continue;
		*h = with;
		said = atof(text);
		break;
	}
	vn_hypothesis_say(h, words, said);
	if (!st)
		vn_keep(t->x, h);
	return st;
}

/* ---- windows of the catalogue --------------------------------------------------------------------------- */

/* The number that an answer of the catalogue stands for, and others are as good: as what is fitted does, it says them. */
vn_status vn_say_beside(vn_trial *t, vn_error *err)
{
	vn_hypothesis *h = &t->x->by[0];
	const vn_plan *p = vn_probe_plan(t->probe);
	vn_hypothesis  as = { .node = h->node };
	int64_t        first, last, now = 0;
	char           text[64];
	vn_status      st;

	if (!t->x->n_fit || *h->also || *h->against || p->node[h->node].op != VN_OP_ATTENTION || strncmp(h->id, "A5.", 3) != 0 || strcmp(h->id, "A5.missing") == 0)
		return VN_OK;
	now = p->node[h->node].c.attention.window;
	for (int i = 0; !now && i < p->n_nodes; i++)
		now = p->node[i].op == VN_OP_ATTENTION ? p->node[i].c.attention.window : 0; /* that of another layer */
	now += strcmp(h->id, "A5.wide") == 0 ? 1 : strcmp(h->id, "A5.narrow") == 0 ? -1 : 0;
	vn_made_put(&as, "window", (double)now);
	if ((st = beside(t, &as, now, 1, &first, err)) || (st = beside(t, &as, now, vn_probe_tokens(t->probe), &last, err)))
		return st;
	if (first != last)
		snprintf(h->words + strlen(h->words), sizeof h->words - strlen(h->words), "; one of %s keys is as good", numbers(first, last, text));
	return VN_OK;
}
