/* vernier_callback.h: record what llama.cpp computes, as a directory that `vernier import --names llama.cpp` reads.
 *
 * Copy vernier_callback.c, this file and vernier_record.h beside your program, compile vernier_callback.c with it (C or C++), and
 * add three lines around what it does already:
 *
 *     vernier_callback *rec = vernier_callback_open("dump", NULL, &params);   // before llama_init_from_model
 *     vernier_callback_batch(rec, batch);                                     // before every llama_decode
 *     vernier_callback_close(rec);                                            // at the end: 0, or -1 and a line on stderr
 *
 *     vernier import dump --names llama.cpp --model MODEL.gguf -o cand.h5
 *
 * Only public functions of llama.cpp are called: its evaluation callback (llama_context_params.cb_eval) is told of every node of
 * the graph, ggml's name and operation of it, and reads its numbers wherever they are. Nodes that compute nothing (views) and
 * those without a name of their own are left out, but flash attention (fattn-LAYER), and so are types that hold blocks.
 *
 * A batch is one sequence, and n_ubatch at least its tokens: else its nodes come in pieces, and close says so. Set logits[i] of every
 * token, or the last layer keeps rows of some tokens alone, and the import leaves these out. Every node is waited for, so a run takes longer; its numbers are the same.
 */
#ifndef VERNIER_CALLBACK_H
#define VERNIER_CALLBACK_H

#include "llama.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vernier_callback vernier_callback;

/* dir: is made, and must not hold a recording. precision: what the run computes in, for limits, floor and replay. NULL: what its graph
 * says, which is right for ggml's CPU backend: "f32"; "ggml", where products round what goes into them as their weights ask;
 * "ggml-kv16", with a cache in f16; "ggml-flash16", with flash attention. Another backend's own arithmetic has no such word: say "f16", "bf16"
 * or what it is, and see specs/guides/llama.cpp.md. Sets params->cb_eval and cb_eval_user_data. NULL: no memory. The first failure is
 * kept, and told by close. */
vernier_callback *vernier_callback_open(const char *dir, const char *precision, struct llama_context_params *params);

/* The tokens and positions of the next llama_decode. What is computed before the first of them (a warm-up) is not recorded. One that has
 * none before it later on, in a loop that generates, is a failure. */
void vernier_callback_batch(vernier_callback *c, struct llama_batch batch);

/* All is there. Frees; 0, or -1 with what failed first on stderr: then the directory is not complete. */
int vernier_callback_close(vernier_callback *c);

#ifdef __cplusplus
}
#endif
#endif
