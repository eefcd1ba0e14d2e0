/* propose_internal.h: shared by the files of propose.h; included nowhere else. */
#pragma once

#include "capture/names/layout.h"
#include "capture/names/propose.h"
#include "libref/plan/plan.h"

enum {
	VN_SAMPLES = 512,    /* numbers of a tensor that are compared */
	VN_FEW_SAMPLES = 16, /* with fewer, chance can bring two tensors together */
	VN_NEAREST = 16,     /* places remembered for each tensor, aliases included */
};

/* Kinds of fused products: the indices of vn_fused_of. As points they follow VN_N_POINTS. */
typedef enum vn_fused_kind {
	VN_FUSED_QKV,
	VN_FUSED_KV,
	VN_FUSED_GATE_UP,
	VN_FUSED_UP_GATE,
	VN_FUSED_QKVZ,
	VN_FUSED_BA,
	VN_FUSED
} vn_fused_kind;

/* Products that engines fuse, as in specs/names/fused.yaml, and in the other order. */
typedef struct vn_fused {
	const char *along;
	int         n;
	vn_point    part[3];
} vn_fused;
extern const vn_fused vn_fused_of[VN_FUSED];

/* Numbers of a tensor, transformed (propose.h) and of length one. n 0: no evidence. */
typedef struct vn_tensor_sample {
	int   n;
	float scale; /* the median of absolute values */
	float x[VN_SAMPLES];
} vn_tensor_sample;

/* Checkpoints with the same axes and lengths in one step: samples are taken at the same indices. */
typedef struct vn_spot_kind {
	int            step, n_axes, n;    /* n: of samples */
	vn_axis_length axis[VN_MAX_RANK];  /* in the dump */
	int64_t        mine[VN_MAX_RANK];  /* lengths in the reference */
	int64_t        shift[VN_MAX_RANK]; /* index in the reference of index 0 of the dump */
	int64_t       *index;              /* (n, n_axes) in the dump */
	bool           fused;
	int           *place; /* (n_places) of this kind, after vn_spots_sort */
	int            n_places;
} vn_spot_kind;

/* A checkpoint of the reference in a step; of a fused product, several. */
typedef struct vn_spot {
	char             name[VN_NAME_MAX]; /* "" of a fused product */
	int              point;             /* vn_point, or VN_N_POINTS + index of vn_fused_of */
	int              layer, step, kind, order;
	int              entry[3], n_entries;
	int              group; /* places with one number have the same numbers */
	vn_tensor_sample sample;
} vn_spot;

typedef struct vn_spots {
	vn_recording *like;
	vn_spot_kind *kind;
	int           n_kinds;
	vn_spot      *place; /* sorted by step, point, layer after vn_spots_sort */
	int           n;
} vn_spots;

/* Adds the places of one step. cand: the dump's step of that number. */
vn_status vn_spots_add(vn_spots *p, const vn_step *cand, vn_error *err);
void      vn_spots_sort(vn_spots *p);
void      vn_spots_finish(vn_spots *p);
/* -1: the reference has no such checkpoint in that step. */
int       vn_spots_find(const vn_spots *p, int step, int point, int layer);

/* A tensor of the dump near to a place. */
typedef struct vn_near {
	int   place, layout;
	float distance;
} vn_near;

/* A tensor of the dump, by its name; entry: in the first step that has it. */
typedef struct vn_tensor_name {
	const char *name;
	int         entry, step;
	vn_near     near[VN_NEAREST];
	int         n_near;
} vn_tensor_name;

/* Measures the distances of a tensor from all places of its step. */
vn_status vn_tensor_name_measure(const vn_spots *p, vn_recording *r, vn_tensor_name *x, vn_error *err);
/* The layout of place kind k that a tensor of this shape has, as a dims string. */
bool      vn_kind_layout(const vn_spot_kind *k, const vn_shape *shape, int layout, char text[VN_LAYOUT_DIMS]);
/* A layout, in which the word "layer" is an axis of length `layers`: the part at this index. */
typedef struct vn_stack_slice {
	const char *layout;
	int64_t     layers, index;
} vn_stack_slice;
/* Takes the sample of an entry of the dump in this layout. */
vn_status vn_kind_sample(const vn_spot_kind *k, vn_recording *r, int entry, vn_stack_slice in, vn_tensor_sample *s,
                         vn_error *err);
double    vn_tensor_sample_distance(const vn_tensor_sample *a, const vn_tensor_sample *b);

/* A place in another step than that of its sample, and the layout of the tensor. */
typedef struct vn_in_step {
	int         place, step;
	const char *layout;
} vn_in_step;
/* Measures the distance of an entry of the dump from a place in any step of the reference. 1: the
 * reference has none there, or of another shape, or it is a fused product. */
vn_status vn_spot_in_step(const vn_spots *p, vn_recording *r, int entry, const vn_in_step *in, double *distance,
                          vn_error *err);

/* Names that differ in one number. */
typedef struct vn_member {
	int n, named; /* the number; index of the tensor */
} vn_member;
typedef struct vn_name_family {
	char       from[VN_NAME_MAX + 8];
	vn_member *member; /* (n), by number; of a single name n is 1 and the number -1 */
	int        n;
	unsigned   words; /* vn_name_words */
} vn_name_family;

/* Divides names into families. The caller frees them with vn_families_free. */
vn_name_family *vn_families_of(const vn_tensor_name *named, int n, int *n_families);
/* Writes the glob of a name: what has a meaning there becomes '?'. */
void            vn_name_glob(const char *name, char to[VN_NAME_MAX + 8]);
void            vn_families_free(vn_name_family *family, int n);

/* What a name says of its tensor. OTHER: a word or a number without a meaning here. */
enum {
	VN_SAYS_Q = 1 << 0,
	VN_SAYS_K = 1 << 1,
	VN_SAYS_V = 1 << 2,
	VN_SAYS_GATE = 1 << 3,
	VN_SAYS_UP = 1 << 4,
	VN_SAYS_DOWN = 1 << 5,
	VN_SAYS_CACHE = 1 << 6,
	VN_SAYS_IN = 1 << 7,
	VN_SAYS_NORM = 1 << 8,
	VN_SAYS_ROPE = 1 << 9,
	VN_SAYS_ATTN = 1 << 10,
	VN_SAYS_MLP = 1 << 11,
	VN_SAYS_O = 1 << 12,
	VN_SAYS_OUT = 1 << 13,
	VN_SAYS_EMBED = 1 << 14,
	VN_SAYS_TOKEN = 1 << 15,
	VN_SAYS_POSITION = 1 << 16,
	VN_SAYS_LOGITS = 1 << 17,
	VN_SAYS_FINAL = 1 << 18,
	VN_SAYS_POST = 1 << 19,
	VN_SAYS_PRE = 1 << 20,
	VN_SAYS_PROBS = 1 << 21,
	VN_SAYS_SCORES = 1 << 22,
	VN_SAYS_CONTEXT = 1 << 23,
	VN_SAYS_ACT = 1 << 24,
	VN_SAYS_FC = 1 << 25,
	VN_SAYS_PROJ = 1 << 26,
	VN_SAYS_QKV = 1 << 27,
	VN_SAYS_LAYER = 1 << 28,
	VN_SAYS_FIRST = 1 << 29,
	VN_SAYS_SECOND = 1 << 30,
};
#define VN_SAYS_OTHER (1u << 31)
unsigned vn_name_words(const char *name);
/* What is true of a place: the same bits. */
unsigned vn_point_words(int point);
/* Do the words of a name contradict the place? */
bool     vn_words_contradict(unsigned name, int point);
/* Do the words of a name say this point, which is in the layers or outside them? */
bool     vn_words_say(unsigned words, int point, bool layers);
/* The next point that they can say, in a model without the point `unless` (-1: in any). at: -1 to
 * begin. */
typedef struct vn_named_row {
	int at, point, unless;
} vn_named_row;
bool vn_words_next(unsigned words, bool layers, vn_named_row *row);

/* A tensor is at its place if it is at most VN_NEAR_PLACE from it, and VN_NEAR_MARGIN times as far
 * from every other. Six models of 2 to 6 layers (tests/parity/parity_like.py), run in bfloat16,
 * have tensors at most 0.002 from their places, and at least 22 times as far from any other; 4-bit
 * weights are coarser. It may be there if the distance is at most VN_NEAR_PERHAPS and that from any
 * other VN_NEAR_TWICE as large. */
#define VN_NEAR_PLACE   0.05
#define VN_NEAR_MARGIN  4
#define VN_NEAR_PERHAPS 0.5
#define VN_NEAR_TWICE   2

typedef enum vn_member_verdict {
	VN_MEMBER_OUT,
	VN_MEMBER_SILENT,
	VN_MEMBER_LIKELY,
	VN_MEMBER_CONFIRMED,
	VN_MEMBER_AGAINST
} vn_member_verdict;

/* A hypothesis: family member n is this point in layer n + add; of a single name, in this layer. */
typedef struct vn_target {
	int point, add;
} vn_target;

/* Distances from a place, and from the nearest of the others. */
typedef struct vn_member_near {
	double own, other;
	int    nearest; /* that other place; -1: none */
} vn_member_near;

/* What the tensors of a family say of a target. */
typedef struct vn_evidence {
	vn_target to;
	int       count[VN_MEMBER_AGAINST + 1];
	double    sum, worst, next;
	bool      blocked; /* words of the name contradict it */
	int       taste;   /* among places with the same numbers, higher is better */
} vn_evidence;

typedef struct vn_chosen_rule {
	int         family;
	vn_evidence e;
	char        layout[VN_LAYOUT_DIMS];
	bool        copy, by_shape, by_words;
	bool        other_layout; /* a copy whose axes are in another order */
	bool        ignored;      /* a name that no rule may take */
	int         stack, kind;  /* length of the axis of layers in one tensor, 0: none; its vn_spot_kind */
	int         outside;      /* 1 + the rule whose family it was split from; 0 */
} vn_chosen_rule;

typedef struct vn_proposer {
	vn_recording   *r, *like;
	vn_proposal    *out;
	vn_error       *err;
	vn_spots        places;
	vn_tensor_name *named;
	int             n_named;
	vn_name_family *family;
	int             n_families;
	vn_chosen_rule *rule;
	int             n_rules;
	int            *claimed; /* (places) rule that claims it, or -1 */
	int            *owner;   /* (named) its rule, or -1 */
	int             add;     /* the layers of the dump count from here: 0 or -1 or 1 */
} vn_proposer;

/* How the tensors of a family compare with those that have their places already. */
typedef struct vn_likeness {
	int         same, other_layout; /* pairs with the same numbers; of these, in another layout */
	int         owner;              /* a rule that has one of the places; -1: none */
	const char *unlike;             /* the first that differs, in any step; NULL: none */
} vn_likeness;

/* propose_evidence.c */
/* Appends a line to a list of the proposal. */
__attribute__((format(printf, 3, 4))) void vn_propose_add_line(char ***list, int *n, const char *format, ...);
/* The place that a target is for a member; -1: none. */
int                                        vn_propose_place_of(const vn_proposer *j, const vn_member *m, vn_target to);
/* The distance from a place, or another with its numbers; 1: it is none of the nearest. Sets
 * *layout (may be NULL) to the index in x->near if it is the place itself. */
double            vn_propose_distance_from(const vn_proposer *j, const vn_tensor_name *x, int place, int *layout);
/* The nearest place with other numbers than this one; NULL: none is known. */
const vn_near    *vn_propose_nearest_other(const vn_proposer *j, const vn_tensor_name *x, int place);
/* Also sets the distances from the target's place and from the nearest other. */
vn_member_verdict vn_propose_judge_member(const vn_proposer *j, const vn_member *m, vn_target to, double *own,
                                          double *other);
vn_member_verdict vn_propose_verdict(double own, double other);
vn_evidence       vn_propose_weigh(const vn_proposer *j, const vn_name_family *f, vn_target to);
/* The best of the targets that a tensor of the family is near to; sum is infinite: none.
 * *ambiguous: another has as many confirmed tensors. */
vn_evidence       vn_propose_best_target(const vn_proposer *j, const vn_name_family *f, int add, bool *ambiguous);
/* The layers of an engine may count from 1: the number that most families agree on. */
int               vn_propose_choose_add(const vn_proposer *j);
bool              vn_propose_is_enough(const vn_evidence *e); /* for a rule */
/* "layer{n}.v_proj" (layer -2), "layer2.v_proj", "logits" (layer -1), or "q_proj, k_proj and
 * v_proj". */
void              vn_propose_target_name(int point, int layer, int add, char to[2 * VN_NAME_MAX]);
void              vn_propose_place_name(const vn_proposer *j, int place, char to[2 * VN_NAME_MAX]);

/* propose_rules.c */
/* Does a rule have a part of this fused product, in some layer? */
bool vn_propose_has_parts(const vn_proposer *j, const vn_chosen_rule *c, const vn_fused *fused);
/* Adds the rule and claims its places, unless another has them with other numbers. */
void vn_propose_accept_rule(vn_proposer *j, vn_chosen_rule *c);
/* Makes it rule `at`, the one of the family's tensors and of their places that are free. */
void vn_propose_take_places(vn_proposer *j, const vn_chosen_rule *c, int at);
void vn_propose_make_rules(vn_proposer *j);
/* Gives members their own rules: of a family whose number is no layer's, and of a rule in whose
 * layers the reference has no such checkpoint. */
void vn_propose_split_families(vn_proposer *j);
void vn_propose_split_outside(vn_proposer *j);

/* propose_named.c: gives names that say what they are their places in a run that ends wrong. */
void vn_propose_by_words(vn_proposer *j);
/* Is the last tensor that has a place, in the order of execution, far from it? */
bool vn_propose_ends_wrong(const vn_proposer *j);

/* propose_stacked.c: finds single tensors that hold a checkpoint of all layers. */
vn_status vn_propose_stacked(vn_proposer *j);

/* propose_report.c: reports tensors near to another place than their rule's, those with the numbers
 * of another step, and those whose numbers are in another order. */
void      vn_propose_report_members(vn_proposer *j);
vn_status vn_propose_report_steps(vn_proposer *j);
vn_status vn_propose_report_reordered(vn_proposer *j);
