/* selftest_mutate.c: makes a mutation: a copy of a recording, changed in a child. */
#include "compare/selftest/selftest_internal.h"

#include "libref/base/map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool write_all(int fd, const char *data, ssize_t n)
{
	while (n > 0) { /* the first write may be short, by a limit or a full disk; the second then returns the reason */
		const ssize_t done = write(fd, data, (size_t)n);
		if (done < 0 && errno != EINTR)
			return false;
		data += done > 0 ? done : 0;
		n -= done > 0 ? done : 0;
	}
	return true;
}

static vn_status copy_file(const char *from, const char *to, vn_error *err)
{
	static char buffer[1 << 16];
	struct stat s;
	int         in = vn_plain_open(from, O_RDONLY), out = -1;
	ssize_t     n = in < 0 || fstat(in, &s) != 0 ? -1 : 0;
	int64_t     left = n < 0 ? 0 : (int64_t)s.st_size;

	if (n == 0 && (out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)) >= 0)
		while ((n = TEMP_FAILURE_RETRY(read(in, buffer, sizeof buffer))) > 0) {
			left -= n;
			if (!write_all(out, buffer, n)) {
				n = -1;
				break;
			}
		}
	const int why = errno;
	if (in >= 0)
		close(in);
	if (out < 0 || close(out) != 0 || n != 0 || left != 0)
		return vn_fail(err, VN_ERR_IO, "%s: cannot be copied to %s: %s", from, to,
		               out >= 0 && n == 0 && left != 0 ? "its size changed" : strerror(why));
	return VN_OK;
}

typedef struct mutation_job {
	const vn_mutation         *m;
	const vn_mutation_context *p; /* (n) one tensor each */
	int                        n;
} mutation_job;

static void mutate_numbers(vn_edit *e, const vn_mutation *m, const vn_mutation_context *p)
{
	const size_t   n = (size_t)(p->T * p->W), width = vn_dtype_size(p->t.dtype);
	double        *real = malloc((n + 1) * sizeof *real);
	unsigned char *raw = malloc((n + 1) * width);
	vn_tensor      t = p->t;

	if (!real || !raw) {
		vn_edit_fail(e, p->at, "no memory");
		return;
	}
	memcpy(raw, p->t.data, n * width);
	if (m->bits) {
		m->bits(p, raw);
	} else {
		vn_to_f64(real, p->t.data, t.dtype, n);
		m->numbers(p, real);
		vn_from_f64(raw, t.dtype, real, n);
	}
	t.data = raw;
	vn_edit_numbers(e, p->at, &t, true);
	free(raw);
	free(real);
}

static void edit_once(vn_edit *e, const vn_mutation *m, const vn_mutation_context *p)
{
	if (m->numbers || m->bits)
		mutate_numbers(e, m, p);
	if (m->text.key)
		vn_edit_text(e, m->text.object ? m->text.object : p->at, m->text.key, m->text.value);
	if (m->whole.key)
		vn_edit_whole(e, m->whole.object ? m->whole.object : p->at, m->whole.key, m->whole.value);
	if (m->node.from)
		vn_edit_line(e, "/plan/nodes", m->node.from, m->node.to);
	if (m->weight.column)
		vn_edit_weight_text(e, p->weight, m->weight.column, m->weight.value);
	if (m->stored)
		vn_edit_replace(e, p->at, &p->t, m->stored);
	if (m->edit)
		m->edit(e, p);
}

/* In a child. */
static void apply_mutation(vn_edit *e, void *ctx)
{
	const mutation_job *x = ctx;
	for (int i = 0; i < x->n; i++)
		edit_once(e, x->m, &x->p[i]);
}

/* A copy, because the child that edits cannot see memory that this process has mapped or loaded.
 * The caller frees it. */
static vn_status copy_tensor(vn_recording *r, int i, vn_tensor *t, vn_error *err)
{
	vn_tensor seen;
	vn_status st = vn_entry_tensor(r, i, &seen, err);
	if (st)
		return st;
	const size_t bytes = (size_t)vn_shape_count(&seen.shape) * vn_dtype_size(seen.dtype);
	void        *data = malloc(bytes + 1);
	if (!data)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for a tensor of %zu bytes", bytes);
	if (bytes)
		memcpy(data, seen.data, bytes);
	*t = seen;
	t->data = data;
	return VN_OK;
}

static vn_status examine_target(vn_recording *r, const vn_entry *target, const vn_entry *other, vn_mutation_context *p,
                                vn_error *err)
{
	const vn_weight_row *rows;
	vn_status            st;

	*p = (vn_mutation_context) { .original = r, .weight = vn_recording_weights(r, &rows) / 2 };
	if (!target)
		return VN_OK;
	int i = vn_recording_find(r, target->step, target->name),
		k = other ? vn_recording_find(r, other->step, other->name) : -1;
	if (i < 0 || (other && k < 0))
		return vn_fail(err, VN_ERR_NOTFOUND, "%s: no %s in step %d", vn_recording_path(r),
		               (i < 0 ? target : other)->name, target->step);
	p->target = vn_recording_entry(r, i);
	p->step = p->target->step;
	vn_edit_path(p->step, p->target->name, p->at);
	if ((st = copy_tensor(r, i, &p->t, err)))
		return st;
	p->T = p->t.shape.dim[0];
	p->W = vn_selftest_columns(p->target);
	p->H = p->t.shape.rank == 3 ? p->t.shape.dim[1] : 1;
	p->K = p->W / p->H;
	if (!(p->y = calloc((size_t)(p->T * p->W) + 1, sizeof *p->y)))
		return vn_fail(err, VN_ERR_NOMEM, "no memory");
	if (k < 0)
		return VN_OK;
	p->other = vn_recording_entry(r, k);
	vn_edit_path(p->other->step, p->other->name, p->there);
	if (!(st = copy_tensor(r, k, &p->u, err)))
		vn_to_f64(p->y, p->u.data, p->u.dtype, (size_t)(p->T * p->W));
	return st;
}

/* Index of the median of x (n), all >= 0. */
static int64_t middle_element(const double *x, int64_t n)
{
	for (int64_t i = 0; i < n; i++) {
		int64_t less = 0, equal = 0;
		for (int64_t k = 0; k < n; k++) {
			less += x[k] < x[i];
			equal += x[k] == x[i];
		}
		if (less <= n / 2 && n / 2 < less + equal)
			return i;
	}
	return 0;
}

/* Looks at the checkpoint in every step of one token and chooses a channel that is neither large
 * nor small. p (*n): the caller frees it and its contents; NULL: no memory. */
static vn_status examine_steps(vn_recording *r, const vn_entry *target, vn_mutation_context **p, int *n, vn_error *err)
{
	const int64_t wide = vn_selftest_columns(target);
	int          *step, all = vn_one_token_steps(r, target, &step);
	double       *size = calloc((size_t)wide, sizeof *size);
	vn_status     st = VN_OK;

	if (!step || !size || !(*p = calloc((size_t)all + 1, sizeof **p)))
		st = vn_fail(err, VN_ERR_NOMEM, "no memory for %d steps", all);
	for (; !st && *n < all; ++*n) {
		vn_mutation_context *here = &(*p)[*n];
		const int            i = vn_recording_find(r, step[*n], target->name);
		if ((st = examine_target(r, vn_recording_entry(r, i), NULL, here, err))) {
			++*n;
			break;
		}
		vn_to_f64(here->y, here->t.data, here->t.dtype, (size_t)wide);
		for (int64_t k = 0; k < wide; k++)
			size[k] += here->y[k] * here->y[k];
	}
	for (int i = 0; !st && i < all; i++)
		(*p)[i].channel = i ? (*p)->channel : middle_element(size, wide);
	free(step);
	free(size);
	return st;
}

vn_status vn_mutate(const vn_mutation *m, vn_mutation_sides of, vn_recording *original, const char *from,
                    const char *to, const vn_entry *target, const vn_entry *other, vn_error *err)
{
	vn_mutation_context one = { 0 }, *steps = NULL, *p = &one;
	vn_status           st = copy_file(from, to, err);
	int                 n = 0;

	if (st)
		return st;
	if (m->file)
		return m->file(to) ? VN_OK : vn_fail(err, VN_ERR_IO, "%s: %s: %s", to, m->name, strerror(errno));
	if (m->when == VN_EVERY_STEP) {
		st = examine_steps(original, target, &steps, &n, err);
		p = steps;
	} else {
		st = examine_target(original, target, other, &one, err);
		n = 1;
	}
	for (int i = 0; i < n; i++)
		p[i].of = of;
	if (!st && (st = vn_edit_file(to, apply_mutation, &(mutation_job) { m, p, n }, err)))
		vn_context(err, st, "mutation %s", m->name);
	for (int i = 0; i < n; i++) {
		free(p[i].y);
		vn_tensor_free(&p[i].t);
		vn_tensor_free(&p[i].u);
	}
	free(steps);
	return st;
}
