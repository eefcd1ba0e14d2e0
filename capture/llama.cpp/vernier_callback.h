/* vernier_callback.h: records the tensors of a llama.cpp run, as a directory that `vernier import
 * --names llama.cpp` reads.
 *
 * Copy vernier_callback.c, this file and vernier_record.h into your project, compile
 * vernier_callback.c with it (C or C++), and add three lines around your calls of llama.cpp:
 *
 *     // before llama_init_from_model:
 *     vernier_callback *rec = vernier_callback_open("dump", NULL, &params);
 *     // before every llama_decode:
 *     vernier_callback_batch(rec, batch);
 *     // last; 0, or -1 and a line on stderr:
 *     vernier_callback_close(rec);
 *
 *     vernier import dump --names llama.cpp --model MODEL.gguf -o cand.h5
 *
 * It uses only public functions of llama.cpp. Its evaluation callback
 * (llama_context_params.cb_eval) receives every node of the graph with ggml's name and operation,
 * and reads its numbers wherever they are. Nodes that compute nothing (views), nodes without a name
 * of their own (except flash attention, fattn-LAYER) and quantised types are left out.
 *
 * A batch must be one sequence, and n_ubatch at least its number of tokens: otherwise its nodes
 * come in pieces, and close reports that. Set logits[i] for every token; otherwise the last layer
 * keeps rows of only some tokens, and the import leaves these tensors out. The run waits for every
 * node, so it takes longer; its numbers are the same.
 */
#ifndef VERNIER_CALLBACK_H
#define VERNIER_CALLBACK_H

#include "llama.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vernier_callback vernier_callback;

/* Creates the directory dir, which must not hold a recording, and sets params->cb_eval and
 * cb_eval_user_data. Returns NULL if there is no memory; the first failure is kept, and reported by
 * close.
 *
 * precision: the precision of the run, for limits, floor and replay. NULL: derived from the graph,
 * which is right for ggml's CPU backend: "f32"; "ggml" if products round their inputs according to
 * their weights; "ggml-kv16" with a cache in f16; "ggml-flash16" with flash attention. For other
 * backends state it: "f16", "bf16" or another word; see `vernier help guides/llama.cpp.md`. */
vernier_callback *vernier_callback_open(const char *dir, const char *precision, struct llama_context_params *params);

/* States the tokens and positions of the next llama_decode. Computations before the first call (a
 * warm-up) are not recorded. A later llama_decode without it, in a loop that generates, is a
 * failure. */
void vernier_callback_batch(vernier_callback *c, struct llama_batch batch);

/* Completes the recording and frees c. Returns 0, or -1 with the first failure on stderr; the
 * directory is then incomplete. */
int vernier_callback_close(vernier_callback *c);

#ifdef __cplusplus
}
#endif
#endif
