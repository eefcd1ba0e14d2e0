/* calls.c: see calls.h. */
#include "capture/view/calls.h"

#include "capture/recording/packed.h"
#include "capture/view/box.h"
#include "libref/plan/point.h"
#include "libref/base/alloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- which calls ---------------------------------------------------------------------------- */

static int64_t end_of(const vn_step *s)
{
	return s->position + s->tokens;
}

/* Is it one prompt, with every token from the first on in exactly one step? */
static bool goes_on(const vn_recording *r)
{
	const vn_step *s;
	const int      n = vn_recording_steps(r, &s);
	bool           good = n > 0 && vn_recording_batch(r) == 0 && vn_packed_count(r) == 0;
	for (int i = 0; good && i < n; i++)
		good = s[i].tokens > 0 && (i == 0 || s[i].position == end_of(&s[i - 1]));
	return good;
}

int vn_calls_common(const vn_recording *a, const vn_recording *b, vn_call **call)
{
	const vn_step *x, *y;
	const int      nx = vn_recording_steps(a, &x), ny = vn_recording_steps(b, &y);
	int            n = 0;
	*call = NULL;
	if (!goes_on(a) || !goes_on(b) || x->position != y->position || end_of(&x[nx - 1]) != end_of(&y[ny - 1]))
		return 0;
	*call = vn_alloc((size_t)nx, sizeof **call);
	for (int i = 0, k = 0, first = 0; i < nx; i++) {
		while (end_of(&y[k]) < end_of(&x[i]))
			k++;
		if (end_of(&y[k]) != end_of(&x[i]))
			continue;
		(*call)[n++] = (vn_call) { x[first].number, x[first].position, end_of(&x[i]) - x[first].position };
		first = i + 1;
	}
	return n == nx && n == ny ? 0 : n;
}

bool vn_calls_steps(const vn_recording *r, const vn_call *call, int *first, int *count)
{
	const vn_step *s;
	const int      n = vn_recording_steps(r, &s);
	int            low = 0, high = n; /* steps are consecutive */
	while (low < high) {
		const int middle = (low + high) / 2;
		if (s[middle].position < call->position)
			low = middle + 1;
		else
			high = middle;
	}
	*first = low;
	for (*count = 0; low + *count < n && end_of(&s[low + *count]) <= call->position + call->tokens; ++*count)
		;
	return *count > 0 && s[low].position == call->position &&
	       end_of(&s[low + *count - 1]) == call->position + call->tokens;
}

bool vn_calls_fit(const vn_recording *r, const vn_call *call, int n)
{
	int  first, count;
	bool fits = goes_on(r);
	for (int i = 0; fits && i < n; i++)
		fits = vn_calls_steps(r, &call[i], &first, &count);
	return fits;
}

/* ---- joining -------------------------------------------------------------------------------- */

typedef struct join_job {
	vn_recording  *r, *made;
	const vn_step *step;
	const vn_call *call;
	int            first, count; /* steps of r in the call: first, count */
	int            from, to;     /* those of them with rows recorded */
	int            at;           /* entries, in step order, are joined up to here */
	vn_step        as;
	vn_piece      *piece; /* room for one a step */
	int           *left;
	char          *one;
	vn_error      *err;
} join_job;

/* Chooses the consecutive rows that end with the last one kept. */
static void take_rows(join_job *j)
{
	int64_t low = -1, high = -1;
	j->from = j->to = j->first + j->count;
	while (j->to > j->first + 1 && j->step[j->to - 1].rows == 0)
		j->to--;
	for (int k = j->to - 1; k >= j->first; k--) {
		const vn_step *s = &j->step[k];
		const int64_t  begin = s->position + s->first_row;
		if (low >= 0 && (s->rows == 0 || begin + s->rows != low))
			break;
		high = low < 0 ? begin + s->rows : high;
		low = begin;
		j->from = k;
	}
	j->as = (vn_step) { .number = j->call->number,
		                .position = j->call->position,
		                .tokens = j->call->tokens,
		                .first_row = low - j->call->position,
		                .rows = high - low };
}

static vn_status note_left_out(join_job *j, const vn_entry *e)
{
	if ((*j->left)++ == 0)
		snprintf(j->one, VN_NAME_MAX, "%s", e->name);
	return VN_OK;
}

static vn_status keep_entry(join_job *j, int entry)
{
	vn_entry e = *vn_recording_entry(j->r, entry);
	e.step = j->as.number;
	return vn_derive_keep(j->made, &e, 0, entry, j->err);
}

/* Its entry in step k, if that has all rows of the step; -1. */
static int part_of(const join_job *j, const vn_entry *e, int token, int k)
{
	const int       i = vn_recording_find(j->r, j->step[k].number, e->name);
	const vn_entry *p = i >= 0 ? vn_recording_entry(j->r, i) : NULL;
	if (!p || p->dtype != e->dtype || p->shape.rank != e->shape.rank || strcmp(vn_entry_axes(p), vn_entry_axes(e)) != 0)
		return -1;
	for (int a = 0; a < e->shape.rank; a++)
		if (p->shape.dim[a] != (a == token ? j->step[k].rows : e->shape.dim[a]))
			return -1;
	return i;
}

/* Joins the rows of its tokens in order. */
static vn_status join_tokens(join_job *j, int entry, int token)
{
	vn_entry made = *vn_recording_entry(j->r, entry);
	int64_t  rows = 0;
	int      n = 0;
	for (int k = j->from; k < j->to; k++) {
		const int i = part_of(j, &made, token, k);
		if (i < 0)
			return vn_entry_last(&made) && made.shape.dim[token] == 1 ? keep_entry(j, entry)
			                                                          : note_left_out(j, &made); /* last token only */
		j->piece[n] = vn_box_whole(0, i, vn_recording_entry(j->r, i));
		j->piece[n++].to[token] = rows;
		rows += j->step[k].rows;
	}
	made.shape.dim[token] = rows;
	made.step = j->as.number;
	return vn_derive_add(j->made, &made, j->piece, n, VN_JOIN_PLACED, j->err);
}

/* Joins a tensor of the call's last step with rows. */
static vn_status join_entry(join_job *j, int entry)
{
	const vn_entry *e = vn_recording_entry(j->r, entry);
	const char     *axes = vn_entry_axes(e);
	const int       token = vn_axes_find(axes, "token");
	if (!*axes || e->rows_off || token >= e->shape.rank || (token >= 0 && vn_axes_find(axes, "key") >= 0))
		return note_left_out(j, e); /* each row has other keys */
	if (token >= 0)
		return join_tokens(j, entry, token);
	return j->to == j->first + j->count ? keep_entry(j, entry) : note_left_out(j, e); /* as the call leaves it */
}

static vn_status join_call(join_job *j)
{
	vn_status st = VN_OK;
	take_rows(j);
	const int last = j->step[j->to - 1].number, end = j->step[j->first + j->count - 1].number;
	for (; !st && j->at < vn_recording_count(j->r) && vn_recording_entry(j->r, j->at)->step <= end; j->at++) {
		const int       i = j->at;
		const vn_entry *e = vn_recording_entry(j->r, i);
		if (j->count == 1)
			st = keep_entry(j, i);
		else if (e->step == last)
			st = join_entry(j, i);
		else if (vn_recording_find(j->r, last, e->name) < 0)
			st = note_left_out(j, e);
	}
	return st;
}

vn_status vn_calls_join(vn_recording **r, const vn_call *call, int n, int *left, char one[VN_NAME_MAX], vn_error *err)
{
	const vn_step    *step;
	const int         steps = vn_recording_steps(*r, &step);
	const int         ranks = vn_recording_ranks(*r);
	join_job          j = { .r = *r, .step = step, .left = left, .one = one, .err = err };
	VN_FREED vn_step *as = vn_alloc((size_t)n, sizeof *as);
	vn_status         st = VN_OK;

	*left = 0;
	j.piece = vn_alloc((size_t)steps, sizeof *j.piece);
	if (!(st = vn_derive(vn_recording_path(*r), r, 1, &j.made, err))) {
		*r = j.made;
		vn_derive_ranks(j.made, ranks);
		for (int i = 0; !st && i < n; i++) {
			j.call = &call[i];
			vn_calls_steps(j.r, j.call, &j.first, &j.count);
			st = join_call(&j);
			as[i] = j.as;
		}
		if (!st) {
			vn_derive_steps(j.made, as, n);
			st = vn_derive_end(j.made, err);
		}
	}
	free(j.piece);
	return st;
}
