/* sentences_operation.h: the type of a sentence, and the sentences for findings about what an
 * operation computes. sentences_result.h has those about its result. */
#ifndef VN_COMPARE_SENTENCES_OPERATION_H
#define VN_COMPARE_SENTENCES_OPERATION_H

#include "compare/hypothesis/explanation.h"

#include "libref/plan/fault.h"

#include <stdio.h>

typedef struct vn_sentence {
	const vn_comparison  *c;
	const vn_explanation *x;
	const vn_plan        *p;
	const vn_hypothesis  *h;
	char                 *text;
	size_t                size;
} vn_sentence;

#define VN_PUT(s, ...) snprintf((s)->text, (s)->size, __VA_ARGS__)
/* The title of a fault of the catalogue. */
#define VN_TITLE(name) vn_fault_means(vn_mistake_fault(VN_MISTAKE_##name))

/* How a finding is written: `words`, a printf format with a place for one number, or the function
 * `say`. The number is that of `constant`, or of the change if constant is NULL. VN_INVERSE: 1 /
 * the number; VN_WITH_RANGE: the range of integers that fit as well. */
typedef struct vn_sentence_row {
	const char *words;
	enum { VN_NO_NUMBER, VN_NUMBER, VN_INVERSE, VN_WITH_RANGE } with;
	const char *constant;
	void (*say)(const vn_sentence *s);
} vn_sentence_row;

/* Indexed by finding; a row is empty if sentences_result.h has it. */
extern const vn_sentence_row vn_sentences_of_operations[VN_N_FINDINGS];

/* "40", "40 or 41", "40 to 42" */
const char *vn_sentence_range(int64_t one, int64_t first, int64_t last, char text[64]);

#endif
