/* weights_numbers.c: computes the digest of a weight's numbers in another order and changed, row by
 * row, so that no weight is in memory twice. */
#include "compare/weights/weights_numbers.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

vn_status vn_weight_numbers_of(const vn_tensor *const *t, int n, vn_weight_numbers *m, vn_error *err)
{
	*m = (vn_weight_numbers) { .n = n, .dtype = t[0]->dtype };
	for (int i = 0; i < n; i++) {
		const int64_t all = vn_shape_count(&t[i]->shape);
		m->rows[i] = t[i]->shape.rank ? t[i]->shape.dim[0] : 1;
		m->cols = m->rows[i] ? all / m->rows[i] : 0;
		m->data[i] = t[i]->data;
	}
	if (vn_dtype_block(m->dtype) == 1)
		return VN_OK;
	/* One matrix only: blocks can be read but not written, so they cannot be combined. */
	const size_t all = (size_t)(m->rows[0] * m->cols);
	m->n = 1;
	if (!(m->own = malloc((all + 1) * sizeof *m->own)))
		return vn_fail(err, VN_ERR_NOMEM, "no memory for the numbers of a weight");
	vn_to_f32(m->own, t[0]->data, m->dtype, all);
	m->data[0] = (const unsigned char *)m->own;
	m->dtype = VN_F32;
	return VN_OK;
}

void vn_weight_numbers_free(vn_weight_numbers *m)
{
	free(m->own);
	m->own = NULL;
}

/* ---- in another order --------------------------------------------------------------- */

typedef struct reordering {
	const vn_weight_numbers *m;
	vn_arrange               rule;  /* of all numbers, if there is no map */
	int64_t                  all;   /* rows of m */
	int                      axis;  /* of the map */
	int64_t                 *map;   /* of the reordered axis, or NULL */
	int64_t                  start; /* the first row of the result */
	size_t                   size;  /* bytes of a number */
} reordering;

static const unsigned char *row_at(const reordering *w, int64_t r)
{
	int k = 0;
	while (k + 1 < w->m->n && r >= w->m->rows[k])
		r -= w->m->rows[k++];
	return w->m->data[k] + (size_t)(r * w->m->cols) * w->size;
}

/* Takes row r of a matrix in which all numbers are reordered: in runs, because the digest takes
 * them all. */
static void take_runs(const reordering *w, int64_t r, unsigned char *to)
{
	const int64_t C = w->m->cols;

	for (int64_t c = 0, n; c < C; c += n) {
		const int64_t from = vn_arranged_run(&w->rule, (r + w->start) * C + c, w->all * C, &n);
		n = n < C - c ? n : C - c;
		if (from < 0)
			memset(to + (size_t)c * w->size, 0, (size_t)n * w->size);
		else
			memcpy(to + (size_t)c * w->size, row_at(w, from / C) + (size_t)(from % C) * w->size, (size_t)n * w->size);
	}
}

static void take_row(const reordering *w, int64_t r, unsigned char *to)
{
	const int64_t C = w->m->cols;

	if (!w->map) {
		take_runs(w, r, to);
	} else if (w->axis == 1) {
		const unsigned char *from = row_at(w, r);
		for (int64_t c = 0; c < C; c++)
			memcpy(to + (size_t)c * w->size, from + (size_t)w->map[c] * w->size, w->size);
	} else {
		memcpy(to, row_at(w, w->map[r + w->start]), (size_t)C * w->size);
	}
}

static int64_t *map_of(const vn_weight_order *o, int64_t n)
{
	const vn_arrange rule = vn_weight_order_rule(o, n);
	int64_t         *map = malloc(((size_t)n + 1) * sizeof *map);

	for (int64_t i = 0; map && i < n; i++) {
		const int64_t from = vn_arranged(&rule, i, n);
		if (o->back)
			map[from] = i;
		else
			map[i] = from;
	}
	return map;
}

/* Writes a row as it is stored; returns true when it needs no conversion. */
static bool as_it_is(const vn_weight_change *c, vn_dtype from, vn_dtype to)
{
	return c->kind == VN_WEIGHT_CHANGE_NONE && from == to;
}

vn_digest vn_weight_numbers_digest(const vn_weight_numbers *m, const vn_weight_order *o, const vn_weight_change *c,
                                   vn_dtype to, int64_t rows, const vn_tensor *want)
{
	int64_t all = 0;
	for (int i = 0; i < m->n; i++)
		all += m->rows[i];
	const bool axis = o->kind != VN_ORDER_SAME && o->kind != VN_ORDER_TRANSPOSED && o->kind != VN_ORDER_SHEARED;
	reordering w = { m, vn_weight_order_rule(o, all * m->cols), all, o->axis, NULL, o->p[7], vn_dtype_size(m->dtype) };
	const size_t C = (size_t)m->cols;
	vn_dtype     from = c->kind == VN_WEIGHT_CHANGE_RELABELLED ? c->as : m->dtype;
	vn_digest    none = { "" };

	if (m->cols <= 0 || (vn_dtype_block(to) > 1 && C % vn_dtype_block(to)))
		return none;
	const size_t bytes = vn_dtype_bytes(to, C);
	if (axis)
		w.map = map_of(o, o->axis ? m->cols : all);
	unsigned char *raw = malloc(C * w.size + 1), *out = malloc(bytes + 1);
	double        *x = malloc((C + 1) * sizeof *x);
	float         *room = malloc((C + 1) * sizeof *room);
	vn_digester   *d = (!axis || w.map) && raw && out && x && room ? vn_digester_create() : NULL;
	bool           hopeful = d != NULL;
	for (int64_t r = 0; hopeful && r < (rows ? rows : all); r++) {
		const unsigned char *row = as_it_is(c, from, to) ? raw : out;
		take_row(&w, r, raw);
		if (row == out) {
			vn_to_f64(x, raw, from, C);
			vn_weight_change_row(c, x, C, to, out, room);
		}
		vn_digester_add(d, row, bytes);
		hopeful = !want || memcmp(row, (const unsigned char *)want->data + (size_t)r * bytes, bytes) == 0;
	}
	free(w.map);
	free(raw);
	free(out);
	free(x);
	free(room);
	const vn_digest all_of_it = d ? vn_digester_finish(d) : none;
	return hopeful ? all_of_it : none;
}

bool vn_weight_has_order(const vn_weight_trial *t, int k, const vn_weight_numbers *m, const vn_weight_order *o,
                         const vn_weight_change *c, int64_t rows)
{
	const vn_weight_row *row = t->row[k];
	const vn_digest      x = vn_weight_numbers_digest(m, o, c, row->dtype, rows, t->numbers[k]);
	return *x.hex && strcmp(x.hex, row->digest.hex) == 0;
}

/* ---- side by side ------------------------------------------------------------------------ */

enum { PIECE = 4096 }; /* a multiple of every block size */

vn_weight_fit vn_weight_fit_of(const vn_tensor *a, const vn_tensor *b)
{
	const size_t n = (size_t)vn_shape_count(&a->shape);
	double       x[PIECE], y[PIECE], largest = 0, sx = 0, sy = 0, xx = 0, yy = 0, xy = 0, dd = 0;
	int64_t      differing = 0, used = 0;

	for (size_t i = 0; i < n; i += PIECE) {
		const size_t k = n - i < PIECE ? n - i : PIECE;
		vn_to_f64(x, (const unsigned char *)a->data + vn_dtype_bytes(a->dtype, i), a->dtype, k);
		vn_to_f64(y, (const unsigned char *)b->data + vn_dtype_bytes(b->dtype, i), b->dtype, k);
		for (size_t j = 0; j < k; j++) {
			if (!isfinite(x[j]) || !isfinite(y[j])) {
				differing++;
				largest = INFINITY;
				continue;
			}
			used++;
			largest = fmax(largest, fabs(y[j] - x[j]));
			differing += x[j] != y[j];
			sx += x[j];
			sy += y[j];
			xx += x[j] * x[j];
			yy += y[j] * y[j];
			xy += x[j] * y[j];
			dd += (y[j] - x[j]) * (y[j] - x[j]);
		}
	}
	const double  m = used ? (double)used : 1.0, vx = xx - sx * sx / m, vy = yy - sy * sy / m;
	vn_weight_fit f = { .largest = largest,
		                .factor = xx > 0 ? xy / xx : NAN,
		                .nmse = xx > 0 ? dd / xx : NAN,
		                .differing = n ? (double)differing / (double)n : 0.0 };
	f.correlation = vx > 0 && vy > 0 ? (xy - sx * sy / m) / sqrt(vx * vy) : NAN;
	f.residual = xx > 0 ? fmax(0.0, yy - xy * xy / xx) / xx : NAN;
	return f;
}
