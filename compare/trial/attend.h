/* attend.h: computes attention in double with a mistake in the mask, the softmax or the number
 * formats that no constant of the operation can express. */
#pragma once

#include "compare/trial/case.h"

/* What an attention reads, as the candidate recorded it. */
typedef struct vn_attend_case {
	const vn_node *n;          /* VN_OP_ATTENTION */
	int            output;     /* the slot of its output that is the checkpoint */
	double        *q, *k, *v;  /* (S,H,K)  (S + padding,G,K) each */
	double        *sink;       /* (H): the score without a value of each head; -INFINITY: none */
	double        *rounded[3]; /* q, k and v in the formats of an edit; NULL: not yet needed */
	const double  *read[3];    /* q, k and v as the edit reads them: these, or as they are */
	vn_dtype       storage;    /* the format into which the engine converts numbers of an 8-bit cache */
	/* (S + padding) each, for the keys that a query sees: scores; the same, with every number that
	 * could round the other way rounded that way; probabilities */
	double        *s, *other, *p;
	char          *flipped; /* (S + padding + 1): is each exponential, and last their sum, rounded the other way? */
	const int64_t *begins;  /* (S): where the call of each token begins (vn_site) */
	bool           one;     /* the checkpoint is of a call of one token after the first */
	int64_t        prompt;  /* tokens of the first call */
	bool           later;   /* the checkpoint has rows of calls of several tokens after the first */
	int64_t        S;
	int64_t        padding; /* keys of its batch's padding, after the others; 0: none were recorded */
} vn_attend_case;

/* Returns the slot of an attention's output that is this value; -1: it is no such output. */
int     vn_attend_output(const vn_node *n, int value);
/* The score of the product of a query and a key, as the mask and the softmax take it. */
double  vn_attend_score(const vn_node *n, double dot);
/* The scores (H) that have no key, to be freed; -INFINITY: none. */
double *vn_attend_sinks(const vn_case *t, const vn_node *n);
/* Opens the attention whose output is the checkpoint. Returns false if it is another node's, or
 * cannot be read. Call vn_attend_close in any case. */
bool    vn_attend_open(vn_attend_case *a, const vn_case *t, int node);
void    vn_attend_close(vn_attend_case *a);

/* Can the edit be made in the checkpoint's call? */
bool vn_attend_applies(const vn_attend_case *a, const vn_applied_attention *edit);
/* Rounds q, k and v as the edit requires. Call it before computing the rows of an edit. */
void vn_attend_prepare(vn_attend_case *a, const vn_applied_attention *edit);
/* Computes row i of the output: y is the context (H,K), or the scores or probabilities (H,S), of
 * the query at position i over S keys. is: the candidate's row: a number so near a tie of a format
 * that an engine's last bit decides is rounded to the side that fits this row better. NULL: rounds
 * to nearest. */
void vn_attend_row(const vn_attend_case *a, const vn_applied_attention *edit, int64_t i, const double *is, double *y);
/* Returns how many numbers a head has in a row of that output: K, or S. */
int64_t vn_attend_width(const vn_attend_case *a);
/* Returns the index of head h of a row in a checkpoint of T rows: context is (T,H,K), scores and
 * probabilities (H,T,S). */
int64_t vn_attend_at(const vn_attend_case *a, int64_t T, int64_t row, int h);
