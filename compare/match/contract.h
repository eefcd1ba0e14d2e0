/* contract.h: are two recordings comparable?
 *
 * Two recordings are comparable if they have the same tokens, config and weights, and steps that follow each other. Each
 * difference is one line of refusals, or of notes if --allow names it.
 *
 * Reads   request.options, opened.ref, opened.cand, opened.floor
 * Fills   result.refusals, result.notes, result.weights
 */
#ifndef VN_COMPARE_CONTRACT_H
#define VN_COMPARE_CONTRACT_H

#include "compare/comparison/comparison.h"

/* Do a and b have the same tokens, config and weights? who: the role of b, for the lines. *weights: the result of
 * vn_contract_weights; NULL: not wanted. */
vn_status vn_contract(const vn_recording *a, const vn_recording *b, const char *who, const vn_compare_options *o, vn_weights **weights,
                      vn_lines *notes, vn_lines *refusals, vn_error *err);

/* The weights alone, by their tables and, with o->model, by the numbers of that model as far as it is the one
 * or the other's. *weights: the table, the caller's, NULL where a side lists none; weights NULL: not asked. */
vn_status vn_contract_weights(const vn_recording *a, const vn_recording *b, const char *who, const vn_compare_options *o, vn_weights **weights,
                              vn_lines *notes, vn_lines *refusals, vn_error *err);

/* The same of two configs alone, as text; NULL: not known. */
void      vn_contract_config(const char *ref, const char *other, const char *who, unsigned allow, vn_lines *notes,
                             vn_lines *refusals);
/* The same of a recording and the model that it should be of. */
void      vn_contract_model(const vn_recording *a, const vn_model *m, unsigned allow, vn_lines *notes, vn_lines *refusals);

/* Is every tensor of r what its own plan says of that name? */
vn_status vn_contract_claims(const vn_recording *r, const char *who, unsigned allow, vn_lines *notes, vn_lines *refusals, vn_error *err);

/* Are the candidate's positions those of the reference (which count from 0) plus a constant? *by: the constant, else 0. A replay
 * then uses the reference's positions, so that an engine with wrong positions is found. */
bool      vn_positions_moved(const vn_comparison *c, int64_t *by);

/* Do the steps of each recording follow each other, and does at least one side have every input token? If not, a line is added to
 * refusals; that is not an error yet. */
vn_status vn_check_steps(vn_comparison *c, vn_error *err);

#endif
