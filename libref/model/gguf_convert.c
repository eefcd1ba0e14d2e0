/* gguf_convert.c: see gguf_convert.h. */
#include "libref/model/gguf_convert.h"
#include "libref/base/alloc.h"
#include "libref/base/arrange.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The weight of a name, in a layer or outside; *suffix: the part that both sides share. */
static const vn_family_weight *find_weight(const vn_family_weight *r, bool layer, const char *name, const char **suffix)
{
	for (; r->hf; r++) {
		const size_t n = strlen(r->gguf);
		*suffix = name + n;
		if ((vn_point_get(r->point)->place == VN_INSIDE_LAYER) == layer && strncmp(name, r->gguf, n) == 0 &&
		    (r->whole ? !**suffix : strcmp(*suffix, ".weight") == 0 || strcmp(*suffix, ".bias") == 0))
			return r;
	}
	return NULL;
}

/* Parses "blk.17.rest" into 17 and its rest; -1: another form. */
static int64_t layer_of(const char *name, const char **rest)
{
	const char *p = name + 4;
	int64_t     n = 0;

	if (strncmp(name, "blk.", 4) != 0 || *p < '0' || *p > '9' || (*p == '0' && p[1] != '.'))
		return -1;
	for (; *p >= '0' && *p <= '9' && n < 1000000; p++)
		n = 10 * n + (*p - '0');
	*rest = p + 1;
	return *p == '.' ? n : -1;
}

vn_gguf_change vn_gguf_name(const vn_family *f, int64_t layers, int64_t extra, const char *name, char *hf, size_t room)
{
	const char             *rest = name, *suffix = "";
	const int64_t           layer = layer_of(name, &rest);
	const vn_family_weight *r = find_weight(f->weights, layer >= 0, rest, &suffix);

	snprintf(hf, room, "%s", name);
	if (layer >= layers && layer < layers + extra) {
		/* the one layer of a prediction head, or its own weights */
		if (r && extra == 1)
			snprintf(hf, room, "%s%s%s", strncmp(r->hf, "mtp.", 4) == 0 ? "" : VN_MTP_LAYERS "0.", r->hf, suffix);
		else
			snprintf(hf, room, "mtp.%s", name);
		return r && extra == 1 ? r->change : VN_GGUF_AS_IT_WAS;
	}
	if (r && layer < 0)
		snprintf(hf, room, "%s%s", r->hf, suffix);
	else if (r)
		snprintf(hf, room, "%s%lld.%s%s", f->naming->layers, (long long)layer, r->hf, suffix);
	if (r && f->gguf.interleaved && r->point == VN_POINT_Q_PROJ)
		return VN_GGUF_ROTATED_Q;
	if (r && f->gguf.interleaved && r->point == VN_POINT_K_PROJ)
		return VN_GGUF_ROTATED_K;
	return r ? r->change : VN_GGUF_AS_IT_WAS;
}

typedef struct undo {
	const vn_gguf_tensor *from;
	vn_tensor            *out;  /* the result so far */
	void                **room; /* the memory of that */
	vn_error             *err;
} undo;

static vn_status report_misfit(const undo *u, const char *expected)
{
	char have[VN_SHAPE_TEXT];
	return vn_fail(u->err, VN_ERR_SHAPE, "%s: tensor '%s': shape %s, expected %s", u->from->path, u->from->name,
	               vn_shape_text(&u->from->t.shape, have), expected);
}

/* Replaces the result so far by new memory. */
static void replace_result(undo *u, vn_dtype dtype, void *data)
{
	free(*u->room);
	*u->room = data;
	u->out->dtype = dtype;
	u->out->data = data;
}

/* Returns the result as floats. */
static float *to_floats(undo *u)
{
	const size_t n = (size_t)vn_shape_count(&u->out->shape);
	float       *y = vn_alloc(n, sizeof *y);

	vn_to_f32(y, u->out->data, u->out->dtype, n);
	replace_result(u, VN_F32, y);
	return y;
}

/* Reorders axis n of the result, seen as (outer, n, unit) elements. */
static vn_status arrange_axis(undo *u, size_t outer, size_t n, size_t unit, const vn_arrange *m)
{
	if (unit % vn_dtype_block(u->out->dtype))
		to_floats(u);
	const size_t piece = vn_dtype_bytes(u->out->dtype, unit);
	char        *y = vn_alloc(outer * n, piece);
	vn_arrange_bytes(y, u->out->data, m, outer, n, piece);
	replace_result(u, u->out->dtype, y);
	return VN_OK;
}

/* Reorders rows, or the numbers of a vector. */
static vn_status arrange_rows(undo *u, const vn_arrange *m)
{
	const vn_shape *s = &u->out->shape;
	const size_t    rows = (size_t)s->dim[0], all = (size_t)vn_shape_count(s);
	return rows ? arrange_axis(u, 1, rows, all / rows, m) : VN_OK;
}

/* In each head, row i comes from row 2i, and row i + K/2 from row 2i + 1. */
static vn_status unrotate_rows(undo *u, int64_t heads)
{
	const int64_t rows = u->out->shape.rank ? u->out->shape.dim[0] : 0, K = heads > 0 ? rows / heads : 0;

	if (u->out->shape.rank < 1 || u->out->shape.rank > 2 || heads < 1 || rows % heads || K % 2)
		return report_misfit(u, "rows for whole heads of even width");
	return arrange_rows(u, &(vn_arrange) { VN_ARRANGE_TRANSPOSED, .a = K / 2, .b = 2, .period = K });
}

/* [out,in] to [in,out]. */
static vn_status transpose_matrix(undo *u)
{
	if (u->out->shape.rank == 1) /* its bias */
		return VN_OK;
	if (u->out->shape.rank != 2)
		return report_misfit(u, "a matrix");
	if (vn_dtype_block(u->out->dtype) > 1)
		to_floats(u);
	const size_t M = (size_t)u->out->shape.dim[0], N = (size_t)u->out->shape.dim[1],
				 size = vn_dtype_size(u->out->dtype);
	char *y = vn_alloc(M * N, size);
	vn_arrange_across(y, u->out->data, N, M, 1, size);
	replace_result(u, u->out->dtype, y);
	u->out->shape = (vn_shape) { 2, { (int64_t)N, (int64_t)M } };
	return VN_OK;
}

/* The converter stored 1 + w in float32. Its rounding is lost, but 1 + (y - 1) gives y again. */
static void one_less(undo *u)
{
	const size_t n = (size_t)vn_shape_count(&u->out->shape);
	float       *y = to_floats(u);

	for (size_t i = 0; i < n; i++)
		y[i] -= 1.0f;
}

static vn_status log_of_decay(undo *u)
{
	const size_t n = (size_t)vn_shape_count(&u->out->shape);
	float       *y = to_floats(u);

	for (size_t i = 0; i < n; i++) {
		if (y[i] > 0.0f)
			return vn_fail(u->err, VN_ERR_FORMAT,
			               "%s: tensor '%s': element %zu is %g, expected a number below 0 (-exp(A_log))", u->from->path,
			               u->from->name, i, (double)y[i]);
		y[i] = (float)log(-(double)y[i]);
	}
	return VN_OK;
}

/* HuggingFace stores value heads group by group; the file takes one head of each group in turn. */
static vn_arrange arrange_by_group(const vn_gguf_heads *h, int64_t before, int64_t unit)
{
	return (vn_arrange) { VN_ARRANGE_TRANSPOSED, .a = h->nv / h->nk, .b = h->nk, .each = unit, .before = before };
}

/* Reorders the rows from `before` on, which belong to value heads, `unit` rows each. */
static vn_status group_rows(undo *u, const vn_gguf_heads *h, int64_t before, int64_t unit)
{
	const vn_arrange m = arrange_by_group(h, before, unit);

	if ((u->out->shape.rank ? u->out->shape.dim[0] : 0) != before + h->nv * unit)
		return report_misfit(u, "rows for the value heads");
	return arrange_rows(u, &m);
}

static vn_status group_columns(undo *u, const vn_gguf_heads *h)
{
	const vn_arrange m = arrange_by_group(h, 0, 1);

	if (u->out->shape.rank != 2 || u->out->shape.dim[1] % h->nv || u->out->shape.dim[1] == 0)
		return report_misfit(u, "columns for the value heads");
	return arrange_axis(u, (size_t)u->out->shape.dim[0], (size_t)h->nv, (size_t)(u->out->shape.dim[1] / h->nv), &m);
}

static vn_status regroup_heads(undo *u, vn_gguf_change change, const vn_gguf_heads *h)
{
	const int64_t before = 2 * h->nk * h->dk, rows = u->out->shape.rank ? u->out->shape.dim[0] : 0;

	if (h->nk < 1 || h->nv < 1 || h->nv % h->nk)
		return vn_fail(u->err, VN_ERR_FORMAT, "%s: %lld value heads cannot share %lld key heads evenly", u->from->path,
		               (long long)h->nv, (long long)h->nk);
	if (h->nv == h->nk) /* tiled is grouped */
		return VN_OK;
	switch (change) {
	case VN_GGUF_DECAY:
	case VN_GGUF_TILED: return group_rows(u, h, 0, 1);
	case VN_GGUF_TILED_Z: return group_rows(u, h, 0, rows / h->nv);
	case VN_GGUF_TILED_QKV:
	case VN_GGUF_TILED_CONV: return group_rows(u, h, before, rows > before ? (rows - before) / h->nv : 1);
	case VN_GGUF_TILED_COLUMNS: return group_columns(u, h);
	default: return VN_OK;
	}
}

vn_status vn_gguf_undo(const vn_gguf_tensor *t, vn_gguf_change change, const vn_gguf_heads *h, vn_tensor *out,
                       void **room, vn_error *err)
{
	undo      u = { t, out, room, err };
	vn_status st = VN_OK;

	*out = t->t;
	*room = NULL;
	if (vn_shape_count(&t->t.shape) == 0) /* of any length; the plan reports a wrong one */
		return VN_OK;
	switch (change) {
	case VN_GGUF_LATENT_K: /* vn_gguf_join_latent */
	case VN_GGUF_LATENT_V:
	case VN_GGUF_AS_IT_WAS: break;
	case VN_GGUF_TRANSPOSED: st = transpose_matrix(&u); break;
	case VN_GGUF_ONE_ROW:
		if (out->shape.rank == 1)
			out->shape = (vn_shape) { 2, { 1, t->t.shape.dim[0] } };
		break;
	case VN_GGUF_ROTATED_Q: st = unrotate_rows(&u, h->query); break;
	case VN_GGUF_ROTATED_K: st = unrotate_rows(&u, h->key); break;
	case VN_GGUF_ONE_MORE: one_less(&u); break;
	case VN_GGUF_DECAY:
		if (!(st = log_of_decay(&u)))
			st = regroup_heads(&u, change, h);
		break;
	case VN_GGUF_TILED_CONV:
		st = out->shape.rank == 2 ? regroup_heads(&u, change, h) : report_misfit(&u, "a matrix");
		if (!st)
			out->shape = (vn_shape) { 3, { t->t.shape.dim[0], 1, t->t.shape.dim[1] } };
		break;
	case VN_GGUF_TILED:
	case VN_GGUF_TILED_Z:
	case VN_GGUF_TILED_QKV:
	case VN_GGUF_TILED_COLUMNS: st = regroup_heads(&u, change, h); break;
	}
	if (st) {
		free(*room);
		*room = NULL;
	}
	return st;
}

/* The numbers of t in a format; *own: memory of them, or NULL if they stay where they are. */
static const char *numbers_in(const vn_gguf_tensor *t, vn_dtype format, void **own)
{
	const size_t n = (size_t)vn_shape_count(&t->t.shape);

	*own = NULL;
	if (t->t.dtype == format)
		return t->t.data;
	vn_to_f32(*own = vn_alloc(n, sizeof(float)), t->t.data, t->t.dtype, n);
	return *own;
}

vn_status vn_gguf_join_latent(const vn_gguf_tensor *keys, const vn_gguf_tensor *values, vn_tensor *out, void **room,
                              vn_error *err)
{
	const vn_shape *k = &keys->t.shape, *v = &values->t.shape;
	const bool      alike = keys->t.dtype == values->t.dtype && vn_dtype_block(keys->t.dtype) == 1;
	const vn_dtype  format = alike ? keys->t.dtype : VN_F32;
	char            text[2][VN_SHAPE_TEXT];
	void           *own[2];

	*room = NULL;
	if (k->rank != 3 || v->rank != 3 || k->dim[0] != v->dim[0] || k->dim[1] != v->dim[2])
		return vn_fail(err, VN_ERR_SHAPE, "%s: tensors '%s' and '%s': shapes %s and %s do not fit together", keys->path,
		               keys->name, values->name, vn_shape_text(k, text[0]), vn_shape_text(v, text[1]));
	*out = keys->t;
	if (vn_shape_count(k) == 0 || vn_shape_count(v) == 0) /* of any length, as in vn_gguf_undo */
		return VN_OK;
	const size_t H = (size_t)k->dim[0], C = (size_t)k->dim[1], N = (size_t)k->dim[2], U = (size_t)v->dim[1],
				 size = vn_dtype_size(format);
	const char *from = numbers_in(keys, format, &own[0]), *values_from = numbers_in(values, format, &own[1]);
	char       *y = *room = vn_alloc(H * (N + U) * C, size);

	for (size_t h = 0; h < H; h++, y += (N + U) * C * size) {
		vn_arrange_across(y, from + h * C * N * size, N, C, 1, size);
		memcpy(y + N * C * size, values_from + h * U * C * size, U * C * size);
	}
	*out = (vn_tensor) { format, { 2, { (int64_t)(H * (N + U)), (int64_t)C } }, *room };
	free(own[0]);
	free(own[1]);
	return VN_OK;
}
