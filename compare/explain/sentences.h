/* sentences.h: hypotheses in words, made of their fields once all answers are known. Nothing reads them but a person. */
#ifndef VN_COMPARE_SENTENCES_H
#define VN_COMPARE_SENTENCES_H

#include "compare/explain/explain.h"

/* Fills in id, words, also, in_part and against of every hypothesis, and `separate` of every explanation. */
void vn_put_sentences(const vn_comparison *c, vn_explanations *x);
/* The counterpart of rotated queries are keys, of cached keys values, and back: faults of both are not faults of one. Its name;
 * NULL: there is none. *found: it in the comparison, NULL: it was not recorded. */
const char *vn_counterpart(const vn_comparison *c, const vn_explanation *x, char name[VN_NAME_MAX], const vn_checkpoint **found);

#endif
