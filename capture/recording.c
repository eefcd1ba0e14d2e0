/* recording.c: see recording.h. HDF5 itself runs in a child process: scan.h. */
#include "capture/recording_inside.h"

#include "capture/child.h"
#include "libref/base/mapped.h"
#include "libref/plan/point.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- opening ------------------------------------------------------------------------- */

static vn_status open_file(vn_recording *r, vn_error *err)
{
	static const unsigned char signature[8] = { 0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n' };
	unsigned char head[8];
	struct stat   st;

	/* Non-blocking: a pipe without a writer would wait for ever. */
	if ((r->fd = open(r->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)) < 0)
		return vn_fail(err, VN_ERR_IO, "%s: %s", r->path, strerror(errno));
	if (fstat(r->fd, &st) != 0)
		return vn_fail(err, VN_ERR_IO, "%s: %s", r->path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return vn_fail(err, VN_ERR_IO, "%s: is %s", r->path, S_ISDIR(st.st_mode) ? "a directory" : "not a regular file");
	r->bytes = st.st_size;
	if (r->bytes == 0)
		return vn_fail(err, VN_ERR_FORMAT, "%s: is empty", r->path);
	/* HDF5 also looks at 512, 1024, 2048... for files with something before. */
	for (int64_t at = 0; at < r->bytes; at = at ? 2 * at : 512)
		if (pread(r->fd, head, sizeof head, at) == (ssize_t)sizeof head && memcmp(head, signature, sizeof head) == 0)
			return VN_OK;
	return vn_fail(err, VN_ERR_FORMAT, "%s: not an HDF5 file", r->path);
}

static bool second_name(const vn_entry *e)
{
	const char *dot = strrchr(e->name, '.');
	return *e->point && strcmp(dot ? dot + 1 : e->name, e->point) != 0;
}

/* By step, order (unknown last), then a tensor's own name before its others. */
static int in_order(const void *a, const void *b, void *ctx)
{
	const vn_recording *r = ctx;
	const vn_entry     *x = &r->entry[*(const int *)a], *y = &r->entry[*(const int *)b];

	if (x->step != y->step)
		return x->step < y->step ? -1 : 1;
	if (x->order != y->order)
		return (unsigned)x->order < (unsigned)y->order ? -1 : 1; /* -1 is the largest */
	if (second_name(x) != second_name(y))
		return second_name(x) ? 1 : -1;
	return strcmp(x->name, y->name);
}

static int in_name_order(const void *a, const void *b, void *ctx)
{
	const vn_recording *r = ctx;
	const vn_entry     *x = &r->entry[*(const int *)a], *y = &r->entry[*(const int *)b];
	return x->step != y->step ? (x->step < y->step ? -1 : 1) : strcmp(x->name, y->name);
}

/* One object: by address, then place. */
static int in_file_order(const void *a, const void *b, void *ctx)
{
	const vn_recording *r = ctx;
	const int           i = *(const int *)a, j = *(const int *)b;
	const uint64_t      x = r->source[i].address, y = r->source[j].address;
	return x != y ? (x < y ? -1 : 1) : (i > j) - (i < j);
}

static int by_weight(const void *a, const void *b)
{
	return strcmp(((const vn_weight_row *)a)->name, ((const vn_weight_row *)b)->name);
}

static int by_step(const void *a, const void *b)
{
	int x = ((const vn_step *)a)->number, y = ((const vn_step *)b)->number;
	return (x > y) - (x < y);
}

vn_status vn_recording_sort(vn_recording *r, vn_error *err)
{
	const size_t n = (size_t)r->n_entries;
	int         *list = malloc((n + 1) * sizeof *list);
	vn_entry    *entry = malloc((n + 1) * sizeof *entry);
	vn_extent   *source = malloc((n + 1) * sizeof *source);
	vn_status    st = VN_OK;

	if (!list || !entry || !source) {
		free(list);
		free(entry);
		free(source);
		return vn_fail(err, VN_ERR_NOMEM, "%s: no memory for %d tensors", r->path, r->n_entries);
	}
	for (int i = 0; i < r->n_entries; i++)
		list[i] = i;
	qsort_r(list, n, sizeof *list, in_order, r);
	for (size_t i = 0; i < n; i++) {
		entry[i] = r->entry[list[i]];
		source[i] = r->source[list[i]];
		list[i] = (int)i;
	}
	free(r->entry);
	free(r->source);
	r->entry = entry;
	r->source = source;

	qsort_r(list, n, sizeof *list, in_file_order, r);
	for (size_t i = 1, first = 0; i < n; i++) {
		if (source[list[i]].address == source[list[first]].address)
			entry[list[i]].same_as = list[first];
		else
			first = i;
	}
	r->by_name = list;
	qsort_r(list, n, sizeof *list, in_name_order, r);
	for (size_t i = 1; i < n && !st; i++)
		if (in_name_order(&list[i - 1], &list[i], r) == 0)
			st = vn_fail(err, VN_ERR_FORMAT, "%s: %s is there twice in step %d", r->path, entry[list[i]].name,
			             entry[list[i]].step);
	return st;
}

/* What only a whole file must have. */
static vn_status check_complete(vn_recording *r, vn_error *err)
{
	const char *missing = !vn_facts_get(&r->run, "engine") ? "/run has no attribute engine"
	                    : !vn_facts_get(&r->run, "precision") ? "/run has no attribute precision"
	                    : !r->ids ? "no dataset /run/token_ids" : !r->positions ? "no dataset /run/positions" : NULL;

	if (missing && r->complete)
		return vn_fail(err, VN_ERR_FORMAT, "%s: %s", r->path, missing);
	if (!r->complete && r->n_positions > r->n_ids)
		r->n_positions = r->n_ids; /* those of steps it did not come to */
	if (r->n_ids != r->n_positions)
		return vn_fail(err, VN_ERR_FORMAT, "%s: /run: %" PRId64 " token ids, but %" PRId64 " positions", r->path, r->n_ids,
		               r->n_positions);
	if (r->token_text && r->n_texts != r->n_ids)
		return vn_fail(err, VN_ERR_FORMAT, "%s: /run: %" PRId64 " token ids, but the text of %d", r->path, r->n_ids, r->n_texts);
	for (int i = 0; i < r->n_steps; i++)
		if (r->step[i].position + r->step[i].tokens > r->n_ids)
			return vn_fail(err, VN_ERR_FORMAT, "%s: /step.%d: %" PRId64 " tokens after %" PRId64 ", the run has %" PRId64,
			               r->path, r->step[i].number, r->step[i].tokens, r->step[i].position, r->n_ids);
	return VN_OK;
}

/* A step says which rows of its call are here: what stands by tokens has so many. */
static vn_status check_rows(const vn_recording *r, vn_error *err)
{
	for (int i = 0; i < r->n_entries; i++) {
		const vn_entry *e = &r->entry[i];
		const int       axis = vn_axes_find(e->axes, "token");
		int64_t         rows = -1;
		for (int k = 0; k < r->n_steps; k++)
			if (r->step[k].number == e->step)
				rows = r->step[k].rows;
		if (rows >= 0 && axis >= 0 && axis < e->shape.rank && e->shape.dim[axis] != rows)
			return vn_fail(err, VN_ERR_FORMAT, "%s: /step.%d: %" PRId64 " rows, but %s has %" PRId64 " tokens", r->path, e->step,
			               rows, e->name, e->shape.dim[axis]);
	}
	return VN_OK;
}

/* One row a weight. */
static vn_status sort_weights(vn_recording *r, vn_error *err)
{
	if (r->n_weights)
		qsort(r->weight, (size_t)r->n_weights, sizeof *r->weight, by_weight);
	for (int i = 1; i < r->n_weights; i++)
		if (by_weight(&r->weight[i - 1], &r->weight[i]) == 0)
			return vn_fail(err, VN_ERR_FORMAT, "%s: /model/weights: %s is there twice", r->path, r->weight[i].name);
	return VN_OK;
}

static vn_status settle_plan(vn_recording *r, vn_error *err)
{
	vn_status st = VN_OK;

	if (r->has_plan && (st = vn_plan_from_text(&r->text, &r->plan, err)))
		vn_context(err, st, "%s", r->path);
	vn_plan_text_free(&r->text);
	return st;
}

static vn_status create(const char *path, vn_recording **recording, vn_error *err)
{
	vn_recording *r = *recording = calloc(1, sizeof *r);

	if (r)
		r->fd = -1;
	if (!r || !(r->path = strdup(path)))
		return vn_fail(err, VN_ERR_NOMEM, "%s: no memory", path);
	return open_file(r, err);
}

/* What came from the child, put in order. */
static vn_status settle(vn_recording *r, vn_error *err)
{
	vn_status st;

	if ((st = vn_recording_sort(r, err)) || (st = check_complete(r, err)) || (st = check_rows(r, err)) ||
	    (st = sort_weights(r, err)) || (st = settle_plan(r, err)))
		return st;
	if (r->n_steps)
		qsort(r->step, (size_t)r->n_steps, sizeof *r->step, by_step);
	return VN_OK;
}

vn_status vn_recording_open_all(const char *const *path, int n, vn_recording **r, vn_error *err)
{
	vn_error  why = { "" };
	vn_status unopened = VN_OK, st;
	int       opened = 0;

	for (int i = 0; i < n; i++)
		r[i] = NULL;
	while (opened < n && !(unopened = create(path[opened], &r[opened], &why)))
		opened++;
	st = vn_receive(r, opened, err);
	for (int i = 0; i < opened && !st; i++)
		st = settle(r[i], err);
	if (!st && (st = unopened) && err)
		*err = why;
	for (int i = 0; i < n && st; i++) {
		vn_recording_close(r[i]);
		r[i] = NULL;
	}
	return st;
}

vn_status vn_recording_open(const char *path, vn_recording **recording, vn_error *err)
{
	return vn_recording_open_all(&path, 1, recording, err);
}

static void free_words(vn_word *list, int n)
{
	for (int i = 0; i < n; i++) {
		free(list[i].key);
		free(list[i].value);
	}
	free(list);
}

void vn_recording_close(vn_recording *r)
{
	if (!r)
		return;
	for (int i = 0; i < r->n_entries; i++)
		vn_recording_release(r, i);
	vn_mapped_drop(r->map);
	if (r->map)
		munmap((void *)(uintptr_t)r->map, (size_t)r->bytes);
	if (r->fd >= 0)
		close(r->fd);
	free_words(r->root, r->n_root);
	free_words(r->model, r->n_model);
	vn_plan_text_free(&r->text);
	vn_plan_destroy(r->plan);
	free(r->ids);
	free(r->positions);
	for (int i = 0; i < r->n_texts; i++)
		free(r->token_text[i]);
	free(r->token_text);
	free(r->weight);
	free(r->step);
	for (int i = 0; i < r->n_entries && r->source; i++) {
		free(r->source[i].view);
		free(r->source[i].gathered);
	}
	for (int i = 0; i < r->n_bases; i++)
		vn_recording_close(r->base[i]);
	free(r->base);
	free(r->entry);
	free(r->source);
	free(r->by_name);
	free(r->path);
	free(r);
}

/* ---- asking ---------------------------------------------------------------------------- */

static const char *word(const vn_word *list, int n, const char *key)
{
	for (int i = 0; i < n; i++)
		if (strcmp(list[i].key, key) == 0)
			return list[i].value;
	return NULL;
}

const char *vn_recording_path(const vn_recording *r)
{
	return r->path;
}

bool vn_recording_complete(const vn_recording *r)
{
	return r->complete;
}

const vn_facts *vn_recording_run(const vn_recording *r)
{
	return &r->run;
}

const char *vn_recording_root(const vn_recording *r, const char *key)
{
	return word(r->root, r->n_root, key);
}

int64_t vn_recording_tokens(const vn_recording *r, const int32_t **ids, const int32_t **positions)
{
	if (ids)
		*ids = r->ids;
	if (positions)
		*positions = r->positions;
	return r->n_ids;
}

int64_t vn_recording_batch(const vn_recording *r)
{
	return r->batch;
}

char *const *vn_recording_token_text(const vn_recording *r)
{
	return r->token_text;
}

const char *vn_recording_family(const vn_recording *r)
{
	return word(r->model, r->n_model, "family");
}

const char *vn_recording_config(const vn_recording *r)
{
	return word(r->model, r->n_model, "config");
}

const char *vn_recording_provenance(const vn_recording *r)
{
	return word(r->model, r->n_model, "provenance");
}

const char *vn_recording_format(const vn_recording *r)
{
	return word(r->model, r->n_model, "format");
}

int vn_recording_weights(const vn_recording *r, const vn_weight_row **rows)
{
	*rows = r->weight;
	return r->n_weights;
}

const vn_plan *vn_recording_plan(const vn_recording *r)
{
	return r->plan;
}

int vn_recording_steps(const vn_recording *r, const vn_step **steps)
{
	*steps = r->step;
	return r->n_steps;
}

const vn_step *vn_recording_step(const vn_recording *r, int number)
{
	for (int i = 0; i < r->n_steps; i++)
		if (r->step[i].number == number)
			return &r->step[i];
	return NULL;
}

int vn_recording_count(const vn_recording *r)
{
	return r->n_entries;
}

const vn_entry *vn_recording_entry(const vn_recording *r, int i)
{
	return &r->entry[i];
}

static int find_exactly(const vn_recording *r, int step, const char *name)
{
	int low = 0, high = r->n_entries;

	while (low < high) {
		int             mid = low + (high - low) / 2, i = r->by_name[mid];
		const vn_entry *e = &r->entry[i];
		int             c = e->step != step ? (e->step < step ? -1 : 1) : strcmp(e->name, name);
		if (c == 0)
			return i;
		if (c < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return -1;
}

int vn_recording_find(const vn_recording *r, int step, const char *name)
{
	int i = find_exactly(r, step, name);
	int v = i < 0 && r->plan ? vn_plan_find(r->plan, name) : -1;

	if (v < 0)
		return i;
	v = vn_plan_root(r->plan, v);
	for (int w = 0; w < r->plan->n_values && i < 0; w++)
		if (vn_plan_root(r->plan, w) == v)
			i = find_exactly(r, step, r->plan->value[w].name);
	return i;
}

const vn_point_info *vn_entry_point(const vn_entry *e)
{
	const char *dot = strchr(e->name, '.');
	vn_point p;
	if (vn_point_from_name(*e->point ? e->point : dot ? dot + 1 : e->name, &p))
		return vn_point_get(p);
	return NULL;
}

const char *vn_entry_axes(const vn_entry *e)
{
	const vn_point_info *p = *e->axes ? NULL : vn_entry_point(e);
	return p ? p->axes : e->axes;
}

/* ---- numbers ----------------------------------------------------------------------------- */

static vn_status map_file(vn_recording *r, vn_error *err)
{
	void *p = mmap(NULL, (size_t)r->bytes, PROT_READ, MAP_SHARED, r->fd, 0);
	if (p == MAP_FAILED)
		return vn_fail(err, VN_ERR_IO, "%s: cannot be mapped: %s", r->path, strerror(errno));
	vn_mapped_add(p, (size_t)r->bytes, r->path);
	r->map = p;
	return VN_OK;
}

/* Compressed, chunked, compact or big-endian: HDF5 reads it, in a child. */
static vn_status load(vn_recording *r, int i, vn_error *err)
{
	vn_extent *s = &r->source[i];
	vn_scan    scan = { .fd = r->fd, .path = r->path, .bytes = r->bytes,
	                    .tensor = { .dtype = (int32_t)r->entry[i].dtype, .address = s->address } };
	vn_child   child;
	int        kind = -1;
	void      *data = NULL;
	size_t     bytes;
	vn_status  st;

	strcpy(scan.tensor.name, r->entry[i].name);
	scan.to_bytes = s->bytes;
	scan.to = mmap(NULL, (size_t)s->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (scan.to == MAP_FAILED)
		return vn_fail(err, VN_ERR_NOMEM, "%s: %s: no memory for %" PRId64 " bytes", r->path, r->entry[i].name, s->bytes);
	st = vn_child_start(&child, r->path, vn_scan_numbers, &scan, err);
	if (!st && !(st = vn_child_receive(&child, &kind, &data, &bytes, err)) && kind != VN_FRAME_DONE)
		st = vn_fail(err, VN_ERR_FORMAT, "%s", bytes > 4 ? (char *)data + 4 : r->path);
	free(data);
	vn_child_end(&child);
	if (st)
		munmap(scan.to, (size_t)s->bytes);
	else
		s->loaded = scan.to;
	return st;
}

/* Of a derived recording: gathered from what it is made of. */
static vn_status make(vn_recording *r, int i, vn_error *err)
{
	vn_extent *s = &r->source[i];
	void *to = mmap(NULL, (size_t)s->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (to == MAP_FAILED)
		return vn_fail(err, VN_ERR_NOMEM, "%s: %s: no memory for %" PRId64 " bytes", r->path, r->entry[i].name, s->bytes);
	const vn_status st = vn_gathered_make(r, s->gathered, to, err);
	if (st)
		munmap(to, (size_t)s->bytes);
	else
		s->loaded = to;
	return st;
}

static int primary(const vn_recording *r, int i)
{
	return r->entry[i].same_as >= 0 ? r->entry[i].same_as : i;
}

/* As the file has them. */
static vn_status file_data(vn_recording *r, int i, const void **data, vn_error *err)
{
	vn_extent *s = &r->source[i];
	vn_status  st = VN_OK;

	if (s->offset >= 0) {
		if (!r->map && (st = map_file(r, err)))
			return st;
		*data = r->map + s->offset;
		return VN_OK;
	}
	if (s->gathered && s->gathered->whole)
		return vn_recording_data(r->base[s->gathered->base], s->gathered->entry, data, err);
	if (!s->loaded && (st = s->gathered ? make(r, i, err) : load(r, i, err)))
		return st;
	*data = s->loaded;
	return VN_OK;
}

vn_status vn_recording_data(vn_recording *r, int i, const void **data, vn_error *err)
{
	const vn_extent *s = &r->source[i = primary(r, i)];
	const size_t     bytes = s->view ? (size_t)vn_shape_count(&s->view->shape) * vn_dtype_size(r->entry[i].dtype) : 0;
	vn_status        st;

	*data = NULL;
	if (s->bytes == 0)
		return VN_OK;
	if ((st = file_data(r, i, data, err)) || !s->view)
		return st;
	if (!s->view->made) {
		/* Shared, so that its pages may be given back like those of a file. */
		void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		if (p == MAP_FAILED)
			return vn_fail(err, VN_ERR_NOMEM, "%s: %s: no memory for %zu bytes", r->path, r->entry[i].name, bytes);
		vn_view_make(s->view, *data, r->entry[i].dtype, p);
		s->view->made = p;
	}
	*data = s->view->made;
	return VN_OK;
}

void vn_recording_release(vn_recording *r, int i)
{
	vn_extent *s = &r->source[primary(r, i)];
	vn_view   *v = s->view;
	if (v && v->made)
		munmap(v->made, (size_t)vn_shape_count(&v->shape) * vn_dtype_size(r->entry[primary(r, i)].dtype));
	if (v)
		v->made = NULL;
	if (s->loaded)
		munmap(s->loaded, (size_t)s->bytes);
	s->loaded = NULL;
	if (s->gathered && s->gathered->whole)
		vn_recording_release(r->base[s->gathered->base], s->gathered->entry);
}

void vn_recording_forget(vn_recording *r)
{
	for (int i = 0; i < r->n_bases; i++)
		vn_recording_forget(r->base[i]);
	if (r->map)
		madvise((void *)(uintptr_t)r->map, (size_t)r->bytes, MADV_DONTNEED);
}
