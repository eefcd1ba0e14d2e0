/* ggml.h: the part of llama.cpp's public interface that capture/llama.cpp uses, for machines
 * without llama.cpp; see llama.c. */
#ifndef GGML_STAND_IN_H
#define GGML_STAND_IN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GGML_MAX_DIMS 4
#define GGML_MAX_NAME 64
#define GGML_MAX_SRC  10

enum ggml_type {
	GGML_TYPE_F32,
	GGML_TYPE_F16,
	GGML_TYPE_I32,
	GGML_TYPE_BF16,
	GGML_TYPE_Q8_0,
	GGML_TYPE_Q4_K,
	GGML_TYPE_Q6_K,
	GGML_TYPE_COUNT
};
enum ggml_op { GGML_OP_NONE, GGML_OP_VIEW, GGML_OP_RESHAPE, GGML_OP_PERMUTE, GGML_OP_TRANSPOSE, GGML_OP_COUNT };

struct ggml_tensor {
	enum ggml_type      type;
	enum ggml_op        op;
	int64_t             ne[GGML_MAX_DIMS];
	size_t              nb[GGML_MAX_DIMS];
	struct ggml_tensor *src[GGML_MAX_SRC];
	char                name[GGML_MAX_NAME];
	const char         *data;
};

typedef bool (*ggml_backend_sched_eval_callback)(struct ggml_tensor *t, bool ask, void *user_data);

const char *ggml_op_name(enum ggml_op op);
const char *ggml_op_desc(const struct ggml_tensor *t); /* the kind of a unary operation */
const char *ggml_type_name(enum ggml_type type);
size_t      ggml_nbytes(const struct ggml_tensor *t);

#endif
