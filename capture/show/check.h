/* check.h: checks that need no other recording: digests, statistics, steps, rows, and identities
 * (identities.h). It also reports two signs of a wrong model or engine: logits that repeat their
 * input (echo.h), and chosen tokens that are not plausible text (garbage.h).
 *
 * Memory: as vn_identities_of. Errors: VN_ERR_MISMATCH if the recording holds nothing that can be
 * checked; else those of reading, and VN_ERR_NOMEM.
 */
#pragma once

#include "capture/recording/recording.h"

/* The most warnings of echo.h and garbage.h together. */
enum { VN_FILE_CHECK_WARNINGS = 8 };

typedef struct vn_file_finding {
	bool        damaged; /* the numbers do not match their digest; false: something does not hold */
	int         step;
	const char *name;  /* checkpoint; NULL: of several, or of the steps. Belongs to the recording */
	char       *words; /* "layer1.q_proj: the numbers were changed ..." */
} vn_file_finding;

typedef struct vn_file_check {
	vn_file_finding *finding; /* (n) */
	int              n;
	int              identities, identities_broken, digests, digests_wrong; /* the first and third: checked */
	int64_t          echo_rows;                                             /* rows of logits, checked for an echo */
	char            *warning[VN_FILE_CHECK_WARNINGS];
	int              n_warnings;
} vn_file_check;

/* Checks a recording that allows damage (vn_recording_allow_damage). Call vn_file_check_free
 * afterwards, also after a failure. */
vn_status vn_file_check_run(vn_recording *r, vn_file_check *c, vn_error *err);
void      vn_file_check_free(vn_file_check *c);
