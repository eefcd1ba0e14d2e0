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

/* Are b's tokens, config and weights a's? who: what b is, for the lines. *weights: what
 * vn_contract_weights found; NULL: not asked. */
vn_status vn_contract(const vn_recording *a, const vn_recording *b, const char *who, const vn_compare_options *o, vn_weights **weights,
                      vn_lines *notes, vn_lines *refusals, vn_error *err);

/* The weights alone, by their tables and, with o->model, by the numbers of that model as far as it is the one
 * or the other's. *weights: the table, the caller's, NULL where a side lists none; weights NULL: not asked. */
vn_status vn_contract_weights(const vn_recording *a, const vn_recording *b, const char *who, const vn_compare_options *o, vn_weights **weights,
                              vn_lines *notes, vn_lines *refusals, vn_error *err);

/* The same of two configs alone, as text; NULL: not known. */
void      vn_contract_config(const char *ref, const char *other, const char *who, unsigned allow, vn_lines *notes,
                             vn_lines *refusals);

/* Is every tensor of r what its own plan says of that name? */
vn_status vn_contract_claims(const vn_recording *r, const char *who, unsigned allow, vn_lines *notes, vn_lines *refusals, vn_error *err);

/* Are the candidate's positions the reference's, which count from 0, and one number more (*by; else 0)? A replay then computes with the
 * reference's: which positions an engine gives its tokens is what such a comparison is to tell. */
bool      vn_positions_moved(const vn_comparison *c, int64_t *by);

/* Do the steps of the recordings follow each other, and has one side at least every token that went in? What does not hold is a
 * refusal, and it is not an error yet. */
vn_status vn_check_steps(vn_comparison *c, vn_error *err);

#endif
