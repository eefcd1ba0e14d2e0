/* receive.c: makes recordings of the frames of scans (scan.h).
 *
 * The frames come from a process that has read untrusted bytes with a library that trusts them. So
 * everything in them is checked: sizes, ends of strings, ranges.
 */
#include "capture/recording/recording_internal.h"

#include "capture/file/child.h"
#include "libref/base/text.h"
#include "libref/base/utf8.h"
#include "libref/plan/point.h"
#include "libref/base/grow.h"
#include "libref/base/intern.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static vn_status refuse_frame(const vn_recording *r, vn_error *err)
{
	return vn_fail(err, VN_ERR_FORMAT, "%s: damaged HDF5 structure (its contents are inconsistent)", r->path);
}

static vn_status no_memory(const vn_recording *r, vn_error *err)
{
	return vn_fail(err, VN_ERR_NOMEM, "%s: no memory for its contents", r->path);
}

/* Bounds on steps, lines and rows, the same as the child's, and on the bytes of all frames of a
 * file except those of tensors (vn_scan_most). An honest child stays below them. */
enum { MOST_OBJECTS = 1000000, MOST_WORDS = 1000, MOST_INFLATION = 1100, MOST_STEP = 999999999 };
static const uint64_t MOST_BYTES = UINT64_C(4) << 30;

static bool is_ended(const char *text, size_t room)
{
	return memchr(text, '\0', room) != NULL;
}

#define ENDED(field) is_ended(field, sizeof(field))

static bool set_digest(vn_digest *d, const char *hex)
{
	if (!*hex)
		return true;
	if (strlen(hex) != VN_DIGEST_TEXT - 1 || strspn(hex, "0123456789abcdef") != VN_DIGEST_TEXT - 1)
		return false;
	strcpy(d->hex, hex);
	return true;
}

/* A name is printed in messages and used in file names. */
static bool sane_name(const char *name)
{
	for (const char *p = name; *p; p++)
		if (vn_text_control(*p) || *p == '/')
			return false;
	return *name != '\0';
}

/* ---- each kind of frame ------------------------------------------------------------------ */

/* Only the first of many are named. */
static vn_status take_unread(vn_recording *r, const char *name, vn_error *err)
{
	if (r->n_unread++ >= VN_UNREAD_NAMED)
		return VN_OK;
	r->unread[r->n_unread - 1] = vn_utf8_shown(name, strlen(name));
	return r->unread[r->n_unread - 1] ? VN_OK : no_memory(r, err);
}

static vn_status take_word(vn_recording *r, int kind, const char *data, size_t bytes, vn_error *err)
{
	size_t      k = strnlen(data, bytes) + 1;
	const char *value = data + k;

	if (k >= bytes || data[bytes - 1] != '\0')
		return refuse_frame(r, err);
	if (kind == VN_FRAME_RUN) {
		if (r->run.n == VN_FACTS_MAX)
			return vn_fail(err, VN_ERR_FORMAT, "%s: /run: more than %d attributes", r->path, VN_FACTS_MAX);
		vn_facts_set(&r->run, data, "%s", value); /* too long: truncated */
		return VN_OK;
	}
	json_t *words = kind == VN_FRAME_ROOT ? r->root : r->model;
	if (json_object_get(words, data)) /* in a damaged file; the first one counts */
		return VN_OK;
	if (json_object_size(words) == MOST_WORDS)
		return refuse_frame(r, err);
	return json_object_set_new_nocheck(words, data, json_string_nocheck(value)) ? no_memory(r, err) : VN_OK;
}

static vn_status take_ids(vn_recording *r, int kind, void **data, size_t bytes, vn_error *err)
{
	int32_t **list = kind == VN_FRAME_IDS ? &r->ids : &r->positions;
	int64_t  *n = kind == VN_FRAME_IDS ? &r->n_ids : &r->n_positions;

	const int32_t *id = *data;
	const size_t   count = bytes / sizeof *id;
	if (bytes % sizeof *id || *list || (r->batch && count % (size_t)r->batch))
		return refuse_frame(r, err);
	for (size_t i = 0; i < count; i++)
		if (id[i] < (r->batch ? -1 : 0)) /* what pads a batch */
			return refuse_frame(r, err);
	*list = *data; /* ours now */
	*data = NULL;
	*n = (int64_t)count;
	return VN_OK;
}

/* Takes the number of rows of ids or positions, which must be the same for both. */
static vn_status take_batch(vn_recording *r, const void *data, size_t bytes, vn_error *err)
{
	int64_t batch;
	if (bytes != sizeof batch)
		return refuse_frame(r, err);
	memcpy(&batch, data, sizeof batch);
	if (batch < 0 || (r->ids && batch != r->batch))
		return vn_fail(err, VN_ERR_FORMAT, "%s: /run: token_ids has %" PRId64 " rows, positions %" PRId64, r->path,
		               r->batch, batch);
	r->batch = batch;
	return VN_OK;
}

/* Parses "512x48"; "" is a scalar. */
static bool read_shape(const char *text, vn_shape *s)
{
	while (*text) {
		char *end;
		if (s->rank == VN_MAX_RANK || *text < '0' || *text > '9')
			return false;
		int64_t x = s->dim[s->rank++] = strtoll(text, &end, 10);
		if (x < 0 || x > INT32_MAX || (*end && (*end != 'x' || !end[1])))
			return false;
		text = *end ? end + 1 : end;
	}
	return true;
}

static vn_status take_weight(vn_recording *r, const void *data, size_t bytes, vn_error *err)
{
	vn_seen_weight w;
	vn_weight_row  row = { 0 };

	if (bytes != sizeof w)
		return refuse_frame(r, err);
	memcpy(&w, data, sizeof w);
	if (!ENDED(w.name) || !ENDED(w.dtype) || !ENDED(w.shape) || !ENDED(w.digest) || w.nan < 0 || w.inf < 0 ||
	    r->n_weights == MOST_OBJECTS)
		return refuse_frame(r, err);
	if (!*w.name || !vn_dtype_from_name(w.dtype, &row.dtype) || !read_shape(w.shape, &row.shape) ||
	    !set_digest(&row.digest, w.digest))
		return vn_fail(err, VN_ERR_FORMAT,
		               "%s: /model/weights: row %d (%s): invalid dtype '%s', shape '%s' or digest '%s'", r->path,
		               r->n_weights, w.name, w.dtype, w.shape, w.digest);
	if (!(row.name = vn_intern(w.name)))
		return no_memory(r, err);
	const int64_t wide = vn_scan_bytes(row.shape.dim, row.shape.rank, sizeof(double));
	if (wide < 0)
		return vn_fail(err, VN_ERR_FORMAT, "%s: /model/weights: row %d (%s): shape '%s' is larger than any memory",
		               r->path, r->n_weights, w.name, w.shape);
	row.stats = (vn_stats) { .n = wide / (int64_t)sizeof(double),
		                     .nan = w.nan,
		                     .inf = w.inf,
		                     .min = w.min,
		                     .max = w.max,
		                     .mean = w.mean,
		                     .rms = w.rms };
	row.stats.absmax = -w.min > w.max ? -w.min : w.max;

	if (!VN_GROW(r->weight, r->n_weights))
		return no_memory(r, err);
	r->weight[r->n_weights++] = row;
	return VN_OK;
}

/* Appends a text, which it keeps, to a list of *n. */
static vn_status take_line(vn_recording *r, char ***list, int *n, void **data, vn_error *err)
{
	if (*n == MOST_OBJECTS)
		return refuse_frame(r, err);
	if (!VN_GROW(*list, *n))
		return no_memory(r, err);
	(*list)[(*n)++] = *data;
	*data = NULL;
	return VN_OK;
}

static vn_status take_left_out(vn_recording *r, const char *line, vn_error *err)
{
	if (r->n_left_out == MOST_OBJECTS)
		return refuse_frame(r, err);
	if (!VN_GROW(r->left_out, r->n_left_out))
		return no_memory(r, err);
	const char *why = vn_left_out_read(line, &r->left_out[r->n_left_out]);
	if (why)
		return vn_fail(err, VN_ERR_FORMAT, "%s: /run/left_out: line %d: %s", r->path, r->n_left_out + 1, why);
	r->n_left_out++;
	return VN_OK;
}

static vn_status take_step(vn_recording *r, const void *data, size_t bytes, vn_error *err)
{
	vn_seen_step s;

	if (bytes != sizeof s || r->n_steps == MOST_OBJECTS)
		return refuse_frame(r, err);
	memcpy(&s, data, sizeof s);
	/* Defaults for a foreign writer: a first call with all tokens and all rows. */
	s.position = s.position == VN_NOT_SAID ? 0 : s.position;
	s.tokens = s.tokens == VN_NOT_SAID ? r->n_ids : s.tokens;
	s.first_row = s.first_row == VN_NOT_SAID ? 0 : s.first_row;
	const bool all = s.rows == VN_NOT_SAID && s.tokens >= 0 && s.first_row >= 0;
	s.rows = all ? s.tokens - s.first_row : s.rows;
	if (s.number < 0 || s.number > MOST_STEP)
		return refuse_frame(r, err);
	if (s.position < 0 || s.tokens < 0 || s.first_row < 0 || s.rows < 0 || s.tokens > INT32_MAX ||
	    s.position > INT32_MAX || s.first_row > s.tokens || s.rows > s.tokens - s.first_row)
		return vn_fail(err, VN_ERR_FORMAT,
		               "%s: /step.%" PRId64 ": invalid position %" PRId64 ", tokens %" PRId64 ", first_row %" PRId64
		               " or rows %" PRId64,
		               r->path, s.number, s.position, s.tokens, s.first_row, s.rows);
	if (!VN_GROW(r->step, r->n_steps))
		return no_memory(r, err);
	r->step[r->n_steps++] = (vn_step) { (int)s.number, s.position, s.tokens, s.first_row, s.rows };
	return VN_OK;
}

static bool sane_shape(const vn_seen_tensor *t, int64_t *bytes)
{
	if (t->dtype < 0 || t->dtype >= VN_N_DTYPES || t->rank < 0 || t->rank > VN_MAX_RANK)
		return false;
	*bytes = vn_scan_bytes(t->dim, t->rank, (int64_t)vn_dtype_size((vn_dtype)t->dtype));
	return *bytes >= 0;
}

static vn_status take_tensor(vn_recording *r, const void *data, size_t bytes, vn_error *err)
{
	vn_seen_tensor t;
	int64_t        size;

	if (bytes != sizeof t || r->n_entries >= vn_scan_most(r->bytes))
		return refuse_frame(r, err);
	memcpy(&t, data, sizeof t);
	if (!ENDED(t.name) || !ENDED(t.point) || !ENDED(t.op) || !ENDED(t.basis) || !ENDED(t.axes) || !ENDED(t.digest) ||
	    !ENDED(t.source_line) || !sane_name(t.name) || t.step < 0 || t.step > MOST_STEP || !sane_shape(&t, &size) ||
	    t.offset < -1 || (t.offset >= 0 && (t.offset > r->bytes || size > r->bytes - t.offset)) ||
	    (t.offset < 0 && size / MOST_INFLATION > r->bytes))
		return refuse_frame(r, err);

	if (t.layer == VN_NOT_SAID) /* a foreign file may give the layer in the name only */
		t.layer = vn_name_layer(t.name);
	const bool unordered = t.order == VN_NOT_SAID;
	if (unordered)
		t.order = 0;
	vn_entry e = { .name = t.name,
		           .point = t.point,
		           .op = t.op,
		           .basis = t.basis,
		           .axes = t.axes,
		           .source_line = t.source_line,
		           .step = (int)t.step,
		           .order = unordered ? -1 : (int)t.order,
		           .layer = (int)t.layer,
		           .dtype = (vn_dtype)t.dtype,
		           .shape.rank = t.rank,
		           .has_digest = *t.digest != '\0' };
	if (t.order < 0 || t.order >= INT32_MAX || t.layer < -1 || t.layer >= INT32_MAX || /* one more is an int */
	    (e.has_digest && !vn_digest_pack(t.digest, &e.digest)) || (t.has_stats && (t.nan < 0 || t.inf < 0)))
		return vn_fail(err, VN_ERR_FORMAT,
		               "%s: %s: invalid order %" PRId64 ", layer %" PRId64 ", digest '%s', nan %" PRId64
		               " or inf %" PRId64,
		               r->path, t.name, t.order, t.layer, t.digest, t.nan, t.inf);
	memcpy(e.shape.dim, t.dim, (size_t)t.rank * sizeof *t.dim);
	const vn_stats        stats = { .n = vn_shape_count(&e.shape),
		                            .nan = t.nan,
		                            .inf = t.inf,
		                            .min = t.min,
		                            .max = t.max,
		                            .mean = t.mean,
		                            .rms = t.rms,
		                            .absmax = t.absmax };
	const vn_entry_source source = { .offset = t.offset, .address = t.address, .bytes = size };
	if ((t.has_stats && !vn_recording_keep_stats(r, &e, &stats)) || !vn_recording_add(r, &e, &source))
		return no_memory(r, err);
	return VN_OK;
}

static vn_status take_token_text(vn_recording *r, void **data, vn_error *err)
{
	vn_utf8_clean(*data);
	return take_line(r, &r->token_text, &r->n_texts, data, err);
}

static vn_status take_data(vn_recording *r, int kind, void **data, size_t bytes, vn_error *err)
{
	int32_t size[3];

	switch ((vn_frame)kind) {
	case VN_FRAME_FAILED: return vn_child_refused(r->path, *data, bytes, err);
	case VN_FRAME_ROOT:
	case VN_FRAME_RUN:
	case VN_FRAME_MODEL: return take_word(r, kind, *data, bytes, err);
	case VN_FRAME_COMPLETE:
		if (bytes != sizeof *size)
			return refuse_frame(r, err);
		memcpy(size, *data, sizeof *size);
		r->complete = size[0] == 1;
		return VN_OK;
	case VN_FRAME_BATCH: return take_batch(r, *data, bytes, err);
	case VN_FRAME_IDS:
	case VN_FRAME_POSITIONS: return take_ids(r, kind, data, bytes, err);
	case VN_FRAME_TOKEN_TEXT: return take_token_text(r, data, err);
	case VN_FRAME_LEFT_OUT: return take_left_out(r, *data, err);
	case VN_FRAME_WEIGHT: return take_weight(r, *data, bytes, err);
	case VN_FRAME_PLAN:
		if (bytes != sizeof size)
			return refuse_frame(r, err);
		memcpy(size, *data, sizeof size);
		r->has_plan = true;
		r->text.layers = size[0];
		r->text.vocab = size[1];
		r->text.context = size[2];
		return VN_OK;
	case VN_FRAME_PLAN_NODE: return take_line(r, &r->text.node, &r->text.n_nodes, data, err);
	case VN_FRAME_PLAN_VALUE: return take_line(r, &r->text.value, &r->text.n_values, data, err);
	case VN_FRAME_PLAN_WEIGHT: return take_line(r, &r->text.weight, &r->text.n_weights, data, err);
	case VN_FRAME_RUN_PLAN: r->has_run_plan = true; return VN_OK;
	case VN_FRAME_REPLAYED_RESULT:
	case VN_FRAME_REPLAYED_UNJUDGED:
	case VN_FRAME_REPLAYED_SETTING: {
		vn_recording_lines *l = &r->replayed[kind - VN_FRAME_REPLAYED_RESULT];
		return take_line(r, &l->line, &l->n, data, err);
	}
	case VN_FRAME_STEP: return take_step(r, *data, bytes, err);
	case VN_FRAME_TENSOR: return take_tensor(r, *data, bytes, err);
	case VN_FRAME_UNREAD: return take_unread(r, *data, err);
	case VN_FRAME_DONE: return VN_OK;
	}
	return refuse_frame(r, err);
}

/* A file whose frames are being received. */
typedef struct incoming_file {
	vn_recording        *r;
	vn_recording *const *all; /* (n) in which the other recordings of this file are */
	int                  n, others;
	vn_scan              scan;
	vn_child             child;
	uint64_t             bytes; /* of frames so far */
	vn_status            st;
	vn_error             why;
} incoming_file;

static bool same_file(const vn_recording *a, const vn_recording *b)
{
	return a->device == b->device && a->inode == b->inode;
}

/* Takes a frame, and a copy for each other recording of the same file. */
static vn_status take_all(const incoming_file *in, vn_child_frame *f, vn_error *err)
{
	vn_status st = VN_OK;
	for (int k = 0; k < in->n && in->others && !st; k++) {
		if (in->all[k] == in->r || !same_file(in->all[k], in->r))
			continue;
		void *copy = malloc(f->bytes + 1);
		if (!copy)
			return no_memory(in->all[k], err);
		memcpy(copy, f->data, f->bytes + 1);
		st = take_data(in->all[k], f->kind, &copy, f->bytes, err);
		free(copy);
	}
	return st ? st : take_data(in->r, f->kind, &f->data, f->bytes, err);
}

static vn_status start_child(incoming_file *in)
{
	const vn_recording *r = in->r;
	in->bytes = 0;
	in->scan = (vn_scan) { .fd = r->fd, .path = r->path, .bytes = r->bytes };
	return in->st = vn_child_start(
			   &in->child, &(vn_child_task) { .path = r->path, .file = r->fd, .work = vn_scan_file, .ctx = &in->scan },
			   &in->why);
}

static uint64_t most_bytes(const vn_recording *r)
{
	return MOST_BYTES + (uint64_t)vn_scan_most(r->bytes) * (2 * sizeof(uint32_t) + sizeof(vn_seen_tensor));
}

/* Receives frames of all recordings, until each is complete or refused. Returns the number of
 * recordings before the first that is refused. */
static int receive_frames(incoming_file *in, int n)
{
	vn_child *child[VN_CHILDREN];
	int       open = n;

	for (int i = 0; i < n; i++)
		child[i] = &in[i].child;
	while (open > 0) {
		int            i;
		vn_child_frame f;
		vn_error       why = { "" };
		vn_status      st = vn_child_receive_any(child, n, &i, &f, &why);
		in[i].bytes += 8 + f.bytes;
		st = st ? st : in[i].bytes > most_bytes(in[i].r) ? refuse_frame(in[i].r, &why) : take_all(&in[i], &f, &why);
		free(f.data);
		if (!st && f.kind != VN_FRAME_DONE)
			continue;
		in[i].st = st;
		in[i].why = why;
		/* Recordings after the first that is refused are not needed any more. */
		for (int k = i; k < (st ? n : i + 1); k++)
			vn_child_end(&in[k].child);
		if (st)
			n = i;
		for (int k = open = 0; k < n; k++)
			open += in[k].child.pipe >= 0;
	}
	return n;
}

vn_status vn_receive_pipe(vn_recording *r, int pipe, vn_error *err)
{
	incoming_file in = { .r = r };
	vn_status     st = vn_child_adopt(&in.child, r->path, pipe, err);

	if (!st && receive_frames(&in, 1) < 1) {
		st = in.st;
		if (err)
			*err = in.why;
	}
	return st;
}

/* Lists each file once. Returns how many there are. */
static int list_files(vn_recording *const *r, int n, incoming_file *in)
{
	int files = 0;
	for (int i = 0; i < n; i++) {
		int k = 0;
		while (k < files && !same_file(in[k].r, r[i]))
			k++;
		if (k < files)
			in[k].others++;
		else
			in[files++] = (incoming_file) { .r = r[i], .all = r, .n = n };
	}
	return files;
}

vn_status vn_receive(vn_recording *const *r, int n, vn_error *err)
{
	VN_FREED incoming_file *in = calloc((size_t)n + 1, sizeof *in);
	vn_status               st = n == 0 || in ? VN_OK : no_memory(*r, err);
	const int               files = st ? 0 : list_files(r, n, in);

	for (int at = 0; at < files && !st; at += VN_CHILDREN) {
		const int some = files - at < VN_CHILDREN ? files - at : VN_CHILDREN;
		int       started = 0, good;
		while (started < some && !start_child(&in[at + started]))
			started++;
		good = receive_frames(in + at, started);
		if (good < some && (st = in[at + good].st) && err)
			*err = in[at + good].why;
	}
	return st;
}
