/* import.h: somebody else's dump (dump.h) becomes a checkpoint file, under our names.
 *
 * Names, axes and shapes are made ours by name maps (name_map.h) and by what the manifest says of axes; then
 * everything is checked that a reader of the file would refuse, before the first byte is written.
 */
#ifndef VN_CAPTURE_IMPORT_H
#define VN_CAPTURE_IMPORT_H

#include "capture/import/dump.h"
#include "capture/names/name_map.h"

#include <stdio.h>

enum { VN_IMPORT_MAPS = 8, VN_IMPORT_TROUBLES = 16 };

typedef enum vn_unmapped { VN_UNMAPPED_REFUSED, VN_UNMAPPED_KEPT, VN_UNMAPPED_LEFT_OUT } vn_unmapped;

typedef struct vn_import_options {
	const char *path;
	const char *names[VN_IMPORT_MAPS]; /* maps, in order */
	int         n_names;
	const char *model;                 /* NULL: none */
	const char *engine, *precision;    /* NULL: as the dump says */
	const char *ids_from;              /* a recording of the same tokens, in place of ids; NULL */
	const char *ids, *positions;       /* as people write them (arguments.h); NULL: as the dump says */
	const char *bits;                  /* what numbers of 1 or 2 bytes are that a file does not say; NULL */
	vn_unmapped unmapped;
	bool        partial;               /* also of a dump that is not complete */
	bool        dry;                   /* ids need not be known; nothing is refused for its name, or for what a map could not do */
} vn_import_options;

typedef struct vn_import {
	const vn_import_options *o;
	vn_recording *r;        /* as it is to be written */
	vn_recording *dump;     /* as it came; r's */
	vn_model     *model;    /* NULL: none was given */
	vn_plan      *own;      /* of the dump's config; NULL */
	const vn_plan *plan;    /* of either; NULL */
	char          kind[32];
	int           n_left;   /* of an incomplete dump: what is not whole, */
	char          left[VN_ERROR_MAX]; /* and why the first of them */
	bool          complete;
	int           unmapped; /* tensors whose names are none of ours */
	char          misshapen[VN_ERROR_MAX]; /* the first that has other axes than its checkpoint, or other lengths of them; "" : none has */
	int           n_misshapen;
	char          alone[VN_ERROR_MAX]; /* the first that has rows of some tokens alone, and is left out for it */
	int           n_alone;
	char          trouble[VN_IMPORT_TROUBLES][VN_ERROR_MAX]; /* dry: what an import would be refused for, the first of n_troubles */
	int           n_troubles;
} vn_import;

/* say: what was decided on the way, lines for a person. What is there must be closed, in failure too. */
vn_status vn_import_open(const vn_import_options *o, void (*say)(void *context, const char *words), void *context, vn_import *i, vn_error *err);
void      vn_import_close(vn_import *i);

/* Is it a name of ours, in this plan if there is one? */
bool      vn_import_knows(const vn_plan *plan, const char *name);
/* The name of ours that is nearest to this one, into room bytes. */
void      vn_import_nearest(const vn_plan *plan, const char *name, char *to, size_t room);
/* Refused, with the line of the manifest: dims of a checkpoint of ours with a word that no checkpoint has, or that are its own words and
 * make an axis longer than the model's, or no part of it. */
vn_status vn_import_check_dims(const vn_import *i, int entry, vn_error *err);
/* What maps to what, what is left over, and what is nearest to it. */
void      vn_import_list(const vn_import *i, FILE *to);
/* The checkpoint file. */
vn_status vn_import_write(vn_import *i, const char *path, bool force, int64_t *tensors, int64_t *bytes, vn_error *err);

#endif
