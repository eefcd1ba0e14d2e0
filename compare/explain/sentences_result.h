/* sentences_result.h: the sentences for findings about what a result is instead: other slots of a
 * cache, ranks, shards, orders, factors. */
#ifndef VN_COMPARE_SENTENCES_RESULT_H
#define VN_COMPARE_SENTENCES_RESULT_H

#include "compare/explain/sentences_operation.h"

/* By finding; empty where vn_sentences_of_operations has the row. */
extern const vn_sentence_row vn_sentences_of_results[VN_N_FINDINGS];

#endif
