/* edit_matrix.c: see edit_matrix.h. */
#include "compare/explain/edit_matrix.h"
#include "compare/explain/linear_product.h"

#include <math.h>
#include <string.h>

/* ---- the matrix as the file has it -------------------------------------------------------------- */

static bool is_plain(const vn_tensor *w)
{
	return w->shape.rank == 2 && (w->dtype == VN_F32 || w->dtype == VN_F16 || w->dtype == VN_BF16);
}

static void add_part(vn_edited *e, const vn_tensor *w)
{
	e->w[e->n] = w;
	e->rows[e->n++] = w->shape.dim[e->transposed ? 1 : 0];
}

bool vn_edited_open(vn_edited *e, const vn_plan *p, const vn_tensor *weights, int node, bool fused, vn_dtype storage)
{
	const vn_node *n = &p->node[node];

	*e = (vn_edited) { .storage = storage };
	if (n->op != VN_OP_LINEAR || n->w[0] < 0 || !is_plain(&weights[n->w[0]]))
		return false;
	e->transposed = n->c.linear.transposed;
	e->M = weights[n->w[0]].shape.dim[e->transposed ? 1 : 0];
	e->N = weights[n->w[0]].shape.dim[e->transposed ? 0 : 1];
	for (int i = 0; fused && i < p->n_nodes && e->n < VN_FUSED_MOST; i++) {
		const vn_node *o = &p->node[i];
		if (o->op != VN_OP_LINEAR || o->layer != n->layer || o->in[0] != n->in[0] || !is_plain(&weights[o->w[0]]) ||
		    o->c.linear.transposed)
			continue;
		if (i == node)
			e->own = e->n;
		add_part(e, &weights[o->w[0]]);
	}
	if (!fused)
		add_part(e, &weights[n->w[0]]);
	return !fused || (e->n > 1 && !e->transposed);
}

/* The element at row m and column n of the fused matrix. */
static double element_at(const vn_edited *e, int64_t m, int64_t n)
{
	int k = 0;

	while (k + 1 < e->n && m >= e->rows[k])
		m -= e->rows[k++];
	return vn_number_at(e->w[k], e->transposed ? n * e->M + m : m * e->N + n);
}

/* ---- formats --------------------------------------------------------------------------------------- */

/* TF32: ten bits after the leading one, and float32's exponent. */
static double as_tf32(double x)
{
	int e;
	if (!isfinite(x) || x == 0)
		return x;
	x = frexp(x, &e);
	return ldexp(nearbyint(ldexp(x, 11)), e - 11);
}

static double as_tf32_away(double x)
{
	int e;
	if (!isfinite(x) || x == 0)
		return x;
	x = frexp(x, &e);
	return ldexp(round(ldexp(x, 11)), e - 11);
}

static double as_tf32_cut(double x)
{
	int e;
	if (!isfinite(x) || x == 0)
		return x;
	x = frexp(x, &e);
	return ldexp(trunc(ldexp(x, 11)), e - 11);
}

double vn_in_format(double x, vn_weight_format format)
{
	float f = (float)x;

	switch (format) {
	case VN_FORMAT_BF16: vn_round_f32(&f, VN_BF16, 1); return (double)f;
	case VN_FORMAT_F16: vn_round_f32(&f, VN_F16, 1); return (double)f;
	case VN_FORMAT_TF32: return as_tf32(x);
	case VN_FORMAT_TF32_AWAY: return as_tf32_away(x);
	case VN_FORMAT_TF32_CUT: return as_tf32_cut(x);
	case VN_FORMAT_E4M3: return (double)vn_f8_e4m3_to_f32(vn_f32_to_f8_e4m3(f));
	case VN_FORMAT_E5M2: return (double)vn_f8_e5m2_to_f32(vn_f32_to_f8_e5m2(f));
	case VN_FORMAT_INT8: return nearbyint(x);
	case VN_FORMAT_INT8_128: return fmin(nearbyint(x), 127);
	default: return x;
	}
}

/* What the largest number of a scaled group becomes. */
static double full_scale(vn_weight_format format)
{
	return format == VN_FORMAT_INT8       ? 127
	       : format == VN_FORMAT_INT8_128 ? 128
	                                      : vn_dtype_max(format == VN_FORMAT_E4M3 ? VN_F8_E4M3 : VN_F8_E5M2);
}

/* most: the largest number of the group that shares a scale; 0: there is no scale. nudge: see
 * vn_edited. */
static void round_row(double *x, int64_t n, vn_weight_format format, double most, double nudge)
{
	const double scale = most > 0 ? most / full_scale(format) : 1;

	for (int64_t i = 0; i < n; i++)
		x[i] = vn_in_format(x[i] / scale * (1 + nudge), format) * scale;
}

static double largest_in(const double *x, int64_t n)
{
	double most = 0;

	for (int64_t i = 0; i < n; i++)
		most = fmax(most, fabs(x[i]));
	return most;
}

void vn_in_format_scaled(double *x, int64_t n, vn_weight_format format)
{
	round_row(x, n, format, largest_in(x, n), 0);
}

static double as_stored(const vn_edited *e, double x)
{
	float f = (float)x;
	if (e->storage != VN_F16 && e->storage != VN_BF16)
		return x;
	vn_round_f32(&f, e->storage, 1);
	return (double)f;
}

static double largest_of(const vn_edited *e, bool stored)
{
	double most = 0;

	for (int64_t i = 0; i < e->M * e->N; i++)
		most = fmax(most, fabs(vn_number_at(e->w[e->own], i)));
	return stored ? as_stored(e, most) : most;
}

static void put_format(vn_edited *e, const vn_matrix_edit *edit, double *row)
{
	double most = 0;

	for (int64_t i = 0; edit->stored && i < e->N; i++)
		row[i] = as_stored(e, row[i]);
	if (edit->scaled == VN_SCALE_OF_ROWS)
		most = largest_in(row, e->N);
	else if (edit->scaled == VN_SCALE_OF_ALL)
		most = e->largest = e->largest > 0 ? e->largest : largest_of(e, edit->stored);
	round_row(row, e->N, edit->format, most, e->nudge);
	for (int64_t i = 0; i < e->N; i++) /* numbers read from 8 bits are stored as the engine stores weights */
		row[i] = as_stored(e, row[i]);
}

/* ---- edits --------------------------------------------------------------------------------------------- */

void vn_edited_row(vn_edited *e, const vn_matrix_edit *edit, int64_t m, double *row)
{
	const int64_t N = e->N, each = edit->n ? N / edit->n : 0, block = edit->n ? e->M / edit->n : 0;
	int64_t       at = m, all = 0;

	for (int k = 0; k < e->n; k++) {
		at += k < e->own ? e->rows[k] : 0;
		all += e->rows[k];
	}
	for (int64_t n = 0; n < N; n++) {
		const int64_t turned = n * all + at, back = at * N + n;
		switch (edit->kind) {
		case VN_EDIT_TURNED: row[n] = element_at(e, turned / N, turned % N); break;
		case VN_EDIT_BACK: row[n] = element_at(e, back % all, back / all); break;
		case VN_EDIT_TAIL: row[n] = n < N - edit->n ? element_at(e, at, n) : 0; break;
		case VN_EDIT_RANKS:
			row[n] = n < each * edit->n ? element_at(e, at, edit->from[n / each] * each + n % each)
			                            : element_at(e, at, n);
			break;
		case VN_EDIT_ROWS:
			row[n] = element_at(e, at < block * edit->n ? edit->from[at / block] * block + at % block : at, n);
			break;
		case VN_EDIT_ZERO: row[n] = 0; break;
		case VN_EDIT_FACTOR: row[n] = edit->factor * element_at(e, at, n); break;
		default: row[n] = element_at(e, at, n); break;
		}
	}
	if (edit->kind == VN_EDIT_FORMAT && edit->of != VN_OF_INPUTS)
		put_format(e, edit, row);
}

void vn_edited_input(const vn_matrix_edit *edit, double nudge, double *x, int64_t N)
{
	if (edit->kind == VN_EDIT_FORMAT && edit->of != VN_OF_WEIGHTS)
		round_row(x, N, edit->format, edit->scaled ? largest_in(x, N) : 0, edit->scaled ? nudge : 0);
}
