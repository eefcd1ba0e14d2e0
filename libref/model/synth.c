/* synth.c: see synth.h. The plan of the shape says which weights there are and
 * what reads them; nothing here knows a family. */
#include "libref/model/synth.h"

#include "libref/base/alloc.h"
#include "libref/base/files.h"
#include "libref/base/json.h"
#include "libref/base/nearest.h"
#include "libref/base/progress.h"
#include "libref/base/temporary.h"
#include "libref/base/text.h"
#include "libref/base/trouble.h"
#include "libref/family/family.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

enum { PATH_ROOM = 4096, CHUNK = 1 << 20 };

/* The files of a synthetic model, which may be replaced. */
static const char *const files[] = { "config.json", "model.safetensors" };

/* Not a published model: it runs in milliseconds. */
static const vn_published tiny = {
	"tiny",
	"{\"architectures\": [\"Qwen2ForCausalLM\"], \"model_type\": \"qwen2\", \"vocab_size\": 512, \"hidden_size\": 64,"
	" \"intermediate_size\": 160, \"num_hidden_layers\": 3, \"num_attention_heads\": 4, \"num_key_value_heads\": 2,"
	" \"max_position_embeddings\": 256, \"rms_norm_eps\": 1e-6, \"rope_theta\": 10000.0, \"hidden_act\": \"silu\","
	" \"tie_word_embeddings\": true, \"use_sliding_window\": false}"
};

/* Published shape i of all families, then tiny; NULL after that. */
static const vn_published *shape_at(int i)
{
	for (int f = 0; vn_family_at(f); f++)
		for (const vn_published *s = vn_family_at(f)->published; s && s->name; s++)
			if (i-- == 0)
				return s;
	return i == 0 ? &tiny : NULL;
}

const char *vn_synth_shape(int i)
{
	const vn_published *s = i < 0 ? NULL : shape_at(i);
	return s ? s->name : NULL;
}

static uint64_t mix(uint64_t x) /* splitmix64's finaliser */
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

/* Approximates a normal deviate by the sum of four uniform numbers, variance 1. */
static float deviate(uint64_t key, uint64_t i)
{
	uint64_t u = mix(key + i * 0x9e3779b97f4a7c15u);
	int      sum = (int)(u & 0xffff) + (int)(u >> 16 & 0xffff) + (int)(u >> 32 & 0xffff) + (int)(u >> 48);
	/* the sum of four uniform integers below 2^16 has variance (2^32 - 1) / 3 */
	return (float)(sum - 2 * 65535) * (1.7320508f / 65536.0f);
}

/* Mean and spread for drawing weight w: mean + spread * deviate. */
static void scale_of(const vn_plan *p, int w, float *mean, float *spread)
{
	*mean = 0.0f;
	*spread = 1.0f;
	for (int i = 0; i < p->n_nodes; i++) {
		const vn_node *n = &p->node[i];
		if (n->op == VN_OP_LOG_DECAY && (n->w[0] == w || n->w[1] == w)) { /* half-lives of one to fifty tokens */
			*mean = -1.0f;
			return;
		}
		if (n->op != VN_OP_EXPERTS && n->n_w > 1 &&
		    n->w[1] == w) { /* bias: half the spread of the result that it is added to */
			*spread = 0.5f;
			return;
		}
		if (n->op == VN_OP_EXPERTS && w >= n->w[0] && w < n->w[VN_EXPERT_DOWN] + n->c.experts.experts) {
			*spread = 1.0f / sqrtf((float)p->weight[w].shape.dim[1]);
			if (w >= n->w[VN_EXPERT_DOWN]) /* an addend of the residual stream, as below */
				*spread /= sqrtf(2.0f * (float)p->layers);
			return;
		}
		if (n->n_w < 1 || n->w[0] != w)
			continue;
		if (n->op == VN_OP_RMS_NORM || n->op == VN_OP_LAYER_NORM || n->op == VN_OP_GATED_NORM) {
			*mean = 1.0f - (n->op == VN_OP_RMS_NORM ? (float)n->c.norm.offset : 0.0f);
			*spread = 0.1f;
			return;
		}
		const bool over = n->op == VN_OP_LINEAR && n->c.linear.transposed;
		float      width = (float)p->weight[w].shape.dim[over ? 0 : p->weight[w].shape.rank - 1];
		if (n->op == VN_OP_EMBED) { /* gives tied logits a spread of 3 */
			*spread = 3.0f / sqrtf(width);
			return;
		}
		*spread = 1.0f / sqrtf(width);
		/* An addend of the residual stream shares it with 2 L others. */
		int reader = p->value[n->out[0]].last_use;
		if (reader >= 0 && p->node[reader].op == VN_OP_ADD)
			*spread /= sqrtf(2.0f * (float)p->layers);
		return;
	}
}

static vn_status write_all(FILE *f, const char *path, const void *data, size_t bytes, vn_error *err)
{
	if (bytes && fwrite(data, 1, bytes, f) != bytes)
		return vn_fail(err, VN_ERR_IO, "%s: %s", path, strerror(errno));
	return VN_OK;
}

/* Closes the file after syncing it, because a rename may reach the disk before the data. */
static vn_status finish_file(FILE *f, const char *path, bool good, vn_error *err)
{
	const bool lost = good && (fflush(f) != 0 || ferror(f) || vn_file_sync(fileno(f)) != 0);
	const int  why = errno;
	if (fclose(f) != 0 && good && !lost)
		return vn_fail(err, VN_ERR_IO, "%s: %s", path, strerror(errno));
	return lost ? vn_fail(err, VN_ERR_IO, "%s: %s", path, strerror(why)) : VN_OK;
}

/* A file that is written, and CHUNK numbers on their way into it. */
typedef struct weight_file {
	FILE       *f;
	const char *path;
	float      *chunk;
	void       *stored;
} weight_file;

bool vn_synth_stored(const vn_family *family, const vn_plan *p, int w, vn_synth_tensor *t)
{
	const char    *tail = vn_after_layer(p->weight[w].name, family->naming);
	const vn_shape own = p->weight[w].shape;
	char           joint[VN_NAME_MAX];
	long           expert, experts = 0;

	snprintf(t->name, sizeof t->name, "%s", p->weight[w].name);
	t->shape = own;
	for (const vn_spelling *s = family->naming->spellings; tail && s && s->name; s++) {
		if (!s->across || !vn_respell(s->name, s->file, tail, joint, sizeof joint, &expert))
			continue;
		for (int k = 0; k < p->n_nodes && !experts; k++)
			experts = p->node[k].op == VN_OP_EXPERTS ? p->node[k].c.experts.experts : 0;
		snprintf(t->name, sizeof t->name, "%.*s%s", (int)(tail - p->weight[w].name), p->weight[w].name, joint);
		t->shape = own.rank == 1 ? (vn_shape) { 2, { experts, own.dim[0] * s->parts } }
		                         : (vn_shape) { 3, { experts, own.dim[1], own.dim[0] * s->parts } };
		return expert == 0 && s->part == 0;
	}
	return true;
}

static vn_status write_weight(const weight_file *to, const vn_plan *p, int w, const vn_synth_tensor *t,
                              const vn_synth_options *o, vn_error *err)
{
	int64_t   n = vn_shape_count(&t->shape);
	uint64_t  key = XXH3_64bits_withSeed(t->name, strlen(t->name), o->seed);
	float     mean, spread;
	vn_status st = VN_OK;

	scale_of(p, w, &mean, &spread);
	for (int64_t at = 0; !st && at < n; at += CHUNK) {
		int64_t m = n - at < CHUNK ? n - at : CHUNK;
#pragma omp parallel for schedule(static)
		for (int64_t i = 0; i < m; i++)
			to->chunk[i] = mean + spread * deviate(key, (uint64_t)(at + i));
		vn_from_f32(to->stored, o->dtype, to->chunk, (size_t)m);
		st = write_all(to->f, to->path, to->stored, (size_t)m * vn_dtype_size(o->dtype), err);
	}
	return st;
}

static char *header_of(const vn_family *family, const vn_plan *p, vn_dtype dtype)
{
	VN_OWNED json_t *root = json_pack("{s:{s:s, s:s}}", "__metadata__", "format", "pt", "provenance", "synthetic");
	int64_t          at = 0;

	for (int w = 0; root && w < p->n_weights; w++) {
		vn_synth_tensor t;
		const vn_shape *s = &t.shape;
		if (!vn_synth_stored(family, p, w, &t))
			continue;
		json_t *dims = json_array();
		int64_t end = at + vn_shape_count(s) * (int64_t)vn_dtype_size(dtype);
		for (int i = 0; i < s->rank; i++)
			json_array_append_new(dims, json_integer(s->dim[i]));
		json_object_set_new(root, t.name,
		                    json_pack("{s:s, s:o, s:[I, I]}", "dtype", vn_dtype_word(dtype), "shape", dims,
		                              "data_offsets", (json_int_t)at, (json_int_t)end));
		at = end;
	}
	char *text = vn_json_dump(root, JSON_COMPACT);
	return text;
}

static vn_status write_weights(const char *path, const vn_family *family, const vn_plan *p, const vn_synth_options *o,
                               vn_error *err)
{
	vn_status   st;
	vn_progress progress = { 0 };
	char       *header = header_of(family, p, o->dtype);
	float      *chunk = vn_alloc(CHUNK, sizeof *chunk);
	void       *stored = vn_alloc(CHUNK, 8);
	FILE       *f = fopen(path, "wbx");

	if (!f) {
		st = vn_fail(err, VN_ERR_IO, "%s: %s", path, strerror(errno));
		goto done;
	}
	vn_alloc_check(header);
	size_t        n = strlen(header), padded = (n + 7) / 8 * 8;
	unsigned char length[8];
	for (int i = 0; i < 8; i++)
		length[i] = (unsigned char)(padded >> 8 * i);
	if ((st = write_all(f, path, length, 8, err)) || (st = write_all(f, path, header, n, err)) ||
	    (st = write_all(f, path, "        ", padded - n, err)))
		goto done;
	if (o->progress)
		vn_progress_start(&progress, "weight", p->n_weights);
	for (int w = 0; !st && w < p->n_weights; w++) {
		vn_synth_tensor t;
		if (vn_synth_stored(family, p, w, &t))
			st = write_weight(&(weight_file) { f, path, chunk, stored }, p, w, &t, o, err);
		vn_progress_at(&progress, w + 1);
	}
	vn_progress_stop(&progress);
done:
	if (f) {
		const vn_status closed = finish_file(f, path, st == VN_OK, err);
		st = st ? st : closed;
	}
	VN_FREE(header, chunk, stored);
	return st;
}

static vn_status write_config(const char *path, const json_t *config, vn_error *err)
{
	FILE *f = fopen(path, "wbx");
	if (!f)
		return vn_fail(err, VN_ERR_IO, "%s: %s", path, strerror(errno));
	vn_status st = VN_OK;
	if (!vn_json_print(config, f, JSON_INDENT(2)))
		st = vn_fail(err, VN_ERR_IO, "%s: %s", path, strerror(errno));
	const vn_status closed = finish_file(f, path, st == VN_OK, err);
	return st ? st : closed;
}

static json_t *config_of(const char *shape, int layers, vn_error *err)
{
	for (int i = 0; shape_at(i); i++) {
		if (strcmp(shape_at(i)->name, shape) != 0)
			continue;
		json_t *c = vn_json_parse(shape_at(i)->config, 0);
		if (c && layers)
			json_object_set_new(c, json_object_get(c, "n_layer") ? "n_layer" : "num_hidden_layers",
			                    json_integer(layers));
		return c;
	}
	char       known[512] = "";
	vn_nearest near;
	vn_nearest_start(&near, shape);
	for (int i = 0; vn_synth_shape(i); i++) {
		vn_text_add(known, sizeof known, "%s%s", i ? ", " : "", vn_synth_shape(i));
		vn_nearest_try(&near, vn_synth_shape(i));
	}
	for (int i = 0; *shape && vn_synth_shape(i); i++)
		if (strncmp(vn_synth_shape(i), shape, strlen(shape)) == 0) /* a size is missing: "qwen2" */
			vn_nearest_settle(&near, vn_synth_shape(i));
	vn_fail(err, VN_ERR_USAGE, "unknown shape '%s'%s (known: %s)", shape, vn_nearest_hint(&near), known);
	return NULL;
}

/* ---- the directory ---------------------------------------------------------- */

static void remove_files(const char *dir)
{
	char path[PATH_ROOM + 64];
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		snprintf(path, sizeof path, "%s/%s", dir, files[i]);
		unlink(path);
	}
	rmdir(dir);
}

static bool is_ours(const char *name)
{
	for (size_t i = 0; i < sizeof files / sizeof *files; i++)
		if (strcmp(name, files[i]) == 0)
			return true;
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Did vn_synth_write write these weights? They say so at their beginning (header_of), unless it was
 * killed before that. */
static bool are_synthetic(const char *path)
{
	static const char mark[] = "{\"__metadata__\":{\"format\":\"pt\",\"provenance\":\"synthetic\"}";
	enum { LENGTH = 8 };
	char        head[LENGTH + sizeof mark - 1];
	struct stat there;
	FILE       *f = lstat(path, &there) == 0 && S_ISREG(there.st_mode) ? fopen(path, "rb") : NULL;
	size_t      n = f ? fread(head, 1, sizeof head, f) : 0;
	const bool  read = f && !ferror(f);

	if (f)
		fclose(f);
	return read && (n == 0 || (n == sizeof head && memcmp(head + LENGTH, mark, sizeof head - LENGTH) == 0));
}

/* The weights are written first, so a config.json without them is not ours. */
static vn_status check_model(const char *dir, bool any, vn_error *err)
{
	char path[PATH_ROOM + 64];

	snprintf(path, sizeof path, "%s/model.safetensors", dir);
	return !any || are_synthetic(path)
	           ? VN_OK
	           : vn_fail(err, VN_ERR_USAGE, "%s: not replaced: it holds a model that synth did not write", dir);
}

/* Checks that the path is free, or a directory with none but our files. */
static vn_status check_replaceable(const char *dir, vn_error *err)
{
	struct stat    there = { 0 };
	struct dirent *e;
	vn_status      st = VN_OK;
	bool           any = false;
	DIR           *d;

	if (lstat(dir, &there) != 0)
		return errno == ENOENT ? VN_OK : vn_fail(err, VN_ERR_IO, "%s: %s", dir, strerror(errno));
	if (S_ISLNK(there.st_mode) || !(d = opendir(dir)))
		return vn_fail(err, VN_ERR_USAGE, "%s: not replaced: %s", dir,
		               S_ISLNK(there.st_mode) ? "a symbolic link" : strerror(errno));
	while (!st && (errno = 0, e = readdir(d))) {
		any = any || *e->d_name != '.';
		if (!is_ours(e->d_name))
			st = vn_fail(err, VN_ERR_USAGE, "%s: not replaced: it holds %s, which synth did not write", dir, e->d_name);
	}
	if (!st && errno)
		st = vn_fail(err, VN_ERR_IO, "%s: %s", dir, strerror(errno));
	closedir(d);
	return st ? st : check_model(dir, any, err);
}

/* Moves the complete new directory to the place of the old one. The old one is deleted last, so
 * that either is in place or can be put back. */
static vn_status take_place(const char *partial, const char *dir, vn_error *err)
{
	char old[PATH_ROOM + 16];
	snprintf(old, sizeof old, "%s.old", dir);
	const bool aside = rename(dir, old) == 0;
	if (!aside && errno != ENOENT)
		return vn_fail(err, VN_ERR_IO, "%s: cannot be renamed to make room for the new model: %s", dir,
		               strerror(errno));
	if (rename(partial, dir) != 0) {
		const int why = errno;
		if (aside && rename(old, dir) != 0)
			return vn_fail(err, VN_ERR_IO, "%s: %s; its former contents are in %s", dir, strerror(why), old);
		return vn_fail(err, VN_ERR_IO, "%s: %s", dir, strerror(why));
	}
	if (aside)
		remove_files(old);
	return VN_OK;
}

/* Removes trailing slashes. VN_ERR_USAGE when a model cannot be written there. */
static vn_status check_place(char *dir, size_t room, char *partial, const char *said, bool force, vn_error *err)
{
	struct stat there;
	size_t      n = strlen(said);
	vn_status   st;

	while (n > 1 && said[n - 1] == '/')
		n--;
	if (n == 0)
		return vn_fail(err, VN_ERR_USAGE, "the name of the directory is empty");
	if (snprintf(dir, room, "%.*s", n < room ? (int)n : (int)room, said) >= (int)room ||
	    snprintf(partial, room, "%s.partial", dir) >= (int)room)
		return vn_fail(err, VN_ERR_USAGE, "%.80s...: the path is too long", said);
	if (lstat(dir, &there) == 0 && !force)
		return vn_fail(err, VN_ERR_USAGE, "%s exists already: --force replaces it", dir);
	if ((st = check_replaceable(dir, err)))
		return st;
	return check_replaceable(partial, err);
}

vn_status vn_synth_plan(const char *shape, int layers, vn_plan **plan, vn_error *err)
{
	const vn_family *family;
	VN_OWNED json_t *config = config_of(shape, layers, err);
	vn_status        st = VN_ERR_USAGE;

	*plan = NULL;
	if (config && !(st = vn_family_find(shape, config, &family, err)))
		st = family->plan(shape, config, plan, err);
	return st;
}

vn_status vn_synth_write(const char *shape, const char *said, const vn_synth_options *o, vn_error *err)
{
	const vn_family *family;
	vn_plan         *plan = NULL;
	char             dir[PATH_ROOM], partial[PATH_ROOM], path[PATH_ROOM + 64];
	json_t          *config = config_of(shape, o->layers, err);
	vn_status        st = VN_ERR_USAGE;
	bool             made = false;
	const unsigned   mark = vn_trouble_mark();

	if (!config)
		return st;
	if ((st = check_place(dir, sizeof dir, partial, said, o->force, err)) ||
	    (st = vn_family_find(shape, config, &family, err)) || (st = family->plan(shape, config, &plan, err)))
		goto done;
	signal(SIGXFSZ, SIG_IGN); /* a file too large is then an error of the write, with cleanup */
	remove_files(partial);
	vn_temporary_begin();
	made = mkdir(partial, 0777) == 0;
	const int failed = errno;
	vn_temporary_add(made ? partial : NULL);
	if (!made) {
		st = vn_fail(err, VN_ERR_IO, "%s: %s", partial, strerror(failed));
		goto done;
	}
	snprintf(path, sizeof path, "%s/model.safetensors", partial);
	if ((st = write_weights(path, family, plan, o, err)))
		goto done;
	snprintf(path, sizeof path, "%s/config.json", partial);
	if (!(st = write_config(path, config, err)) && !(st = vn_trouble_since(mark, dir, err))) {
		vn_temporary_begin(); /* a signal, in whatever thread, waits until the folder has its name */
		if (!(st = take_place(partial, dir, err)))
			vn_temporary_forget(partial);
		vn_temporary_add(NULL);
	}
done:
	if (st && made)
		remove_files(partial);
	if (made)
		vn_temporary_forget(partial);
	vn_plan_destroy(plan);
	json_decref(config);
	return st;
}
