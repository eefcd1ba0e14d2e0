/* weights_side.c: see weights_side.h. */
#include "compare/weights/weights_side.h"

#include "libref/family/family.h"
#include "compare/metrics/team.h"

#include "libref/base/alloc.h"
#include "libref/base/map.h"
#include "libref/base/system.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A folder, or a file with the GGUF signature. */
static bool is_model(const char *path)
{
	struct stat s = { 0 }; /* an unreadable path is opened as a recording, which reports why */
	char        magic[4] = "";

	if (stat(path, &s) == 0 && S_ISDIR(s.st_mode))
		return true;
	const int fd = vn_plain_open(path, O_RDONLY);
	ssize_t   n = -1;
	if (fd >= 0)
		VN_UNINTERRUPTED(n, pread(fd, magic, sizeof magic, 0));
	const bool read = n == sizeof magic;
	if (fd >= 0)
		close(fd);
	return read && memcmp(magic, "GGUF", sizeof magic) == 0;
}

/* For a readable tensor whose byte count matches its shape. */
static bool tensor_of(const vn_source_tensor *s, vn_tensor *t)
{
	*t = (vn_tensor) { .shape.rank = s->rank, .data = s->data };
	if (s->rank > VN_MAX_RANK || !vn_dtype_from_name(s->dtype, &t->dtype) || t->dtype == VN_I32)
		return false;
	for (int i = 0; i < s->rank; i++)
		t->shape.dim[i] = s->dim[i];
	const size_t n = (size_t)vn_shape_count(&t->shape);
	return n > 0 && n % vn_dtype_block(t->dtype) == 0 && vn_dtype_bytes(t->dtype, n) == s->bytes;
}

/* Digest and statistics read a weight larger than the cache twice from memory, which does not
 * dominate the time. */
static void sum_up(const vn_tensor *t, vn_weight_row *row)
{
	const size_t n = (size_t)vn_shape_count(&t->shape);
	row->dtype = t->dtype;
	row->shape = t->shape;
	row->digest = vn_digest_of(t->data, vn_dtype_bytes(t->dtype, n));
	row->stats = vn_stats_of(t->data, t->dtype, n);
}

static void sum_up_row(void *ctx, int i)
{
	vn_opened_weights *w = ctx;
	sum_up(&w->numbers[i], &w->rows[i]);
}

static vn_status of_model(const char *path, int threads, vn_opened_weights *w, vn_lines *notes, vn_error *err)
{
	const char *family = NULL;
	vn_status   st = vn_source_open(path, &w->source, err);
	int         n = 0;

	if (st)
		return st;
	w->rows = vn_alloc_zero(w->source->n, sizeof *w->rows);
	w->numbers = vn_alloc_zero(w->source->n, sizeof *w->numbers);
	for (size_t i = 0; i < w->source->n; i++) {
		const vn_source_tensor *s = &w->source->tensor[i];
		if (!tensor_of(s, &w->numbers[n])) {
			vn_lines_add(notes, "%s: %s: format %s with rank %d is not supported; left out", s->path, s->name, s->dtype,
			             s->rank);
			continue;
		}
		w->rows[n++].name = s->name;
	}
	if (n == 0)
		return vn_fail(err, VN_ERR_FORMAT, "%s: holds no readable weight", path);
	free(w->source->tensor); /* the rows say the same */
	w->source->tensor = NULL;
	w->source->n = 0;
	vn_team_each(threads, n, sum_up_row, w);
	w->plan = vn_family_plan(w->source->config, &family);
	w->side = (vn_weight_side) { .row = w->rows,
		                         .n = n,
		                         .numbers = w->numbers,
		                         .plan = w->plan,
		                         .family = vn_family_named(family),
		                         .gguf = strncmp(w->source->format, "gguf", 4) == 0 };
	return VN_OK;
}

vn_plan *vn_weight_side_of(const vn_recording *r, vn_weight_side *side)
{
	const char *format = vn_recording_format(r), *config = vn_recording_config(r);
	vn_plan    *made = NULL;

	*side = (vn_weight_side) { .plan = vn_recording_plan(r),
		                       .family = vn_family_named(vn_recording_family(r)),
		                       .copied = vn_recording_copied_weights(r),
		                       .gguf = format && strncmp(format, "gguf", 4) == 0 };
	side->n = vn_recording_weights(r, &side->row);
	if (!side->plan && config && side->n > 0)
		side->plan = made = vn_family_plan(config, NULL);
	return made;
}

static vn_status of_recording(const char *path, vn_opened_weights *w, vn_error *err)
{
	const vn_status st = vn_recording_open(path, &w->recording, err);

	if (st)
		return st;
	w->plan = vn_weight_side_of(w->recording, &w->side);
	return w->side.n > 0 ? VN_OK : vn_fail(err, VN_ERR_NOTFOUND, "%s: records no table of weights", path);
}

vn_status vn_opened_weights_open(const char *path, int threads, vn_opened_weights *w, vn_lines *notes, vn_error *err)
{
	*w = (vn_opened_weights) { 0 };
	const vn_status st = is_model(path) ? of_model(path, threads, w, notes, err) : of_recording(path, w, err);
	if (st)
		vn_opened_weights_close(w);
	return st;
}

void vn_opened_weights_close(vn_opened_weights *w)
{
	vn_recording_close(w->recording);
	vn_source_close(w->source);
	vn_plan_destroy(w->plan);
	VN_FREE(w->rows, w->numbers);
	*w = (vn_opened_weights) { 0 };
}
