/* checks.h: stores the checks of a checkpoint compactly.
 *
 * A large comparison has ten million checkpoints with some ten checks each. Checks of one name
 * differ from step to step only in their values. So a checkpoint stores the values, and everything
 * else (the limit, its rule, the verdict...) is stored once per comparison, in `terms`: each a
 * vn_check whose value is 0.
 *
 * Reads   check and n_checks of a checkpoint, the terms
 * Fills   the same
 *
 * Owner    the checkpoint owns its list; the terms owns the terms, which live as long as the
 *          comparison.
 * Threads  one at a time per comparison.
 */
#pragma once

#include "compare/comparison/comparison.h"

/* Check i of p, in full; i < p->n_checks. */
vn_check vn_check_at(const vn_checkpoint *p, int i);

/* Replaces the checks of p by these n. */
void vn_checks_keep(void **terms, vn_checkpoint *p, const vn_check *check, int n);

/* Appends a check to those of p; replaces check i of p. */
void vn_checks_add(void **terms, vn_checkpoint *p, const vn_check *check);
void vn_checks_set(void **terms, vn_checkpoint *p, int i, const vn_check *check);

void vn_checks_drop(vn_checkpoint *p);
void vn_terms_free(void **terms);
