/* gguf.h: reads GGUF files, versions 2 and 3: metadata and tensors, mapped and checked.
 *
 * Opening checks every rule of the format (specs/models.md, "GGUF"), so later reads need no checks.
 * A model in several files (NAME-00001-of-00003.gguf) is opened by its first file, and is then one
 * object with the metadata of the first file and the tensors of all. Names and metadata are those
 * of the file; gguf_source.h makes a model of them.
 *
 * Owner    everything that is returned belongs to the file and lives until close.
 * Threads  an opened file is read-only and may be shared.
 */
#pragma once

#include "libref/base/error.h"
#include "libref/base/tensor.h"

typedef struct vn_gguf vn_gguf;

vn_status   vn_gguf_open(const char *path, vn_gguf **file, vn_error *err);
/* Parses one file in memory, which must outlive *file; path: for messages. One of several parts is
 * opened alone. */
vn_status   vn_gguf_parse(const char *path, const void *data, size_t bytes, vn_gguf **file, vn_error *err);
void        vn_gguf_close(vn_gguf *f);
const char *vn_gguf_path(const vn_gguf *f);

/* ---- tensors ---------------------------------------------------------------- */

typedef struct vn_gguf_tensor {
	const char *name;
	const char *path; /* of its file, for messages */
	vn_tensor   t;    /* outermost axis first; rows are whole blocks; data may be unaligned */
	size_t      bytes;
} vn_gguf_tensor;

size_t                vn_gguf_count(const vn_gguf *f);
const vn_gguf_tensor *vn_gguf_at(const vn_gguf *f, size_t i); /* sorted by name */
const vn_gguf_tensor *vn_gguf_find(const vn_gguf *f, const char *name);

/* ---- metadata --------------------------------------------------------------- */

/* Numbered as in the format; 9, an array, is never the type of an element. */
typedef enum vn_gguf_type {
	VN_GGUF_U8,
	VN_GGUF_I8,
	VN_GGUF_U16,
	VN_GGUF_I16,
	VN_GGUF_U32,
	VN_GGUF_I32,
	VN_GGUF_F32,
	VN_GGUF_BOOL,
	VN_GGUF_STRING,
	VN_GGUF_ARRAY,
	VN_GGUF_U64,
	VN_GGUF_I64,
	VN_GGUF_F64,
	VN_GGUF_N_TYPES
} vn_gguf_type;

typedef struct vn_gguf_text {
	/* UTF-8 according to the file, unchecked; no NUL at the end, possibly NULs inside */
	const char *data;
	size_t      bytes;
} vn_gguf_text;

typedef struct vn_gguf_value {
	const char          *key;
	vn_gguf_type         type; /* of the value, or of the elements of an array */
	bool                 array;
	size_t               n;    /* elements; 1 if it is not an array */
	const unsigned char *data; /* of numbers, as stored */
	const vn_gguf_text  *text; /* (n), of strings */
} vn_gguf_value;

/* Returns the value of a key, or NULL. */
const vn_gguf_value *vn_gguf_get(const vn_gguf *f, const char *key);

/* Return element i of a value (0 if it is not an array; v may be NULL). Return false, with *x
 * unchanged, if there is no such element or it is of another kind. */
bool vn_gguf_text_at(const vn_gguf_value *v, size_t i, vn_gguf_text *x);
/* integers of any type that fit */
bool vn_gguf_int_at(const vn_gguf_value *v, size_t i, int64_t *x);
bool vn_gguf_bool_at(const vn_gguf_value *v, size_t i, bool *x);
/* Numbers of any type except bool. A float32 is read as its shortest decimal: 1e-6 in a config
 * comes back as 1e-6. */
bool vn_gguf_real_at(const vn_gguf_value *v, size_t i, double *x);

/* Is the value a single string, equal to this one? */
bool vn_gguf_is(const vn_gguf_value *v, const char *text);
