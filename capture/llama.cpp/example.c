/* example.c MODEL.gguf DIR ID ID...: llama.cpp over these tokens in one call, recorded.
 *
 * Your program needs only the three lines with `rec`. This example keeps cached keys and values in
 * float32 and computes attention node by node, which rounds least and shows the most tensors. A
 * context with llama.cpp's defaults can be recorded as well.
 */
#include "vernier_callback.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	const int                   n = argc - 3; /* tokens */
	int                         status = 2, i;
	struct llama_context_params params = llama_context_default_params();
	struct llama_model         *model;
	struct llama_context       *ctx;
	vernier_callback           *rec;

	if (n < 1)
		return 2;
	params.n_ctx = params.n_batch = params.n_ubatch = 256;
	params.type_k = params.type_v = GGML_TYPE_F32;
	params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
	rec = vernier_callback_open(argv[2], NULL, &params);
	model = llama_model_load_from_file(argv[1], llama_model_default_params());
	ctx = model ? llama_init_from_model(model, params) : NULL;
	if (ctx) {
		struct llama_batch batch = llama_batch_init(n, 0, 1);
		for (i = 0; i < n; i++) {
			batch.token[i] = atoi(argv[3 + i]);
			batch.pos[i] = i;
			batch.n_seq_id[i] = 1;
			batch.seq_id[i][0] = 0;
			batch.logits[i] = 1; /* otherwise the last layer computes only the last row */
		}
		batch.n_tokens = n;
		vernier_callback_batch(rec, batch);
		status = llama_decode(ctx, batch);
		llama_batch_free(batch);
		llama_free(ctx);
	}
	llama_model_free(model);
	return vernier_callback_close(rec) || status ? 2 : 0;
}
