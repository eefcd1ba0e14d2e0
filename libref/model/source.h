/* source.h: where a model comes from: its config and its tensors, by name.
 *
 * A source is a HuggingFace directory (config.json with model.safetensors, or
 * with model.safetensors.index.json and its shards) or a GGUF file
 * (gguf_source.h). Another format joins by speaking as such a directory does:
 * fields of the config and names and shapes of the tensors are HuggingFace's,
 * whatever the file calls them. A source does not know which tensors a model
 * needs.
 *
 * Owner   everything here belongs to the source and lives until close. Bytes
 *         lie in mapped files, maybe unaligned; what had to be converted is in
 *         memory of the source.
 * Errors  one line naming the file; nothing is left open.
 */
#ifndef VN_LIBREF_MODEL_SOURCE_H
#define VN_LIBREF_MODEL_SOURCE_H

#include "libref/base/error.h"

#include <stddef.h>
#include <stdint.h>

#define VN_SOURCE_MAX_RANK 8
#define VN_SOURCE_FORMAT   128
#define VN_SOURCE_WARNING  512

enum { VN_SOURCE_WARNINGS = 16 };

typedef struct vn_source_tensor {
	const char          *name;
	const char          *path;  /* of its file, for messages */
	const char          *dtype; /* "BF16", "Q4_K", and formats that are not ours: "I64" */
	const char          *kept;  /* that of the file, where data are a copy in another; NULL: dtype */
	int                  rank;
	int64_t              dim[VN_SOURCE_MAX_RANK]; /* outermost first */
	const unsigned char *data;
	size_t               bytes;
} vn_source_tensor;

typedef struct vn_source {
	char             *config;      /* JSON, not yet parsed; a directory's is verbatim */
	size_t            config_bytes;
	char             *config_path; /* for messages */
	const char       *provenance;  /* the files' word for it; NULL: none */
	char              format[VN_SOURCE_FORMAT]; /* "safetensors", "gguf Q4_K, Q6_K, F32" */
	size_t            n;
	vn_source_tensor *tensor;      /* sorted by name */
	int               n_warnings;  /* things worth a line to the person that do not stop the work */
	char              warning[VN_SOURCE_WARNINGS][VN_SOURCE_WARNING];
	void             *files;
	void            (*release)(void *files);
} vn_source;

/* A directory, or a GGUF file (the first of several). */
vn_status               vn_source_open(const char *path, vn_source **source, vn_error *err);
void                    vn_source_close(vn_source *s);
const vn_source_tensor *vn_source_find(const vn_source *s, const char *name); /* NULL when absent */

/* One more warning; beyond VN_SOURCE_WARNINGS they are dropped. */
__attribute__((format(printf, 2, 3)))
void                    vn_source_warn(vn_source *s, const char *format, ...);

#endif
