/* propose_internal.h: shared by the files of propose.h; included nowhere else. */
#ifndef VN_CAPTURE_PROPOSE_INTERNAL_H
#define VN_CAPTURE_PROPOSE_INTERNAL_H

#include "capture/names/layout.h"
#include "capture/names/propose.h"
#include "libref/plan/plan.h"

enum {
	VN_SAMPLES = 512,    /* numbers of a tensor that are compared */
	VN_FEW_SAMPLES = 16, /* with fewer, chance can bring two tensors together */
	VN_NEAREST = 16,     /* places remembered for each tensor, aliases included */
	VN_FUSED = 6,        /* kinds of fused products (vn_fused) */
};

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
vn_status vn_spots_sort(vn_spots *p, vn_error *err);
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
/* Takes the sample of an entry of the dump in this layout. */
vn_status vn_kind_sample(const vn_spot_kind *k, vn_recording *r, int entry, const char *layout, vn_tensor_sample *s,
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

/* The smallest and largest numbers of a tensor, and some between: they say nothing of their order.
 * rms 0: no evidence. */
enum { VN_RANK_ENDS = 8 };
typedef struct vn_ranks {
	int64_t n;
	double  rms;
	float   low[VN_RANK_ENDS], middle[VN_RANK_ENDS], high[VN_RANK_ENDS];
} vn_ranks;
vn_status vn_ranks_of(vn_recording *r, int entry, vn_ranks *to, vn_error *err);
bool      vn_ranks_same(const vn_ranks *a, const vn_ranks *b);

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

/* Divides names into families. The caller frees *family with vn_families_free. */
vn_status vn_families_of(const vn_tensor_name *named, int n, vn_name_family **family, int *n_families, vn_error *err);
/* Writes the glob of a name: what has a meaning there becomes '?'. */
void      vn_name_glob(const char *name, char to[VN_NAME_MAX + 8]);
void      vn_families_free(vn_name_family *family, int n);

/* What a name says of its tensor. */
enum {
	VN_SAYS_Q = 1,
	VN_SAYS_K = 2,
	VN_SAYS_V = 4,
	VN_SAYS_GATE = 8,
	VN_SAYS_UP = 16,
	VN_SAYS_DOWN = 32,
	VN_SAYS_CACHE = 64,
	VN_SAYS_IN = 128,
};
unsigned vn_name_words(const char *name);
/* What is true of a place: the same bits. */
unsigned vn_point_words(int point);
/* Do the words of a name contradict the place? */
bool     vn_words_contradict(unsigned name, int point);

#endif
