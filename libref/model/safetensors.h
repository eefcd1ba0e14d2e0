/* safetensors.h: reads one .safetensors file, mapped and checked.
 *
 * Opening checks every rule of the format (header within the file, known dtypes, consistent sizes,
 * tensors that tile the buffer without gap or overlap), so later reads need no checks.
 *
 * Owner  names, shapes and bytes belong to the file and live until close.
 */
#pragma once

#include "libref/model/source.h"

typedef struct vn_safetensors vn_safetensors;

vn_status vn_safetensors_open(const char *path, vn_safetensors **file, vn_error *err);
/* Parses a file in memory, which must outlive *file; path: for messages. */
vn_status vn_safetensors_parse(const char *path, const void *data, size_t bytes, vn_safetensors **file, vn_error *err);
void      vn_safetensors_close(vn_safetensors *f);

size_t                  vn_safetensors_count(const vn_safetensors *f);
const vn_source_tensor *vn_safetensors_at(const vn_safetensors *f, size_t i); /* sorted by name */
const vn_source_tensor *vn_safetensors_find(const vn_safetensors *f, const char *name);
const char             *vn_safetensors_path(const vn_safetensors *f);
/* Gives the list of tensors to the caller, who frees it; what they point to stays the file's. The
 * file has none from now on. */
vn_source_tensor       *vn_safetensors_take(vn_safetensors *f);
/* Returns a string of __metadata__, or NULL. */
const char             *vn_safetensors_meta(const vn_safetensors *f, const char *key);
