/* across_steps.h: what each step says of a point, held against its other steps.
 *
 * A mistake of an engine is made in every step, unless it is of one kind of them by its nature
 * (what is cached, positions behind the first call): then it changes nothing in the others. So a mistake of the
 * catalogue that explains a checkpoint is made at the same point of other steps, too. A step that is
 * right, and would not be with it, speaks against it: it may be that the engine has other code for other steps, so it
 * stays the answer, with these words, where nothing else is one. A step of as many tokens that is wrong otherwise, and that
 * nothing explains, refutes it: what is wrong there looks like it here.
 *
 * What was fitted is made of constants, and made again by them; where nothing explains a step, what was fitted in another may.
 * What was recorded alone, and arrangements, are left out; where these have another number in another step, that is said. */
#ifndef VN_COMPARE_ACROSS_STEPS_H
#define VN_COMPARE_ACROSS_STEPS_H

#include "compare/explain/trial.h"

vn_status vn_explain_across_steps(vn_explain_trial *t, vn_explanations *x, vn_error *err);

#endif
