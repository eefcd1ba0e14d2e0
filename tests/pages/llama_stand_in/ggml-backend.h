/* ggml-backend.h: see ggml.h beside it. */
#include "ggml.h"

void ggml_backend_tensor_get(const struct ggml_tensor *t, void *data, size_t offset, size_t size);
