/* sentences_result.h: the sentences for findings about an operation's result: cache slots, ranks,
 * shards, orders, factors. */
#ifndef VN_COMPARE_SENTENCES_RESULT_H
#define VN_COMPARE_SENTENCES_RESULT_H

#include "compare/explain/sentences_operation.h"

/* Indexed by finding; a row is empty if vn_sentences_of_operations has it. */
extern const vn_sentence_row vn_sentences_of_results[VN_N_FINDINGS];

#endif
