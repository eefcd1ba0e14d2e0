/* gguf_files.c: opens and joins the files of gguf.h. */
#include "libref/model/gguf_internal.h"

#include "libref/base/alloc.h"
#include "libref/base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS_MAX = 4096 };

const char *vn_gguf_path(const vn_gguf *f)
{
	return f->path;
}
size_t vn_gguf_count(const vn_gguf *f)
{
	return f->n;
}
const vn_gguf_tensor *vn_gguf_at(const vn_gguf *f, size_t i)
{
	return &f->tensor[i];
}

static vn_status open_one(const char *path, vn_gguf **file, vn_error *err)
{
	vn_map    map;
	vn_status st = vn_map_open(path, &map, err);

	*file = NULL;
	if (st)
		return st;
	if ((st = vn_gguf_parse(path, map.data, map.bytes, file, err)))
		vn_map_close(&map);
	else
		(*file)->map = map;
	return st;
}

static int64_t get_int(const vn_gguf *f, const char *key, int64_t otherwise)
{
	vn_gguf_int_at(vn_gguf_get(f, key), 0, &otherwise);
	return otherwise;
}

/* "NAME-00001-of-00003.gguf" with another number in place of the first. */
static char *make_sibling_path(const char *path, int64_t part, int64_t parts)
{
	const size_t n = strlen(path), tail = sizeof "-00001-of-00003.gguf" - 1;
	char         own[32], *other = NULL;

	snprintf(own, sizeof own, "-00001-of-%05" PRId64 ".gguf", parts);
	if (n >= tail && strcmp(path + n - tail, own) == 0 &&
	    !(other = vn_text_new("%.*s-%05" PRId64 "-of-%05" PRId64 ".gguf", (int)(n - tail), path, part + 1, parts)))
		other = NULL;
	return other;
}

static vn_status add_part(vn_gguf *f, int64_t number, int64_t parts, vn_error *err)
{
	char     *path = make_sibling_path(f->path, number, parts);
	vn_gguf  *p = NULL;
	vn_status st;

	if (!path)
		return vn_fail(err, VN_ERR_FORMAT,
		               "%s: the first of %" PRId64 " files must be named NAME-00001-of-%05" PRId64 ".gguf", f->path,
		               parts, parts);
	if ((st = open_one(path, &p, err)))
		goto done;
	f->part[f->n_parts++] = p;
	if (get_int(p, "split.no", -1) != number || get_int(p, "split.count", -1) != parts) {
		st = vn_fail(err, VN_ERR_FORMAT,
		             "%s: its metadata has part %" PRId64 " of %" PRId64 ", expected %" PRId64 " of %" PRId64, path,
		             get_int(p, "split.no", -1) + 1, get_int(p, "split.count", -1), number + 1, parts);
		goto done;
	}
	f->tensor = vn_alloc_resized(f->tensor, f->n + p->n, sizeof *f->tensor);
	if (p->n)
		memcpy(f->tensor + f->n, p->tensor, p->n * sizeof *p->tensor);
	f->n += p->n;
	p->n = 0;
done:
	free(path);
	return st;
}

static vn_status add_parts(vn_gguf *f, vn_error *err)
{
	const int64_t parts = get_int(f, "split.count", 0), tensors = get_int(f, "split.tensors.count", -1);
	vn_status     st = VN_OK;

	if (parts <= 1)
		return VN_OK;
	if (get_int(f, "split.no", -1) != 0)
		return vn_fail(err, VN_ERR_USAGE,
		               "%s: this is part %" PRId64 " of %" PRId64 "; give the first part, NAME-00001-of-%05" PRId64
		               ".gguf",
		               f->path, get_int(f, "split.no", -1) + 1, parts, parts);
	if (parts > PARTS_MAX)
		return vn_fail(err, VN_ERR_FORMAT, "%s: the model has %" PRId64 " files, at most %d are supported", f->path,
		               parts, PARTS_MAX);
	f->part = vn_alloc_zero((size_t)parts, sizeof(vn_gguf *));
	for (int64_t i = 1; i < parts && !st; i++)
		st = add_part(f, i, parts, err);
	if (!st && tensors >= 0 && (size_t)tensors != f->n)
		return vn_fail(err, VN_ERR_FORMAT, "%s: found %zu tensors in its %" PRId64 " files, expected %" PRId64, f->path,
		               f->n, parts, tensors);
	return st ? st : vn_gguf_sort(f, err);
}

vn_status vn_gguf_open(const char *path, vn_gguf **file, vn_error *err)
{
	vn_status st = open_one(path, file, err);

	if (!st && (st = add_parts(*file, err))) {
		vn_gguf_close(*file);
		*file = NULL;
	}
	return st;
}
