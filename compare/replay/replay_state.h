/* replay_state.h: what the files of a replay share: the two engines, what a node made, and the
 * correct content of values that are wrong in the candidate. Included by compare/replay and its
 * suites only. */
#ifndef VN_COMPARE_REPLAY_STATE_H
#define VN_COMPARE_REPLAY_STATE_H

#include "compare/match/names.h"
#include "compare/replay/candidate.h"
#include "compare/replay/replay.h"
#include "compare/replay/trace.h"
#include "capture/recording/scratch.h"
#include "libref/exec/ref.h"

/* The two engines: in the candidate's precision; more precise. */
enum { VN_REPLAY_OWN, VN_REPLAY_FINE, VN_N_ENGINES };

/* One output of a node. */
typedef struct vn_node_output {
	int            value;
	vn_dtype       dtype;
	vn_shape       shape;
	unsigned char *data;
	size_t         have, room;
	/* holds data if it is too large for memory; else data is on the heap */
	vn_scratch     large;
} vn_node_output;

typedef struct vn_replay_engine {
	vn_ref        *ref;
	vn_policy      policy;
	vn_node_output out[VN_MAX_OUT + 2];
	int            n_out;
	const bool    *last; /* (values) only the last row of it is kept; NULL: of none */
} vn_replay_engine;

/* values of one step that are still to be read: the last ones, since they are as large as the
 * model's widest */
enum { VN_SAVED = 8 };

/* The alternatives for a value's content: as captured; as the reference computes it from captured
 * inputs; as it computes it from corrected inputs, if one of those is wrong too. */
typedef enum vn_replay_content { VN_AS_CAPTURED, VN_DIRECT, VN_FURTHER, VN_N_CONTENTS } vn_replay_content;

/* The correct content of a value that is wrong in the candidate. */
typedef struct vn_saved {
	int   value, point;
	void *data[VN_N_CONTENTS][VN_N_ENGINES]; /* whole tensors; NULL: no such alternative */
	/* checkpoints that VN_FURTHER assumes to be wrong captures */
	int   through[VN_SAVED], n_through;
} vn_saved;

typedef struct vn_replay {
	vn_comparison   *c;
	const vn_plan   *plan; /* the model's */
	/* a copy for engine VN_REPLAY_OWN: vn_replay_judge_variants changes a node of it */
	vn_plan         *other;
	vn_names         names;
	vn_replay_engine e[VN_N_ENGINES];
	vn_trace         trace;
	bool            *want; /* (values) */
	/* (values) checkpoint in this step that is measured and in the plan; -1 */
	int             *point;
	double          *error; /* (values): relative error of the candidate; NaN: not known */
	/* (values): of several rows in this step, only the last was compared (align.c) */
	bool            *last;
	const vn_step   *step;
	int              at; /* the step, counted from 0 */
	vn_saved         saved[VN_SAVED];
	int              n_saved;
	/* order of a point's columns, proven in some layer by a reader that is right with it */
	vn_column_order  proven[VN_N_POINTS];
	vn_column_order  assumed[VN_N_POINTS]; /* orders that an earlier walk proved */
	bool             again;                /* there was an earlier walk */
	/* room_put bytes: numbers on their way into an engine */
	unsigned char   *put;
	size_t           room_put;
} vn_replay;

static inline vn_shape vn_replay_shape(const vn_replay *r, int value)
{
	const int64_t keys = r->step->position + r->step->tokens;
	return vn_value_shape(&r->plan->value[value], r->step->tokens, keys);
}

#endif
