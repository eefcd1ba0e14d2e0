/* recorder_fault.c: see recorder_fault.h. */
#include "capture/run/recorder_fault.h"

#include "libref/base/alloc.h"
#include "libref/base/glob.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BEFORE, FORMER, SWAPPED, OTHER, MOVED, LAST, PADDED };
enum { HEADER = 64, MULTIPLE = 16 }; /* bytes; rows */

static const struct {
	const char *id, *means;
	int         kind;
	bool        logits;
} table[] = {
#define RECORDER_FAULT(name, id, title, kind, logits) { id, title, kind, logits },
#include "libref/plan/catalogue.def"
};

typedef struct fault_of_value {
	int    kind;   /* -1: unchanged */
	char  *before; /* the value of the previous call or prompt, or NULL */
	size_t had;    /* its bytes */
} fault_of_value;

struct vn_recorder_fault {
	const vn_plan  *plan;
	fault_of_value *of;      /* (n_values) */
	bool            keeping; /* the running call is of the former prompt */
	vn_sink         behind;
	/* The tensor being received. */
	int             value;
	vn_dtype        dtype;
	vn_shape        shape;
	char           *data;
	size_t          at, bytes;
};

int vn_n_recorder_faults(void)
{
	return (int)(sizeof table / sizeof *table);
}
const char *vn_recorder_fault_id(int i)
{
	return table[i].id;
}
const char *vn_recorder_fault_means(int i)
{
	return table[i].means;
}

int vn_recorder_fault_find(const char *what)
{
	const size_t n = strcspn(what, "@");

	for (int i = 0; i < vn_n_recorder_faults(); i++)
		if (n > 0 && strncmp(what, table[i].id, n) == 0 && (table[i].id[n] == '\0' || table[i].id[n] == '.'))
			return i;
	return -1;
}

/* Whether rows of tokens can be removed from or added to a value: its first axis
 * must be the tokens. */
bool vn_recorder_fault_fits(int i, const vn_plan *p, int value)
{
	const vn_value *v = &p->value[value];
	const bool      rows = table[i].kind == LAST || table[i].kind == PADDED;

	return v->alias_of < 0 && (!table[i].logits || v->point == VN_POINT_LOGITS) && (!rows || v->size[0] == VN_T);
}

int vn_recorder_fault_count(int i, const vn_plan *p)
{
	int n = 0;

	for (int v = 0; v < p->n_values; v++)
		n += vn_recorder_fault_fits(i, p, v);
	return n;
}

vn_recorder_fault *vn_recorder_fault_create(const vn_plan *plan)
{
	vn_recorder_fault *m = vn_alloc_zero(1, sizeof *m);

	m->of = vn_alloc_zero((size_t)plan->n_values, sizeof *m->of);
	m->plan = plan;
	for (int v = 0; v < plan->n_values; v++)
		m->of[v].kind = -1;
	return m;
}

void vn_recorder_fault_destroy(vn_recorder_fault *m)
{
	if (!m)
		return;
	for (int v = 0; m->of && v < m->plan->n_values; v++)
		free(m->of[v].before);
	VN_FREE(m->of, m->data, m);
}

vn_status vn_recorder_fault_inject(vn_recorder_fault *m, const char *what, vn_error *err)
{
	const int   i = vn_recorder_fault_find(what);
	const char *at = strchr(what, '@');
	char        layer[32];
	vn_status   st;
	int         n = 0;

	if (i < 0)
		return vn_fail(err, VN_ERR_USAGE, "%s: no such fault of recording", what);
	if (!at)
		return vn_fail(err, VN_ERR_USAGE, "%s needs a place, such as %s@layer0.*", what, what);
	if ((st = vn_glob_check(at + 1, err)))
		return st;
	for (int v = 0; v < m->plan->n_values; v++) {
		const vn_value *x = &m->plan->value[v];
		snprintf(layer, sizeof layer, "layer%d", x->layer);
		if (!vn_glob_match(at + 1, x->name) && (x->layer < 0 || !vn_glob_match(at + 1, layer)))
			continue;
		const int root = vn_plan_root(m->plan, v);
		if (vn_recorder_fault_fits(i, m->plan, root)) {
			m->of[root].kind = table[i].kind;
			n++;
		}
	}
	return n ? VN_OK : vn_fail(err, VN_ERR_USAGE, "%s fits no checkpoint there: %s", what, table[i].means);
}

/* ---- the sink ------------------------------------------------------------------------- */

static vn_status begin_value(void *ctx, int value, vn_dtype dtype, const vn_shape *shape, vn_error *err)
{
	vn_recorder_fault *m = ctx;

	m->value = value;
	if (m->of[value].kind < 0)
		return m->behind.begin(m->behind.ctx, value, dtype, shape, err);
	if (m->of[value].kind == OTHER && dtype != VN_F16 && dtype != VN_BF16)
		return vn_fail(err, VN_ERR_USAGE, "%s is %s; only f16 and bf16 can be taken for each other",
		               m->plan->value[value].name, vn_dtype_name(dtype));
	m->dtype = dtype;
	m->shape = *shape;
	m->at = 0;
	m->bytes = (size_t)vn_shape_count(shape) * vn_dtype_size(dtype);
	m->data = vn_alloc_resized(m->data, m->bytes, 1);
	return VN_OK;
}

static vn_status write_piece(void *ctx, const void *data, size_t elements, vn_error *err)
{
	vn_recorder_fault *m = ctx;
	const size_t       bytes = elements * vn_dtype_size(m->dtype);

	if (m->of[m->value].kind < 0)
		return m->behind.write(m->behind.ctx, data, elements, err);
	if (bytes > m->bytes - m->at)
		return vn_fail(err, VN_ERR_SHAPE, "%s: more numbers than its shape has", m->plan->value[m->value].name);
	memcpy(m->data + m->at, data, bytes);
	m->at += bytes;
	return VN_OK;
}

static void swap_bytes(char *data, size_t bytes, size_t width)
{
	for (size_t i = 0; i < bytes; i += width)
		for (size_t k = 0; k < width / 2; k++) {
			const char c = data[i + k];
			data[i + k] = data[i + width - 1 - k];
			data[i + width - 1 - k] = c;
		}
}

/* Records the previous call's bytes in place of this call's, if their number is the same. */
static void swap_previous_call(vn_recorder_fault *m)
{
	fault_of_value *v = &m->of[m->value];
	char           *was = v->before;
	const bool      fit = was && v->had == m->bytes;

	v->before = m->data;
	v->had = m->bytes;
	m->data = NULL;
	if (fit)
		m->data = was;
	else
		free(was);
}

/* Keeps the value of the former prompt, or records it once, if it has the same number of bytes. */
static void swap_former_prompt(vn_recorder_fault *m)
{
	fault_of_value *v = &m->of[m->value];

	if (!m->keeping && (!v->before || v->had != m->bytes))
		return;
	char *was = v->before;
	v->before = m->keeping ? m->data : NULL;
	v->had = m->keeping ? m->bytes : 0;
	free(m->keeping ? was : m->data);
	m->data = m->keeping ? NULL : was;
}

static vn_status write_value(vn_recorder_fault *m, vn_dtype dtype, const char *data, vn_error *err)
{
	const size_t n = (size_t)vn_shape_count(&m->shape);
	vn_status    st;

	if ((st = m->behind.begin(m->behind.ctx, m->value, dtype, &m->shape, err)) ||
	    (st = n ? m->behind.write(m->behind.ctx, data, n, err) : VN_OK))
		return st;
	return m->behind.end(m->behind.ctx, err);
}

/* Appends rows of zeros. */
static void pad_rows(vn_recorder_fault *m)
{
	const int64_t rows = m->shape.dim[0], all = (rows + MULTIPLE - 1) / MULTIPLE * MULTIPLE;
	const size_t  bytes = rows ? m->bytes / (size_t)rows * (size_t)all : 0;

	m->data = vn_alloc_resized(m->data, bytes, 1);
	memset(m->data + m->bytes, 0, bytes - m->bytes);
	m->shape.dim[0] = all;
}

static vn_status end_value(void *ctx, vn_error *err)
{
	vn_recorder_fault *m = ctx;
	const size_t       width = vn_dtype_size(m->dtype);
	const char        *data = m->data;

	if (m->of[m->value].kind < 0)
		return m->behind.end(m->behind.ctx, err);
	if (m->at != m->bytes)
		return vn_fail(err, VN_ERR_SHAPE, "%s: fewer numbers than its shape has", m->plan->value[m->value].name);
	switch (m->of[m->value].kind) {
	case BEFORE:
		swap_previous_call(m);
		data = m->data ? m->data : m->of[m->value].before;
		break;
	case FORMER:
		swap_former_prompt(m);
		if (m->keeping)
			return VN_OK;
		data = m->data;
		break;
	case SWAPPED: swap_bytes(m->data, m->bytes, width); break;
	case OTHER: m->dtype = m->dtype == VN_F16 ? VN_BF16 : VN_F16; break;
	case MOVED: {
		const size_t n = m->bytes < HEADER ? m->bytes : HEADER;
		memmove(m->data + n, m->data, m->bytes - n);
		memset(m->data, 0, n);
		break;
	}
	case LAST:
		if (m->shape.dim[0] > 1) {
			data += m->bytes / (size_t)m->shape.dim[0] * (size_t)(m->shape.dim[0] - 1);
			m->shape.dim[0] = 1;
		}
		break;
	case PADDED:
		pad_rows(m);
		data = m->data;
		break;
	}
	return write_value(m, m->dtype, data, err);
}

bool vn_recorder_fault_former(const vn_recorder_fault *m, bool *want)
{
	bool some = false;

	for (int v = 0; v < m->plan->n_values; v++) {
		want[v] = m->of[v].kind == FORMER;
		some = some || want[v];
	}
	return some;
}

vn_sink vn_recorder_fault_keep(vn_recorder_fault *m)
{
	m->keeping = true;
	return (vn_sink) { .ctx = m, .begin = begin_value, .write = write_piece, .end = end_value };
}

vn_sink vn_recorder_fault_sink(vn_recorder_fault *m, const vn_sink *behind)
{
	m->keeping = false;
	m->behind = *behind;
	return (vn_sink) { .ctx = m, .begin = begin_value, .write = write_piece, .end = end_value };
}
