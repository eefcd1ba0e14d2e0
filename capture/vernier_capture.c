/* vernier_capture.c: the public C API, over the store; see include/vernier_capture.h. */
#include "capture/include/vernier_capture.h"
#include "capture/put_judge.h"

#include "capture/view/dims.h"
#include "capture/import/dump.h"
#include "capture/file/place.h"
#include "capture/store/store.h"
#include "libref/family/family.h"
#include "libref/plan/point.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Tokens and facts are kept in a dump until the end. Until then the token lists in the file have
 * spare room, with id -1 and consecutive positions. */
struct vernier_capture {
	pid_t         owner; /* the process that opened it; forked children only have a copy */
	vn_store     *store;
	vn_put_judge *judge; /* NULL: every tensor is written */
	vn_dump       run;
	int64_t       room, listed, with_id; /* entries in the lists: in all, known at first, with an id */
	bool          done, stop_at_first, stopped;
	char          source_line[128]; /* of the next tensor */
	vn_status     st;
	vn_error      err;
};

enum { WRITTEN_ALONE = 64 }; /* tokens written one by one */

static int keep_status(vernier_capture *c, vn_status st)
{
	c->st = st;
	return st ? -1 : 0;
}

/* After a failure or the end, and in a forked child, every call does nothing. */
static bool is_ready(vernier_capture *c)
{
	if (c && !c->st && c->owner != getpid())
		c->st = vn_fail(&c->err, VN_ERR_USAGE,
		                "%s: this process was forked from the one that opened it, which alone writes it", c->run.path);
	if (c && !c->st && c->done)
		c->st = vn_fail(&c->err, VN_ERR_USAGE, "%s: is already finished", c->run.path);
	return c && !c->st;
}

/* A message of the place names the option of the commands; here it is an argument. */
static void name_argument(vn_error *err)
{
	static const char option[] = "--force", argument[] = "replace";
	char             *at = NULL;

	for (char *next = strstr(err->text, option); next; next = strstr(next + 1, option))
		at = next; /* the last: the path comes first */
	if (at)
		memcpy(at, argument, strlen(argument)); /* as long */
}

vernier_capture *vernier_capture_open(const char *path, int replace, const char *engine, const char *precision)
{
	vernier_capture *c = calloc(1, sizeof *c);
	if (!c || !(c->run.path = strdup(path ? path : ""))) {
		free(c);
		return NULL;
	}
	c->owner = getpid();
	const vn_status st = vn_store_create(c->run.path, replace != 0, NULL, &c->store, &c->err);
	if (st)
		name_argument(&c->err);
	if (keep_status(c, st) == 0 && vernier_capture_say(c, "engine", engine ? engine : "unknown") == 0)
		vernier_capture_say(c, "precision", precision ? precision : "unknown");
	return c;
}

int vernier_capture_say(vernier_capture *c, const char *key, const char *value)
{
	if (!is_ready(c))
		return -1;
	const char *why = vn_dump_fact_wrong(&c->run, key, value);
	if (why)
		return keep_status(c, vn_fail(&c->err, VN_ERR_USAGE, "%s: '%.40s' %s", c->run.path, key ? key : "", why));
	vn_facts_set(&c->run.run, key, "%s", value);
	return 0;
}

int vernier_capture_config(vernier_capture *c, const char *json)
{
	if (!is_ready(c))
		return -1;
	if (c->run.config || !json)
		return keep_status(
			c, vn_fail(&c->err, VN_ERR_USAGE, "%s: %s", c->run.path, json ? "a second config" : "no config"));
	if (!(c->run.config = strdup(json)))
		return keep_status(c, vn_fail(&c->err, VN_ERR_NOMEM, "%s: no memory for a config", c->run.path));
	return 0;
}

int vernier_capture_against(vernier_capture *c, const char *reference, double keep_above)
{
	if (!is_ready(c))
		return -1;
	if (c->judge || c->run.n_steps || !reference || !(keep_above >= 0 && keep_above < 1))
		return keep_status(c, vn_fail(&c->err, VN_ERR_USAGE, "%s: %s", c->run.path,
		                              c->judge         ? "a second reference"
		                              : c->run.n_steps ? "the reference must be given before the first step"
		                              : !reference     ? "no reference (NULL)"
		                                               : "keep_above is an nmse from 0 to 1"));
	if (vn_same_file(c->run.path, reference))
		return keep_status(c, vn_fail(&c->err, VN_ERR_USAGE,
		                              "%s: is the reference, too; give the recording another name", c->run.path));
	return keep_status(c, vn_put_judge_open(reference, keep_above, &c->judge, &c->err));
}

int vernier_capture_stop_at_first(vernier_capture *c)
{
	if (!is_ready(c))
		return -1;
	if (!c->judge)
		return keep_status(
			c, vn_fail(&c->err, VN_ERR_USAGE, "%s: stopping at the first difference needs a reference", c->run.path));
	c->stop_at_first = true;
	return 0;
}

const char *vernier_capture_differs(const vernier_capture *c)
{
	return c && c->judge ? vn_put_judge_first(c->judge) : "";
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* Writes lists of all tokens so far, with spare room. */
static vn_status list_tokens(vernier_capture *c)
{
	const vn_dump *r = &c->run;
	const int64_t  known = r->n_ids, last = r->positions[known - 1], more = known / 2 + WRITTEN_ALONE;
	const int64_t  n = known + (last + more < INT32_MAX ? more : 0);
	int32_t       *list = malloc(2 * (size_t)n * sizeof *list);
	if (!list)
		return vn_fail(&c->err, VN_ERR_NOMEM, "%s: no memory for %" PRId64 " tokens", r->path, n);
	for (int64_t i = 0; i < n; i++) {
		list[i] = i < known ? r->ids[i] : -1;
		list[n + i] = i < known ? r->positions[i] : (int32_t)(last + 1 + i - known);
	}
	const vn_status st = vn_store_run(c->store, &r->run, list, list + n, n, &c->err);
	free(list);
	c->room = n;
	c->listed = c->with_id = known;
	return st;
}

/* Writes the tokens of a new step, so that a recording that is cut off can be read. Uses the spare
 * room if they are few and their positions match. */
static vn_status write_tokens(vernier_capture *c)
{
	const vn_dump *r = &c->run;
	bool           fits = r->n_ids < c->room && r->n_ids - c->with_id <= WRITTEN_ALONE;
	vn_status      st = VN_OK;
	for (int64_t i = c->with_id; fits && i < r->n_ids; i++)
		fits = r->positions[i] == r->positions[c->listed - 1] + 1 + i - c->listed;
	if (!fits)
		return list_tokens(c);
	for (; c->with_id < r->n_ids && !st; c->with_id++)
		st = vn_store_token(c->store, c->with_id, r->ids[c->with_id], &c->err);
	return st;
}

int vernier_capture_step_at(vernier_capture *c, const int32_t *ids, const int32_t *positions, size_t n)
{
	if (!is_ready(c))
		return -1;
	if (c->stopped)
		return VERNIER_CAPTURE_STOPPED;
	vn_status st = VN_OK;
	if (!ids && n)
		st = vn_fail(&c->err, VN_ERR_USAGE, "%s: step %d of %zu tokens has no ids (NULL)", c->run.path, c->run.n_steps,
		             n);
	for (size_t i = 0; i < n && !st; i++)
		if (ids[i] < 0 || (positions && positions[i] < 0))
			st = vn_fail(&c->err, VN_ERR_USAGE, "%s: step %d: token %zu has a negative %s", c->run.path, c->run.n_steps,
			             i, ids[i] < 0 ? "id" : "position");
	if (!st && n == 0)
		st = vn_fail(&c->err, VN_ERR_USAGE, "%s: step %d has no token", c->run.path, c->run.n_steps);
	if (!st && !(st = vn_dump_ids(&c->run, ids, positions, (int64_t)n, &c->err)) &&
	    !(st = vn_dump_step(&c->run, (int64_t)n, &c->err))) {
		const vn_step *s = &c->run.step[c->run.n_steps - 1];
		if (!(st = write_tokens(c)))
			st = vn_store_step(c->store, &(vn_step) { s->number, s->position, s->tokens, 0, s->tokens }, &c->err);
		if (!st && c->judge)
			st = vn_put_judge_step(c->judge, s->number, s->position, ids, (int64_t)n, &c->err);
	}
	return keep_status(c, st);
}

int vernier_capture_step(vernier_capture *c, const int32_t *ids, size_t n)
{
	return vernier_capture_step_at(c, ids, NULL, n);
}

/* ---- tensors --------------------------------------------------------------------------------- */

/* A tensor of the caller's: its numbers may be anywhere (stride: bytes per axis). */
typedef struct strided {
	vn_tensor      t;
	const int64_t *stride;
	int            dense;    /* the axes from here on are contiguous */
	size_t         elements; /* of those axes */
	char          *to;       /* where the numbers go; NULL: into the store */
} strided;

/* Writes the axes from `axis` on. */
static vn_status write_axes(vernier_capture *c, strided *s, const char *data, int axis)
{
	const size_t bytes = s->elements * vn_dtype_size(s->t.dtype);
	vn_status    st = VN_OK;
	if ((axis == s->dense || axis == VN_MAX_RANK) && s->to) {
		memcpy(s->to, data, bytes);
		s->to += bytes;
		return VN_OK;
	}
	if (axis == s->dense || axis == VN_MAX_RANK)
		return vn_store_write(c->store, data, s->elements, &c->err);
	for (int64_t i = 0; i < s->t.shape.dim[axis] && !st; i++)
		st = write_axes(c, s, data + i * s->stride[axis], axis + 1);
	return st;
}

/* to: room for all numbers; NULL: the store. */
static vn_status write_numbers(vernier_capture *c, const vn_tensor *t, const int64_t *stride, char *to)
{
	const vn_shape *shape = &t->shape;
	strided         s = { .t = *t, .stride = stride, .dense = shape->rank, .elements = 1, .to = to };
	if (vn_shape_count(shape) == 0)
		return VN_OK;
	for (int a;
	     (a = s.dense - 1) >= 0 && (shape->dim[a] == 1 || stride[a] == (int64_t)(s.elements * vn_dtype_size(t->dtype)));
	     s.dense = a)
		s.elements *= (size_t)shape->dim[a];
	return write_axes(c, &s, t->data, 0);
}

static vn_status put_judged(vernier_capture *c, const vn_tensor_label *l, const vn_tensor *t, const int64_t *stride)
{
	char *copy = malloc((size_t)vn_shape_count(&t->shape) * vn_dtype_size(t->dtype) + 1);

	if (!copy)
		return vn_fail(&c->err, VN_ERR_NOMEM, "%s: %s: no memory for its numbers", c->run.path, l->name);
	write_numbers(c, t, stride, copy);
	return vn_put_judge_put(c->judge, c->store, l, &(vn_tensor) { t->dtype, t->shape, copy }, &c->err);
}

/* A tensor as the caller describes it. */
typedef struct put_tensor {
	const char    *name, *dims, *dtype;
	const void    *data;
	int            rank;
	const int64_t *shape;
	bool           weight; /* of the model, not of a step */
} put_tensor;

/* Refuses here what a reader of the file would refuse. */
static vn_status check_tensor(vernier_capture *c, const put_tensor *g, vn_tensor *t)
{
	const vn_import_layout one = { .dtype = VN_F64, .stored = VN_F64, .width = 8 };
	vn_dims                d;
	const char            *why = g->name ? vn_dump_name_wrong(g->name) : "is missing", *path = c->run.path;
	vn_shape              *is = &t->shape;
	size_t                 bytes;
	*t = (vn_tensor) { .shape.rank = g->rank, .data = g->data };
	if (why)
		return vn_fail(&c->err, VN_ERR_USAGE, "%s: the name '%.100s' %s", path, g->name ? g->name : "", why);
	if (c->run.n_steps == 0 && !g->weight)
		return vn_fail(&c->err, VN_ERR_USAGE, "%s: %s: no step was begun before this tensor", path, g->name);
	if (!g->dtype || !vn_dtype_from_name(g->dtype, &t->dtype) || t->dtype >= VN_N_DTYPES)
		return vn_fail(&c->err, VN_ERR_USAGE,
		               "%s: %s: dtype '%.20s' is not one of f32, f16, bf16, f64, i32, f8_e4m3, f8_e5m2", path, g->name,
		               g->dtype ? g->dtype : "");
	if (g->rank < 0 || g->rank > VN_MAX_RANK)
		return vn_fail(&c->err, VN_ERR_USAGE, "%s: %s: rank %d; expected 0 to %d", path, g->name, g->rank, VN_MAX_RANK);
	if (g->rank && !g->shape)
		return vn_fail(&c->err, VN_ERR_USAGE, "%s: %s: rank %d, and no shape (NULL)", path, g->name, g->rank);
	if (g->rank)
		memcpy(is->dim, g->shape, (size_t)g->rank * sizeof *g->shape);
	if (!vn_import_layout_bytes(&one, is, &bytes))
		return vn_fail(&c->err, VN_ERR_USAGE, "%s: %s: the shape is too large for any file", path, g->name);
	if (!g->data && vn_shape_count(is))
		return vn_fail(&c->err, VN_ERR_USAGE, "%s: %s: data is NULL for %" PRId64 " numbers", path, g->name,
		               vn_shape_count(is));
	if (g->dims && (strlen(g->dims) > 63 || !vn_dims_parse(g->dims, &d, &why) || d.rank != g->rank))
		return vn_fail(&c->err, VN_ERR_USAGE, "%s: %s: its dims '%.80s' are not %d axes: %s", path, g->name, g->dims,
		               g->rank,
		               strlen(g->dims) > 63 ? "longer than 63 bytes"
		               : why                ? why
		                                    : "another number");
	return VN_OK;
}

/* Number of prompts packed into the first call; each starts its positions anew. */
static int64_t count_prompts(const vn_dump *r)
{
	int64_t count = 0;
	for (int64_t i = 0; i < r->step[0].tokens; i++)
		count += i == 0 || r->positions[i] != r->positions[i - 1] + 1;
	return count;
}

/* A tensor must have a row for each token of the call. Only tensors computed for the next token
 * alone may have fewer. */
static vn_status check_rows(vernier_capture *c, const vn_tensor_label *l, const vn_shape *is)
{
	const int     axis = vn_axes_find(l->axes, "token");
	const int64_t n = axis >= 0 && axis < is->rank ? is->dim[axis] : -1,
				  tokens = c->run.step[c->run.n_steps - 1].tokens;
	vn_point   p;
	const bool last = vn_point_from_name(l->point, &p) && vn_point_get(p)->place == VN_BEHIND_LAYERS;
	if (n < 0 || n == tokens || (last && (n == 1 || n == count_prompts(&c->run))))
		return VN_OK;
	return vn_fail(&c->err, VN_ERR_USAGE, "%s: %s: %" PRId64 " rows, but step %d has %" PRId64 " tokens", c->run.path,
	               l->name, n, c->run.n_steps - 1, tokens);
}

int vernier_capture_at(vernier_capture *c, const char *file, int line)
{
	if (!is_ready(c))
		return -1;
	if (!file)
		return keep_status(c, vn_fail(&c->err, VN_ERR_USAGE, "%s: no source file (NULL)", c->run.path));
	const size_t n = strlen(file), room = sizeof c->source_line - sizeof ":-2147483648";
	for (file += n > room ? n - room : 0; ((unsigned char)*file & 0xc0) == 0x80;) /* not inside a character */
		file++;
	snprintf(c->source_line, sizeof c->source_line, "%s:%d", file, line);
	return 0;
}

int vernier_capture_put_strided(vernier_capture *c, const char *name, const char *dims, const char *dtype,
                                const void *data, int rank, const int64_t *shape, const int64_t *stride, const char *op)
{
	vn_tensor       t;
	vn_tensor_label l;
	if (!is_ready(c))
		return -1;
	if (c->stopped)
		return VERNIER_CAPTURE_STOPPED;
	vn_status st = check_tensor(c, &(put_tensor) { name, dims, dtype, data, rank, shape, false }, &t);
	if (!st && rank && !stride)
		st = vn_fail(&c->err, VN_ERR_USAGE, "%s: %s: rank %d, and no strides (NULL)", c->run.path, name, rank);
	if (st)
		return keep_status(c, st);
	l = vn_label_of_name(name);
	if (dims)
		snprintf(l.axes, sizeof l.axes, "%s", dims);
	snprintf(l.op, sizeof l.op, "%s", op ? op : "");
	memcpy(l.source_line, c->source_line, sizeof l.source_line);
	*c->source_line = '\0';
	if ((st = check_rows(c, &l, &t.shape)))
		return keep_status(c, st);
	if (c->judge)
		st = put_judged(c, &l, &t, stride);
	else if (!(st = vn_store_begin(c->store, &l, t.dtype, &t.shape, &c->err)) &&
	         !(st = write_numbers(c, &t, stride, NULL)))
		st = vn_store_end(c->store, &c->err);
	c->stopped = !st && c->stop_at_first && *vn_put_judge_first(c->judge);
	return c->stopped ? VERNIER_CAPTURE_STOPPED : keep_status(c, st);
}

int vernier_capture_put(vernier_capture *c, const char *name, const char *dims, const char *dtype, const void *data,
                        int rank, const int64_t *shape)
{
	int64_t   stride[VN_MAX_RANK] = { 0 }, bytes;
	vn_tensor t;
	if (!is_ready(c))
		return -1;
	const vn_status st = check_tensor(c, &(put_tensor) { name, dims, dtype, data, rank, shape, false }, &t);
	if (st)
		return keep_status(c, st);
	bytes = (int64_t)vn_dtype_size(t.dtype);
	for (int i = rank - 1; i >= 0; i--) {
		stride[i] = bytes;
		bytes *= t.shape.dim[i];
	}
	return vernier_capture_put_strided(c, name, dims, dtype, data, rank, shape, stride, NULL);
}

int vernier_capture_weight(vernier_capture *c, const char *name, const char *dtype, const void *data, int rank,
                           const int64_t *shape)
{
	vn_tensor t;
	if (!is_ready(c))
		return -1;
	vn_status st = check_tensor(
		c, &(put_tensor) { .name = name, .dtype = dtype, .data = data, .rank = rank, .shape = shape, .weight = true },
		&t);
	if (!st) {
		const size_t        n = (size_t)vn_shape_count(&t.shape);
		const vn_weight_row row = { .name = name,
			                        .dtype = t.dtype,
			                        .shape = t.shape,
			                        .digest = vn_digest_of(data, vn_dtype_bytes(t.dtype, n)),
			                        .stats = vn_stats_of(data, t.dtype, n) };
		st = vn_dump_weight(&c->run, &row, &c->err);
	}
	return keep_status(c, st);
}

/* ---- the end --------------------------------------------------------------------------------- */

int vernier_capture_commit(vernier_capture *c)
{
	if (!is_ready(c))
		return -1;
	const vn_dump *r = &c->run;
	vn_model_words words = { .config = r->config };
	vn_status      st = VN_OK;
	c->done = true;
	if (r->n_ids == 0)
		st = vn_fail(&c->err, VN_ERR_USAGE, "%s: no step was begun", r->path);
	if (r->config)
		vn_plan_destroy(vn_family_plan(r->config, &words.family));
	if (!st && c->judge)
		st = vn_put_judge_end(c->judge, &c->run.run, &c->err);
	if (c->stopped)
		vn_facts_set(&c->run.run, "stopped", "%s", vernier_capture_differs(c));
	st = st ? st : vn_dump_sort_weights(&c->run, r->path, &c->err);
	if (!st && !(st = vn_store_run(c->store, &r->run, r->ids, r->positions, r->n_ids, &c->err)) &&
	    (!c->judge || !(st = vn_put_judge_lines(c->judge, c->store, &c->err))) &&
	    (!(r->config || r->n_weights) || !(st = vn_store_words(c->store, &words, r->weight, r->n_weights, &c->err))))
		st = vn_store_commit(&c->store, &c->err);
	return keep_status(c, st);
}

const char *vernier_capture_error(const vernier_capture *c)
{
	return c ? c->err.text : "no memory";
}

void vernier_capture_free(vernier_capture *c)
{
	if (!c)
		return;
	if (c->owner == getpid()) {
		vn_store_abandon(&c->store);
		vn_put_judge_close(c->judge);
	} else {
		vn_store_forget(&c->store); /* the judge's recording: mappings that a fork does not have */
	}
	for (int i = 0; i < c->run.n_weights; i++)
		free((char *)(uintptr_t)c->run.weight[i].name);
	VN_FREE(c->run.weight, c->run.ids, c->run.positions, c->run.step, c->run.config, c->run.path, c);
}
