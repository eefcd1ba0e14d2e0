/* weights_numbers.c: computes the digest of a weight's numbers in another order and changed, row by
 * row, so that no weight is in memory twice. */
#include "compare/weights/weights_numbers.h"

#include "libref/base/alloc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void vn_weight_numbers_of(const vn_tensor *const *t, int n, vn_weight_numbers *m)
{
	*m = (vn_weight_numbers) { .n = n, .dtype = t[0]->dtype };
	for (int i = 0; i < n; i++) {
		const int64_t all = vn_shape_count(&t[i]->shape);
		m->rows[i] = t[i]->shape.rank ? t[i]->shape.dim[0] : 1;
		m->all += m->rows[i];
		m->cols = m->rows[i] ? all / m->rows[i] : 0;
		m->data[i] = t[i]->data;
	}
	if (vn_dtype_block(m->dtype) == 1)
		return;
	/* One matrix only: blocks can be read but not written, so they cannot be combined. */
	const size_t all = (size_t)(m->rows[0] * m->cols);
	m->n = 1;
	m->own = vn_alloc(all, sizeof *m->own);
	vn_to_f32(m->own, t[0]->data, m->dtype, all);
	m->data[0] = (const unsigned char *)m->own;
	m->dtype = VN_F32;
}

void vn_weight_numbers_free(vn_weight_numbers *m)
{
	free(m->own);
	m->own = NULL;
}

/* ---- in another order --------------------------------------------------------------- */

const vn_weight_order  vn_weight_in_place = { .rule = { VN_ARRANGE_ROUND, .a = 0 } };
const vn_weight_change vn_weight_unchanged = { .kind = VN_WEIGHT_CHANGE_NONE };

/* Where number c of row r comes from, as an index of all numbers; -1: from none. *n: how many from
 * there on follow each other. */
static int64_t source_of(const vn_weight_numbers *m, const vn_weight_order *o, int64_t r, int64_t c, int64_t *n)
{
	if (o->axis == VN_WEIGHT_NUMBERS)
		return vn_arranged_run(&o->rule, r * m->cols + c, m->all * m->cols, n);
	if (o->axis == VN_WEIGHT_COLUMNS)
		return r * m->cols + vn_arranged_run(&o->rule, c, m->cols, n);
	*n = m->cols;
	return vn_arranged(&o->rule, r, m->all) * m->cols;
}

static void take_row(const vn_weight_numbers *m, const vn_weight_order *o, int64_t r, unsigned char *to)
{
	const size_t size = vn_dtype_size(m->dtype);

	for (int64_t c = 0, n; c < m->cols; c += n) {
		int64_t from = source_of(m, o, r, c, &n);
		int     k = 0;
		n = n < m->cols - c ? n : m->cols - c;
		while (k + 1 < m->n && from >= m->rows[k] * m->cols)
			from -= m->rows[k++] * m->cols;
		if (from < 0)
			memset(to + (size_t)c * size, 0, (size_t)n * size);
		else
			memcpy(to + (size_t)c * size, m->data[k] + (size_t)from * size, (size_t)n * size);
	}
}

vn_digest vn_weight_numbers_digest(const vn_weight_numbers *m, const vn_weight_order *o, const vn_weight_change *c,
                                   vn_dtype to, int64_t rows, const vn_tensor *want)
{
	const size_t   C = (size_t)m->cols;
	const vn_dtype from = c->kind == VN_WEIGHT_CHANGE_RELABELLED ? c->as : m->dtype;
	const bool     as_it_is = c->kind == VN_WEIGHT_CHANGE_NONE && from == to;
	vn_digest      none = { "" };

	if (m->cols <= 0 || (vn_dtype_block(to) > 1 && C % vn_dtype_block(to)))
		return none;
	const size_t   bytes = vn_dtype_bytes(to, C);
	unsigned char *raw = vn_alloc(C, vn_dtype_size(m->dtype)), *out = vn_alloc(bytes, 1);
	double        *x = vn_alloc(C, sizeof *x);
	float         *room = vn_alloc(C, sizeof *room);
	vn_digester   *d = vn_alloc_check(vn_digester_create());
	bool           hopeful = true;
	for (int64_t r = 0; hopeful && r < (rows ? rows : m->all); r++) {
		const unsigned char *row = as_it_is ? raw : out;
		take_row(m, o, r + o->start, raw);
		if (row == out) {
			vn_to_f64(x, raw, from, C);
			vn_weight_change_row(c, x, C, to, out, room);
		}
		vn_digester_add(d, row, bytes);
		hopeful = !want || memcmp(row, (const unsigned char *)want->data + (size_t)r * bytes, bytes) == 0;
	}
	VN_FREE(raw, out, x, room);
	const vn_digest all_of_it = vn_digester_finish(d);
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
