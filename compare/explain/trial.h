/* trial.h: one checkpoint that is being explained: what every attempt on it needs. */
#ifndef VN_COMPARE_TRIAL_H
#define VN_COMPARE_TRIAL_H

#include "compare/explain/explain.h"
#include "compare/replay/local.h"
#include "compare/replay/recompute.h"

/* Did the run go on with the numbers that were recorded? By what reads them. */
typedef enum vn_went { VN_WENT_UNKNOWN, VN_WENT_ON, VN_NOT_WENT_ON } vn_went;

/* Heads that a mistake is made in; the others are as they should be. */
typedef struct vn_head_part {
	bool    in[VN_HEADS_MOST];
	int     heads;
	int64_t outer, inner; /* elements before and behind the axis of heads */
} vn_head_part;

typedef struct vn_explain_trial {
	vn_comparison  *c;
	vn_recompute   *recompute; /* it stands at the checkpoint: */
	const vn_site  *site;
	vn_explanation *x;
	vn_tensor       own, fine; /* what the unmodified operation makes, in the candidate's precision and in a finer one */
	int64_t         elements;
	vn_went         went;
	const vn_head_part *part;  /* NULL: hypotheses are made in all heads */
	bool            brief; /* one of many: what takes long is not tried */
	bool            whole; /* what is made in some heads alone is not tried */
	int             pairs_in_vain; /* origins that no two mistakes explain */
} vn_explain_trial;

#endif
