/* replay_internal.h: shared by the files of replay/; included nowhere else. */
#ifndef VN_COMPARE_REPLAY_INTERNAL_H
#define VN_COMPARE_REPLAY_INTERNAL_H

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
typedef enum vn_replay_should { VN_AS_CAPTURED, VN_DIRECT, VN_FURTHER, VN_N_SHOULD } vn_replay_should;

/* The correct content of a value that is wrong in the candidate. */
typedef struct vn_saved {
	int   value, point;
	void *data[VN_N_SHOULD][VN_N_ENGINES]; /* whole tensors; NULL: no such alternative */
	/* checkpoints that VN_FURTHER assumes to be wrong captures */
	int   through[VN_SAVED], n_through;
} vn_saved;

typedef struct vn_replay {
	vn_comparison   *c;
	const vn_plan   *plan; /* the model's */
	/* a copy for engine VN_REPLAY_OWN: vn_replay_allow changes a node of it */
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

/* ---- replay_made.c: what a node hands over --------------------------------------------------- */

/* Returns the sink that stores the outputs of engine e. */
vn_sink               vn_replay_sink(vn_replay_engine *e);
/* Returns what e made of a value in the node that it ran last, or NULL. */
const vn_node_output *vn_replay_made(const vn_replay_engine *e, int value);
void                  vn_node_output_free(vn_node_output *m);

/* ---- replay_measure.c: the steps of one node ------------------------------------------------- */

/* Runs node k of the step in both engines. */
vn_status vn_replay_run_node(vn_replay *r, int k, vn_error *err);
/* Measures the candidate's numbers, with columns in the order `lie`, against the engines' outputs.
 * Reads p->replay.span, and fills the rest of p->replay except behind and columns. */
vn_status vn_replay_measure(vn_replay *r, const vn_node *node, const vn_node_output *own, vn_column_order lie,
                            vn_checkpoint *p, vn_error *err);
/* Copies the candidate's numbers of a measured checkpoint into both engines. */
vn_status vn_replay_take(vn_replay *r, int value, vn_error *err);
/* Copies those of p, another recording of the same value. */
vn_status vn_replay_take_from(vn_replay *r, int value, const vn_checkpoint *p, vn_error *err);
/* Can the value not be written? It is never in memory as a whole, or is a growing state, which
 * follows from other values. */
bool      vn_replay_no_place(const vn_plan *plan, int value);

/* ---- replay_node.c: one node ----------------------------------------------------------------- */

/* Handles node k of the step: runs it in both engines, judges it, and replaces its outputs by the
 * candidate's numbers. */
vn_status vn_replay_node(vn_replay *r, int k, vn_error *err);

/* ---- reference_variants.c: what other correct implementations do ----------------------------- */

/* Judges a value that is beyond its floor by the variants. own: what the node made; cand: the
 * candidate's numbers. Runs the node again, and afterwards restores its outputs. */
vn_status vn_replay_allow(vn_replay *r, const vn_node *node, const vn_node_output *own, const vn_tensor *cand,
                          const char *axes, vn_replayed *l, vn_error *err);

/* ---- replay_columns.c: columns in another order ---------------------------------------------- */

/* Is node k right except for the order of its columns? If not, inputs whose columns were reordered
 * are restored to the captured order, unless another layer proves the order for that point. */
vn_status vn_replay_columns(vn_replay *r, int k, vn_error *err);
/* After a walk: is something wrong that was taken as captured, although another layer proves an
 * order for such a point that was not yet assumed? Then fills `assumed` for another walk. */
bool      vn_replay_columns_again(const vn_replay *r, vn_column_order assumed[VN_N_POINTS]);

/* ---- replay_captured.c: a capture that the rest of the run did not use ----------------------- */

/* Keeps the correct content of a value that is wrong in the candidate and that node k has just
 * made. */
vn_status vn_replay_save(vn_replay *r, int k, int value, vn_error *err);
void      vn_replay_forget(vn_replay *r);
/* Called if node k is wrong: is it right if some of its wrong inputs have their correct content?
 * Then the captures of those inputs are wrong, the node is cleared, and the correct content stays
 * in place. */
vn_status vn_replay_captured(vn_replay *r, int k, vn_error *err);
/* Called if node k is wrong: is it right on the numbers that an input held when it was recorded
 * again (a checkpoint that is overwritten)? Then that checkpoint is charged. */
vn_status vn_replay_overwritten(vn_replay *r, int k, vn_error *err);

#endif
