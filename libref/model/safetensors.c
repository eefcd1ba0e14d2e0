/* safetensors.c: see safetensors.h. The header is JSON, read by jansson entry by
 * entry; the rules are those of specs/models.md, chapter "safetensors". */
#include "libref/model/safetensors.h"

#include "libref/base/alloc.h"
#include "libref/base/json.h"
#include "libref/base/map.h"
#include "libref/base/order.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER_MAX = 100000000 };

/* The pointer file that a clone without Git LFS has in place of a large file. */
static const char lfs[] = "version https://git-lfs";

struct vn_safetensors {
	vn_map            map; /* data NULL when the memory belongs to the caller */
	char             *path;
	json_t           *metadata;
	char             *names;  /* one after the other */
	size_t            header; /* bytes in front of the data */
	size_t            n;
	vn_source_tensor *tensor; /* (n), grown by vn_grown */
};

static const struct {
	const char *name;
	int         bits;
} dtypes[] = {
	{ "BOOL", 8 },        { "U8", 8 },          { "I8", 8 },    { "F8_E4M3", 8 }, { "F8_E5M2", 8 }, { "F8_E8M0", 8 },
	{ "F8_E4M3FNUZ", 8 }, { "F8_E5M2FNUZ", 8 }, { "F4", 4 },    { "F6_E2M3", 6 }, { "F6_E3M2", 6 }, { "I16", 16 },
	{ "U16", 16 },        { "F16", 16 },        { "BF16", 16 }, { "I32", 32 },    { "U32", 32 },    { "F32", 32 },
	{ "I64", 64 },        { "U64", 64 },        { "F64", 64 },  { "C64", 64 },
};

/* Empty tensors before others at the same offset. */
VN_ORDER_BY(by_begin, vn_source_tensor, VN_ORDER(x->data, y->data), VN_ORDER(x->bytes, y->bytes))

/* Fills t, which has its name and path, from its entry; size: bytes of the buffer. */
static vn_status read_entry(vn_source_tensor *t, json_t *e, const unsigned char *buffer, size_t size, vn_error *err)
{
	const char *path = t->path, *name = t->name;
	json_t     *shape = json_object_get(e, "shape"), *at = json_object_get(e, "data_offsets");
	const char *dtype = json_string_value(json_object_get(e, "dtype")), *own = NULL;
	int         bits = 0;
	uint64_t    count = 1, total;

	if (!json_is_object(e) || !dtype || !json_is_array(shape) || !json_is_array(at) || json_array_size(at) != 2)
		return vn_fail(err, VN_ERR_FORMAT, "%s: %s: its header entry needs dtype, shape and data_offsets", path, name);
	for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
		if (strcmp(dtypes[i].name, dtype) == 0) {
			bits = dtypes[i].bits;
			own = dtypes[i].name;
		}
	if (!bits)
		return vn_fail(err, VN_ERR_FORMAT, "%s: %s: unknown dtype '%s'", path, name, dtype);
	if (json_array_size(shape) > VN_SOURCE_MAX_RANK)
		return vn_fail(err, VN_ERR_FORMAT, "%s: %s: rank %zu, at most %d is supported", path, name,
		               json_array_size(shape), VN_SOURCE_MAX_RANK);

	t->dtype = own;
	t->rank = (int)json_array_size(shape);
	for (int i = 0; i < t->rank; i++) {
		json_t *d = json_array_get(shape, (size_t)i);
		if (!json_is_integer(d) || json_integer_value(d) < 0)
			return vn_fail(err, VN_ERR_FORMAT, "%s: %s: shape entry %d is not a whole number >= 0", path, name, i);
		t->dim[i] = json_integer_value(d);
		if (__builtin_mul_overflow(count, (uint64_t)t->dim[i], &count))
			return vn_fail(err, VN_ERR_FORMAT, "%s: %s: the product of its shape overflows", path, name);
	}
	if (__builtin_mul_overflow(count, (uint64_t)bits, &total) || total % 8)
		return vn_fail(err, VN_ERR_FORMAT, "%s: %s: %" PRIu64 " elements of %d bits do not fill whole bytes", path,
		               name, count, bits);

	json_t    *b = json_array_get(at, 0), *f = json_array_get(at, 1);
	json_int_t begin = json_integer_value(b), end = json_integer_value(f);
	if (!json_is_integer(b) || !json_is_integer(f) || begin < 0 || end < begin || (uint64_t)end > size)
		return vn_fail(err, VN_ERR_FORMAT,
		               "%s: %s: data_offsets [%" JSON_INTEGER_FORMAT ", %" JSON_INTEGER_FORMAT
		               "] are outside the %zu bytes of data: is the file cut?",
		               path, name, begin, end, size);
	if ((uint64_t)(end - begin) != total / 8)
		return vn_fail(err, VN_ERR_FORMAT,
		               "%s: %s: data_offsets span %" JSON_INTEGER_FORMAT " bytes, shape and dtype need %" PRIu64, path,
		               name, end - begin, total / 8);
	t->data = buffer + begin;
	t->bytes = (size_t)(end - begin);
	return VN_OK;
}

/* Rule 3: sorted by their offsets, the tensors cover the buffer without gaps. */
static vn_status check_tiling(const vn_safetensors *f, const unsigned char *buffer, size_t size, vn_error *err)
{
	size_t at = 0;
	for (size_t i = 0; i < f->n; i++) {
		size_t begin = (size_t)(f->tensor[i].data - buffer);
		if (begin != at)
			return vn_fail(err, VN_ERR_FORMAT, "%s: %s: begins at byte %zu, %s the end of the previous tensor (%zu)",
			               f->path, f->tensor[i].name, begin, begin < at ? "overlapping" : "leaving a hole after", at);
		at = begin + f->tensor[i].bytes;
	}
	if (at != size)
		return vn_fail(err, VN_ERR_FORMAT, "%s: the tensors end at byte %zu, but the file has %zu bytes of data",
		               f->path, at, size);
	return VN_OK;
}

/* The length of the header, which begins at byte 8. */
static vn_status read_length(const char *path, const unsigned char *p, size_t bytes, uint64_t *n, vn_error *err)
{
	if (bytes < 8)
		return vn_fail(err, VN_ERR_FORMAT, "%s: %zu bytes, too short for a safetensors file: is it cut?", path, bytes);
	if (bytes >= sizeof lfs - 1 && memcmp(p, lfs, sizeof lfs - 1) == 0)
		return vn_fail(err, VN_ERR_FORMAT, "%s: a Git LFS pointer, not the weights: run git lfs pull to fetch them",
		               path);
	*n = 0;
	for (int i = 0; i < 8; i++)
		*n |= (uint64_t)p[i] << 8 * i;
	if (*n > HEADER_MAX || *n > bytes - 8)
		return vn_fail(err, VN_ERR_FORMAT,
		               "%s: the header of %" PRIu64
		               " bytes does not fit (file: %zu bytes, limit: %d): is it cut, or of "
		               "another format?",
		               path, *n, bytes, HEADER_MAX);
	if (*n == 0 || p[8] != '{')
		return vn_fail(err, VN_ERR_FORMAT, "%s: the header is not a JSON object; is this a safetensors file?", path);
	return VN_OK;
}

static vn_status check_names(const vn_safetensors *f, vn_error *err)
{
	for (size_t i = 1; i < f->n; i++)
		if (vn_source_by_name(&f->tensor[i - 1], &f->tensor[i]) == 0)
			return vn_fail(err, VN_ERR_FORMAT, "%s: header: duplicate object key \"%s\"", f->path, f->tensor[i].name);
	return VN_OK;
}

/* name: in f->names, with room for this one. */
static vn_status add_entry(vn_safetensors *f, const char *name, json_t *e, const unsigned char *buffer, size_t size,
                           vn_error *err)
{
	f->tensor = vn_alloc_grown(f->tensor, f->n, sizeof *f->tensor);
	f->tensor[f->n] = (vn_source_tensor) { .name = name, .path = f->path };
	return read_entry(&f->tensor[f->n++], e, buffer, size, err);
}

static vn_status read_header(vn_safetensors *f, const char *text, size_t n, const unsigned char *buffer, size_t size,
                             vn_error *err)
{
	vn_json_members members = { .text = text, .bytes = n };
	json_t         *name, *value;
	json_error_t    why = { .line = 0 };
	vn_status       st = VN_OK;
	char           *end = f->names = vn_alloc(n, 1); /* no name has more bytes than its text, which is quoted */

	while (!st && vn_json_next(&members, &name, &value, &why)) {
		const char  *own = json_string_value(name);
		const size_t bytes = json_string_length(name) + 1;
		if (strcmp(own, "__metadata__") != 0) {
			st = add_entry(f, memcpy(end, own, bytes), value, buffer, size, err);
			end += bytes;
		} else if (f->metadata)
			st = vn_fail(err, VN_ERR_FORMAT, "%s: header: duplicate object key \"%s\"", f->path, own);
		else
			f->metadata = json_incref(value);
		json_decref(name);
		json_decref(value);
	}
	return st || !*why.text ? st
	                        : vn_fail(err, VN_ERR_FORMAT, "%s: header, byte %d: %s", f->path, why.position, why.text);
}

vn_status vn_safetensors_parse(const char *path, const void *data, size_t bytes, vn_safetensors **file, vn_error *err)
{
	const unsigned char *p = data;
	uint64_t             n = 0;
	vn_status            st = VN_OK;
	vn_safetensors      *f = vn_alloc_zero(1, sizeof *f);

	*file = NULL;
	f->path = vn_alloc_text(path);
	if ((st = read_length(path, p, bytes, &n, err)))
		goto done;
	f->header = 8 + (size_t)n;
	const unsigned char *buffer = p + f->header;
	const size_t         size = bytes - f->header;
	if ((st = read_header(f, (const char *)p + 8, (size_t)n, buffer, size, err)))
		goto done;
	if (f->n)
		qsort(f->tensor, f->n, sizeof *f->tensor, by_begin);
	if ((st = check_tiling(f, buffer, size, err)))
		goto done;
	if (f->n)
		qsort(f->tensor, f->n, sizeof *f->tensor, vn_source_by_name);
	if ((st = check_names(f, err)))
		goto done;
	*file = f;
	f = NULL;
done:
	vn_safetensors_close(f);
	return st;
}

vn_status vn_safetensors_open(const char *path, vn_safetensors **file, vn_error *err)
{
	vn_map    map;
	vn_status st = vn_map_open(path, &map, err);

	*file = NULL;
	if (st)
		return st;
	if ((st = vn_safetensors_parse(path, map.data, map.bytes, file, err)))
		vn_map_close(&map);
	else {
		(*file)->map = map;
		vn_map_forget(&map, (*file)->header);
	}
	return st;
}

void vn_safetensors_close(vn_safetensors *f)
{
	if (!f)
		return;
	json_decref(f->metadata);
	VN_FREE(f->names, f->tensor, f->path);
	vn_map_close(&f->map);
	free(f);
}

size_t vn_safetensors_count(const vn_safetensors *f)
{
	return f->n;
}
const vn_source_tensor *vn_safetensors_at(const vn_safetensors *f, size_t i)
{
	return &f->tensor[i];
}
const char *vn_safetensors_path(const vn_safetensors *f)
{
	return f->path;
}

const vn_source_tensor *vn_safetensors_find(const vn_safetensors *f, const char *name)
{
	vn_source_tensor key = { .name = name };
	return f->n ? bsearch(&key, f->tensor, f->n, sizeof *f->tensor, vn_source_by_name) : NULL;
}

vn_source_tensor *vn_safetensors_take(vn_safetensors *f)
{
	vn_source_tensor *taken = f->tensor;
	f->tensor = NULL;
	f->n = 0;
	return taken;
}

const char *vn_safetensors_meta(const vn_safetensors *f, const char *key)
{
	return json_string_value(json_object_get(f->metadata, key));
}
