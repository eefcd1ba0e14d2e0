/* replay_state.h: what the files of a replay share: the two engines, what a node made, the
 * correct content of values that are wrong in the candidate, and the parts of replaying one node.
 * Included by compare/replay and its suites only. */
#pragma once

#include "compare/match/names.h"
#include "compare/replay/candidate.h"
#include "compare/replay/local.h"
#include "compare/replay/trace.h"
#include "capture/recording/scratch.h"
#include "libref/exec/ref.h"

/* The two engines: in the candidate's precision; more precise. */
enum { VN_REPLAY_OWN, VN_REPLAY_FINE, VN_N_ENGINES };

/* One output of a node. */
typedef struct vn_node_output {
	int            value;
	vn_tensor      t;
	unsigned char *data; /* of t, unless the engine lent it */
	size_t         have, room;
	/* holds data if it is too large for memory; else data is on the heap */
	vn_scratch     large;
} vn_node_output;

static inline bool vn_node_output_in_file(const vn_node_output *m)
{
	return m->large.file && m->t.data == m->large.data;
}

typedef struct vn_replay_engine {
	vn_ref        *ref;
	vn_policy      policy;
	vn_node_output out[VN_MAX_OUT + 2];
	int            n_out;
	bool           keeps; /* its outputs stay while a node runs again: none is borrowed */
	const bool    *last;  /* (values) only the last row of it is kept; NULL: of none */
	vn_taps        taps;  /* of the call that is begun */
} vn_replay_engine;

/* values of one step that are still to be read: the last ones, since they are as large as the
 * model's widest */
enum { VN_SAVED = 8 };

/* The alternatives for a value's content: as captured; as the reference computes it from captured
 * inputs; as it computes it from corrected inputs, if one of those is wrong too. */
typedef enum vn_replay_content { VN_AS_CAPTURED, VN_DIRECT, VN_FURTHER, VN_N_CONTENTS } vn_replay_content;

/* The correct content of a value that is wrong in the candidate. */
typedef struct vn_saved {
	int            value;
	vn_checkpoint *point;
	void          *data[VN_N_CONTENTS][VN_N_ENGINES]; /* whole tensors; NULL: no such alternative */
	/* checkpoints that VN_FURTHER assumes to be wrong captures */
	vn_checkpoint *through[VN_SAVED];
	int            n_through;
} vn_saved;

/* The engines whose results are rounded at random (draws.h). */
typedef struct vn_draws   vn_draws;
/* The choices of experts that the candidate did not record (settle.h). */
typedef struct vn_settled vn_settled;

typedef struct vn_replay {
	const vn_opened *o;
	vn_checkpoints  *all;
	vn_lines        *notes;
	bool             walked; /* at least one step was replayed */
	const vn_plan   *plan;   /* the model's */
	/* a copy for engine VN_REPLAY_OWN: vn_replay_judge_variants changes a node of it */
	vn_plan         *other;
	vn_names         names;
	vn_replay_engine e[VN_N_ENGINES];
	vn_draws        *draws;
	vn_settled      *settled;
	/* a choice was loose so far: later steps read keys and values behind it, and err alike */
	bool             loose;
	vn_trace         trace;
	bool            *want; /* (values) */
	/* (values) checkpoint in this step that is measured and in the plan; NULL */
	vn_checkpoint  **point;
	double          *error; /* (values): relative error of the candidate; NaN: not known */
	/* (values): of several rows in this step, only the last was compared (align.c) */
	bool            *last;
	const vn_step   *step;
	int              at; /* the step, counted from 0 */
	/* the checkpoints of step i, in their order: in_step[first[i]] to in_step[first[i + 1] - 1] */
	vn_checkpoint  **in_step;
	int             *first; /* (steps + 1) */
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

/* ---- engines, and what they make (replay_made.c; also of the floor's runs) ------------------- */

/* Destroys the engine e->ref. */
void      vn_replay_engine_close(vn_replay_engine *e);
/* Begins a call of the step's tokens: e keeps what each node makes of the values in want, in the
 * step's rows. want NULL: of none. ids: of the whole recording. */
vn_status vn_replay_engine_begin(vn_replay_engine *e, const vn_step *step, const int32_t *ids, const bool *want,
                                 vn_error *err);
/* Returns the sink that stores the outputs of engine e. */
vn_sink   vn_replay_sink(vn_replay_engine *e);
/* Returns what e made of a value in the node that it ran last, or NULL. */
const vn_node_output *vn_replay_made(const vn_replay_engine *e, int value);
void                  vn_node_output_free(vn_node_output *m);
/* Can the value not be written? It is never in memory as a whole, or is a growing state, which
 * follows from other values. */
bool                  vn_replay_no_place(const vn_plan *plan, int value);

/* ---- one node ------------------------------------------------------------------------------- */

/* ---- its parts (replay_measure.c) ------------------------------------------------------------ */

/* Sets what B rounds as the candidate does in the node that is run next: what is known bit by
 * bit. */
void      vn_replay_round_alike(vn_replay *r, const vn_node *node);
/* Runs node k of the step in both engines. */
vn_status vn_replay_run_node(vn_replay *r, int k, vn_error *err);
/* Measures the candidate's numbers, with columns in this order, against the engines' outputs.
 * Reads p->replay.span, and fills the rest of p->replay except charged_to and columns. */
vn_status vn_replay_measure(vn_replay *r, const vn_node_output *own, vn_column_order order, vn_checkpoint *p,
                            vn_error *err);
/* Copies the candidate's numbers of p, a recording of that value, into n engines. */
vn_status vn_replay_give(vn_replay *r, int value, const vn_checkpoint *p, vn_replay_engine *const *e, int n,
                         vn_error *err);
/* Same, into all engines. */
vn_status vn_replay_take(vn_replay *r, int value, const vn_checkpoint *p, vn_error *err);
/* Does node k read the value root? */
bool      vn_replay_reads(const vn_plan *plan, int k, int root);

/* ---- other correct implementations (replay_variants.c) --------------------------------------- */

/* Judges a value that is beyond its floor by what other correct implementations of its operation
 * (reference_variants.h) differ by. own: what the node made; cand: the candidate's numbers. Runs
 * the node again, and afterwards the unmodified one, which restores its outputs. */
vn_status vn_replay_judge_variants(vn_replay *r, const vn_node_output *own, const vn_tensor *cand, const char *axes,
                                   vn_replayed *l, vn_error *err);

/* A product of at most VN_FEW_SUMS numbers may cancel, and then its sum errs by more than the floor
 * of one run shows: in float32, adds what sums in any order err by. */
#define VN_FEW_SUMS 8
vn_status vn_replay_allow_sums(vn_replay *r, const vn_node_output *own, vn_replayed *l, vn_error *err);

/* ---- columns in another order (replay_columns.c) --------------------------------------------- */

/* Is node k right except for the order of its columns? If not, inputs whose columns were reordered
 * are restored to the captured order, unless another layer proves the order for that point. */
vn_status vn_replay_columns(vn_replay *r, int k, vn_error *err);
/* After a walk: is something wrong that was taken as captured, although another layer proves an
 * order for such a point that was not yet assumed? Then fills `assumed` for another walk. */
bool      vn_replay_columns_again(const vn_replay *r, vn_column_order assumed[VN_N_POINTS]);

/* ---- tensors captured wrongly, although the run used the right numbers (replay_captured.c) --- */

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
