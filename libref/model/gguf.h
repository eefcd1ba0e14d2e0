/* gguf.h: GGUF files, versions 2 and 3: metadata and tensors, mapped and checked.
 *
 * Opening applies every rule of the format (specs/models.md, "GGUF"); what opens
 * can be read without further checks. A model in several files
 * (NAME-00001-of-00003.gguf) opens by its first, and is then one object: the
 * first file's metadata, everybody's tensors. Names and metadata are those of
 * the file; gguf_source.h makes a model of them.
 *
 * Owner    everything handed out belongs to the file and lives until close.
 * Threads  an opened file is read-only and may be shared.
 */
#ifndef VN_LIBREF_MODEL_GGUF_H
#define VN_LIBREF_MODEL_GGUF_H

#include "libref/base/error.h"
#include "libref/base/tensor.h"

typedef struct vn_gguf vn_gguf;

vn_status vn_gguf_open(const char *path, vn_gguf **file, vn_error *err);
/* One file from memory that outlives it; path is for messages only. A part of
 * several is taken as it is. */
vn_status vn_gguf_parse(const char *path, const void *data, size_t bytes, vn_gguf **file, vn_error *err);
void      vn_gguf_close(vn_gguf *f);
const char *vn_gguf_path(const vn_gguf *f);

/* ---- tensors ---------------------------------------------------------------- */

typedef struct vn_gguf_tensor {
	const char *name;
	const char *path;  /* of its file, for messages */
	vn_tensor   t;     /* outermost axis first; rows are whole blocks; data maybe unaligned */
	size_t      bytes;
} vn_gguf_tensor;

size_t                vn_gguf_count(const vn_gguf *f);
const vn_gguf_tensor *vn_gguf_at(const vn_gguf *f, size_t i); /* sorted by name */
const vn_gguf_tensor *vn_gguf_find(const vn_gguf *f, const char *name);

/* ---- metadata --------------------------------------------------------------- */

/* As the format numbers them; 9, an array, is never the type of an element. */
typedef enum vn_gguf_type {
	VN_GGUF_U8, VN_GGUF_I8, VN_GGUF_U16, VN_GGUF_I16, VN_GGUF_U32, VN_GGUF_I32, VN_GGUF_F32, VN_GGUF_BOOL,
	VN_GGUF_STRING, VN_GGUF_ARRAY, VN_GGUF_U64, VN_GGUF_I64, VN_GGUF_F64, VN_GGUF_N_TYPES
} vn_gguf_type;

typedef struct vn_gguf_text {
	const char *data; /* UTF-8 by promise, not by check; no NUL behind it, maybe some inside */
	size_t      bytes;
} vn_gguf_text;

typedef struct vn_gguf_value {
	const char          *key;
	vn_gguf_type         type;  /* of the value, or of the elements of an array */
	bool                 array;
	size_t               n;     /* elements; 1 unless it is an array */
	const unsigned char *data;  /* numbers, as the file has them */
	const vn_gguf_text  *text;  /* (n), of strings */
} vn_gguf_value;

/* The value of a key; NULL when absent. */
const vn_gguf_value *vn_gguf_get(const vn_gguf *f, const char *key);

/* Element i (0 of a value that is no array) of a value that may be NULL. False,
 * with *x as it was, when there is no such element or it is of another kind. */
bool vn_gguf_text_at(const vn_gguf_value *v, size_t i, vn_gguf_text *x);
bool vn_gguf_int_at(const vn_gguf_value *v, size_t i, int64_t *x);  /* whole numbers of any type, that fit */
bool vn_gguf_bool_at(const vn_gguf_value *v, size_t i, bool *x);
/* Numbers of any type but bool. A float32 is read as the shortest decimal that
 * stands for it: what left a config as 1e-6 comes back as 1e-6. */
bool vn_gguf_real_at(const vn_gguf_value *v, size_t i, double *x);

/* Whether a value is one string, and this one. */
bool vn_gguf_is(const vn_gguf_value *v, const char *text);

#endif
