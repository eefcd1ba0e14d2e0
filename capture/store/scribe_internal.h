/* scribe_internal.h: shared by scribe_file.c, scribe_whole.c and scribe_about.c, the HDF5 side;
 * included nowhere else. */
#pragma once

#include "capture/file/bulk.h"
#include "capture/file/driver.h"
#include "capture/file/h5.h"
#include "capture/store/scribe.h"
#include "libref/base/digest.h"
#include "libref/plan/plan.h"

typedef struct vn_scribe_step vn_scribe_step;

/* The numbers of a step, attributes of its group. */
enum { VN_SCRIBE_STEP_VALUES = 4 };
extern const char *const vn_scribe_step_value[VN_SCRIBE_STEP_VALUES];

struct vn_scribe_file {
	int             fd;
	const char     *path;
	vn_driver      *driver;
	hid_t           file, step; /* step: its group */
	hid_t           groups;     /* creation properties of groups */
	hid_t           dset;       /* of the current tensor, without a name until it is complete */
	int64_t         at;         /* of the numbers of the current tensor */
	hid_t           parent;     /* group of the last tensor in a layer; the next field is its name */
	char            parent_name[VN_NAME_MAX];
	hid_t           more;      /* group that continues the step's, for names without a layer; invalid: none yet */
	int             n_more;    /* such groups of this step */
	int64_t         links;     /* number of links that fit into a group's first block */
	void           *names;     /* of the step: a tree of tsearch */
	vn_bulk        *bulk;      /* writes the steps; NULL: HDF5 does */
	vn_scribe_step *whole;     /* the step that bulk writes; NULL: none yet */
	double          published; /* time of the last publish */
	int64_t         tensors;   /* finished */
	int64_t         on_disk;   /* those of them that are published */
	unsigned        mark;      /* vn_trouble_mark at the start */
	int64_t        *answer;    /* to the current request; 0 unless it sets one */
	bool            refused;   /* by vn_h5_room */
	bool            broken;    /* a call of HDF5 failed, so what it keeps in memory may be invalid */
	bool            changed;   /* since the last publish */
	vn_status       late;      /* of a publish between two requests, for the next one to report */
	vn_error        late_err;
	vn_digest       plan; /* digest of the requested plan; empty: no plan */
};

/* Returns the error that HDF5 cannot write `what`. */
vn_status vn_scribe_file_failed(const vn_scribe_file *f, const char *what, vn_error *err);
/* Brings the file on disk up to date. */
vn_status vn_scribe_file_publish(vn_scribe_file *f, vn_error *err);
/* Ends work on `what`. If good, publishes to disk, at once or when it is due. */
vn_status vn_scribe_file_settle(vn_scribe_file *f, bool good, const char *what, bool at_once, vn_error *err);

/* The steps that f->bulk writes. A step's groups are written when it ends: with the next step, or
 * the file. */
vn_status vn_scribe_whole_step(vn_scribe_file *f, int number, const int64_t *value, vn_error *err);
/* Ends the dataset that was begun in f->bulk, and gives it its name. */
vn_status vn_scribe_whole_tensor(vn_scribe_file *f, const char *name, vn_error *err);
vn_status vn_scribe_whole_end(vn_scribe_file *f, vn_error *err); /* if there is a step */
void      vn_scribe_whole_drop(vn_scribe_file *f);

/* The requests of scribe_about.c. */
vn_status vn_scribe_file_run(vn_scribe_file *f, vn_message *m, vn_error *err);
vn_status vn_scribe_file_ids_digest(vn_scribe_file *f, vn_message *m, vn_error *err);
vn_status vn_scribe_file_texts(vn_scribe_file *f, vn_message *m, vn_error *err);
vn_status vn_scribe_file_facts(vn_scribe_file *f, vn_message *m, vn_error *err);
vn_status vn_scribe_file_model(vn_scribe_file *f, vn_message *m, vn_error *err);
/* Does `file` hold the requested plan under /plan? True if none was requested. */
bool      vn_scribe_file_plan_is_whole(const vn_scribe_file *f, hid_t file);
