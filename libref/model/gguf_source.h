/* gguf_source.h: opens a GGUF file as the source of a model (source.h).
 *
 * Names, shapes, order of rows and columns, and the config are those of the HuggingFace model that
 * the file was made from: the converter's changes are undone. Unchanged tensors stay in the mapped
 * file, quantised or not. Tensors with moved rows are copied in their format. If a block would be
 * cut, or numbers were changed or transposed, the copy is in float32 (transposed and not quantised:
 * in its own format).
 */
#pragma once

#include "libref/model/gguf.h"
#include "libref/model/source.h"

/* Fills s, which is zeroed. f belongs to it from now on. The caller closes s,
 * also after a failure. */
vn_status vn_source_of_gguf(vn_gguf *f, vn_source *s, vn_error *err);
