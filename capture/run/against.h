/* against.h: the interface of a judge, which compares a run with a reference while it is recorded
 * (`capture --against`).
 *
 * capture/ knows neither limits nor metrics; compare/against implements the judge, and
 * compare/main.c hands it to cmd_capture.
 */
#ifndef VN_CAPTURE_AGAINST_H
#define VN_CAPTURE_AGAINST_H

#include "capture/recording/left_out.h"
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
} vn_opinion;

enum { VN_OPINION_WORDS = 256 };

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
	vn_status (*step)(void *self, int number, int64_t position, const int32_t *ids, int64_t tokens, vn_error *err);
	/* Judges a whole tensor of the step. VN_OPINION_AGREES: *l has everything but the names and
	 * sizes, and the caller finishes it. VN_OPINION_OUTSIDE: words say by what. */
	vn_status (*tensor)(void *self, const char *name, const vn_tensor *t, vn_opinion *opinion, vn_left_out *l,
	                    char words[VN_OPINION_WORDS], vn_error *err);
	void (*close)(void *self); /* self may be NULL */
} vn_run_judge;

#endif
