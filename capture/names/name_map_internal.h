/* name_map_internal.h: what name_map.c and name_map_place.c share. Nobody else includes it. */
#ifndef VN_CAPTURE_NAME_MAP_INTERNAL_H
#define VN_CAPTURE_NAME_MAP_INTERNAL_H

#include "capture/names/name_map.h"

enum { VN_MAP_LEFT = -1, VN_MAP_GONE = -2 };

/* What one tensor becomes. */
typedef struct vn_map_outcome {
	int  entry, rule, n; /* rule: VN_MAP_LEFT: stays. n: what {n} is */
	int  part;           /* -1: the whole */
	char name[VN_NAME_MAX];
} vn_map_outcome;

typedef struct vn_map_job {
	const vn_name_map *m;
	vn_recording      *r, *made;
	vn_map_use        *use;
	vn_error          *err;
	int               *rule, *n; /* (entries): VN_MAP_LEFT, VN_MAP_GONE or which */
	vn_map_outcome    *out;
	int                n_out, room;
	int               *chosen;   /* (rules) of an either: 0, 1; -1: not yet */
} vn_map_job;

/* "MAP:LINE:COLUMN: RECORDING: ..." */
__attribute__((format(printf, 3, 4))) vn_status vn_map_fail(const vn_map_job *j, int rule, const char *format, ...);

/* What term k of plus is called beside a tensor of that name: a number with as many digits. */
bool vn_map_term(const vn_map_rule *rule, int k, const char *name, char *to, size_t room);
/* One tensor into made. */
vn_status vn_map_place(vn_map_job *j, const vn_map_outcome *o);

#endif
