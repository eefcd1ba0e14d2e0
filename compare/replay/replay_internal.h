/* replay_internal.h: what the files of replay/ share; nobody else includes it. */
#ifndef VN_COMPARE_REPLAY_INTERNAL_H
#define VN_COMPARE_REPLAY_INTERNAL_H

#include "compare/match/names.h"
#include "compare/replay/candidate.h"
#include "compare/replay/replay.h"
#include "compare/replay/trace.h"
#include "capture/recording/scratch.h"
#include "libref/exec/ref.h"

enum { VN_OWN, VN_FINE, VN_N_ENGINES }; /* in the candidate's precision; more precisely */

/* What a node handed over: one of its outputs. */
typedef struct vn_made {
	int            value;
	vn_dtype       dtype;
	vn_shape       shape;
	unsigned char *data;
	size_t         have, room;
	vn_scratch     large;    /* data lie in it, so that no more of them is in memory than is looked at; none: data are the heap's */
} vn_made;

typedef struct vn_replay_engine {
	vn_ref   *ref;
	vn_policy policy;
	vn_made   out[VN_MAX_OUT + 2];
	int       n_out;
} vn_replay_engine;

enum { VN_SAVED = 8 }; /* values of a step that something still reads, the last so many: they are as large as the model's widest */

/* What may stand in a value's place: what was captured; what the reference computes of the captured inputs; of inputs that are
 * what they should be, where one of those came out otherwise too. */
typedef enum vn_should { VN_AS_CAPTURED, VN_DIRECT, VN_FURTHER, VN_N_SHOULD } vn_should;

/* What a value that came out otherwise should be. */
typedef struct vn_saved {
	int   value, point;
	void *data[VN_N_SHOULD][VN_N_ENGINES]; /* whole; NULL: not in that way */
	int   through[VN_SAVED], n_through;    /* checkpoints that VN_FURTHER takes for captured wrongly */
} vn_saved;

typedef struct vn_replay {
	vn_comparison   *c;
	const vn_plan   *plan;   /* the model's */
	vn_plan         *other;  /* a copy, the own engine's: vn_replay_allow changes a node of it */
	vn_names         names;
	vn_replay_engine e[VN_N_ENGINES];
	vn_trace         trace;
	bool            *want;   /* (values) */
	int             *point;  /* (values) of this step: its checkpoint, which is both measured and in the plan; -1 */
	double          *error;  /* (values): relative error of the candidate against the reference; NaN: not known */
	const vn_step   *step;
	int              at;     /* the step, counted from 0 */
	vn_saved         saved[VN_SAVED];
	int              n_saved;
	vn_column_order  proven[VN_N_POINTS]; /* how the columns of a point lie in some layer, where what reads it is right so */
	vn_column_order  assumed[VN_N_POINTS]; /* what a walk before this one proved */
	bool             again;  /* there was one */
} vn_replay;

static inline vn_shape vn_replay_shape(const vn_replay *r, int value)
{
	return vn_value_shape(&r->plan->value[value], r->step->tokens, r->step->position + r->step->tokens);
}

/* ---- made.c: what a node hands over ----------------------------------------------------------- */

/* Where engine e puts what it makes. */
vn_sink   vn_replay_sink(vn_replay_engine *e);
/* What e made of that value in the node it ran last; NULL: nothing. */
const vn_made *vn_replay_made(const vn_replay_engine *e, int value);
void      vn_made_free(vn_made *m);

/* ---- replay_measure.c: the steps of one node ---------------------------------------------------- */

/* Node k of the step, run by both engines. */
vn_status vn_replay_run_node(vn_replay *r, int k, vn_error *err);
/* What the candidate has of it, its columns lying so, against what the engines made: p->replay, but span, behind and columns. */
vn_status vn_replay_measure(vn_replay *r, const vn_node *node, const vn_made *own, vn_column_order lie, vn_checkpoint *p, vn_error *err);
/* The candidate's numbers of a measured checkpoint into both engines. */
vn_status vn_replay_take(vn_replay *r, int value, vn_error *err);
/* Never in memory, or made of what others put there. */
bool      vn_replay_no_place(const vn_plan *plan, int value);

/* ---- replay_node.c: one node ---------------------------------------------------------------- */

/* Node k of the step: run by both engines, judged, and the candidate's numbers put in the place of what it made. */
vn_status vn_replay_node(vn_replay *r, int k, vn_error *err);

/* ---- reference_variants.c: what other healthy implementations do ------------------------------------------ */

/* Judges a value that came out beyond its floor by them. own: what the node made of it; cand: what the candidate did. The node is
 * run again, and leaves what it had made. */
vn_status vn_replay_allow(vn_replay *r, const vn_node *node, const vn_made *own, const vn_tensor *cand, const char *axes, vn_replayed *l, vn_error *err);

/* ---- replay_columns.c: columns in another order --------------------------------------------------- */

/* Is what node k makes right but for the order of its columns? Else its inputs whose columns were put in order are as they were captured
 * again, but where the order of such a point is proven elsewhere. */
vn_status vn_replay_columns(vn_replay *r, int k, vn_error *err);
/* After a walk: is something wrong that was taken as captured, though another layer proves an order for such a point, which was not assumed? Then
 * it is to be, in another walk. */
bool      vn_replay_columns_again(const vn_replay *r, vn_column_order assumed[VN_N_POINTS]);

/* ---- replay_captured.c: a capture that is not what the run went on with ---------------------- */

/* Keeps what a value should be that came out otherwise in the candidate, and that node k has just made. */
vn_status vn_replay_save(vn_replay *r, int k, int value, vn_error *err);
void      vn_replay_forget(vn_replay *r);
/* Node k came out otherwise. Does it come out right when some of its inputs that came out otherwise too are what they should be?
 * Then it is their captures that are wrong, this node is cleared, and what they should be stays in their place. */
vn_status vn_replay_captured(vn_replay *r, int k, vn_error *err);

#endif
