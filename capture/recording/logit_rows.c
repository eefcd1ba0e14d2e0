/* logit_rows.c: see logit_rows.h. */
#include "capture/recording/logit_rows.h"

#include "libref/base/alloc.h"
#include "libref/base/clones.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* The rows found so far, of a text of so many tokens; width: scores a row, 0 if none was found. */
typedef struct found_rows {
	vn_logit_row *at; /* (tokens) */
	int64_t       tokens, width;
} found_rows;

/* Finds the rows of one step; first: index in the text of the step's first token. An engine may
 * have kept only the last row. */
static vn_status rows_of_step(const vn_recording *r, const vn_step *step, int64_t first, found_rows *found,
                              vn_error *err)
{
	const int e = vn_recording_find(r, step->number, "logits");
	if (e < 0)
		return VN_OK;
	const vn_shape *shape = &vn_recording_entry(r, e)->shape;
	const int64_t   width = shape->rank ? shape->dim[shape->rank - 1] : 0,
				  rows = width ? vn_shape_count(shape) / width : 0;
	if (rows == 0)
		return VN_OK;
	if (rows != step->rows && rows != 1)
		return vn_fail(err, VN_ERR_SHAPE, "%s: step.%d/logits has %" PRId64 " rows; the step kept %" PRId64 " tokens",
		               vn_recording_path(r), step->number, rows, step->rows);
	if (found->width && width != found->width)
		return vn_fail(err, VN_ERR_SHAPE,
		               "%s: step.%d/logits has %" PRId64 " scores a token; the steps before it have %" PRId64,
		               vn_recording_path(r), step->number, width, found->width);
	found->width = width;
	for (int64_t i = 0; i < rows; i++) {
		const int64_t token = first + step->first_row + step->rows - rows + i;
		if (token < found->tokens)
			found->at[token] = (vn_logit_row) { e, i };
	}
	return VN_OK;
}

vn_status vn_logit_rows_of(const vn_recording *r, int64_t tokens, vn_logit_row **at, int64_t *width, vn_error *err)
{
	const vn_step *step;
	const int      n = vn_recording_steps(r, &step);
	int64_t        first = 0;
	vn_status      st = VN_OK;

	*width = 0;
	*at = vn_alloc((size_t)tokens, sizeof **at);
	for (int64_t i = 0; i < tokens; i++)
		(*at)[i] = (vn_logit_row) { -1, 0 };
	found_rows found = { *at, tokens, 0 };
	for (int i = 0; i < n && !st; first += step[i++].tokens)
		st = rows_of_step(r, &step[i], first, &found, err);
	*width = found.width;
	return st;
}

enum { PIECE = 512, LANES = 8 };

/* The largest of PIECE numbers; *nan: is one a NaN? */
VN_CLONES static double find_largest(const double x[PIECE], bool *nan)
{
	double  most[LANES], all = -INFINITY;
	int64_t bad = 0;

	for (int k = 0; k < LANES; k++)
		most[k] = -INFINITY;
	for (int i = 0; i < PIECE; i += LANES)
		for (int k = 0; k < LANES; k++) {
			most[k] = x[i + k] > most[k] ? x[i + k] : most[k];
			bad |= -(int64_t)(x[i + k] != x[i + k]);
		}
	for (int k = 0; k < LANES; k++)
		all = most[k] > all ? most[k] : all;
	*nan = bad != 0;
	return all;
}

/* Returns -1 if one is NaN. */
static int64_t find_highest(const unsigned char *data, vn_dtype dtype, int64_t n)
{
	double  x[PIECE], most = -INFINITY;
	int64_t at = 0;

	for (int64_t from = 0; from < n; from += PIECE) {
		const int64_t m = n - from < PIECE ? n - from : PIECE;
		bool          nan;
		vn_to_f64(x, data + (size_t)from * vn_dtype_size(dtype), dtype, (size_t)m);
		for (int64_t i = m; i < PIECE; i++)
			x[i] = -INFINITY;
		const double here = find_largest(x, &nan);
		if (nan)
			return -1;
		if (!(here > most))
			continue;
		most = here;
		for (at = from; x[at - from] != most; at++)
			;
	}
	return at;
}

/* ---- choices -------------------------------------------------------------------------------- */

vn_status vn_choices_open(vn_choices *c, vn_recording *r, int64_t tokens, vn_error *err)
{
	*c = (vn_choices) { .recording = r, .held = -1 };
	const vn_status st = vn_logit_rows_of(r, tokens, &c->at, &c->width, err);
	c->room = vn_alloc((size_t)c->width, 8);
	return st;
}

void vn_choices_close(vn_choices *c)
{
	if (c->held >= 0)
		vn_recording_release(c->recording, c->held);
	VN_FREE(c->room, c->at);
}

vn_status vn_choices_read(vn_choices *c, int64_t token, int64_t *id, vn_error *err)
{
	const vn_logit_row *at = &c->at[token];

	if (c->held >= 0 && c->held != at->entry)
		vn_recording_release(c->recording, c->held);
	c->held = at->entry;
	const vn_status st = vn_recording_read(c->recording, at->entry, at->row * c->width, c->width, c->room, err);
	if (!st)
		*id = find_highest(c->room, vn_recording_entry(c->recording, at->entry)->dtype, c->width);
	return st;
}
