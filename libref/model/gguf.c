/* gguf.c: see gguf.h. Rules: specs/models.md, "GGUF". The file is read once from start to end.
 * Every offset is checked to be inside the file before it is used. */
#include "libref/model/gguf_internal.h"
#include "libref/base/alloc.h"
#include "libref/base/order.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STRING_MAX = 1 << 30, ARRAY_MAX = 1 << 30, TENSOR_NAME = 64, ALIGNMENT = 32, GGUF_MAX_RANK = 4, WHAT = 128 };

/* Smallest size of a key with its value, and of a tensor's entry, which bound their
 * number in a file. */
enum { LEAST_VALUE = 8 + 1 + 4 + 1, LEAST_TENSOR = 8 + 4 + 4 + 8 };

/* ggml's types by number, with the type we read each as. */
static const struct {
	const char *name;
	int         ours;
} ggml[] = {
	[0] = { "F32", VN_F32 },    [1] = { "F16", VN_F16 },   [2] = { "Q4_0", VN_Q4_0 },  [3] = { "Q4_1", VN_Q4_1 },
	[6] = { "Q5_0", VN_Q5_0 },  [7] = { "Q5_1", VN_Q5_1 }, [8] = { "Q8_0", VN_Q8_0 },  [9] = { "Q8_1", -1 },
	[10] = { "Q2_K", -1 },      [11] = { "Q3_K", -1 },     [12] = { "Q4_K", VN_Q4_K }, [13] = { "Q5_K", VN_Q5_K },
	[14] = { "Q6_K", VN_Q6_K }, [15] = { "Q8_K", -1 },     [16] = { "IQ2_XXS", -1 },   [17] = { "IQ2_XS", -1 },
	[18] = { "IQ3_XXS", -1 },   [19] = { "IQ1_S", -1 },    [20] = { "IQ4_NL", -1 },    [21] = { "IQ3_S", -1 },
	[22] = { "IQ2_S", -1 },     [23] = { "IQ4_XS", -1 },   [24] = { "I8", -1 },        [25] = { "I16", -1 },
	[26] = { "I32", -1 },       [27] = { "I64", -1 },      [28] = { "F64", VN_F64 },   [29] = { "IQ1_M", -1 },
	[30] = { "BF16", VN_BF16 }, [34] = { "TQ1_0", -1 },    [35] = { "TQ2_0", -1 },     [39] = { "MXFP4", -1 },
	[40] = { "NVFP4", -1 },     [41] = { "Q1_0", -1 },
};

/* The pointer file that a clone without Git LFS has in place of a large file. */
static const char lfs[] = "version https://git-lfs";

typedef struct gguf_reader {
	const char          *path;
	const unsigned char *data;
	size_t               at, size;
	char                 what[WHAT]; /* the item being read; errors are about it */
	vn_error            *err;
} gguf_reader;

/* The next bytes, in place. */
static vn_status take_bytes(gguf_reader *r, uint64_t bytes, const unsigned char **p)
{
	if (bytes > r->size - r->at)
		return vn_fail(r->err, VN_ERR_FORMAT,
		               "%" PRIu64 " bytes at byte %zu reach beyond the end of the file (%zu bytes): is it cut?", bytes,
		               r->at, r->size);
	*p = r->data + r->at;
	r->at += (size_t)bytes;
	return VN_OK;
}

/* Little-endian, like this machine. */
static vn_status take_number(gguf_reader *r, void *x, size_t bytes)
{
	const unsigned char *p = NULL;
	const vn_status      st = take_bytes(r, bytes, &p);
	if (!st)
		memcpy(x, p, bytes);
	return st;
}

static vn_status take_text(gguf_reader *r, vn_gguf_text *t)
{
	const unsigned char *p = NULL;
	uint64_t             n = 0;
	vn_status            st = take_number(r, &n, sizeof n);

	if (st)
		return st;
	if (n > STRING_MAX)
		return vn_fail(r->err, VN_ERR_FORMAT, "a string has %" PRIu64 " bytes, at most %d are allowed", n, STRING_MAX);
	st = take_bytes(r, n, &p);
	*t = (vn_gguf_text) { (const char *)p, (size_t)n };
	return st;
}

/* Reads a name for our use: adds a NUL, and refuses one inside. */
static vn_status take_name(gguf_reader *r, size_t most, const char *kind, char **name)
{
	vn_gguf_text t = { NULL, 0 };
	vn_status    st = take_text(r, &t);

	if (st)
		return st;
	if (t.bytes == 0)
		return vn_fail(r->err, VN_ERR_FORMAT, "its name is empty");
	if (memchr(t.data, '\0', t.bytes))
		return vn_fail(r->err, VN_ERR_FORMAT, "its name contains a NUL byte");
	*name = vn_alloc_check(strndup(t.data, t.bytes));
	snprintf(r->what, sizeof r->what, "%s '%.80s'", kind, *name);
	if (t.bytes >= most)
		return vn_fail(r->err, VN_ERR_FORMAT, "its name has %zu bytes, at most %zu are allowed", t.bytes, most - 1);
	return VN_OK;
}

/* ---- metadata --------------------------------------------------------------------- */

static vn_status take_strings(gguf_reader *r, vn_gguf_value *v)
{
	vn_gguf_text *list = vn_alloc_zero(v->n, sizeof *list);
	vn_status     st = VN_OK;

	v->text = list;
	for (size_t i = 0; i < v->n && !st; i++)
		st = take_text(r, &list[i]);
	return st;
}

static vn_status take_value(gguf_reader *r, vn_gguf_value *v)
{
	char     *key = NULL;
	uint32_t  type = 0;
	uint64_t  n = 1;
	vn_status st = take_name(r, STRING_MAX, "metadata", &key);

	v->key = key;
	if (st || (st = take_number(r, &type, sizeof type)))
		return st;
	if (type == VN_GGUF_ARRAY) {
		v->array = true;
		if ((st = take_number(r, &type, sizeof type)) || (st = take_number(r, &n, sizeof n)))
			return st;
		if (type == VN_GGUF_ARRAY)
			return vn_fail(r->err, VN_ERR_FORMAT, "an array of arrays is not supported");
		if (n > ARRAY_MAX)
			return vn_fail(r->err, VN_ERR_FORMAT, "an array has %" PRIu64 " elements, at most %d are allowed", n,
			               ARRAY_MAX);
	}
	if (type >= VN_GGUF_N_TYPES)
		return vn_fail(r->err, VN_ERR_FORMAT, "value type %" PRIu32 " is unknown", type);
	if (n > (r->size - r->at) / vn_gguf_size[type])
		return vn_fail(r->err, VN_ERR_FORMAT, "%" PRIu64 " elements of %zu bytes reach beyond the end of the file", n,
		               vn_gguf_size[type]);
	v->type = (vn_gguf_type)type;
	v->n = (size_t)n;
	return v->type == VN_GGUF_STRING ? take_strings(r, v) : take_bytes(r, n * vn_gguf_size[type], &v->data);
}

static vn_status take_metadata(gguf_reader *r, vn_gguf *f, uint64_t n)
{
	vn_status st;

	f->value = vn_alloc_zero((size_t)n, sizeof *f->value);
	for (; f->n_values < n; f->n_values++) {
		snprintf(r->what, sizeof r->what, "metadata %zu of %" PRIu64, f->n_values + 1, n);
		if ((st = take_value(r, &f->value[f->n_values]))) {
			f->n_values += f->value[f->n_values].key != NULL;
			return st;
		}
	}
	qsort(f->value, f->n_values, sizeof *f->value, vn_gguf_by_key);
	for (size_t i = 1; i < f->n_values; i++)
		if (vn_gguf_by_key(&f->value[i - 1], &f->value[i]) == 0) {
			snprintf(r->what, sizeof r->what, "metadata '%.80s'", f->value[i].key);
			return vn_fail(r->err, VN_ERR_FORMAT, "occurs twice in the file");
		}
	return VN_OK;
}

static vn_status alignment_of(gguf_reader *r, const vn_gguf *f, size_t *alignment)
{
	const vn_gguf_value *v = vn_gguf_get(f, "general.alignment");
	int64_t              n = ALIGNMENT;

	if (v && (v->type != VN_GGUF_U32 || v->array || !vn_gguf_int_at(v, 0, &n) || n < 8 || (n & (n - 1)) != 0)) {
		snprintf(r->what, sizeof r->what, "metadata 'general.alignment'");
		return vn_fail(r->err, VN_ERR_FORMAT, "must be a u32, a power of two and at least 8");
	}
	*alignment = (size_t)n;
	return VN_OK;
}

/* ---- tensors ---------------------------------------------------------------------- */

/* Reads a tensor's entry. Its data pointer is set later, when the start of the data is known. */
static vn_status take_entry(gguf_reader *r, vn_gguf_tensor *t, uint64_t *offset)
{
	char     *name = NULL;
	uint32_t  rank = 0, type = 0;
	uint64_t  count = 1, dim = 0; /* count: of a tensor without a 0 */
	bool      none = false;
	vn_status st = take_name(r, TENSOR_NAME, "tensor", &name);

	t->name = name;
	t->path = r->path;
	if (st || (st = take_number(r, &rank, sizeof rank)))
		return st;
	if (rank > GGUF_MAX_RANK)
		return vn_fail(r->err, VN_ERR_FORMAT, "rank %" PRIu32 ", at most %d is supported", rank, GGUF_MAX_RANK);
	t->t.shape.rank = (int)rank;
	for (uint32_t i = rank; i > 0; i--) { /* the file has the innermost axis first */
		if ((st = take_number(r, &dim, sizeof dim)))
			return st;
		none = none || dim == 0;
		if (dim > INT64_MAX || __builtin_mul_overflow(count, dim ? dim : 1, &count) || count > INT64_MAX)
			return vn_fail(r->err, VN_ERR_FORMAT, "the product of its sizes overflows");
		t->t.shape.dim[i - 1] = (int64_t)dim;
	}
	if ((st = take_number(r, &type, sizeof type)) || (st = take_number(r, offset, sizeof *offset)))
		return st;
	if (type >= sizeof ggml / sizeof *ggml || !ggml[type].name)
		return vn_fail(r->err, VN_ERR_UNSUPPORTED, "ggml type %" PRIu32 " is unknown", type);
	if (ggml[type].ours < 0)
		return vn_fail(r->err, VN_ERR_UNSUPPORTED, "ggml type %s is not supported", ggml[type].name);
	t->t.dtype = (vn_dtype)ggml[type].ours;
	const size_t  block = vn_dtype_block(t->t.dtype), size = vn_dtype_bytes(t->t.dtype, block);
	const int64_t row = rank ? t->t.shape.dim[rank - 1] : 1;
	if (row % (int64_t)block)
		return vn_fail(r->err, VN_ERR_FORMAT,
		               "its rows have %" PRId64 " elements, expected a multiple of %zu (a %s block)", row, block,
		               ggml[type].name);
	if (count / block > SIZE_MAX / size)
		return vn_fail(r->err, VN_ERR_FORMAT, "the product of its sizes overflows");
	t->bytes = none ? 0 : (size_t)(count / block) * size;
	return VN_OK;
}

/* The data begins after the last entry, aligned. */
static vn_status place_tensors(gguf_reader *r, vn_gguf *f, const uint64_t *offset, size_t alignment)
{
	uint64_t expected = 0;
	size_t   begin;

	if (__builtin_add_overflow(r->at, alignment - 1, &begin))
		return vn_fail(r->err, VN_ERR_FORMAT, "the file is too long");
	begin &= ~(alignment - 1);
	for (size_t i = 0; i < f->n; i++) {
		vn_gguf_tensor *t = &f->tensor[i];
		snprintf(r->what, sizeof r->what, "tensor '%.80s'", t->name);
		if (offset[i] != expected)
			return vn_fail(r->err, VN_ERR_FORMAT,
			               "offset %" PRIu64 ", expected %" PRIu64
			               " (each tensor follows the one before it, aligned to %zu bytes)",
			               offset[i], expected, alignment);
		if (begin > r->size || offset[i] > r->size - begin || t->bytes > r->size - begin - offset[i])
			return vn_fail(r->err, VN_ERR_FORMAT,
			               "%zu bytes at byte %" PRIu64
			               " of the data reach beyond the end of the file (%zu bytes): is it cut?",
			               t->bytes, offset[i], r->size);
		t->t.data = r->data + begin + offset[i];
		expected = (offset[i] + t->bytes + alignment - 1) &
		           ~(uint64_t)(alignment - 1); /* below 2 r->size + alignment */
	}
	return VN_OK;
}

static vn_status take_tensors(gguf_reader *r, vn_gguf *f, uint64_t n)
{
	size_t    alignment = ALIGNMENT;
	vn_status st;
	uint64_t *offset = vn_alloc_zero((size_t)n, sizeof *offset);

	f->tensor = vn_alloc_zero((size_t)n, sizeof *f->tensor);
	if ((st = alignment_of(r, f, &alignment)))
		goto done;
	for (; f->n < n; f->n++) {
		snprintf(r->what, sizeof r->what, "tensor %zu of %" PRIu64, f->n + 1, n);
		if ((st = take_entry(r, &f->tensor[f->n], &offset[f->n]))) {
			f->n += f->tensor[f->n].name != NULL;
			goto done;
		}
	}
	st = place_tensors(r, f, offset, alignment);
done:
	free(offset);
	return st;
}

/* Whether the file is one from a model directory: JSON, or safetensors,
 * where JSON follows a length. */
static bool from_a_directory(const gguf_reader *r)
{
	return r->data[0] == '{' || (r->size > 8 && r->data[8] == '{');
}

static vn_status take_header(gguf_reader *r, uint64_t *n_tensors, uint64_t *n_values)
{
	const unsigned char *magic = NULL;
	uint32_t             version = 0;
	vn_status            st;

	snprintf(r->what, sizeof r->what, "header");
	if (r->size < 4)
		return vn_fail(r->err, VN_ERR_FORMAT, "not a GGUF file: a model is a HuggingFace directory or a GGUF file");
	if ((st = take_bytes(r, 4, &magic)))
		return st;
	if (r->size >= sizeof lfs - 1 && memcmp(magic, lfs, sizeof lfs - 1) == 0)
		return vn_fail(r->err, VN_ERR_FORMAT, "a Git LFS pointer, not the weights: run git lfs pull to fetch them");
	if (memcmp(magic, "GGUF", 4) != 0)
		return memcmp(magic, "\x89HDF", 4) == 0
		           ? vn_fail(r->err, VN_ERR_FORMAT,
		                     "not a GGUF file but HDF5, as recordings are: the model is a GGUF file or a HuggingFace "
		                     "directory")
		       : from_a_directory(r)
		           ? vn_fail(r->err, VN_ERR_FORMAT,
		                     "not a GGUF file but JSON or safetensors: for a HuggingFace model, give its directory")
		           : vn_fail(
						 r->err, VN_ERR_FORMAT,
						 "not a GGUF file: it begins with %02x %02x %02x %02x; a model is a HuggingFace directory or "
						 "a GGUF file",
						 magic[0], magic[1], magic[2], magic[3]);
	if ((st = take_number(r, &version, sizeof version)))
		return st;
	if (version != 0 && (version & 0xffff) == 0)
		return vn_fail(r->err, VN_ERR_UNSUPPORTED, "a big-endian file is not supported");
	if (version != 2 && version != 3)
		return vn_fail(r->err, VN_ERR_UNSUPPORTED, "version %" PRIu32 " is not supported (supported: 2, 3)", version);
	if ((st = take_number(r, n_tensors, sizeof *n_tensors)) || (st = take_number(r, n_values, sizeof *n_values)))
		return st;
	if (*n_values > (r->size - r->at) / LEAST_VALUE || *n_tensors > (r->size - r->at) / LEAST_TENSOR)
		return vn_fail(r->err, VN_ERR_FORMAT,
		               "%" PRIu64 " tensors and %" PRIu64 " keys do not fit into a file of %zu bytes", *n_tensors,
		               *n_values, r->size);
	return VN_OK;
}

VN_ORDER_BY(compare_names, vn_gguf_tensor, strcmp(x->name, y->name))

const vn_gguf_tensor *vn_gguf_find(const vn_gguf *f, const char *name)
{
	const vn_gguf_tensor key = { .name = name };
	return f->n ? bsearch(&key, f->tensor, f->n, sizeof key, compare_names) : NULL;
}

vn_status vn_gguf_sort(vn_gguf *f, vn_error *err)
{
	if (f->n)
		qsort(f->tensor, f->n, sizeof *f->tensor, compare_names);
	for (size_t i = 1; i < f->n; i++)
		if (compare_names(&f->tensor[i - 1], &f->tensor[i]) == 0)
			return vn_fail(err, VN_ERR_FORMAT, "%s: tensor '%s': occurs twice in the model", f->tensor[i].path,
			               f->tensor[i].name);
	return VN_OK;
}

void vn_gguf_close(vn_gguf *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->n; i++)
		free((char *)(size_t)f->tensor[i].name);
	for (size_t i = 0; i < f->n_values; i++)
		VN_FREE((char *)(size_t)f->value[i].key, (vn_gguf_text *)(size_t)f->value[i].text);
	for (size_t i = 0; i < f->n_parts; i++)
		vn_gguf_close(f->part[i]);
	VN_FREE(f->part, f->tensor, f->value, f->path);
	vn_map_close(&f->map);
	free(f);
}

vn_status vn_gguf_parse(const char *path, const void *data, size_t bytes, vn_gguf **file, vn_error *err)
{
	uint64_t  n_tensors = 0, n_values = 0;
	vn_status st;
	vn_gguf  *f = vn_alloc_zero(1, sizeof *f);

	*file = NULL;
	f->path = vn_alloc_text(path);
	gguf_reader r = { .path = f->path, .data = data, .size = bytes, .err = err };
	if ((st = take_header(&r, &n_tensors, &n_values)) || (st = take_metadata(&r, f, n_values)) ||
	    (st = take_tensors(&r, f, n_tensors)))
		vn_context(err, st, "%s: %s", path, r.what);
	if (st || (st = vn_gguf_sort(f, err)))
		goto done;
	*file = f;
	f = NULL;
done:
	vn_gguf_close(f);
	return st;
}
