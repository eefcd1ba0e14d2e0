/* fault.h: makes the known mistakes of inference engines, on purpose.
 *
 * The catalogue (specs/faults.md) is one table, catalogue.def: an id ("R1"), with a variant where
 * the catalogue has several ("A1.twice"), and one line of description. Every fault is data: a
 * changed copy of a plan and of its table of weights (a constant, a node's vn_experiment, an
 * operation, an input, a weight). So anything that runs a plan can run a faulty one, on the
 * reference and on the GPU. Engines do not know faults. They compute what a node says, whatever
 * sets it. No model has what only experiments use (plan.h): a vn_experiment, VN_OP_ROWS,
 * most activations, the input VN_ATTN_KEPT. One fault changes no plan, but how the GPU executes it:
 * vn_faulty_early.
 *
 * A faulty plan has the values of the original plan under the same numbers, and possibly further
 * ones after them, which are not checkpoints. So a recording is made as if the plan were the
 * original.
 *
 * Owner    the given plan and weights are borrowed and must outlive the faulty ones.
 * Threads  one at a time.
 */
#pragma once

#include "libref/plan/plan.h"

#include <stdio.h>

/* The ids of the catalogue in C: faults, recorder faults, and families, which are ids without a
 * variant. */
typedef enum vn_mistake {
	VN_NO_MISTAKE,
#define FAULT(name, ...)          VN_MISTAKE_##name,
#define RECORDER_FAULT(name, ...) VN_MISTAKE_##name,
#define FAMILY(name, ...)         VN_MISTAKE_##name,
#include "libref/plan/catalogue.def"
	VN_N_MISTAKES
} vn_mistake;

const char *vn_mistake_id(vn_mistake m); /* "R2.1e4"; "" for VN_NO_MISTAKE */
/* description in one line; "" for VN_NO_MISTAKE. Of a family, it may be a format for one number. */
const char *vn_mistake_title(vn_mistake m);
/* its index as a fault, for the functions below; -1: not a fault */
int         vn_mistake_fault(vn_mistake m);
vn_mistake  vn_fault_mistake(int fault); /* the reverse */

int         vn_n_faults(void);
const char *vn_fault_id(int fault);      /* "R1", "A1.twice" */
const char *vn_fault_means(int fault);   /* description in one line */
char        vn_fault_chapter(int fault); /* 'R', 'A'...: its chapter */
/* The constant of a node that the fault consists in setting; "": it does not. */
const char *vn_fault_constant(int fault);
/* Returns the fault with this id; an id without its variant finds the first variant. -1: none. */
int         vn_fault_find(const char *id);
/* Returns why a fault cannot be made at a node, as half a sentence; NULL: it can. */
const char *vn_fault_why_not(int fault, const vn_plan *p, int node);
/* Returns at how many nodes of a plan a fault can be made. *why (why may be NULL): if nodes of the
 * right kind are excluded, the reason for the last one; or why there are no such nodes. */
int         vn_fault_count(int fault, const vn_plan *p, const char **why);

/* Prints the catalogue: by chapter, one line per fault. */
void vn_fault_page(FILE *to);
/* Prints how the wrong numbers of an id look, if that is known. */
void vn_fault_signs(const char *id, FILE *to);

/* Returns the node of another layer that corresponds to n, or NULL if there is none with weights of
 * the same shapes. */
const vn_node *vn_fault_twin(const vn_plan *p, const vn_node *n, int layer);

/* A copy of a plan and its weights, to be made faulty. */
typedef struct vn_faulty vn_faulty;

vn_status vn_faulty_create(const vn_plan *plan, const vn_tensor *weights, vn_faulty **f, vn_error *err);
void      vn_faulty_destroy(vn_faulty *f);

/* Some rows of a large matrix: n blocks of `width` rows, by rising first row. */
enum { VN_SOME_BLOCKS = 16 };
typedef struct vn_some_rows {
	int64_t of; /* rows of the matrix */
	int64_t width, first[VN_SOME_BLOCKS];
	int     n;
} vn_some_rows;

/* For a quick estimate: from now on, a changed matrix with rows->of stored rows is made in these
 * rows only. The others are undefined, and a change outside these rows counts as no change. rows is
 * borrowed. */
void vn_faulty_make_some(vn_faulty *f, const vn_some_rows *rows);

/* Injects "ID@GLOB": at every node that makes a checkpoint matching GLOB ("layer2.q_rope", or
 * "layer2" for the whole layer) and where the fault is possible. Fails, with one line that says
 * what exists, on an unknown id, a pattern without such nodes, or a weight in an unsuitable format.
 * After a failure, destroy f. */
vn_status vn_faulty_inject(vn_faulty *f, const char *what, vn_error *err);

/* A sum of ranks without some of them. */
typedef struct vn_rank_sum {
	int      ranks;
	uint64_t present; /* bit i: rank i is in the sum */
	bool     no_bias;
} vn_rank_sum;

/* Packs a sum of at most 32 ranks into the number of P15 and back: VN_RANKS_MOST times the mask,
 * plus the number of ranks; negative if the bias is missing. */
enum { VN_RANKS_MOST = 64 };
double      vn_rank_sum_number(const vn_rank_sum *s);
vn_rank_sum vn_rank_sum_of(double number);

/* Makes the fault at one node, where it must be possible, with another number than in the
 * catalogue: how often a bias is added (W7), columns of padding (W18), number of ranks (P17,
 * P17.gate, P18.axis). P15: vn_rank_sum_number. VN_ERR_USAGE: the fault is not possible with this
 * number there. */
vn_status vn_faulty_make(vn_faulty *f, int fault, int node, double number, vn_error *err);

/* Do the nodes of the faulty plan read and make the same values as the original plan's? Then a node
 * of one plan can be run in the place of the other's. */
bool             vn_faulty_keeps_nodes(const vn_faulty *f);
const vn_plan   *vn_faulty_plan(const vn_faulty *f);
const vn_tensor *vn_faulty_weights(const vn_faulty *f); /* (n_weights of that plan) */
/* Returns how many nodes must not wait for earlier commands (P9.barrier), which only a GPU engine
 * can do. *value: the first output of each, valid until the next change of f. */
int              vn_faulty_early(const vn_faulty *f, const int **value);
