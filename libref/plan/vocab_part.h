/* vocab_part.h: some tokens of a large vocabulary.
 *
 * The logits of a token are products of one hidden state with as many rows as there are tokens.
 * Some thousand of them show its error as well as all do. The sample is the same for every run: 64
 * blocks of 64 tokens, at equal distances.
 */
#pragma once

#include "libref/plan/plan.h"

enum { VN_VOCAB_BLOCKS = 64, VN_VOCAB_BLOCK = 64, VN_VOCAB_PART = VN_VOCAB_BLOCKS * VN_VOCAB_BLOCK };

/* The first token of a block. */
static inline int64_t vn_vocab_block(int64_t vocab, int block)
{
	return vocab / VN_VOCAB_BLOCKS * block;
}

/* Does the value have a number for each token of the vocabulary? */
bool vn_value_is_scores(const vn_plan *p, int value);
/* Is the vocabulary at least twice the sample, and can the plan compute the sample alone? Not if
 * another operation than a product or a scale makes or reads scores. */
bool vn_plan_has_vocab_part(const vn_plan *p);
