/* selftest.h: is a comparison able to fail? Mutations of a healthy recording, each
 * of which must be caught.
 *
 * A mutation changes a copy of the candidate (or of the reference, or of both) as
 * one mistake would that this field is known for, and says what vn_compare then
 * has to find: the exit status, the status and the metric of the checkpoint that
 * was changed, that it is the first divergence and the only one, or the words of
 * the refusal. Anything else is MISSED. The tables are selftest_*.c, a file a kind.
 *
 * Left out, because what they leave is a healthy recording, or one that may be:
 *   - claims that nobody judges by: a digest or statistics that do not fit numbers
 *     that are within their limits (numbers are judged, not what is said of them;
 *     where they are outside the digest is asked, and has a mutation here; all of
 *     a file's are asked by vernier show --check);
 *   - a change below the rounding of the format (the last bit of one number, one
 *     row of logits whose argmax is a tie, a subnormal made zero);
 *   - numbers kept in a wider format than the run's (dumps often are), or all the
 *     same numbers compressed, in chunks, or under fewer second names;
 *   - a run called by the name of a coarser precision, where no floor says what
 *     that precision does: its limits are wider, and it keeps to them;
 *   - a rounding smaller than what the run's own sums leave: of f16-acc16 one to
 *     bfloat16, of bfloat16 any to as many bits;
 *   - words that explain and decide nothing: created, tool, command, provenance.
 *
 * Name maps, shards of ranks, rows of a batch and caches in pages are undone before a
 * comparison begins (sides.h), and not tried here: tests/parity_foreign.py mutates those.
 */
#ifndef VN_COMPARE_SELFTEST_H
#define VN_COMPARE_SELFTEST_H

#include "capture/edit/edit.h"
#include "compare/comparison/comparison.h"
#include "compare/profile/layout_match.h"

/* What a mutation must find in a recording. */
typedef enum vn_needs {
	VN_NEEDS_NOTHING,
	VN_NEEDS_TENSOR,   /* target: 3 tokens or more (of a later step: one) by 8 numbers or more, inside a layer */
	VN_NEEDS_FINER,    /* the same, of a run that keeps and sums more than bfloat16 does */
	VN_NEEDS_HEADS,    /* target: tokens, two heads or more, two numbers or more a head */
	VN_NEEDS_SCORES,   /* target: logits of 3 tokens or more */
	VN_NEEDS_PAIR,     /* target and, later, other: two points of one layer, one shape */
	VN_NEEDS_LAYERS,   /* target and, later, other: one point of two layers, one shape */
	VN_NEEDS_STEPS,    /* target and other: one checkpoint of a later step and of the step before */
	VN_NEEDS_NAMES,    /* target: a second name; other: a tensor of its shape that is another */
	VN_NEEDS_WEIGHTS, VN_NEEDS_PLAN, VN_NEEDS_CONFIG,
	VN_NEEDS_FLOOR,
	VN_NEEDS_EARLIER,  /* a healthy recording of other tokens */
	VN_NEEDS_UNRELATED_RUN, /* and one of other weights */
	VN_N_NEEDS
} vn_needs;

/* In which call. A later step is one of one token; VN_EVERY_STEP: target's checkpoint in all such steps, of which 8 have other
 * numbers, so that there are channels to speak of. */
typedef enum vn_when { VN_FIRST_CALL, VN_A_STEP, VN_LAST_STEP, VN_EVERY_STEP } vn_when;

typedef enum vn_mutation_sides { VN_SIDE_CAND, VN_SIDE_REF, VN_SIDE_BOTH } vn_mutation_sides;

/* One recording as mutations see it. */
typedef struct vn_mutation_context {
	vn_recording   *healthy; /* what the copy holds so far */
	vn_mutation_sides         of;      /* whose it is: VN_SIDE_REF or VN_SIDE_CAND */
	int             step;    /* of target */
	const vn_entry *target, *other;
	char            at[VN_EDIT_PATH], there[VN_EDIT_PATH]; /* their paths */
	vn_tensor       t, u;    /* their numbers */
	int64_t         T, W, H, K; /* of target: tokens, numbers of one, heads, numbers of one */
	double         *y;       /* u's numbers, where shapes are equal */
	int64_t         channel; /* of VN_EVERY_STEP: that of the middle size over all of them */
} vn_mutation_context;

/* A change about as large as what a 16-bit run's own roundings come to some layers on,
 * times what healthy engines were seen to differ by: it is made where the floor is
 * lowest. VN_FINER: and without a floor the limits of bf16, of f16-acc16 and behind a recurrence (Qwen3.5) are wider than
 * it; VN_FINEST: those of every 16-bit run are. VN_FAIR: not so small, but without a floor
 * the limits of bf16 behind a recurrence (Qwen3.5) are wider. */
typedef enum vn_fine { VN_COARSE, VN_FAIR, VN_FINE, VN_FINER, VN_FINEST } vn_fine;

/* What small errors are measured in: whatever the pair has (VN_UNIT_GIVEN), nothing, its recorded floor, its model. The
 * last two are not tried with a pair that has none. */
typedef enum vn_unit { VN_UNIT_GIVEN, VN_UNIT_NONE, VN_UNIT_FLOOR, VN_UNIT_MODEL } vn_unit;

/* What must be found. status: VN_N_STATUS_WORDS: refused, exit 2. */
typedef struct vn_expected {
	vn_status_word status; /* of target */
	vn_metric      metric; /* outside: by this one; VN_N_METRICS: by any */
	bool           many;   /* more than this checkpoint */
	bool           anywhere; /* some checkpoint, which need not be target */
	vn_layout_kind    like;   /* as what it must be recognised */
	const char    *says;   /* in a refusal, a warning or the detail; NULL: nothing */
} vn_expected;

/* What a tensor may say of itself, and need not (specs/checkpoint.md). */
typedef enum vn_claim { VN_CLAIM_NONE, VN_CLAIM_BASIS, VN_CLAIM_DIGEST, VN_CLAIM_ORDER, VN_CLAIM_STATISTICS } vn_claim;

/* One of numbers, bits, edit and file says how. numbers: x (T,W) of target, which
 * become honest ones; bits: the same as they are stored; edit: anything in the
 * file; file: the file as bytes. */
typedef struct vn_mutation {
	const char *name, *does;
	vn_needs    needs;
	vn_mutation_sides     side;
	vn_when     when;
	vn_fine     fine;
	bool        plan;     /* seen only by what /plan says */
	bool        eight;    /* in the first call: seen only where 8 different tokens tell a channel, or an order of rows, from luck */
	vn_unit     unit;
	vn_claim    claim;    /* seen only by what target says of itself on both sides */
	void      (*numbers)(const vn_mutation_context *p, double *x);
	void      (*bits)(const vn_mutation_context *p, unsigned char *raw);
	void      (*edit)(vn_edit *e, const vn_mutation_context *p);
	bool      (*file)(const char *path);
	vn_expected want;
} vn_mutation;

/* The tables end with a name of NULL. */
extern const vn_mutation vn_selftest_numbers[], vn_selftest_places[], vn_selftest_steps[], vn_selftest_names[], vn_selftest_shapes[], vn_selftest_files[],
	vn_selftest_contract[];

typedef struct vn_mutation_group {
	const char        *name;
	const vn_mutation *mutation;
} vn_mutation_group;
extern const vn_mutation_group vn_mutation_groups[]; /* ends with a name of NULL */

/* Two healthy recordings, and how they are compared. */
typedef struct vn_healthy vn_healthy;
struct vn_healthy {
	const char *name;              /* "f16" */
	const char *ref, *cand, *floor; /* paths; floor: NULL */
	const char *model;              /* of ref; NULL */
	const char *earlier, *unrelated_run; /* of other tokens, of other weights; NULL */
	const char *limits;            /* NULL: vernier's own */
	bool        numbers_alone;     /* what depends on no precision is tried with another pair */
	const vn_healthy *steps;       /* the pair that changes of later steps are tried with; NULL: this one */
};

typedef enum vn_caught { VN_CAUGHT, VN_MISSED, VN_NOT_RUN, VN_ELSEWHERE } vn_caught;

typedef struct vn_outcome {
	vn_caught caught;
	int       status;         /* exit status of the comparison */
	char      expected[200], found[320]; /* in words; found of those that were not run: why not */
} vn_outcome;

/* One pair of recordings, opened. */
typedef struct vn_mutation_harness vn_mutation_harness;
/* dir: an existing directory for copies, which nobody else uses. healthy and dir are borrowed. */
vn_status vn_mutation_harness_open(const vn_healthy *h, const char *dir, int threads, vn_mutation_harness **c, vn_error *err);
void      vn_mutation_harness_close(vn_mutation_harness *c);
/* The pair as it is: VN_MISSED means a false alarm. */
vn_status vn_mutation_harness_healthy(vn_mutation_harness *c, vn_outcome *o, vn_error *err);
vn_status vn_mutation_harness_try(vn_mutation_harness *c, const vn_mutation *m, vn_outcome *o, vn_error *err);

/* Healthy recordings made here, of a small synthetic model, in dir: pairs of the
 * reference engine in two precisions. */
enum { VN_SELFTEST_PAIRS = 4 };
typedef struct vn_own_runs {
	char       path[24][4096], model[4000];
	vn_healthy pair[VN_SELFTEST_PAIRS], steps[VN_SELFTEST_PAIRS];
} vn_own_runs;
vn_status vn_own_runs_make(const char *dir, int threads, vn_own_runs *own, vn_error *err);

#endif
