/* findings.h: the result of explaining one origin: the trials that explain the checkpoint,
 * the best first, and how certain they are. explain/ fills it; reports read it. */
#pragma once

#include "compare/trial/trial.h"

/* Trials that leave less than this many times the residual of the best cannot be told from it:
 * aliases. */
#define VN_EXPLAIN_APART 2.0
/* Residuals below this many floors count as equal: reproducing the bits is no better than agreeing
 * up to rounding. */
#define VN_EXPLAIN_LEAST 0.25
/* The same for numbers that are computed from the slots of a cache in double, so that no bits
 * agree. */
#define VN_EXPLAIN_LEAST_SLOTS 1.0

typedef struct vn_findings {
	int       checkpoint; /* its index in vn_result */
	vn_trial *by;         /* trials by increasing residual, at most VN_EXPLAIN_KEPT */
	int       n;
	int       n_tried; /* how many faults of the catalogue apply at some place */
	int       n_fit;   /* how many trials explain it */
	int       n_alias; /* how many of those, from the first, are aliases; 1: a clear answer */
	/* residual of the first trial that is not an alias / residual of the best; INFINITY: all
	 * are aliases */
	double    margin;
	/* the answers of the same point in another layer are tried: there, a wrong one would not fit */
	bool      lent;
	bool      fitted;                /* no fault of the catalogue explains it without fitting */
	vn_trial  unmodified;            /* its residual is that of the unmodified operation */
	char      separating_input[240]; /* the input that would separate the aliases; "" */
	char      why_not[200];          /* why the checkpoint cannot be recomputed; "" */
	/* index of an explanation whose answer holds here too, so that little else was tried; -1 */
	int       same_answer_as;
	vn_lines  error_shape; /* description of the error, if nothing fits */
} vn_findings;

enum { VN_EXPLAIN_KEPT = 8 };

typedef struct vn_all_findings {
	vn_findings *of; /* one for each origin that was examined, in the order of localised.origins */
	int          n;
	int          left_out; /* origins that were not examined, because there are too many */
} vn_all_findings;
