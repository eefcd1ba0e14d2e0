/* evaluate.h: how well two engines predict a text, and how far apart they are.
 *
 * The text is read in windows of at most `window` tokens, each `stride` behind
 * the last, and each scores only the tokens that no window before it has scored:
 * the first all but its first token, the others their last `stride` (HuggingFace,
 * "Perplexity of fixed-length models"). So every token but the first is scored
 * once, with at least window - stride tokens before it where the text has them,
 * and counts once. A stride as wide as the window leaves the first token of every
 * window unscored: nothing is before it.
 *
 *   loss         of a token, in nats: log sum exp(scores) - its score
 *   perplexity   exp(mean loss)
 *   gap          candidate's loss - reference's, token by token: what the tokens
 *                share cancels. exp(mean gap) is the ratio of the perplexities
 *   kl           KL(softmax reference || softmax candidate) of each row
 *
 * Standard errors are average.h's; intervals of 95 % are 1.96 of them to either side.
 *
 * Everything is in double and in an order that does not depend on threads.
 *
 * Memory   the reference's scores of one window, (window, V) in its format; 32 rows
 *          of the candidate's; 48 bytes a token.
 */
#ifndef VN_COMPARE_EVALUATE_H
#define VN_COMPARE_EVALUATE_H

#include "compare/metrics/average.h"

#include "capture/run/engine.h"

typedef struct vn_evaluate_options {
	const int32_t *ids;    /* the text */
	int64_t        n;
	int64_t        window, stride;
	int64_t        decode; /* greedy steps behind the first half window, until the engines part; 0: none */
	int            threads; /* for what is computed here; 0: one a processor */
} vn_evaluate_options;

/* What becomes of one scored token. */
typedef struct vn_token_score {
	int64_t at;           /* which token of the text */
	double  loss[2], kl;  /* [0] reference, [1] candidate; NaN where a score is */
	int32_t argmax[2];    /* the tokens that the two would say instead; -1 where a score is no number */
	bool    tie;          /* of the reference's scores those two are as good as equal (specs/limits.md) */
	bool    finite[2];
	int     shared, of;   /* tokens that are among the top 5 of both, of as many */
} vn_token_score;

/* The score of token `id`, number `at` of the text, from the rows of logits before it: V numbers each. [0] reference,
 * [1] candidate. */
vn_token_score vn_token_score_of(const void *const row[2], const vn_dtype dtype[2], int64_t width, int32_t id, int64_t at);

typedef struct vn_evaluation {
	int64_t tokens, scored, windows;
	vn_mean loss[2], gap;
	double  perplexity[2];
	int64_t nonfinite[2];    /* tokens whose row of scores holds a NaN or an infinity */
	double  agree, strict;   /* shares of tokens with the same argmax: near ties counted as such, and not */
	double  top5;            /* share of the reference's 5 highest tokens that are among the candidate's */
	vn_mean kl;
	double  kl_p99, kl_max;
	int64_t kl_max_at;       /* the scored token, by its place in the text, where it is */
	/* The first token that the two would have said differently. */
	int64_t differ_at;       /* its position in the text; -1: none */
	int32_t differ[2];       /* -1: nothing, the scores being no numbers */
	bool    differ_tie;
	/* Scores that peak at the token that went in: a head that is fed an embedding. */
	double  repeats;         /* share of scored tokens that repeat the one before */
	double  echo[2];         /* share of rows whose argmax is the token that went in */
	bool    echoes[2];       /* far more often than the text repeats itself */
	/* Greedy decoding. */
	int64_t prompt, steps;   /* tokens it began with; steps that were compared, the last one's included */
	int64_t part_at;         /* step from 1 on; -1: they did not part */
	int32_t part[2];         /* what they said there; -1: nothing, the scores being no numbers */
	bool    part_tie;
} vn_evaluation;

/* What an evaluation asks of its options and the model, before anything is computed. */
vn_status vn_evaluate_check(const vn_evaluate_options *o, const vn_plan *plan, vn_error *err);

/* ref and cand: engines of one model; both are reset. */
vn_status vn_evaluate(const vn_evaluate_options *o, const vn_plan *plan, const vn_engine *ref, const vn_engine *cand,
                      vn_evaluation *e, vn_error *err);

/* The part of it that needs no engine: t (m) are scored tokens in the order of the text,
 * ids the text. Fills all but tokens, windows and greedy decoding of a zeroed e. */
vn_status vn_evaluate_sum(const int32_t *ids, const vn_token_score *t, int64_t m, vn_evaluation *e, vn_error *err);

#endif
