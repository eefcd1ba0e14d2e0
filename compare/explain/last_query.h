/* last_query.h: the last query of a call of attention: what it reads, and what the candidate
 * recorded for it. */
#pragma once

#include "compare/trial/case.h"

/* H heads, G heads of keys, each K wide. */
typedef struct vn_last_query {
	const vn_node *n;
	int            output;         /* which of the attention's outputs is the checkpoint */
	int64_t        S, past, first; /* the keys; the keys of earlier calls; the first key that the query sees */
	int            H, G, K;
	bool           single; /* it is the only query of its call */
	double        *q, *is; /* (H,K); the candidate's context (H,K), or its scores or probabilities (H,S) */
	double        *k, *v;  /* (S,G,K) each */
	double        *sink;   /* (H): the score of each head that has no key; -INFINITY: none */
} vn_last_query;

/* Is the checkpoint of t an output of a causal attention, and was its last query recorded? Fills *q
 * except for its arrays. */
bool          vn_last_query_find(const vn_case *t, vn_last_query *q);
/* Reads the arrays, which vn_last_query_close frees in any case. Returns false if it cannot. */
bool          vn_last_query_read(const vn_case *t, vn_last_query *q);
void          vn_last_query_close(vn_last_query *q);
/* Moves the recomputation to explanation x, and reads its query. Returns false if that is not the
 * only one of its call. */
bool          vn_last_query_open(vn_case *t, vn_findings *x, vn_last_query *q);
/* Begins a trial about explanation x with room for its numbers, and scores it. begin returns false
 * if the recomputation cannot move there; else vn_last_query_try ends it. */
bool          vn_last_query_begin(vn_case *t, vn_findings *x, vn_made *made);
void          vn_last_query_try(vn_case *t, vn_trial *h, vn_made *made);
/* Returns how many numbers a head has in the checkpoint: K, or S. */
int64_t       vn_last_query_width(const vn_last_query *q);
/* Returns the row (K) of keys or values `of` that head h reads of token j. */
const double *vn_last_query_row(const vn_last_query *q, const double *of, int64_t j, int h);
