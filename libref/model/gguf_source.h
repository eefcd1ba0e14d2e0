/* gguf_source.h: a GGUF file as a source of a model (source.h).
 *
 * Names, shapes, order of rows and of columns, and the config are those of the
 * HuggingFace model the file was made from: what the converter changed is undone.
 * A tensor it left alone stays where it is in the mapped file, quantised or not.
 * One whose rows it moved is a copy in the same format; where a block would be
 * cut, or numbers were changed or transposed, a copy in float32 (transposed, and
 * not quantised: in its own format).
 */
#ifndef VN_LIBREF_MODEL_GGUF_SOURCE_H
#define VN_LIBREF_MODEL_GGUF_SOURCE_H

#include "libref/model/gguf.h"
#include "libref/model/source.h"

/* f belongs to the source from here on, in failure too. */
vn_status vn_source_of_gguf(vn_gguf *f, vn_source **source, vn_error *err);

#endif
