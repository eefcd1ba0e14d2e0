/* against.h: a run is compared with a reference while it is recorded: what shapes and digests
 * decide, and the interface of a judge by limits (`capture --against`).
 *
 * capture/ knows neither limits nor metrics; compare/against implements the judge, and
 * compare/main.c hands it to cmd_capture. The C API judges by the nmse (capture/put_judge.h).
 */
#pragma once

#include "capture/recording/left_out.h"
#include "capture/recording/recording.h"
#include "libref/base/digest.h"
#include "libref/plan/plan.h"

/* What the judge is given. Borrowed while it is open. */
typedef struct vn_run_reference {
	const char    *reference; /* path of the recording */
	const char    *limits;    /* of the limits file; NULL: those of the precision */
	const char    *precision, *family;
	const vn_plan *plan;    /* of the run */
	int            threads; /* 0: one per processor */
} vn_run_reference;

typedef enum vn_opinion {
	VN_OPINION_AGREES,
	VN_OPINION_OUTSIDE,
	VN_OPINION_NONE, /* it cannot be judged, for example because the reference lacks it */
	VN_OPINION_OPEN, /* the numbers decide: only of vn_against_look */
} vn_opinion;

enum { VN_OPINION_WORDS = 256 };

/* What was found of a tensor. */
typedef struct vn_judgement {
	vn_opinion  opinion;
	int         entry;                   /* the reference's */
	bool        plain;                   /* finite numbers, not all the same; others never agree */
	vn_left_out about;                   /* whole if it agrees */
	char        words[VN_OPINION_WORDS]; /* if it is outside: by what */
} vn_judgement;

/* The reference, and the step that is compared with its own. */
typedef struct vn_against {
	vn_recording *ref;
	int           step;
	bool          same; /* the step has the reference's tokens */
} vn_against;

/* Opens a reference, which must be complete. Close a->ref, also after a failure. */
vn_status vn_against_open(vn_against *a, const char *path, vn_error *err);
/* Begins a step: its tokens follow `position` earlier ones. */
void      vn_against_step(vn_against *a, int number, int64_t position, const int32_t *ids, int64_t tokens);
/* Compares a tensor of the step by its shape and digest, which decide unless the opinion is
 * VN_OPINION_OPEN. Fills *j, without measures. */
void      vn_against_look(const vn_against *a, const char *name, const vn_tensor *t, vn_judgement *j);

/* What a run was judged by, for /run: the limits by name and digest of their text, and a digest of
 * the reference's tokens and of the names, shapes and digests of its tensors. */
typedef struct vn_judged_by {
	char      limits[VN_OPINION_WORDS];
	vn_digest reference;
} vn_judged_by;

typedef struct vn_run_judge {
	/* Opens the reference and the limits. */
	vn_status (*open)(const vn_run_reference *a, void **self, vn_judged_by *by, vn_error *err);
	/* Begins a step: its tokens follow `position` earlier ones. */
	void (*step)(void *self, int number, int64_t position, const int32_t *ids, int64_t tokens);
	/* Judges a whole tensor of the step. The caller finishes j->about, also after a failure. */
	vn_status (*tensor)(void *self, const char *name, const vn_tensor *t, vn_judgement *j, vn_error *err);
	/* Everything was judged: fails if the reference changed meanwhile. */
	vn_status (*end)(void *self, vn_error *err);
	void (*close)(void *self); /* self may be NULL */
} vn_run_judge;
