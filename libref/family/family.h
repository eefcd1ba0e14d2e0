/* family.h: all that is known of each family of models.
 *
 * A family is one file, libref/family/NAME.c, which ends with its vn_family: the plan, the settings
 * of config.json that it obeys, the names of its weights and its GGUF architecture. To add a
 * family, add a file and a row of family.def.
 */
#pragma once

#include "libref/plan/plan.h"

#include <jansson.h>

/* What to do with a model of no family. */
#define VN_FAMILY_NONE \
	"Any PyTorch model can be recorded and explained (vernier help any-model.md); dumps: vernier import --unmapped " \
	"keep, then vernier compare without --model"

/* Another place of a weight in a file, without the prefix of layers; * is the number of an expert.
 * The tensor `file` is the weight or, if parts is not 0, has an outermost axis of experts, each of
 * which has so many weights one below the other; this is `part`. across: each is stored transposed,
 * and the weights have a column of the file in turn. */
typedef struct vn_spelling {
	const char *name, *file;
	int         part, parts;
	bool        across;
} vn_spelling;

/* Writes a name of one form ("a.*.b") in another; *expert: the number in place of *, or 0. Returns
 * false if it is not of that form. */
bool vn_respell(const char *from, const char *to, const char *name, char *out, size_t room, long *expert);

/* The layers of a multi-token-prediction head in files; the key of a config that asks for it. */
#define VN_MTP_LAYERS "mtp.layers."
#define VN_MTP_KEY    "vernier_mtp"

/* How files spell the names of a family's weights. Lists end with NULL. */
typedef struct vn_naming {
	/* the prefix of the plan's names, except of those outside the trunk (lm_head); and of those in
	 * a layer, before the layer's number */
	const char        *stem, *layers;
	/* prefixes that files may have instead; the first that finds a weight is used for all */
	const char *const *prefixes;
	/* globs of file names to ignore: buffers of old files, other modalities */
	const char *const *ignored;
	/* a file may contain `copy`, equal to `original`, for a plan that does not read it */
	const char        *copy, *original;
	const vn_spelling *spellings; /* of weights in a layer, up to `name` NULL; NULL: none */
} vn_naming;

/* What follows the layer in the name of a weight ("mlp.gate_proj.weight"); NULL outside layers. */
const char *vn_after_layer(const char *name, const vn_naming *n);

/* What llama.cpp's converter changed in a weight (specs/models.md, "Permutation of
 * Llama-architecture q and k" and "qwen35 conversions"). */
typedef enum vn_gguf_change {
	VN_GGUF_AS_IT_WAS,
	VN_GGUF_TRANSPOSED, /* [in,out] written as [out,in] */
	VN_GGUF_ROTATED_Q,  /* rows of each query head interleaved: i, i + K/2 */
	VN_GGUF_ROTATED_K,  /* same for key heads */
	VN_GGUF_ONE_MORE,   /* w written as 1 + w */
	VN_GGUF_DECAY,      /* A_log written as -exp(A_log), one number per value head, tiled */
	/* one row or number per value head, tiled over key heads instead of grouped */
	VN_GGUF_TILED,
	VN_GGUF_TILED_Z,       /* dv rows per value head, tiled */
	VN_GGUF_TILED_QKV,     /* same, after the rows of q and k */
	VN_GGUF_TILED_CONV,    /* same, and (X,1,J) written as (X,J) */
	VN_GGUF_TILED_COLUMNS, /* dv columns per value head, tiled */
	/* of a matrix with rows of keys, then of values, in each head: the keys, transposed, and the
	 * values, each (head, M, N) */
	VN_GGUF_LATENT_K,
	VN_GGUF_LATENT_V,
	VN_GGUF_ONE_ROW, /* (1,N), maybe written as (N) */
} vn_gguf_change;

/* A weight, and its bias. Names are without ".weight" and ".bias", unless `whole`. Those in a layer
 * omit what comes before: "model.layers.3.", "blk.3.". A list ends with hf NULL. */
typedef struct vn_family_weight {
	vn_point       point; /* the output of the operation that reads it */
	const char    *hf, *gguf;
	vn_gguf_change change;
	bool           whole;
} vn_family_weight;

/* Values of a setting that change nothing. */
typedef enum vn_harmless {
	VN_ONLY_TRUE, /* not null, which transformers takes for false */
	VN_FALSE,
	VN_ONE,
	VN_NOTHING /* 0, or empty */
} vn_harmless;

/* A field of config.json that changes what a family computes. */
typedef struct vn_setting {
	const char *key;
	vn_harmless harmless;
	const char *unless; /* a field that says `false` if this one has no effect; NULL: none */
} vn_setting;

/* How a field of config.json follows from a GGUF file. */
typedef enum vn_gguf_kind {
	VN_GGUF_INT,        /* a key's whole number */
	VN_GGUF_REAL,       /* a key's number */
	VN_GGUF_MAYBE,      /* the same; no field if the key is missing */
	VN_GGUF_NULL,       /* a key's whole number; null if the key is missing */
	VN_GGUF_TRUTH,      /* a key's truth; false if the key is missing */
	VN_GGUF_QUOTIENT,   /* a key's whole number, divided by that of another */
	VN_GGUF_HAS,        /* whether a layer has this tensor */
	VN_GGUF_ROWS,       /* the rows of this tensor; no field if it is missing */
	VN_GGUF_WORD,       /* this word; if `by` is a key, only where its number is above 1 */
	VN_GGUF_TRUE,       /* always true */
	VN_GGUF_YARN_SCALE, /* mscale and mscale_all_dim, of which a key has a tenth */
	VN_GGUF_YARN_ENDS   /* none: the ends of yarn's ramp are not rounded, which no key says */
} vn_gguf_kind;

typedef struct vn_gguf_field {
	vn_gguf_kind kind;
	const char  *field, *from, *by; /* by: the divisor, the condition */
	int          absent;            /* the number if the key is missing; 0: it must not be */
	int          layers;            /* only in a model of so many; 0: in any */
} vn_gguf_field;

/* Which layers attention.sliding_window belongs to. */
typedef enum vn_gguf_window {
	VN_GGUF_WINDOW_NONE,    /* no layer; a file that sets it is refused */
	VN_GGUF_WINDOW_MISTRAL, /* all: the model is a Mistral */
	VN_GGUF_WINDOW_PATTERN, /* those of attention.sliding_window_pattern */
	VN_GGUF_WINDOW_FAMILY   /* those that the family says */
} vn_gguf_window;

typedef struct vn_gguf_family {
	const char          *arch; /* NULL: no files state it */
	/* the activation, if the config has the fields of vn_config_decoder; NULL: it does not */
	const char          *act;
	const char          *sizes[4];    /* then: the fields of D, L, H and the context */
	bool                 interleaved; /* q_proj and k_proj are written as VN_GGUF_ROTATED_Q, _K */
	bool                 latent;      /* keys and values are made of a latent vector */
	int                  gating;      /* expert_gating_func of its files, 1 if they have none; 0: any */
	const vn_gguf_field *fields;      /* further fields, up to `field` NULL */
	vn_gguf_window       window;
} vn_gguf_family;

/* A published model: its name, and the fields of its config that shape the computation. */
typedef struct vn_published {
	const char *name, *config;
} vn_published;

typedef struct vn_family {
	const char *model_type; /* as config.json spells it */
	/* path: for messages. */
	vn_status (*plan)(const char *path, const json_t *config, vn_plan **plan, vn_error *err);
	bool                    recurrent; /* has layers of Gated DeltaNet, which multiply the error that a format causes */
	const vn_setting       *obeys;     /* up to `key` NULL; NULL: none */
	const vn_naming        *naming;
	const vn_family_weight *weights;
	vn_gguf_family          gguf;
	const vn_published     *published; /* up to `name` NULL; NULL: none */
} vn_family;

#define FAMILY(name) extern const vn_family vn_family_##name;
#include "libref/family/family.def"

/* Returns family i, from 0; NULL after the last. */
const vn_family *vn_family_at(int i);
/* Returns the family of this model_type, or of this GGUF architecture; NULL: none. */
const vn_family *vn_family_named(const char *model_type);
const vn_family *vn_family_of_arch(const char *arch);

/* Finds the family by the config's model_type; an unknown one is an error that names it. */
vn_status vn_family_find(const char *path, const json_t *config, const vn_family **family, vn_error *err);

/* Builds the plan from the text of a config; NULL: it is not a supported model. *family: its
 * model_type, or NULL. */
vn_plan *vn_family_plan(const char *config, const char **family);

/* Whether a model_type, or a longer word that begins with it ("qwen3_5_moe"), is of a recurrent
 * family: for runs whose plan is not known. NULL: no. */
bool vn_family_is_recurrent(const char *model_type);
