/* sentence.h: the sentence of one hypothesis: shared by the files that write them. */
#ifndef VN_COMPARE_SENTENCE_H
#define VN_COMPARE_SENTENCE_H

#include "compare/explain/explanation.h"

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

/* A text with a place for one number: that of a constant, or (no name) that of the change.
 * VN_INVERSE: 1 divided by it. VN_WITH_RANGE: with the whole numbers that fit as well. Or a function that writes it. */
typedef struct vn_sentence_row {
	const char *words;
	enum { VN_NO_NUMBER, VN_NUMBER, VN_INVERSE, VN_WITH_RANGE } with;
	const char *constant;
	void (*say)(const vn_sentence *s);
} vn_sentence_row;

/* Sentences by finding: of what an operation computes otherwise, and of what its result is, or what caches hold. The
 * row of a finding is empty in one of them. */
extern const vn_sentence_row vn_sentences_of_operations[VN_N_FINDINGS], vn_sentences_of_results[VN_N_FINDINGS];

const char *vn_sentence_name(const vn_plan *p, int value);
/* "40", "40 or 41", "40 to 42" */
const char *vn_sentence_range(int64_t one, int64_t first, int64_t last, char text[64]);

#endif
