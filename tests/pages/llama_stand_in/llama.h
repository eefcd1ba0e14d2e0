/* llama.h: see ggml.h beside it. */
#ifndef LLAMA_STAND_IN_H
#define LLAMA_STAND_IN_H

#include "ggml.h"

typedef int32_t llama_token, llama_pos, llama_seq_id;
enum llama_flash_attn_type { LLAMA_FLASH_ATTN_TYPE_AUTO = -1, LLAMA_FLASH_ATTN_TYPE_DISABLED };

struct llama_model;
struct llama_context;
struct llama_model_params {
	bool unused;
};
struct llama_context_params {
	uint32_t                         n_ctx, n_batch, n_ubatch;
	enum ggml_type                   type_k, type_v;
	enum llama_flash_attn_type       flash_attn_type;
	ggml_backend_sched_eval_callback cb_eval;
	void                            *cb_eval_user_data;
};
struct llama_batch {
	int32_t        n_tokens;
	llama_token   *token;
	float         *embd;
	llama_pos     *pos;
	int32_t       *n_seq_id;
	llama_seq_id **seq_id;
	int8_t        *logits;
};

struct llama_model_params   llama_model_default_params(void);
struct llama_context_params llama_context_default_params(void);
struct llama_model         *llama_model_load_from_file(const char *path, struct llama_model_params params);
struct llama_context       *llama_init_from_model(struct llama_model *model, struct llama_context_params params);
struct llama_batch          llama_batch_init(int32_t n_tokens, int32_t embd, int32_t n_seq_max);
int32_t                     llama_decode(struct llama_context *ctx, struct llama_batch batch);
const char                 *llama_print_system_info(void);
void                        llama_batch_free(struct llama_batch batch);
void                        llama_free(struct llama_context *ctx);
void                        llama_model_free(struct llama_model *model);

#endif
