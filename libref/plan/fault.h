/* fault.h: the known mistakes of inference engines, made on purpose.
 *
 * The catalogue of specs/faults.md is one table, catalogue.def: an id ("R1"), with a
 * variant where the catalogue has several ("A1.twice"), and one line in words. Every
 * fault is data: a changed copy of a plan and of the table of weights beside it
 * (a constant, an operation, an input, a weight). So whatever runs a plan runs a
 * faulty one, the reference and the GPU alike, and nothing of an engine knows of faults.
 *
 * A faulty plan has the values of the plan it was made of under the same numbers, and
 * perhaps further ones behind them, which are nobody's checkpoints: a recording is
 * made as if the plan were the unmodified one.
 *
 * Owner    plan and weights given are borrowed and must outlive the faulty ones.
 * Threads  one at a time.
 */
#ifndef VN_LIBREF_PLAN_FAULT_H
#define VN_LIBREF_PLAN_FAULT_H

#include "libref/plan/plan.h"

/* The ids of the catalogue, in C: faults, misreadings, and families of several, which are an id without a variant. */
typedef enum vn_mistake {
	VN_NO_MISTAKE,
#define FAULT(name, ...)      VN_MISTAKE_##name,
#define MISREADING(name, ...) VN_MISTAKE_##name,
#define FAMILY(name, ...)     VN_MISTAKE_##name,
#include "libref/plan/catalogue.def"
	VN_N_MISTAKES
} vn_mistake;

const char *vn_mistake_id(vn_mistake m);    /* "R2.1e4"; of VN_NO_MISTAKE "" */
int         vn_mistake_fault(vn_mistake m); /* the fault that it is, for what follows; -1: it is none */

int         vn_n_faults(void);
const char *vn_fault_id(int fault);    /* "R1", "A1.twice" */
const char *vn_fault_means(int fault); /* its title, one line */
/* By its id; an id without its variant is the first of them. -1: none. */
int         vn_fault_find(const char *id);
/* Why a fault cannot be made at a node, half a sentence; NULL: it can. */
const char *vn_fault_why_not(int fault, const vn_plan *p, int node);
/* How many nodes of a plan it fits; *why (NULL: not asked): of the nodes of its kind
 * that it does not fit, the reason of the last, or why there is none. */
int         vn_fault_count(int fault, const vn_plan *p, const char **why);

/* The node of another layer that does what this one does, NULL: there is none with weights of those shapes. */
const vn_node *vn_fault_twin(const vn_plan *p, const vn_node *n, int layer);

/* A plan with its weights, to be made faulty. */
typedef struct vn_faulty vn_faulty;

vn_status vn_faulty_create(const vn_plan *plan, const vn_tensor *weights, vn_faulty **f, vn_error *err);
void      vn_faulty_destroy(vn_faulty *f);

/* "ID@GLOB": at every node that makes a checkpoint of such a name ("layer2.q_rope",
 * or "layer2" for all of the layer) and that the fault fits. Refused in one line that
 * says what is there: an unknown id, a pattern that fits nothing, a weight in a format
 * that it does not fit. Then the faulty plan is to be destroyed. */
vn_status vn_faulty_inject(vn_faulty *f, const char *what, vn_error *err);

/* The fault at one node, which it fits, with another number than its row has: how often a bias is added (W7), the columns of padding (W18), ranks
 * (P17, P17.gate, P18.axis), of P15 VN_RANKS_MOST times the ranks that are there, a bit each, and how many there are, negative where the bias is not. VN_ERR_USAGE: that number does not fit. */
enum { VN_RANKS_MOST = 64 };
vn_status vn_faulty_make(vn_faulty *f, int fault, int node, double number, vn_error *err);

/* Its nodes read and make the values that the unmodified plan's do: either can take a node over from the other. */
bool             vn_faulty_keeps_nodes(const vn_faulty *f);
const vn_plan   *vn_faulty_plan(const vn_faulty *f);
const vn_tensor *vn_faulty_weights(const vn_faulty *f); /* (n_weights of that plan) */

#endif
