/* ranks_same.c: joins tensors that are not cut along an axis: replicas and partial sums; see
 * ranks.h. */
#include "capture/view/box.h"
#include "capture/recording/numbers.h"
#include "capture/view/ranks_internal.h"
#include "capture/view/residual.h"

#include "libref/base/text.h"
#include "libref/plan/point.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void vn_ranks_say(vn_ranks_job *j, const char *format, ...)
{
	char    text[VN_RANKS_LINE];
	va_list args;
	va_start(args, format);
	vn_text_print(text, sizeof text, format, args);
	va_end(args);
	/* A message repeated for every step is passed on each time, for the listener to count,
	 * but counts as one here. */
	const bool again = strcmp(text, j->last) == 0;
	if (!again && j->said >= VN_RANKS_SAID)
		j->left_out++;
	if (!j->use->say || (!again && j->said >= VN_RANKS_SAID))
		return;
	j->said += !again;
	snprintf(j->last, sizeof j->last, "%s", text);
	j->use->say(j->use->context, text);
}

/* "by up to 0.25", for numbers that differ. */
static const char *write_distance(double most, char text[64])
{
	if (isinf(most))
		snprintf(text, 64, "in elements that are NaN or infinite on one rank only");
	else if (most == 0)
		snprintf(text, 64, "only in signs of 0 or bits of NaN");
	else
		snprintf(text, 64, "by up to %.3g", most);
	return text;
}

/* Returns the first rank that differs in a number from rank `from`; -1: none. */
static vn_status first_other(vn_ranks_job *j, const int *entry, int from, int to, int *other, double *most)
{
	vn_status         st = VN_OK;
	vn_numbers_differ d;
	*other = -1;
	for (int k = from + 1; !st && k < to && *other < 0; k++) {
		st = vn_numbers_compare(j->rank[from], entry[from], j->rank[k], entry[k], &d, j->err);
		*other = !st && d.bits ? k : -1;
		*most = d.most;
	}
	return st;
}

vn_status vn_ranks_check_replicas(vn_ranks_job *j, const int *entry, int from, int to)
{
	const vn_entry *e = vn_recording_entry(j->rank[from], entry[from]);
	int             other;
	double          most;
	char            how[64];
	const vn_status st = first_other(j, entry, from, to, &other, &most);
	if (st || other < 0)
		return st;
	if (!j->use->allow_replicas)
		return vn_fail(j->err, VN_ERR_MISMATCH,
		               "%s: %s should equal that of rank %d, but differs from %s %s (--allow "
		               "replicas compares rank %d's)",
		               vn_recording_path(j->rank[other]), e->name, from, vn_recording_path(j->rank[from]),
		               write_distance(most, how), from);
	vn_ranks_say(j, "%s: ranks %d and %d should have equal tensors but differ %s; rank %d's is compared", e->name, from,
	             other, write_distance(most, how), from);
	return VN_OK;
}

/* A tensor that every rank has must have one shape. */
vn_status vn_ranks_same_shape(const vn_ranks_job *j, const int *entry)
{
	const vn_entry *e = vn_recording_entry(j->rank[0], entry[0]);
	char            a[VN_SHAPE_TEXT], b[VN_SHAPE_TEXT];
	for (int k = 1; k < j->n; k++) {
		const vn_entry *d = vn_recording_entry(j->rank[k], entry[k]);
		if (!vn_shape_equal(&d->shape, &e->shape))
			return vn_fail(j->err, VN_ERR_MISMATCH, "%s: %s is %s, in %s %s; every rank should have the same",
			               vn_recording_path(j->rank[k]), e->name, vn_shape_text(&d->shape, a),
			               vn_recording_path(j->rank[0]), vn_shape_text(&e->shape, b));
	}
	return VN_OK;
}

/* Whether it may be a row-parallel product before its all-reduce, or a table split by rows: a
 * product that leads back to the residual stream, or rows of the embedding. */
static bool may_be_partial(const vn_plan *plan, const vn_entry *e)
{
	const vn_point_info *p = vn_entry_point(e);
	const int            v = plan && p ? vn_plan_find(plan, e->name) : -1;

	if (v >= 0) {
		const vn_op op = plan->node[plan->value[v].node].op;
		return plan->value[v].alias_of < 0 &&
		       (op == VN_OP_EMBED || (op == VN_OP_LINEAR && strcmp(p->basis, "hidden") == 0));
	}
	return p && vn_text_is_word("attn_out|down_proj|embed|token_embed", p->name);
}

/* Fails where it is, or cannot be read. */
static vn_status check_not_zero(vn_ranks_job *j, int k, int entry)
{
	vn_numbers *s = vn_numbers_open(j->rank[k], entry, j->err);
	bool        zero = vn_numbers_count(s) > 0;
	vn_status   st = VN_OK;
	for (int64_t at = 0; zero && at < vn_numbers_count(s); at += VN_NUMBERS) {
		const size_t n = vn_numbers_left(vn_numbers_count(s), at);
		zero = !(st = vn_numbers_read(s, at, n, j->err));
		for (size_t i = 0; zero && i < n; i++)
			zero = s->x[i] == 0;
	}
	vn_numbers_close(s);
	if (zero)
		return vn_fail(j->err, VN_ERR_MISMATCH,
		               "%s: %s is zero everywhere, but not on the other ranks: it is not a partial sum",
		               vn_recording_path(j->rank[k]), vn_recording_entry(j->rank[k], entry)->name);
	return vn_status_ends_job(st) ? st : VN_OK;
}

/* Sets *left to the share of the residual stream that remains after subtracting ranks [from, to)'s
 * parts; -1: unknown. */
static vn_status left_over(vn_ranks_job *j, int step, const vn_residual_sum *s, const int *entry, int from, int to,
                           double *left)
{
	vn_recording *r = j->rank[0];
	static_assert(VN_MOST_JOINED + 2 <= VN_MOST_TERMS, "a term a rank");
	vn_term term[VN_MOST_TERMS] = { { r, vn_recording_find(r, step, s->after) },
		                            { r, vn_recording_find(r, step, s->before[0]) } };
	int     n = 2;
	if (term[1].entry < 0)
		term[1].entry = vn_recording_find(r, step, s->before[1]);
	for (int k = from; k < to; k++)
		term[n++] = (vn_term) { j->rank[k], entry[k] };
	return vn_residual_left(term, n, left, j->err);
}

/* Sets *reduced: does the residual stream show that only one rank's tensor was added, so that the
 * ranks' tensors are no parts of a sum? */
static vn_status reduced_already(vn_ranks_job *j, const vn_entry *e, const int *entry, bool *reduced)
{
	vn_residual_sum s;
	double          together = -1, alone;
	*reduced = false;
	vn_status st = VN_OK;
	if (vn_residual_sum_of(j->use->like->plan, e->name, &s))
		st = left_over(j, e->step, &s, entry, 0, j->n, &together);
	for (int k = 0; !st && !*reduced && together >= 0 && k < j->n; k++) {
		st = left_over(j, e->step, &s, entry, k, k + 1, &alone);
		*reduced = !st && vn_residual_closes(alone) && alone < together;
	}
	return st;
}

vn_status vn_ranks_replicated(vn_ranks_job *j, const int *entry)
{
	const int       i = entry[0];
	const vn_entry *e = vn_recording_entry(j->rank[0], i);
	vn_piece        piece[VN_MOST_JOINED];
	int             other;
	double          most;
	char            how[64];
	bool            reduced;
	vn_status       st = vn_ranks_same_shape(j, entry);
	if (st)
		return st;
	if (may_be_partial(j->use->like->plan, e)) {
		if ((st = first_other(j, entry, 0, j->n, &other, &most)))
			return st;
		for (int k = 0; other >= 0 && vn_entry_point(e)->place == VN_INSIDE_LAYER && k < j->n; k++)
			if ((st = check_not_zero(j, k, entry[k])))
				return st;
		if (other >= 0 && (st = reduced_already(j, e, entry, &reduced)))
			return st;
		if (other >= 0 && reduced)
			return vn_fail(j->err, VN_ERR_MISMATCH,
			               "%s: %s should equal that of rank 0, but differs from %s %s: not "
			               "a partial sum, because the residual stream after it holds one rank's alone",
			               vn_recording_path(j->rank[other]), e->name, vn_recording_path(j->rank[0]),
			               write_distance(most, how));
		if (other >= 0) {
			vn_ranks_say(j, "%s: ranks 0 and %d differ; they are taken as partial sums and added", e->name, other);
			j->use->summed++;
			for (int k = 0; k < j->n; k++)
				piece[k] = vn_box_whole(k, entry[k], e);
			return vn_derive_add(j->made, e, piece, j->n, VN_JOIN_SUMMED, j->err);
		}
	} else if ((st = vn_ranks_check_replicas(j, entry, 0, j->n))) {
		return st;
	}
	j->use->same++;
	return vn_derive_keep(j->made, e, 0, i, j->err);
}
