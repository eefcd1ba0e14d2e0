/* dump.h: somebody else's dump of tensors, whatever holds it: a directory of .npy files, .npz, .safetensors, GGUF...
 *
 * Each kind is one file that fills in a list of arrays and says where the bytes of each are; names are the dump's own.
 * vn_dump_recording makes a recording of it, which is then mapped, checked and read like any other.
 * Whatever a dump holds is checked when it is opened, its numbers excepted.
 *
 * Owner    whoever opens a dump closes it, or hands it to a recording.
 * Threads  one at a time.
 * Errors   one line naming the file and the object.
 */
#ifndef VN_CAPTURE_DUMP_H
#define VN_CAPTURE_DUMP_H

#include "capture/import/npy.h"
#include "capture/recording/recording.h"

#include <stdarg.h>

enum { VN_DUMP_MOST = 1000000 }; /* tensors, as in a checkpoint file */

typedef struct vn_array {
	char     name[VN_NAME_MAX], op[32], axes[64]; /* op, axes: empty: it is not said */
	int      step;
	vn_laid  laid;
	vn_shape shape;
	size_t   which, at; /* for the kind: in which file, member or tensor its bytes are, and from which byte on */
	char    *file;      /* of a directory: its name in it; else NULL */
	int      line;      /* of its manifest; 0: it has none */
} vn_array;

typedef struct vn_dump vn_dump;

struct vn_dump {
	char     *path;
	const char *kind;    /* "npy directory" */
	vn_facts  run;       /* engine, precision... as far as it says */
	char     *config;    /* text of a config.json; NULL */
	int32_t  *ids, *positions; /* (n_ids) of all steps; n_ids 0: it does not say */
	int64_t   n_ids, room_ids;
	vn_step  *step;
	int       n_steps, room_steps;
	bool      has_steps; /* it says which tokens went into which */
	vn_array *array;
	int       n, room;
	bool      complete;  /* all that was to be dumped is there, or it is of a kind that cannot say */
	int       n_left;    /* of a dump that is not: arrays left out since they are not whole, */
	char      left[VN_ERROR_MAX]; /* and why the first of them */

	/* The kind's. */
	void     *state;
	/* Where the bytes of an array are: `bytes` of them, valid until the next call. */
	vn_status (*bytes)(vn_dump *d, const vn_array *a, const unsigned char **data, vn_error *err);
	void      (*close)(vn_dump *d);
	int       held;                /* the array that was asked for last; -1 */
	const unsigned char *held_data;
};

/* By what it is: a directory, or a file by its ending. */
vn_status vn_dump_open(const char *path, vn_dump **d, vn_error *err);
void      vn_dump_close(vn_dump *d); /* safe on NULL */

/* What is there becomes a recording, which owns the dump from here on, in failure too. */
vn_status vn_dump_recording(vn_dump *d, vn_recording **r, vn_error *err);
/* What such a recording says of its model: "family", "config"... */
vn_status vn_dump_model_word(vn_recording *r, const char *key, const char *value, vn_error *err);

/* Bytes [at, at + n) of array i as we have it; of one that does not lie so, all. */
vn_status vn_dump_read(vn_dump *d, int i, size_t at, size_t n, void *to, vn_error *err);

/* ---- for the kinds ----------------------------------------------------------------------- */

/* One more array; name, axes and op are checked. where: "FILE:12" or a member, for messages. NULL: *err says why. */
vn_array *vn_dump_add(vn_dump *d, const char *where, const char *name, const char *axes, const char *op, vn_error *err);
/* What is wrong with a name, NULL where it is one that a checkpoint file can have; with an attribute of /run that is to be added. */
const char *vn_dump_name_wrong(const char *name);
const char *vn_dump_fact_wrong(const vn_dump *d, const char *key, const char *value);
/* "step.3/NAME" is NAME of step 3: returns NAME. */
const char *vn_dump_step_of(const char *name, int *step);
/* One more step behind the others, of so many tokens. */
vn_status vn_dump_step(vn_dump *d, int64_t tokens, vn_error *err);
/* Its ids; positions NULL: they go on. */
vn_status vn_dump_ids(vn_dump *d, const int32_t *ids, const int32_t *positions, int64_t n, vn_error *err);

vn_status vn_dump_open_directory(vn_dump *d, vn_error *err);
vn_status vn_dump_open_npz(vn_dump *d, vn_error *err);
vn_status vn_dump_open_safetensors(vn_dump *d, vn_error *err);
vn_status vn_dump_open_gguf(vn_dump *d, vn_error *err);
vn_status vn_dump_open_tree(vn_dump *d, vn_error *err); /* transformers' model_debugging_utils */

/* How a tensor of such a file lies; false: it is of a dtype, or has more axes, than we have. */
typedef struct vn_st_tensor vn_st_tensor;
bool vn_dump_safetensors_lay(const vn_st_tensor *t, vn_laid *laid, vn_shape *shape);

/* A file of numbers in words, all of it: its format and shape, and its numbers into *data (free() it). path: for messages. */
vn_status vn_dump_text(const char *path, const char *text, size_t bytes, vn_laid *laid, vn_shape *shape, void **data, vn_error *err);

/* The manifest of a directory (specs/dump.md): everything but what its files hold. Arrays have `file` set, and the dtype that
 * the manifest says in laid.dtype. */
vn_status vn_manifest_parse(vn_dump *d, const char *path, const char *text, size_t bytes, vn_error *err);

#endif
