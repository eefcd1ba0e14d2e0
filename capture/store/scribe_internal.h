/* scribe_internal.h: what scribe_file.c and scribe_about.c share: the side of HDF5. Nobody else includes it. */
#ifndef VN_CAPTURE_SCRIBE_INTERNAL_H
#define VN_CAPTURE_SCRIBE_INTERNAL_H

#include "capture/file/driver.h"
#include "capture/file/h5.h"
#include "capture/store/scribe.h"
#include "capture/store/weight.h"
#include "libref/base/digest.h"
#include "libref/plan/plan.h"

struct vn_desk {
	int         fd;
	const char *path;
	vn_driver  *driver;
	hid_t       file, step;  /* step: its group */
	hid_t       groups;      /* creation properties of groups */
	hid_t       dset;        /* of the tensor at hand, without a name until it is whole */
	hid_t       parent;      /* group of the last tensor with a layer, and its name */
	char        parent_name[VN_NAME_MAX];
	double      published;   /* when */
	unsigned    mark;        /* vn_trouble_mark, at the start */
	bool        refused;     /* by vn_h5_room */
	vn_digest   plan;        /* of all that was asked for; empty: no plan */
};

/* A one-dimensional dataset of n elements; of n strings. digest NULL: none. */
bool vn_desk_list(hid_t group, const char *name, hid_t disk, hid_t memory, int64_t n, const void *data, const char *digest);
bool vn_desk_lines(hid_t group, const char *name, char *const *line, int64_t n);
/* After work on `what`. What was good goes to disk, at once or when it is due. */
vn_status vn_desk_settle(vn_desk *d, bool good, const char *what, bool at_once, vn_error *err);

/* The errands of scribe_about.c. */
vn_status vn_desk_run(vn_desk *d, vn_message *m, int64_t *value, vn_error *err);
vn_status vn_desk_ids_digest(vn_desk *d, vn_message *m, int64_t *value, vn_error *err);
vn_status vn_desk_token_text(vn_desk *d, vn_message *m, int64_t *value, vn_error *err);
vn_status vn_desk_facts(vn_desk *d, vn_message *m, int64_t *value, vn_error *err);
vn_status vn_desk_model(vn_desk *d, vn_message *m, int64_t *value, vn_error *err);
/* Is what `file` holds under /plan what was asked for? True without one. */
bool vn_desk_plan_is_whole(const vn_desk *d, hid_t file);

#endif
