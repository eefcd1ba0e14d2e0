/* contract.h: checks whether two recordings are comparable.
 *
 * Two recordings are comparable if they have the same tokens, config and weights, and steps that
 * follow each other. Each difference is one line of refusals, or of notes if --allow names it.
 *
 * Reads   request.options, opened.ref, opened.cand, opened.floor; result.weights
 * Fills   result.refusals, result.notes, result.weights
 */
#ifndef VN_COMPARE_CONTRACT_H
#define VN_COMPARE_CONTRACT_H

#include "compare/comparison/comparison.h"
#include "compare/weights/weights.h"

/* Compares tokens, config, weights and claims of a and b. who: the role of b in messages. *weights:
 * the result of vn_contract_weights; weights may be NULL. VN_ERR_MISMATCH: a line was added to
 * refusals. */
vn_status vn_contract(const vn_recording *a, const vn_recording *b, const char *who, const vn_compare_options *o,
                      vn_weights **weights, vn_lines *notes, vn_lines *refusals, vn_error *err);

/* Compares only the weights: by the recordings' tables and, if o->model is given, by the numbers of
 * that model where it is the model of a or of b. *weights: the differences, owned by the caller;
 * NULL if a side lists no weights. weights may be NULL. */
vn_status vn_contract_weights(const vn_recording *a, const vn_recording *b, const char *who,
                              const vn_compare_options *o, vn_weights **weights, vn_lines *notes, vn_lines *refusals,
                              vn_error *err);

/* Are the candidate's weights known to differ from the reference's? Then the model's weights are
 * not the candidate's (--allow weights). */
bool vn_other_weights(const vn_comparison *c);

/* Compares only the configs, given as JSON text; NULL: not known. */
void vn_contract_config(const char *ref, const char *other, const char *who, unsigned allow, vn_lines *notes,
                        vn_lines *refusals);
/* The same for a recording and the model that it claims to be of. */
void vn_contract_model(const vn_recording *a, const vn_model *m, unsigned allow, vn_lines *notes, vn_lines *refusals);

/* Compares what each tensor of r declares (axes, shape...) with what r's own plan says for its
 * name. */
vn_status vn_contract_claims(const vn_recording *r, const char *who, unsigned allow, vn_lines *notes,
                             vn_lines *refusals, vn_error *err);

/* Do the candidate's positions equal the reference's, which count from 0, plus a constant that is
 * not 0? *by: that constant, else 0. A replay then uses the reference's positions, so that wrong
 * positions in the engine are found. */
bool vn_positions_moved(const vn_comparison *c, int64_t *by);

/* Checks that the steps of each recording follow each other, and that at least one side has every
 * input token. If not, it adds a line to refusals and still returns VN_OK. */
vn_status vn_match_check_steps(vn_comparison *c, vn_error *err);

#endif
