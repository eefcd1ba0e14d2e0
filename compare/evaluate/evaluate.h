/* evaluate.h: measures how well two engines predict a text, and how far apart they are.
 *
 * The text is read in windows of at most `window` tokens, each starting `stride` tokens after the
 * previous one. Each window scores only tokens that no earlier window has scored: the first one all
 * but its first token, the others their last `stride` (HuggingFace, "Perplexity of fixed-length
 * models"). With overlap, every token except the first is scored once, with at least window -
 * stride tokens before it if the text has them. If stride equals window, the first token of every
 * window is not scored, because nothing precedes it.
 *
 *   loss         of a token, in nats: log sum exp(scores) - its score
 *   perplexity   exp(mean loss)
 *   gap          candidate's loss - reference's, token by token, so that what makes tokens hard
 *                cancels. exp(mean gap) is the ratio of the perplexities
 *   kl           KL(softmax reference || softmax candidate) of each row
 *
 * Standard errors are computed as in average.h; 95 % intervals are 1.96 standard errors to either
 * side. Everything is computed in double, in an order that does not depend on threads.
 *
 * Memory   the reference's scores of one window, (window, V) in its format; 32 rows of the
 *          candidate's; 48 bytes per token.
 */
#pragma once

#include "compare/metrics/average.h"

#include "capture/run/engine.h"

typedef struct vn_evaluate_options {
	const int32_t *ids; /* the text */
	int64_t        n;
	int64_t        window, stride;
	/* greedy steps after the first half window, until the engines differ; 0: none */
	int64_t        decode;
	int            threads; /* for what is computed here; 0: one per processor */
	/* runs the reference once more, with the candidate's experts (routed.h) */
	bool           replay_routing;
} vn_evaluate_options;

enum { VN_NO_DRAFT = -2 };

/* The result for one scored token. */
typedef struct vn_token_score {
	int64_t at;          /* index of the token in the text */
	double  loss[2], kl; /* [0] reference, [1] candidate; NaN if a score is NaN */
	int32_t argmax[2];   /* the tokens that each engine predicts instead; -1 if a score is NaN */
	bool    tie;         /* those two have nearly equal reference scores (specs/limits.md) */
	bool    finite[2];
	/* the token that the multi-token-prediction head of each engine predicts; -1: a score is NaN;
	 * VN_NO_DRAFT: none */
	int32_t draft[2];
	int     shared, of; /* tokens among the top 5 of both; size of the top (5) */
} vn_token_score;

/* The score of token `id`, number `at` of the text, from the rows of logits before it: V numbers
 * each. [0] reference, [1] candidate. */
vn_token_score vn_token_score_of(const void *const row[2], const vn_dtype dtype[2], int64_t width, int32_t id,
                                 int64_t at);

typedef struct vn_evaluation {
	int64_t vocab; /* 0: not known */
	int64_t tokens, scored, windows;
	vn_mean loss[2], gap;
	double  perplexity[2];
	int64_t nonfinite[2]; /* tokens whose row of scores holds a NaN or an infinity */
	/* shares of tokens with equal argmax: near ties counted as equal, and not */
	double  agree, strict;
	double  top5; /* share of the reference's 5 highest tokens that are among the candidate's */
	vn_mean kl;
	double  kl_p99, kl_max;
	int64_t kl_max_at; /* index in the text of the token with kl_max */
	/* The first token that the engines predict differently. */
	int64_t differ_at; /* its position in the text; -1: none */
	int32_t differ[2]; /* the two predictions; -1: none, because of NaN scores */
	bool    differ_tie;
	/* options.replay_routing: the gap of the reference with the candidate's experts and weights,
	 * what the candidate's arithmetic adds to it, and the divergence of the former. */
	bool    routed;
	vn_mean routing, arithmetic, routing_kl;
	/* The multi-token-prediction head: the share of its greedy drafts that equal the engine's own
	 * greedy token, of the tokens that have two before them. */
	int64_t drafts; /* 0: the model has no head */
	double  accepted[2];
	/* Scores that peak at the input token: as if the head were fed the embedding. */
	double  repeats;   /* share of scored tokens that repeat the one before */
	double  echo[2];   /* share of rows whose argmax is the input token */
	bool    echoes[2]; /* far more often than the text repeats itself */
	/* Greedy decoding. */
	/* tokens before it began; steps that were compared, including the last */
	int64_t prompt, steps;
	int64_t part_at; /* step, from 1 on, at which they differ; -1: never */
	int32_t part[2]; /* their tokens there; -1: none, because of NaN scores */
	bool    part_tie;
} vn_evaluation;

/* Checks options and model, before anything is computed. */
vn_status vn_evaluate_check(const vn_evaluate_options *o, const vn_plan *plan, vn_error *err);

/* Runs the evaluation. ref and cand: engines of one model; both are reset. */
vn_status vn_evaluate(const vn_evaluate_options *o, const vn_plan *plan, const vn_engine *ref, const vn_engine *cand,
                      vn_evaluation *e, vn_error *err);

/* Sums up scored tokens t (m), in the order of the text, without an engine. Fills all of a zeroed e
 * except tokens, windows and greedy decoding. */
void vn_evaluate_sum(const int32_t *ids, const vn_token_score *t, int64_t m, vn_evaluation *e);
/* Splits the gap. by_routing (m): the same tokens by the reference with the candidate's experts, in
 * place of the candidate. */
void vn_evaluate_routing(const vn_token_score *t, const vn_token_score *by_routing, int64_t m, vn_evaluation *e);
