/* llama.c: stands in for llama.cpp on machines without it: llama_decode passes nodes that llama.cpp
 * once computed for a prompt to the callback, as llama.cpp does.
 *
 * $LLAMA_STAND_IN is a file of them (guides.py makes it of fixtures/foreign): a node is a
 * line, "OP TAKES NAME NE0 NE1 NE2 NE3", and its float32 numbers. TAKES: the type of a product's
 * first input, after "w:" if that is a weight; "-" for other nodes. Nodes that a recording must
 * skip come between them: a view, a node without a name of its own, a node of blocks. Every second
 * node has gaps between its rows, as nodes of a graph may have.
 */
#include "ggml-backend.h"
#include "llama.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_OPS = 64 };
static char ops[MOST_OPS][32];
static int  n_ops;

struct llama_model {
	int unused;
};
struct llama_context {
	struct llama_context_params params;
};

const char *ggml_op_name(enum ggml_op op)
{
	return op < GGML_OP_COUNT ? "NONE" : ops[op - GGML_OP_COUNT];
}

static enum ggml_op op_of(const char *name)
{
	int i = 0;
	while (i < n_ops && strcmp(ops[i], name) != 0)
		i++;
	if (i == n_ops && n_ops < MOST_OPS)
		snprintf(ops[n_ops++], sizeof ops[0], "%s", name);
	return (enum ggml_op)(GGML_OP_COUNT + i);
}

const char *ggml_op_desc(const struct ggml_tensor *t)
{
	return ggml_op_name(t->op);
}

const char *ggml_type_name(enum ggml_type type)
{
	static const char *const name[GGML_TYPE_COUNT] = { "f32", "f16", "i32", "bf16", "q8_0", "q4_K", "q6_K" };
	return name[type];
}

/* Sets the type of a node's first input. Returns 0, or -1 for an unknown type. */
static int taken(const char *takes, struct ggml_tensor *first)
{
	const char *type = strncmp(takes, "w:", 2) == 0 ? takes + 2 : takes;
	int         i = 0;
	first->op = takes == type ? GGML_OP_VIEW : GGML_OP_NONE;
	while (i < GGML_TYPE_COUNT && strcmp(ggml_type_name((enum ggml_type)i), type) != 0)
		i++;
	first->type = (enum ggml_type)i;
	return i < GGML_TYPE_COUNT || strcmp(takes, "-") == 0 ? 0 : -1;
}

size_t ggml_nbytes(const struct ggml_tensor *t)
{
	size_t n = 4;
	for (int i = 0; i < GGML_MAX_DIMS; i++)
		n += (size_t)(t->ne[i] - 1) * t->nb[i];
	return n;
}

void ggml_backend_tensor_get(const struct ggml_tensor *t, void *data, size_t offset, size_t size)
{
	memcpy(data, t->data + offset, size);
}

static bool hand_out(struct llama_context *c, struct ggml_tensor *t)
{
	if (!c->params.cb_eval || !c->params.cb_eval(t, true, c->params.cb_eval_user_data))
		return true;
	return c->params.cb_eval(t, false, c->params.cb_eval_user_data);
}

static bool hand_out_unwanted(struct llama_context *c, const struct ggml_tensor *like)
{
	struct ggml_tensor view = *like, nameless = *like, blocks = *like;
	view.op = GGML_OP_VIEW;
	strcpy(nameless.name, "node_7");
	blocks.type = GGML_TYPE_Q8_0;
	return hand_out(c, &view) && (like->src[0] || hand_out(c, &nameless)) && hand_out(c, &blocks);
}

int32_t llama_decode(struct llama_context *c, struct llama_batch batch)
{
	const char        *path = getenv("LLAMA_STAND_IN");
	FILE              *f = path && batch.n_tokens > 0 ? fopen(path, "rb") : NULL;
	char               op[32], takes[32], line[160];
	struct ggml_tensor t = { .type = GGML_TYPE_F32 }, first = { .type = GGML_TYPE_F32 };
	bool               more = f != NULL;
	int                layer;
	for (int number = 0; more && fgets(line, sizeof line, f); number++) {
		long long ne[4];
		if (sscanf(line, "%31s %31s %63s %lld %lld %lld %lld", op, takes, t.name, &ne[0], &ne[1], &ne[2], &ne[3]) !=
		        7 ||
		    taken(takes, &first) < 0)
			return 1;
		t.src[0] = t.src[1] = strcmp(takes, "-") != 0 ? &first : NULL;
		if (sscanf(t.name, "fattn-%d", &layer) == 1) { /* it comes without a name, and its queries have one */
			snprintf(first.name, sizeof first.name, "Qcur-%d (permuted)", layer);
			strcpy(t.name, "node_9");
		}
		const size_t row = (size_t)ne[0] * 4, stride = number % 2 ? row + 64 : row,
					 rows = (size_t)(ne[1] * ne[2] * ne[3]);
		char *data = calloc(rows + 1, stride);
		for (size_t i = 0; i < rows; i++)
			if (fread(data + i * stride, 1, row, f) != row)
				return 1;
		t.op = op_of(op);
		t.data = data;
		t.nb[0] = 4;
		for (int i = 0; i < 4; i++)
			t.ne[i] = ne[i];
		for (int i = 1; i < 4; i++)
			t.nb[i] = i == 1 ? stride : t.nb[i - 1] * (size_t)ne[i - 1];
		more = hand_out_unwanted(c, &t) && hand_out(c, &t);
		free(data);
	}
	if (f)
		fclose(f);
	return more ? 0 : 1;
}

struct llama_model_params llama_model_default_params(void)
{
	return (struct llama_model_params) { .unused = false };
}

struct llama_context_params llama_context_default_params(void)
{
	return (struct llama_context_params) { .n_ctx = 512 };
}

struct llama_model *llama_model_load_from_file(const char *path, struct llama_model_params params)
{
	(void)params;
	FILE *f = fopen(path, "rb");
	if (f)
		fclose(f);
	return f ? calloc(1, sizeof(struct llama_model)) : NULL;
}

struct llama_context *llama_init_from_model(struct llama_model *model, struct llama_context_params params)
{
	struct llama_context *c = model ? calloc(1, sizeof *c) : NULL;
	if (c)
		c->params = params;
	return c;
}

struct llama_batch llama_batch_init(int32_t n, int32_t embd, int32_t sequences)
{
	const size_t room = (size_t)n;
	(void)embd;
	struct llama_batch b = { .token = calloc(room, 4),
		                     .pos = calloc(room, 4),
		                     .n_seq_id = calloc(room, 4),
		                     .seq_id = calloc(room + 1, sizeof(void *)),
		                     .logits = calloc(room, 1) };
	for (size_t i = 0; i < room; i++)
		b.seq_id[i] = calloc((size_t)sequences, 4);
	return b;
}

void llama_batch_free(struct llama_batch b)
{
	for (int i = 0; b.seq_id[i]; i++)
		free(b.seq_id[i]);
	free(b.seq_id);
	free(b.token);
	free(b.pos);
	free(b.n_seq_id);
	free(b.logits);
}

const char *llama_print_system_info(void)
{
	return "a stand-in; what a system says of itself may be long: "
		   "................................................................................................"
		   "................................................................................................"
		   "................................................................";
}

void llama_free(struct llama_context *ctx)
{
	free(ctx);
}

void llama_model_free(struct llama_model *model)
{
	free(model);
}
