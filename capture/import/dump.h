/* dump.h: another engine's dump of tensors, in any container: a directory of .npy files, .npz,
 * .safetensors, GGUF...
 *
 * Each kind is one file, which fills a list of arrays and says where the bytes of each are; names
 * are the dump's own. vn_dump_recording makes a recording of it, which is then mapped, checked and
 * read like any other. Everything in a dump except its numbers is checked when it is opened.
 *
 * Owner    the caller of vn_dump_open closes the dump, or hands it to a recording.
 * Threads  one at a time.
 * Errors   one line that names the file and the object.
 */
#pragma once

#include "capture/import/npy.h"
#include "capture/recording/recording.h"

#include <stdarg.h>

enum { VN_DUMP_MOST = 1000000 }; /* limit on tensors, as in a checkpoint file */

typedef struct vn_array {
	char             name[VN_NAME_MAX], op[32], axes[64]; /* op, axes: "" if not given */
	int              step;
	vn_import_layout layout;
	vn_shape         shape;
	const void      *data; /* its bytes, in a file that stays mapped; NULL: vn_dump.bytes reads them */
	/* for the kind: which member holds its bytes, and from which offset */
	size_t           which, at;
	char            *file;        /* in a directory: its file name; else NULL */
	int              line;        /* in the manifest; 0: there is none */
	char            *source_line; /* as in vn_entry; NULL: not given */
} vn_array;

typedef struct vn_dump vn_dump;

struct vn_dump {
	char          *path;
	const char    *kind;            /* "npy directory" */
	vn_facts       run;             /* engine, precision..., as far as given */
	char          *config;          /* text of a config.json; NULL */
	int32_t       *ids, *positions; /* (n_ids) over all steps; n_ids 0: not given */
	int64_t        n_ids, room_ids;
	int64_t        batch; /* prompts in ids, one after the other, each of n_ids / batch tokens; 0: one prompt */
	vn_step       *step;
	int            n_steps;
	bool           has_steps; /* it says which tokens belong to which step */
	vn_array      *array;
	int            n;
	/* (n_weights) the weights that the engine has loaded, sorted by name; their names are owned */
	vn_weight_row *weight;
	int            n_weights;
	bool           complete; /* everything that was to be dumped is there, or the kind cannot say */
	/* incomplete dump: how many arrays were left out because they are not whole, */
	int            n_left;
	char           left[VN_ERROR_MAX]; /* and why the first was */

	/* Filled by the kind. */
	void *state;
	/* Returns the `bytes` of an array, valid until the next call; NULL: every array has `data`. */
	vn_status (*bytes)(vn_dump *d, const vn_array *a, const unsigned char **data, vn_error *err);
	void (*close)(vn_dump *d);
	int                  held; /* the array that was requested last; -1 */
	const unsigned char *held_data;
};

/* Opens a dump. The kind follows from the path: a directory, or the ending of a file name. */
vn_status vn_dump_open(const char *path, vn_dump **d, vn_error *err);
void      vn_dump_close(vn_dump *d); /* safe on NULL */

/* Makes a recording of a dump, and takes ownership of the dump, also after a failure. */
vn_status vn_dump_recording(vn_dump *d, vn_recording **r, vn_error *err);
/* Sets a fact about the model in such a recording: "family", "config"... */
void      vn_dump_model_word(vn_recording *r, const char *key, const char *value);

/* Divides the ids (n_ids, at least n_steps) of a dump that does not say which step has which: by
 * the axis of its tensors whose lengths over all steps add up to n_ids, as tokens do; if there is
 * none, each step after the first has one token. */
void vn_dump_divide(vn_dump *d);

/* Reads bytes [at, at + n) of array i in our layout. An array that is stored in another layout is
 * read as a whole. */
vn_status vn_dump_read(vn_dump *d, int i, size_t at, size_t n, void *to, vn_error *err);

/* ---- for the kinds ----------------------------------------------------------------------- */

/* Adds an array; name, axes and op are checked. where: "FILE:12" or a member, for messages. Returns
 * NULL on failure, with the reason in *err. */
vn_array *vn_dump_add(vn_dump *d, const char *where, const char *name, const char *axes, const char *op, vn_error *err);
/* Writes the name that a tensor has in a checkpoint file, which knows no slash: "/a/b.0" becomes
 * "a.b.0". The name is one of a vn_array. */
void      vn_dump_dotted(const char *name, char to[VN_NAME_MAX]);
/* Return what is wrong with a tensor name, or with an attribute to be added to /run; NULL: it is
 * valid in a checkpoint file. */
const char *vn_dump_name_wrong(const char *name);
const char *vn_dump_fact_wrong(const vn_dump *d, const char *key, const char *value);
/* Splits "step.3/NAME": sets *step and returns NAME. */
const char *vn_dump_step_of(const char *name, int *step);
/* If every name says its call in another way ("q_step3", "decode_2/q"), takes it out of them. */
void        vn_dump_calls(vn_dump *d);
/* Adds a weight that the engine has loaded; its name is copied. Afterwards sorts all of them, and
 * refuses one that is listed twice; path: for the message. */
vn_status   vn_dump_weight(vn_dump *d, const vn_weight_row *row, vn_error *err);
vn_status   vn_dump_sort_weights(vn_dump *d, const char *path, vn_error *err);
/* Adds a step with this many tokens. */
vn_status   vn_dump_step(vn_dump *d, int64_t tokens, vn_error *err);
/* Adds the ids (n) of a step. positions NULL: they continue. */
vn_status   vn_dump_ids(vn_dump *d, const int32_t *ids, const int32_t *positions, int64_t n, vn_error *err);

vn_status vn_dump_open_directory(vn_dump *d, vn_error *err);
vn_status vn_dump_open_npz(vn_dump *d, vn_error *err);
vn_status vn_dump_open_safetensors(vn_dump *d, vn_error *err);
vn_status vn_dump_open_gguf(vn_dump *d, vn_error *err);
vn_status vn_dump_open_tree(vn_dump *d, vn_error *err); /* transformers' model_debugging_utils */

/* Describes the layout of a safetensors tensor. Returns false if its dtype or rank is not
 * supported. */
typedef struct vn_source_tensor vn_source_tensor;
bool vn_dump_safetensors_layout(const vn_source_tensor *t, vn_import_layout *layout, vn_shape *shape);

/* Parses a file of decimal numbers: its format and shape, and the numbers, *data, which the caller
 * frees. text (bytes) ends in a NUL and is changed. path: for messages. */
vn_status vn_dump_text(const char *path, char *text, size_t bytes, vn_npy *as, void **data, vn_error *err);

/* Parses the manifest of a directory (specs/dump.md), without opening its files. Sets `file` of
 * each array, and layout.dtype from the manifest. */
vn_status vn_manifest_parse(vn_dump *d, const char *path, const char *text, size_t bytes, vn_error *err);
