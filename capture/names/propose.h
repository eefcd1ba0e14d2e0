/* propose.h: proposes a name map by the numbers: which tensors of a dump are which checkpoints of a
 * recording of the same model on the same tokens.
 *
 * The dump may be of a faulty run. So no name decides, and no single tensor does: names that differ
 * in one number (the layer) are a family; a family becomes a rule, the same in all layers, if its
 * tensors are nearest to one checkpoint by a margin in enough layers. A tensor downstream of a
 * fault is near to nothing; it goes where its family goes, and a comparison finds it there. A
 * tensor that is near to another checkpoint than its family, or whose name says otherwise (k, v,
 * gate, up, the layer), is reported, and never mapped there.
 *
 * Distance of two tensors: 1 - cos^2 of up to 512 numbers at the same places, each divided by the
 * median of its tensor and passed through asinh, so that neither scale nor a few large channels
 * decide; plus 0.01 log^2 of the ratio of the medians.
 */
#pragma once

#include "capture/recording/recording.h"
#include "libref/plan/point.h"

#include <stdio.h>

typedef struct vn_proposed_rule {
	char   from[VN_NAME_MAX + 8]; /* "blk.{n}.q", or one name */
	char   to[VN_NAME_MAX];       /* "layer{n}.q_proj"; "": only parts */
	char   parts[3][VN_NAME_MAX]; /* (n_parts) of a fused product */
	int    n_parts;
	char   along[16]; /* of parts */
	char   axes[64];
	bool   copy;     /* a second tensor with the numbers of another rule's */
	bool   fallback; /* such a copy in another layout */
	bool   stacked;  /* one tensor with an axis of layers */
	bool   beyond;   /* it has an index more than there are layers */
	bool   by_shape; /* no number confirms it: it alone has the shape of the checkpoint */
	bool   by_words; /* no number confirms it: its name says which checkpoint it is */
	/* of the tensors (n): nearest to their checkpoint by a margin; the same, but at a distance that
	 * a fault or another tensor could have; nearer to another checkpoint */
	int    n, confirmed, likely, against;
	/* the largest distance of a confirmed tensor, and the smallest from any of them to another
	 * checkpoint; negative: none */
	double worst, next;
	int    order; /* of the checkpoint in the reference */
} vn_proposed_rule;

typedef struct vn_proposal {
	vn_proposed_rule *rule;
	int               n;
	char            **report; /* (n_reports) what contradicts: one line each */
	int               n_reports;
	char            **left; /* (n_left) names without a counterpart */
	int               n_left;
	char            **absent; /* (n_absent) checkpoints without a tensor, of the first step */
	int               n_absent;
	int               names; /* of the dump */
} vn_proposal;

/* Compares the tensors of the dump r with those of the recording like. Reads each tensor at up to
 * 512 places. */
vn_status vn_propose(vn_recording *r, vn_recording *like, vn_proposal *p, vn_error *err);
void      vn_proposal_finish(vn_proposal *p);

/* Writes the map as YAML. source: what was compared, for a comment. */
void vn_proposal_write(const vn_proposal *p, const char *source, FILE *to);
/* Prints the rules with their evidence, then what contradicts. */
void vn_proposal_print(const vn_proposal *p, FILE *to);
