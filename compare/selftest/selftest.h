/* selftest.h: checks that a comparison can fail: it makes mutations of a correct recording, each of
 * which must be caught.
 *
 * A mutation changes a copy of the candidate (or of the reference, or both) as one known kind of
 * mistake would, and states what vn_compare must find: the exit status; the status and metric of
 * the changed checkpoint; that it is the first divergence and the only one; or by what a comparison
 * is refused. Anything else is MISSED. The tables are in selftest_*.c, one file per kind.
 *
 * These changes are left out, because the result is, or may be, a correct recording:
 *   - claims that no verdict depends on: a wrong digest or wrong statistics of numbers that are
 *     within their limits, because the numbers are judged, not the claims. The digest of a tensor
 *     outside its limits is checked, and has a mutation here; `vernier show --check` checks all;
 *   - a change below the rounding of the format (the last bit of one number, one row of logits
 *     whose argmax is a tie, a subnormal made zero);
 *   - numbers kept in a wider format than the run's (dumps often are), or the same numbers
 *     compressed, in chunks, or with fewer second names;
 *   - a run that claims a coarser precision, if no floor is known: its limits are wider, and it is
 *     within them;
 *   - a rounding smaller than the error of the run's own sums: of an f16-acc16 run, to bfloat16;
 *     of a bfloat16 run, to any format of as many bits;
 *   - text that decides nothing: created, tool, command, provenance.
 *
 * Name maps, shards of ranks, rows of a batch and paged caches are resolved before a comparison
 * begins (sides.h), and are not tested here; tests/parity_foreign.py mutates those.
 */
#ifndef VN_COMPARE_SELFTEST_H
#define VN_COMPARE_SELFTEST_H

#include "capture/edit/edit.h"
#include "compare/comparison/comparison.h"
#include "compare/profile/layout_match.h"

/* What a mutation needs to find in a recording. */
typedef enum vn_needs {
	VN_NEEDS_NOTHING,
	/* target: at least 3 tokens (later step: one) by 8 numbers, inside a layer */
	VN_NEEDS_TENSOR,
	VN_NEEDS_FINER,  /* same, in a run that keeps and sums more digits than bfloat16 */
	VN_NEEDS_HEADS,  /* target: tokens; at least two heads, of at least two numbers */
	VN_NEEDS_SCORES, /* target: logits of at least 3 tokens */
	VN_NEEDS_PAIR,   /* target and a later other: two points of one layer, equal shapes */
	VN_NEEDS_LAYERS, /* target and a later other: one point of two layers, equal shapes */
	VN_NEEDS_STEPS,  /* target and other: one checkpoint of a later step and of the step before */
	VN_NEEDS_NAMES,  /* target: a second name; other: a different tensor of its shape */
	VN_NEEDS_WEIGHTS,
	VN_NEEDS_PLAN,
	VN_NEEDS_CONFIG,
	VN_NEEDS_FLOOR,
	VN_NEEDS_EARLIER,       /* a correct recording of other tokens */
	VN_NEEDS_UNRELATED_RUN, /* and one of other weights */
	VN_N_NEEDS
} vn_needs;

/* The call that is changed. A later step has one token. VN_EVERY_STEP: target's checkpoint in all
 * such steps; 8 of them have different numbers, so that channels are judged. */
typedef enum vn_selftest_when { VN_FIRST_CALL, VN_A_STEP, VN_LAST_STEP, VN_EVERY_STEP } vn_selftest_when;

typedef enum vn_mutation_sides { VN_SIDE_CAND, VN_SIDE_REF, VN_SIDE_BOTH } vn_mutation_sides;

/* A recording as a mutation sees it. */
typedef struct vn_mutation_context {
	vn_recording     *original; /* current content of the copy */
	vn_mutation_sides of;       /* whose recording it is: VN_SIDE_REF or VN_SIDE_CAND */
	int               step;     /* step of target */
	const vn_entry   *target, *other;
	char              at[VN_EDIT_PATH], there[VN_EDIT_PATH]; /* paths of target and other */
	vn_tensor         t, u;                                  /* numbers of target and other */
	int64_t           T, W, H, K; /* of target: tokens, numbers per token, heads, numbers per head */
	double           *y;          /* other's numbers, if the shapes are equal */
	int               weight;     /* a row of /model/weights */
	int64_t           channel;    /* VN_EVERY_STEP: the channel of median size over all steps */
} vn_mutation_context;

/* The size of a change. VN_FINE and finer: about the rounding error of a 16-bit run after some
 * layers, times the ratio by which correct engines differ; made where the floor is lowest. Without
 * a floor, some limits are wider than the change. VN_FAIR: larger, but the limits of bf16 after a
 * recurrence (Qwen3.5) are wider; VN_FINER: those of bf16, of f16-acc16 and after a recurrence;
 * VN_FINEST: those of every 16-bit run. */
typedef enum vn_selftest_fine { VN_COARSE, VN_FAIR, VN_FINE, VN_FINER, VN_FINEST } vn_selftest_fine;

/* The source of the floor: the pair's own (VN_UNIT_GIVEN), none, a recorded floor, the model. A
 * mutation with one of the last two is skipped for a pair that lacks it. */
typedef enum vn_selftest_unit { VN_UNIT_GIVEN, VN_UNIT_NONE, VN_UNIT_FLOOR, VN_UNIT_MODEL } vn_selftest_unit;

/* What must be found. status VN_N_CHECKPOINT_STATUSES: refused, exit status 2, either by a line
 * that the word `allow` would have allowed, or with the status `refused`. */
typedef struct vn_expected {
	vn_checkpoint_status status;                   /* of target */
	vn_metric            metric;                   /* the limit that must be broken; VN_N_METRICS: any */
	bool                 many;                     /* more checkpoints may be outside */
	bool                 anywhere;                 /* some checkpoint must be found, not necessarily target */
	vn_layout_kind       like;                     /* what it must be recognised as */
	vn_misfit            misfit;                   /* why it cannot be measured */
	bool                 reordered, invalid_floor; /* what the checkpoint holds; the floor must be rejected there */
	vn_status            refused;
	const char          *allow;
	const char          *says; /* the refusal in words, for lists of expectations; no decision depends on it */
} vn_expected;

/* What a tensor may state about itself, but need not (specs/checkpoint.md). */
typedef enum vn_claim { VN_CLAIM_NONE, VN_CLAIM_BASIS, VN_CLAIM_DIGEST, VN_CLAIM_ORDER, VN_CLAIM_STATISTICS } vn_claim;

/* One mutation. Exactly one of these says what it does.
 *   numbers  changes x (T,W), the numbers of target, and adjusts digest and statistics
 *   bits     the same on the stored bytes
 *   text     sets an attribute of an object (NULL: target); value NULL: removes it
 *   whole    sets an attribute to a whole number
 *   node     replaces text in the first line of /plan/nodes that contains it
 *   weight   sets a column of one row of /model/weights
 *   stored   stores the numbers of target in another way; not VN_EDIT_PLAIN
 *   edit     changes anything in the file
 *   file     changes the bytes of the file */
typedef struct vn_mutation {
	const char       *name, *does;
	vn_needs          needs;
	vn_mutation_sides side;
	vn_selftest_when  when;
	vn_selftest_fine  fine;
	bool              plan; /* visible only through /plan */
	/* in the first call: visible only with 8 different tokens, which tell a channel or an order of
	 * rows from chance */
	bool              eight;
	vn_selftest_unit  unit;
	vn_claim          claim; /* visible only through what target states about itself on both sides */
	void (*numbers)(const vn_mutation_context *p, double *x);
	void (*bits)(const vn_mutation_context *p, unsigned char *raw);
	struct {
		const char *object, *key, *value;
	} text;
	struct {
		const char *object, *key;
		int64_t     value;
	} whole;
	struct {
		const char *from, *to;
	} node;
	struct {
		const char *column, *value;
	} weight;
	vn_edit_way stored;
	void (*edit)(vn_edit *e, const vn_mutation_context *p);
	bool (*file)(const char *path);
	vn_expected want;
} vn_mutation;

/* Each table ends with a name of NULL. */
extern const vn_mutation vn_selftest_numbers[], vn_selftest_places[], vn_selftest_steps[], vn_selftest_names[],
	vn_selftest_shapes[], vn_selftest_files[], vn_selftest_contract[];

typedef struct vn_mutation_group {
	const char        *name;
	const vn_mutation *mutation;
} vn_mutation_group;
extern const vn_mutation_group vn_mutation_groups[]; /* ends with a name of NULL */

/* Two correct recordings, and how they are compared. */
typedef struct vn_selftest_pair vn_selftest_pair;
struct vn_selftest_pair {
	const char             *name;               /* "f16" */
	const char             *ref, *cand, *floor; /* paths; floor: NULL */
	const char             *model;              /* of ref; NULL */
	/* correct recordings of other tokens, of other weights; NULL */
	const char             *earlier, *unrelated_run;
	const char             *limits; /* NULL: vernier's own */
	/* mutations that do not depend on the precision are left to another pair */
	bool                    numbers_alone;
	const vn_selftest_pair *steps; /* the pair for mutations of later steps; NULL: this one */
};

typedef enum vn_caught { VN_CAUGHT, VN_MISSED, VN_NOT_RUN, VN_ELSEWHERE } vn_caught;

typedef struct vn_outcome {
	vn_caught caught;
	int       status;                    /* exit status of the comparison */
	char      expected[200], found[320]; /* in words; found: for VN_NOT_RUN, the reason */
} vn_outcome;

/* An opened pair of recordings. */
typedef struct vn_mutation_harness vn_mutation_harness;
/* dir: an existing directory for copies, which nothing else uses. h and dir are borrowed. */
vn_status vn_mutation_harness_open(const vn_selftest_pair *h, const char *dir, int threads, vn_mutation_harness **c,
                                   vn_error *err);
void      vn_mutation_harness_close(vn_mutation_harness *c);
/* Compares the pair unchanged: VN_MISSED means a false alarm. */
vn_status vn_mutation_harness_unchanged(vn_mutation_harness *c, vn_outcome *o, vn_error *err);
vn_status vn_mutation_harness_try(vn_mutation_harness *c, const vn_mutation *m, vn_outcome *o, vn_error *err);

/* Correct recordings that are made in dir from a small synthetic model: pairs of runs of the
 * reference engine in two precisions. */
enum { VN_SELFTEST_PAIRS = 4 };
typedef struct vn_own_runs {
	char             path[24][4096], model[4000];
	vn_selftest_pair pair[VN_SELFTEST_PAIRS], steps[VN_SELFTEST_PAIRS];
} vn_own_runs;
vn_status vn_own_runs_make(const char *dir, int threads, vn_own_runs *own, vn_error *err);

#endif
