/* import.h: converts another engine's dump (dump.h) to a checkpoint file with vernier's names.
 *
 * Names, axes and shapes are converted by name maps (name_map.h) and by the axes in the manifest.
 * Everything that a reader of the file would refuse is checked before the first byte is written.
 */
#pragma once

#include "capture/import/dump.h"
#include "capture/names/name_map.h"
#include "capture/names/propose.h"

#include <stdio.h>

enum { VN_IMPORT_MAPS = 8, VN_IMPORT_TROUBLES = 16 };

typedef enum vn_unmapped { VN_UNMAPPED_REFUSED, VN_UNMAPPED_KEPT, VN_UNMAPPED_LEFT_OUT } vn_unmapped;

typedef struct vn_import_options {
	const char *path;
	const char *names[VN_IMPORT_MAPS]; /* name maps, in order */
	int         n_names;
	const char *model;              /* NULL: none */
	bool        mtp;                /* it ran with its multi-token-prediction head */
	const char *engine, *precision; /* NULL: from the dump */
	const char *ids_from;           /* a recording of the same tokens, instead of ids; NULL */
	/* a recording of the same model on the same tokens: names are proposed by its numbers, and it
	 * gives the tokens and the lengths of axes if nothing else does; NULL */
	const char *like;
	/* as a user writes them (arguments.h); NULL: from the dump */
	const char *ids, *positions;
	/* the format of 1- or 2-byte numbers if the dump does not say; NULL */
	const char *bits;
	vn_unmapped unmapped;
	bool        partial; /* accept a dump that is not complete */
	/* dry run: ids may be unknown, and unknown names or failing rules are not errors */
	bool        dry;
	/* receives messages about decisions (name_map.h); its context is the vn_import */
	void (*say)(void *context, const char *words);
} vn_import_options;

typedef struct vn_import {
	const vn_import_options *o;
	vn_recording            *r;              /* what will be written */
	const vn_dump           *dump;           /* as it came; owned by original */
	vn_recording            *original;       /* the recording of the dump; owned by r */
	vn_model                *model;          /* NULL: none was given */
	vn_plan                 *own;            /* from the dump's config; NULL */
	const vn_plan           *plan;           /* the model's, own, or that of `like`; NULL */
	const char              *family;         /* of the plan; NULL: not known */
	vn_recording            *like;           /* of o->like; NULL */
	vn_proposal              proposal;       /* empty without it */
	int                      unmapped;       /* tensors without a checkpoint name */
	int                      unmapped_names; /* of these, each name once */
	int                      of_head;        /* of these, seem to be a multi-token-prediction head's, not imported */
	/* the first tensor whose axes, or their lengths, do not fit its checkpoint; "": none */
	char                     misshapen[VN_ERROR_MAX];
	int                      n_misshapen;
	/* the first tensor left out because it has rows of only some tokens */
	char                     alone[VN_ERROR_MAX];
	int                      n_alone;
	/* the precision, where it was not stated and is not that of all tensors, in words; "" */
	char                     precision[VN_ERROR_MAX];
	/* what in the numbers contradicts the precision that the user stated; "": nothing */
	char                     claim[VN_ERROR_MAX];
	/* dry run: the first of n_troubles reasons to refuse the import */
	char                     trouble[VN_IMPORT_TROUBLES][VN_ERROR_MAX];
	int                      n_troubles;
} vn_import;

/* Opens the dump and converts it. Call vn_import_close afterwards, also after a failure. */
vn_status vn_import_open(const vn_import_options *o, vn_import *i, vn_error *err);
void      vn_import_close(vn_import *i);

/* Is it a checkpoint name, and (if plan is not NULL) one in this plan? */
bool      vn_import_knows(const vn_plan *plan, const char *name);
/* Writes the checkpoint name nearest to `name` to `to` (room bytes). */
void      vn_import_nearest(const vn_plan *plan, const char *name, char *to, size_t room);
/* Checks the dims that a manifest states for a checkpoint. Refuses, with the line of the manifest,
 * a word that no checkpoint has, and an axis that is longer than the model's or that cannot be one
 * rank's part of it. */
vn_status vn_import_check_dims(const vn_import *i, int entry, vn_error *err);
/* Lists what maps to what, what is left over, and the nearest names. */
void      vn_import_list(const vn_import *i, FILE *to);
/* Writes the checkpoint file. */
vn_status vn_import_write(vn_import *i, const char *path, bool force, int64_t *tensors, int64_t *bytes, vn_error *err);
