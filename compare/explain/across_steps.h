/* across_steps.h: checks the explanation of a checkpoint against the other steps of its point.
 *
 * An engine makes a mistake in every step, unless the mistake affects only some calls by its nature
 * (what is cached, positions after the first call). So a mistake of the catalogue that explains a
 * checkpoint should also explain the same point in other steps. Two observations contradict it.
 *
 * Another step is right, although the mistake would change it. The engine may use other code in
 * that step, so the answer stays, with a remark, if there is no other answer.
 *
 * A step with as many tokens is wrong in another way, which nothing explains. This refutes the
 * answer: the error only looks like that mistake in this step.
 *
 * A fitted answer is tried in the other steps with the constants that were fitted. If nothing
 * explains a step, a constant fitted in another step may. Wrong captures and rearrangements are not
 * tried in other steps; if another step's own answer is the same with another number, a remark says
 * so.
 */
#pragma once

#include "compare/trial/case.h"

void vn_explain_across_steps(vn_case *t, vn_all_findings *x);
