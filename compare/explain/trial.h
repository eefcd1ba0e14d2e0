/* trial.h: the checkpoint that is being explained, with what every strategy needs. */
#ifndef VN_COMPARE_TRIAL_H
#define VN_COMPARE_TRIAL_H

#include "compare/explain/explanation.h"
#include "compare/replay/local.h"
#include "compare/replay/recompute.h"

/* Did the run continue with the numbers that were recorded? Decided from the operations that read
 * them. */
typedef enum vn_consumed { VN_CONSUMED_UNKNOWN, VN_CONSUMED_AS_RECORDED, VN_CONSUMED_OTHERS } vn_consumed;

/* The heads in which a mistake is made; the others are right. */
typedef struct vn_head_part {
	bool    in[VN_HEADS_MOST];
	int     heads;
	int64_t outer, inner; /* elements before and after the axis of heads */
} vn_head_part;

typedef struct vn_explain_trial {
	vn_comparison      *c;
	vn_recompute       *recompute; /* positioned at the checkpoint, as is site */
	const vn_site      *site;
	vn_explanation     *x;
	vn_replayed         variants; /* floors of the other healthy variants against the unmodified operation */
	/* what the unmodified operation makes, in the candidate's precision and more precisely */
	vn_tensor           own, fine;
	int64_t             elements;
	const vn_some_rows *some; /* columns of logits in which hypotheses are looked at first; NULL: none */
	vn_consumed         consumed;
	const vn_head_part *part;  /* NULL: hypotheses affect all heads */
	bool                brief; /* one of many checkpoints: slow strategies are skipped */
	bool                whole; /* mistakes in only some heads are not tried */
	/* origins for which pairs of mistakes were tried without success */
	int                 pairs_in_vain;
} vn_explain_trial;

#endif
