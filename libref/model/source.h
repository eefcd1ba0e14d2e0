/* source.h: where a model comes from: its config and its tensors, by name.
 *
 * A source is a HuggingFace directory (config.json with model.safetensors, or with
 * model.safetensors.index.json and its shards) or a GGUF file (gguf_source.h). Other formats are
 * converted to look like such a directory: config fields, tensor names and shapes are
 * HuggingFace's. A source does not know which tensors a model needs.
 *
 * Owner   everything here belongs to the source and lives until close. Bytes are in mapped files,
 *         maybe unaligned, or, if they had to be converted, in memory of the source.
 * Errors  one line that names the file; nothing stays open.
 */
#pragma once

#include "libref/base/error.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define VN_SOURCE_MAX_RANK 8
#define VN_SOURCE_FORMAT   128
#define VN_SOURCE_WARNING  512

enum { VN_SOURCE_WARNINGS = 16 };

typedef struct vn_source_tensor {
	const char          *name;
	const char          *path;  /* of its file, for messages */
	const char          *dtype; /* "BF16", "Q4_K"; also formats that vernier does not read: "I64" */
	const char          *kept;  /* dtype in the file, if data is a copy in another; NULL: dtype */
	int                  rank;
	int64_t              dim[VN_SOURCE_MAX_RANK]; /* outermost first */
	const unsigned char *data;
	size_t               bytes;
} vn_source_tensor;

typedef struct vn_source {
	char             *config; /* JSON, not yet parsed; verbatim from a directory */
	size_t            config_bytes;
	char             *config_path;              /* for messages */
	const char       *provenance;               /* as stated in the files; NULL: not stated */
	char              format[VN_SOURCE_FORMAT]; /* "safetensors", "gguf Q4_K, Q6_K, F32" */
	size_t            n;
	vn_source_tensor *tensor;     /* sorted by name */
	int               n_warnings; /* messages for the user that do not stop the work */
	char              warning[VN_SOURCE_WARNINGS][VN_SOURCE_WARNING];
	void             *files;
	void (*release)(void *files);
} vn_source;

/* Opens a directory, or a GGUF file (the first of several). */
vn_status         vn_source_open(const char *path, vn_source **source, vn_error *err);
void              vn_source_close(vn_source *s);
/* Compares two tensors by name, for qsort and bsearch. */
static inline int vn_source_by_name(const void *a, const void *b)
{
	return strcmp(((const vn_source_tensor *)a)->name, ((const vn_source_tensor *)b)->name);
}

const vn_source_tensor *vn_source_find(const vn_source *s, const char *name); /* NULL when absent */

/* Adds a warning; those beyond VN_SOURCE_WARNINGS are dropped. */
__attribute__((format(printf, 2, 3))) void vn_source_warn(vn_source *s, const char *format, ...);
