/* contract.h: checks whether two recordings are comparable.
 *
 * Two recordings are comparable if they have the same tokens, config and weights, and steps that
 * follow each other. Each difference is one line of refusals, or of notes if --allow names it.
 *
 * Reads   request.options, opened.ref, opened.cand, opened.floor
 * Fills   refusals and notes; the differences of the weights
 */
#pragma once

#include "compare/comparison/comparison.h"
#include "compare/weights/weights.h"

/* Compares tokens, config, weights and claims of the reference and of another recording. who: the
 * role of the other in messages. VN_ERR_MISMATCH: remarks.refusals is not empty. */
vn_status vn_contract(const vn_opened *o, vn_remarks *remarks, const vn_recording *other, const char *who,
                      struct vn_weights **weights, vn_error *err);

/* Compares only the weights: by the recordings' tables and, if options->model is given, by the
 * numbers of that model where it is the model of either. The differences of the candidate's are
 * kept in *weights, unless weights is NULL. */
void vn_contract_weights(const vn_opened *o, vn_remarks *remarks, const vn_recording *other, const char *who,
                         struct vn_weights **weights);

/* Are the candidate's weights known to differ from the reference's? Then the model's weights are
 * not the candidate's (--allow weights). */
bool vn_other_weights(const struct vn_weights *w);

/* Compares only the configs, given as JSON text; NULL: not known. */
void vn_contract_config(const vn_opened *o, vn_remarks *remarks, const char *ref, const char *other, const char *who);
/* The same for the reference and the model that it claims to be of. */
void vn_contract_model(const vn_opened *o, vn_remarks *remarks, const vn_model *m);

/* Compares what each tensor of r declares (axes, shape...) with what r's own plan says for its
 * name. */
void vn_contract_claims(const vn_opened *o, vn_remarks *remarks, const vn_recording *r, const char *who);

/* Do the candidate's positions equal the reference's, which count from 0, plus a constant that is
 * not 0? *by: that constant, else 0. A replay then uses the reference's positions, so that wrong
 * positions in the engine are found. */
bool vn_positions_moved(const vn_opened *o, int64_t *by);

/* Checks that the steps of each recording follow each other, and that at least one side has every
 * input token. If not, it adds a line to refusals and still returns VN_OK. */
void vn_match_check_steps(const vn_opened *o, vn_remarks *remarks);
