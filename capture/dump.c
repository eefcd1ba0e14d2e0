/* dump.c: what the kinds of dumps share, and the recording that one becomes; see dump.h. */
#include "capture/dump.h"

#include "capture/dims.h"
#include "capture/recording_inside.h"
#include "libref/base/text.h"
#include "libref/base/utf8.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- which kind ------------------------------------------------------------------------------ */

static bool ends(const char *path, const char *with)
{
	const size_t n = strlen(path), m = strlen(with);
	return n >= m && strcasecmp(path + n - m, with) == 0;
}

/* What is not read has a line of its own that says what to do instead. */
static vn_status refuse(const char *path, vn_error *err)
{
	if (ends(path, ".pt") || ends(path, ".pth") || ends(path, ".bin") || ends(path, ".ckpt") || ends(path, ".pkl"))
		return vn_fail(err, VN_ERR_UNSUPPORTED, "%s: a pickle can run code and is not opened; convert it where it is trusted: python3 -c "
		               "\"import torch, safetensors.torch as s; s.save_file({k: v.contiguous() for k, v in torch.load('%s', map_location='cpu').items()}, 'dump.safetensors')\"",
		               path, path);
	if (ends(path, ".npy"))
		return vn_fail(err, VN_ERR_USAGE, "%s: one tensor; a directory of .npy files is imported", path);
	if (ends(path, ".h5") || ends(path, ".hdf5"))
		return vn_fail(err, VN_ERR_USAGE, "%s: HDF5 is not imported: a checkpoint file is read as it is (vernier compare --names)", path);
	return vn_fail(err, VN_ERR_USAGE, "%s: none of a directory of .npy files, .npz, .safetensors, .gguf, and a tree of transformers' model_debugging_utils (.json)", path);
}

static vn_status open_kind(vn_dump *d, vn_error *err)
{
	struct stat s;
	if (stat(d->path, &s) != 0)
		return vn_fail(err, VN_ERR_IO, "%s: %s", d->path, strerror(errno));
	if (S_ISDIR(s.st_mode))
		return vn_dump_open_directory(d, err);
	return refuse(d->path, err);
}

/* Steps that only the names of arrays speak of. */
static vn_status count_steps(vn_dump *d, vn_error *err)
{
	int last = -1;
	for (int i = 0; i < d->n; i++)
		last = d->array[i].step > last ? d->array[i].step : last;
	while (!d->has_steps && d->n_steps <= last) {
		const vn_status st = vn_dump_step(d, 0, err);
		if (st)
			return st;
	}
	return VN_OK;
}

vn_status vn_dump_open(const char *path, vn_dump **out, vn_error *err)
{
	vn_dump *d = *out = calloc(1, sizeof *d);
	if (!d || !(d->path = strdup(path))) {
		vn_dump_close(d);
		*out = NULL;
		return vn_fail(err, VN_ERR_NOMEM, "%s: no memory", path);
	}
	d->held = -1;
	d->complete = true;
	vn_status st = open_kind(d, err);
	if (!st && d->n == 0)
		st = vn_fail(err, VN_ERR_FORMAT, "%s: holds no tensor", path);
	if (!st)
		st = count_steps(d, err);
	if (st) {
		vn_dump_close(d);
		*out = NULL;
	}
	return st;
}

void vn_dump_close(vn_dump *d)
{
	if (!d)
		return;
	if (d->close)
		d->close(d);
	for (int i = 0; i < d->n; i++)
		free(d->array[i].file);
	free(d->array);
	free(d->step);
	free(d->ids);
	free(d->positions);
	free(d->config);
	free(d->path);
	free(d);
}

/* ---- arrays, steps, ids ------------------------------------------------------------------------ */

const char *vn_dump_fact_wrong(const vn_dump *d, const char *key, const char *value)
{
	if (!key || !*key || strlen(key) >= VN_FACT_KEY || !value || strlen(value) >= VN_FACT_VALUE)
		return "is no key of up to 31 bytes with a string of up to 255";
	for (const char *p = key; *p; p++)
		if (vn_text_control(*p) || *p == '/')
			return "is no key";
	if (strcmp(key, "token_ids") == 0 || strcmp(key, "positions") == 0 || strcmp(key, "token_text") == 0)
		return "is not said here";
	if (vn_facts_get(&d->run, key))
		return "is said twice";
	return d->run.n >= VN_FACTS_MAX - 8 ? "is one too many" : NULL;
}

/* It comes back from a checkpoint file as it went in. */
const char *vn_dump_name_wrong(const char *name)
{
	if (!*name)
		return "is empty";
	if (strlen(name) >= VN_NAME_MAX)
		return "has more than 127 bytes";
	if (*name == '.' || name[strlen(name) - 1] == '.' || strstr(name, ".."))
		return "has nothing before or behind a dot";
	for (const char *p = name; *p; p++)
		if (vn_text_control(*p) || *p == '/')
			return "has a slash or a control character";
	return vn_utf8_good(name, strlen(name)) == strlen(name) ? NULL : "is not UTF-8";
}

vn_array *vn_dump_add(vn_dump *d, const char *where, const char *name, const char *axes, const char *op, vn_error *err)
{
	const char *why = vn_dump_name_wrong(name);
	vn_dims     dims;
	char        shown[VN_NAME_MAX];
	snprintf(shown, sizeof shown, "%s", name);
	vn_text_clean(shown);
	if (why) {
		vn_fail(err, VN_ERR_FORMAT, "%s: the name '%s' %s", where, shown, why);
		return NULL;
	}
	if (axes && (strlen(axes) >= sizeof d->array->axes || !vn_dims_parse(axes, &dims, &why))) {
		vn_fail(err, VN_ERR_FORMAT, "%s: %s: its dims are no dims string: %s", where, shown, strlen(axes) >= sizeof d->array->axes ? "longer than 63 bytes" : why);
		return NULL;
	}
	if (op && strlen(op) >= sizeof d->array->op) {
		vn_fail(err, VN_ERR_FORMAT, "%s: %s: its op is longer than 31 bytes", where, shown);
		return NULL;
	}
	if (d->n == VN_DUMP_MOST) {
		vn_fail(err, VN_ERR_FORMAT, "%s: more than %d tensors", d->path, VN_DUMP_MOST);
		return NULL;
	}
	if (d->n == d->room) {
		const int room = d->room ? 2 * d->room : 256;
		vn_array *more = realloc(d->array, (size_t)room * sizeof *more);
		if (!more) {
			vn_fail(err, VN_ERR_NOMEM, "%s: no memory for %d tensors", d->path, room);
			return NULL;
		}
		d->array = more;
		d->room = room;
	}
	vn_array *a = &d->array[d->n++];
	*a = (vn_array) { .step = 0 };
	strcpy(a->name, name);
	strcpy(a->axes, axes ? axes : "");
	strcpy(a->op, op ? op : "");
	return a;
}

const char *vn_dump_step_of(const char *name, int *step)
{
	int64_t     n;
	const char *end = strncmp(name, "step.", 5) == 0 && isdigit((unsigned char)name[5]) ? vn_text_digits(name + 5, &n) : NULL;
	*step = 0;
	if (!end || *end != '/' || n > 99999)
		return name;
	*step = (int)n;
	return end + 1;
}

vn_status vn_dump_step(vn_dump *d, int64_t tokens, vn_error *err)
{
	if (d->n_steps == d->room_steps) {
		const int room = d->room_steps ? 2 * d->room_steps : 16;
		vn_step  *more = realloc(d->step, (size_t)room * sizeof *more);
		if (!more)
			return vn_fail(err, VN_ERR_NOMEM, "%s: no memory for %d steps", d->path, room);
		d->step = more;
		d->room_steps = room;
	}
	const vn_step *before = d->n_steps ? &d->step[d->n_steps - 1] : NULL;
	d->step[d->n_steps] = (vn_step) { .number = d->n_steps, .position = before ? before->position + before->tokens : 0, .tokens = tokens, .rows = tokens };
	d->n_steps++;
	return VN_OK;
}

vn_status vn_dump_ids(vn_dump *d, const int32_t *ids, const int32_t *positions, int64_t n, vn_error *err)
{
	enum { MOST_IDS = 64 << 20 };
	if (n > MOST_IDS - d->n_ids)
		return vn_fail(err, VN_ERR_FORMAT, "%s: more than %d token ids", d->path, MOST_IDS);
	if (d->n_ids + n > d->room_ids) {
		const int64_t room = 2 * (d->n_ids + n);
		int32_t *a = realloc(d->ids, (size_t)room * sizeof *a), *b = a ? realloc(d->positions, (size_t)room * sizeof *b) : NULL;
		d->ids = a ? a : d->ids;
		if (!b)
			return vn_fail(err, VN_ERR_NOMEM, "%s: no memory for %" PRId64 " token ids", d->path, room);
		d->positions = b;
		d->room_ids = room;
	}
	for (int64_t i = 0; i < n; i++) {
		const int32_t before = d->n_ids ? d->positions[d->n_ids - 1] : -1;
		if (!positions && before == INT32_MAX)
			return vn_fail(err, VN_ERR_FORMAT, "%s: no position behind %d", d->path, before);
		d->ids[d->n_ids] = ids[i];
		d->positions[d->n_ids++] = positions ? positions[i] : before + 1;
	}
	return VN_OK;
}

/* ---- numbers ------------------------------------------------------------------------------------- */

static vn_status hold(vn_dump *d, int i, vn_error *err)
{
	if (d->held == i)
		return VN_OK;
	d->held = -1;
	const vn_status st = d->bytes(d, &d->array[i], &d->held_data, err);
	d->held = st ? -1 : i;
	return st;
}

vn_status vn_dump_read(vn_dump *d, int i, size_t at, size_t n, void *to, vn_error *err)
{
	const vn_array *a = &d->array[i];
	const vn_status st = n ? hold(d, i, err) : VN_OK;
	if (st || n == 0)
		return st;
	if (!vn_laid_plain(&a->laid))
		return vn_laid_read(d->path, a->name, &a->laid, &a->shape, d->held_data, to, err);
	memcpy(to, d->held_data + at, n);
	return VN_OK;
}

/* ---- the recording --------------------------------------------------------------------------------- */

static vn_status read_foreign(void *context, int i, size_t at, size_t n, void *to, vn_error *err)
{
	return vn_dump_read(context, i, at, n, to, err);
}

static void close_foreign(void *context)
{
	vn_dump_close(context);
}

vn_status vn_dump_model_word(vn_recording *r, const char *key, const char *value, vn_error *err)
{
	vn_word *more = realloc(r->model, (size_t)(r->n_model + 1) * sizeof *more), w = { strdup(key), strdup(value) };
	r->model = more ? more : r->model;
	if (!more || !w.key || !w.value) {
		free(w.key);
		free(w.value);
		return vn_fail(err, VN_ERR_NOMEM, "%s: no memory", r->path);
	}
	r->model[r->n_model++] = w;
	return VN_OK;
}

static vn_entry entry_of(const vn_array *a, int i)
{
	vn_entry e = { .step = a->step, .order = i, .layer = vn_name_layer(a->name), .dtype = a->laid.dtype, .shape = a->shape, .same_as = -1 };
	strcpy(e.name, a->name);
	strcpy(e.axes, a->axes);
	strcpy(e.op, a->op);
	return e;
}

static vn_status check_dims(const vn_dump *d, const vn_array *a, vn_error *err)
{
	vn_dims     dims;
	const char *why;
	char        text[VN_SHAPE_TEXT];
	if (*a->axes && vn_dims_parse(a->axes, &dims, &why) && dims.rank != a->shape.rank)
		return vn_fail(err, VN_ERR_SHAPE, "%s: %s: its dims '%s' are %d axes, its shape %s has %d", d->path, a->name, a->axes, dims.rank,
		               vn_shape_text(&a->shape, text), a->shape.rank);
	if (a->step >= d->n_steps)
		return vn_fail(err, VN_ERR_FORMAT, "%s: %s: is of step %d, and no tokens of that step are said", d->path, a->name, a->step);
	if (a->laid.bits)
		return vn_fail(err, VN_ERR_UNSUPPORTED, "%s: %s: its numbers of %d bytes may be %s or not: a manifest, or --bits, says what they are", d->path, a->name,
		               a->laid.width, a->laid.width == 2 ? "bfloat16" : "float8");
	return VN_OK;
}

vn_status vn_dump_recording(vn_dump *d, vn_recording **out, vn_error *err)
{
	vn_recording *r = *out = calloc(1, sizeof *r);
	vn_status     st = VN_OK;
	if (!r) {
		vn_dump_close(d);
		return vn_fail(err, VN_ERR_NOMEM, "no memory for a recording");
	}
	r->fd = -1;
	r->foreign = (vn_foreign) { .context = d, .read = read_foreign, .close = close_foreign };
	r->complete = d->complete;
	r->path = strdup(d->path);
	r->entry = calloc((size_t)d->n + 1, sizeof *r->entry);
	r->source = calloc((size_t)d->n + 1, sizeof *r->source);
	r->step = calloc((size_t)d->n_steps + 1, sizeof *r->step);
	if (!r->path || !r->entry || !r->source || !r->step)
		st = vn_fail(err, VN_ERR_NOMEM, "%s: no memory for %d tensors", d->path, d->n);
	for (int i = 0; !st && i < d->n; i++) {
		const vn_array *a = &d->array[i];
		if ((st = check_dims(d, a, err)))
			break;
		r->entry[r->n_entries] = entry_of(a, i);
		r->source[r->n_entries++] = (vn_extent) { .offset = -1, .address = (uint64_t)i + 1, .foreign = i + 1, .parts = vn_laid_plain(&a->laid),
			.bytes = vn_shape_count(&a->shape) * (int64_t)vn_dtype_size(a->laid.dtype) };
	}
	if (!st) {
		memcpy(r->step, d->step, (size_t)d->n_steps * sizeof *r->step);
		r->n_steps = r->room_steps = d->n_steps;
		r->run = d->run;
		r->ids = d->ids;
		r->positions = d->positions;
		r->n_ids = r->n_positions = d->n_ids;
		d->ids = d->positions = NULL;
		st = vn_recording_sort(r, err);
	}
	if (st) {
		vn_recording_close(r);
		*out = NULL;
	}
	return st;
}
