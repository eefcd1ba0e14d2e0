/* scan.c: see scan.h. */
#include "capture/recording/scan.h"

#include "capture/file/child.h"
#include "capture/recording/scan_tensor.h"
#include "libref/base/text.h"

#include <math.h>
#include <inttypes.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_LINES = 1000000 }; /* of a table or a list */

/* The walk over groups, of which none is entered twice, and their tensors. */
typedef struct group_walk {
	vn_scan          *s;
	hid_t             file;
	void             *seen_groups, *seen_datasets; /* addresses: trees of tsearch */
	int64_t           groups, tensors, stored;     /* the last: bytes in the file of all datasets */
	bool              complete, replayed;
	vn_seen_step      step;
	vn_header_reader *reader; /* or NULL */
} group_walk;

static int order_addresses(const void *a, const void *b)
{
	return a < b ? -1 : a > b;
}

/* Notes an object. Returns false if it was seen before, under another name. */
static bool see_object(const vn_scan *s, void **seen, haddr_t at, const char *object)
{
	const void *address = (const void *)(uintptr_t)at;

	if (tfind(address, seen, order_addresses))
		return false;
	if (!tsearch(address, seen, order_addresses))
		vn_refuse(s, object, "no memory");
	return true;
}

static void enter_group(group_walk *w, haddr_t at, const char *object)
{
	const int64_t most = vn_scan_most(w->s->bytes) / 10;
	if (!see_object(w->s, &w->seen_groups, at, object))
		vn_refuse(w->s, object, "a group with two names");
	if (++w->groups > most)
		vn_refuse(w->s, object, "more than %" PRId64 " groups in %" PRId64 " bytes", most, w->s->bytes);
}

/* Accepts only hard links with harmless names. */
static void check_link(const vn_scan *s, const char *in, const char *name, const H5L_info_t *info)
{
	if (info->type != H5L_TYPE_HARD)
		vn_refuse(s, in, "%s is %s link, which is not followed", name,
		          info->type == H5L_TYPE_SOFT       ? "a soft"
		          : info->type == H5L_TYPE_EXTERNAL ? "an external"
		                                            : "a foreign");
	for (const char *p = name; *p; p++)
		if (vn_text_control(*p) || *p == '/')
			vn_refuse(s, in, "a name with control characters or a slash");
	if (!*name || strcmp(name, ".") == 0)
		vn_refuse(s, in, "an empty name");
}

static hid_t open_object(const vn_scan *s, hid_t in, const char *name, const char *object)
{
	hid_t o = H5Oopen(in, name, H5P_DEFAULT);
	if (o < 0)
		vn_refuse(s, object, "it cannot be opened");
	return o;
}

/* Opens an object at or below the root that must be of one kind; -1 when absent. */
static hid_t child_of(const vn_scan *s, hid_t in, const char *name, H5I_type_t kind, const char *object)
{
	H5L_info_t info;
	htri_t     there = H5Lexists(in, name, H5P_DEFAULT);

	if (there == 0)
		return H5I_INVALID_HID;
	if (there < 0 || H5Lget_info(in, name, &info, H5P_DEFAULT) < 0)
		vn_refuse(s, object, "it cannot be looked up");
	check_link(s, object, name, &info);
	hid_t o = open_object(s, in, name, object);
	if (H5Iget_type(o) != kind)
		vn_refuse(s, object, kind == H5I_GROUP ? "not a group" : "not a dataset");
	return o;
}

/* The known names in a group. Other objects in it are reported, not opened. */
typedef struct known {
	const vn_scan     *s;
	const char        *object;
	const char *const *name;
	int                n;
} known;

static void send_unread(const vn_scan *s, const char *in, const char *name)
{
	char object[VN_NAME_MAX];
	snprintf(object, sizeof object, "%s/%s", in, name);
	vn_child_send(s->pipe, VN_FRAME_UNREAD, object, strlen(object));
}

static herr_t visit_unread(hid_t group, const char *name, const H5L_info_t *info, void *ctx)
{
	const known *k = ctx;
	(void)group;
	(void)info;
	for (int i = 0; i < k->n; i++)
		if (strcmp(k->name[i], name) == 0)
			return 0;
	send_unread(k->s, k->object, name);
	return 0;
}

static void scan_unread(const vn_scan *s, hid_t group, const char *object, const char *const *name, int n)
{
	known k = { s, object, name, n };
	if (H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, NULL, visit_unread, &k) < 0)
		vn_refuse(s, object, "its links cannot be read");
}

/* ---- /run, /model, /plan ------------------------------------------------------------- */

/* Numbers and rows may have a digest, of the bytes as read. */
static void check_digest(const vn_scan *s, hid_t d, const void *data, size_t bytes, const char *object)
{
	char said[64];

	if (!vn_scan_text(s, d, object, "digest", said, sizeof said))
		return;
	const vn_digest have = vn_digest_of(data, bytes);
	if (strcmp(said, have.hex) != 0)
		vn_refuse(s, object, "its digest is %s, the file records %s", have.hex, said);
}

static void scan_ids(const group_walk *w, hid_t run, const char *name, const char *object, int frame)
{
	const vn_scan *s = w->s;
	int64_t        n, batch;
	hid_t          d = child_of(s, run, name, H5I_DATASET, object);

	if (d < 0)
		return;
	VN_FREED int32_t *list = vn_scan_ids(s, d, object, !w->complete, &n, &batch);
	check_digest(s, d, list, (size_t)n * sizeof *list, object);
	vn_child_send(s->pipe, VN_FRAME_BATCH, &batch, sizeof batch);
	vn_child_send(s->pipe, frame, list, (size_t)n * sizeof *list);
	H5Oclose(d);
}

/* Lines may have a digest, of each with its NUL. */
static void check_lines(const vn_scan *s, hid_t d, char *const *line, int64_t n, const char *object)
{
	char         said[64];
	vn_digester *sum;

	if (!vn_scan_text(s, d, object, "digest", said, sizeof said))
		return;
	if (!(sum = vn_digester_create()))
		vn_refuse(s, object, "no memory for its digest");
	for (int64_t i = 0; i < n; i++)
		vn_digester_add(sum, line[i], strlen(line[i]) + 1);
	const vn_digest have = vn_digester_finish(sum);
	if (strcmp(said, have.hex) != 0)
		vn_refuse(s, object, "its digest is %s, the file says %s", have.hex, said);
}

static void scan_lines(const vn_scan *s, hid_t in, const char *name, const char *object, int frame, bool needed)
{
	int64_t n;
	hid_t   d = child_of(s, in, name, H5I_DATASET, object);

	if (d < 0 && !needed)
		return;
	if (d < 0)
		vn_refuse(s, object, "it is missing");
	char **line = vn_scan_lines(s, d, object, &n);
	if (n > MOST_LINES)
		vn_refuse(s, object, "more than %d lines", MOST_LINES);
	check_lines(s, d, line, n, object);
	for (int64_t i = 0; i < n; i++)
		vn_child_send(s->pipe, frame, line[i], strlen(line[i]));
	H5Oclose(d);
}

static void scan_run(group_walk *w)
{
	static const char *const names[] = { "token_ids", "positions", "token_text", "left_out" };
	hid_t                    run = child_of(w->s, w->file, "run", H5I_GROUP, "/run");
	if (run < 0)
		return;
	vn_scan_attributes(w->s, run, "/run", VN_FRAME_RUN);
	scan_ids(w, run, "token_ids", "/run/token_ids", VN_FRAME_IDS);
	scan_ids(w, run, "positions", "/run/positions", VN_FRAME_POSITIONS);
	scan_lines(w->s, run, "token_text", "/run/token_text", VN_FRAME_TOKEN_TEXT, false);
	scan_lines(w->s, run, "left_out", "/run/left_out", VN_FRAME_LEFT_OUT, false);
	scan_unread(w->s, run, "/run", names, sizeof names / sizeof *names);
	H5Oclose(run);
}

#define COLUMN(name, kind) \
	{ \
#name, VN_ATTRIBUTE_##kind, offsetof(vn_seen_weight, name), sizeof(((vn_seen_weight *)0)->name) \
	}
/* clang-format off */
static const vn_header_attribute weight_column[] = {
	COLUMN(name, TEXT), COLUMN(dtype, TEXT), COLUMN(shape, TEXT), COLUMN(digest, TEXT), COLUMN(min, REAL),
	COLUMN(max, REAL), COLUMN(mean, REAL), COLUMN(rms, REAL), COLUMN(nan, WHOLE), COLUMN(inf, WHOLE),
};
/* clang-format on */
enum { WEIGHT_COLUMNS = sizeof weight_column / sizeof *weight_column, NEEDED = 3 /* the first of them */ };

static void scan_weights(const vn_scan *s, hid_t model)
{
	static const char object[] = "/model/weights";
	hid_t             d = child_of(s, model, "weights", H5I_DATASET, object);

	if (d < 0)
		return;
	hid_t type = H5Dget_type(d);
	if (type < 0 || H5Tget_class(type) != H5T_COMPOUND)
		vn_refuse(s, object, "not a table");
	vn_extent e = vn_scan_extent(s, d, type, object);
	if (e.rank != 1 || e.count > MOST_LINES)
		vn_refuse(s, object, "rank %d with %" PRId64 " rows", e.rank, e.count);
	if (e.count == 0)
		return;
	const vn_scan_table t = vn_scan_rows(s, d, type, &e, object);
	check_digest(s, d, t.rows, (size_t)e.count * e.width, object);
	VN_FREED vn_seen_weight *row = vn_scan_room(s, object, (size_t)e.count, sizeof *row);
	for (int64_t i = 0; i < e.count; i++)
		row[i].min = row[i].max = row[i].mean = row[i].rms = (double)NAN;
	for (int i = 0; i < WEIGHT_COLUMNS; i++)
		if (!vn_scan_column(s, &t, &weight_column[i], row, sizeof *row) && i < NEEDED)
			vn_refuse(s, object, "no column %s", weight_column[i].name);
	for (int64_t i = 0; i < e.count; i++)
		vn_child_send(s->pipe, VN_FRAME_WEIGHT, &row[i], sizeof *row);
	H5Oclose(d);
}

static void scan_model(group_walk *w)
{
	hid_t model = child_of(w->s, w->file, "model", H5I_GROUP, "/model");
	if (model < 0)
		return;
	vn_scan_attributes(w->s, model, "/model", VN_FRAME_MODEL);
	scan_weights(w->s, model);
	scan_unread(w->s, model, "/model", (const char *const[]) { "weights" }, 1);
	H5Oclose(model);
}

/* Of a run of a PyTorch module: nodes alone (run_plan.h). */
static void scan_run_plan(group_walk *w, hid_t plan)
{
	vn_child_send(w->s->pipe, VN_FRAME_RUN_PLAN, "", 0);
	scan_lines(w->s, plan, "nodes", "/plan/nodes", VN_FRAME_PLAN_NODE, true);
	/* of the recorder */
	scan_unread(w->s, plan, "/plan", (const char *const[]) { "nodes", "calls", "modules", "sources" }, 4);
}

static void scan_plan(group_walk *w)
{
	static const char *const key[] = { "layers", "vocab", "context" }, *const names[] = { "weights", "values",
		                                                                                  "nodes" };
	hid_t   plan = child_of(w->s, w->file, "plan", H5I_GROUP, "/plan");
	int32_t size[3];
	char    kind[32] = "";

	if (plan < 0)
		return;
	if (vn_scan_text(w->s, plan, "/plan", "kind", kind, sizeof kind)) {
		if (strcmp(kind, "pytorch") != 0)
			vn_refuse(w->s, "/plan", "its kind is %s, this vernier reads pytorch", kind);
		scan_run_plan(w, plan);
		H5Oclose(plan);
		return;
	}
	for (int i = 0; i < 3; i++) {
		int64_t x;
		if (!vn_scan_int(w->s, plan, "/plan", key[i], &x) || x < 0 || x > INT32_MAX)
			vn_refuse(w->s, "/plan", "attribute %s is missing or out of range", key[i]);
		size[i] = (int32_t)x;
	}
	vn_child_send(w->s->pipe, VN_FRAME_PLAN, size, sizeof size);
	scan_lines(w->s, plan, "weights", "/plan/weights", VN_FRAME_PLAN_WEIGHT, true);
	scan_lines(w->s, plan, "values", "/plan/values", VN_FRAME_PLAN_VALUE, true);
	scan_lines(w->s, plan, "nodes", "/plan/nodes", VN_FRAME_PLAN_NODE, true);
	scan_unread(w->s, plan, "/plan", names, 3);
	H5Oclose(plan);
}

/* The lines of a replay file (specs/checkpoint.md). */
static void scan_replayed(group_walk *w)
{
	static const char *const names[] = { "results", "unjudged", "settings" };
	hid_t                    g = child_of(w->s, w->file, "replay", H5I_GROUP, "/replay");

	if (g < 0)
		vn_refuse(w->s, "/replay", "it is missing");
	scan_lines(w->s, g, "results", "/replay/results", VN_FRAME_REPLAYED_RESULT, true);
	scan_lines(w->s, g, "unjudged", "/replay/unjudged", VN_FRAME_REPLAYED_UNJUDGED, false);
	scan_lines(w->s, g, "settings", "/replay/settings", VN_FRAME_REPLAYED_SETTING, false);
	scan_unread(w->s, g, "/replay", names, 3);
	H5Oclose(g);
}

/* ---- tensors ------------------------------------------------------------------------- */

/* stored: bytes of its numbers in the file, at most those of the file. */
static void send_tensor(group_walk *w, const vn_seen_tensor *t, int64_t stored, const char *object)
{
	const int64_t most = vn_scan_most(w->s->bytes);
	if (++w->tensors > most)
		vn_refuse(w->s, object, "more than %" PRId64 " tensors in %" PRId64 " bytes", most, w->s->bytes);
	/* Second names of a dataset are no copies, but HDF5 never keeps two datasets in the same bytes.
	 * If together they have more bytes than the file, a small file was made to look large: each
	 * would be read, compared and checked by itself. */
	if (see_object(w->s, &w->seen_datasets, t->address, object) && (w->stored += stored) > w->s->bytes)
		vn_refuse(w->s, object,
		          "its numbers overlap those of other tensors, which have %" PRId64 " bytes in a file of %" PRId64,
		          w->stored, w->s->bytes);
	vn_child_send(w->s->pipe, VN_FRAME_TENSOR, t, sizeof *t);
}

/* One group of a step: prefix is the tensor name so far ("layer3"), object its path. */
typedef struct visited_group {
	group_walk *w;
	const char *prefix, *object;
	char        last[VN_NAME_MAX]; /* link */
} visited_group;

static void walk_group(group_walk *w, hid_t group, const char *prefix, const char *object);

/* Whether a group holds further tensors of the group it is in, so that its name is
 * not part of theirs. */
static bool continues_group(const vn_scan *s, hid_t group, const char *object)
{
	int64_t x = 0;
	return vn_scan_int(s, group, object, "continues", &x) && x == 1;
}

static herr_t visit_link(hid_t group, const char *link, const H5L_info_t *info, void *ctx)
{
	visited_group *p = ctx;
	group_walk    *w = p->w;
	char           name[VN_NAME_MAX], object[2 * VN_NAME_MAX];

	check_link(w->s, p->object, link, info);
	/* HDF5 identifies links by name, and repeats names where nodes of a damaged tree coincide. The
	 * check keeps a small file from having very many. */
	if (strcmp(p->last, link) >= 0)
		vn_refuse(w->s, p->object, "its links are not in order: %.40s before %.40s", p->last, link);
	if (snprintf(name, sizeof name, "%s%s%s", p->prefix, *p->prefix ? "." : "", link) >= (int)sizeof name)
		vn_refuse(w->s, p->object, "a name of more than %d bytes", VN_NAME_MAX - 1);
	snprintf(object, sizeof object, "%s/%s", p->object, link);
	snprintf(p->last, sizeof p->last, "%s", link);

	vn_seen_tensor t = {
		.step = w->step.number, .order = VN_NOT_SAID, .layer = VN_NOT_SAID, .address = info->u.address
	};
	strcpy(t.name, name);
	int64_t stored = 0;
	if (w->reader && vn_scan_tensor_header(w->s, w->reader, object, &t, &stored)) {
		send_tensor(w, &t, stored, object);
		return 0;
	}
	hid_t o = open_object(w->s, group, link, object);
	switch (H5Iget_type(o)) {
	case H5I_DATASET:
		vn_scan_tensor(w->s, o, object, &t, &stored);
		send_tensor(w, &t, stored, object);
		break;
	case H5I_GROUP:
		enter_group(w, info->u.address, object);
		walk_group(w, o, continues_group(w->s, o, object) ? p->prefix : name, object);
		break;
	default: vn_refuse(w->s, object, "neither a tensor nor a group");
	}
	H5Oclose(o);
	return 0;
}

static void walk_group(group_walk *w, hid_t group, const char *prefix, const char *object)
{
	visited_group p = { .w = w, .prefix = prefix, .object = object };
	if (H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, NULL, visit_link, &p) < 0)
		vn_refuse(w->s, object, "its links cannot be read");
}

/* Parses "step.12" without leading zeros; -1 for any other name. */
static int64_t step_number(const char *name)
{
	char    again[32];
	int64_t n;

	if (sscanf(name, "step.%9" SCNd64, &n) != 1 || n < 0)
		return -1;
	snprintf(again, sizeof again, "step.%" PRId64, n);
	return strcmp(again, name) == 0 ? n : -1;
}

static void walk_step(group_walk *w, hid_t root, const char *name, int64_t number, haddr_t at)
{
	char  object[VN_NAME_MAX];
	hid_t g;

	snprintf(object, sizeof object, "/%s", name);
	g = child_of(w->s, root, name, H5I_GROUP, object);
	enter_group(w, at, object);
	w->step = (vn_seen_step) { number, VN_NOT_SAID, VN_NOT_SAID, VN_NOT_SAID, VN_NOT_SAID };
	vn_scan_int(w->s, g, object, "position", &w->step.position);
	vn_scan_int(w->s, g, object, "tokens", &w->step.tokens);
	vn_scan_int(w->s, g, object, "first_row", &w->step.first_row);
	vn_scan_int(w->s, g, object, "rows", &w->step.rows);
	vn_child_send(w->s->pipe, VN_FRAME_STEP, &w->step, sizeof w->step);
	walk_group(w, g, "", object);
	H5Oclose(g);
}

/* Reports what the reader ignores, so that no one believes that it was judged: a malformed step
 * name, or a tensor in no step. */
static void look_at_other(const group_walk *w, hid_t root, const char *name)
{
	static const char *const names[] = { "run", "model", "plan", "replay" };

	for (int i = 0; i < (w->replayed ? 4 : 3); i++)
		if (strcmp(names[i], name) == 0)
			return;
	if (strncasecmp(name, "step", 4) == 0)
		vn_refuse(w->s, "/", "%.40s is not the name of a step (step.0, step.1...)", name);
	hid_t o = open_object(w->s, root, name, name);
	if (H5Iget_type(o) == H5I_DATASET)
		vn_refuse(w->s, "/", "%.100s is a dataset and in no step (step.0, step.1...)", name);
	H5Oclose(o);
	send_unread(w->s, "", name);
}

static herr_t visit_root(hid_t root, const char *name, const H5L_info_t *info, void *ctx)
{
	group_walk *w = ctx;

	check_link(w->s, "/", name, info);
	int64_t number = step_number(name);
	if (number >= 0)
		walk_step(w, root, name, number, info->u.address);
	else
		look_at_other(w, root, name);
	return 0;
}

/* ---- the two jobs -------------------------------------------------------------------- */

static void check_root(group_walk *w, hid_t file)
{
	const vn_scan *s = w->s;
	char           format[64] = "";
	int64_t        version = 0, complete = 0;

	if (!vn_scan_text(s, file, "/", "format", format, sizeof format))
		format[0] = '\0';
	w->replayed = strcmp(format, VN_REPLAYED_FORMAT) == 0;
	if (!w->replayed && strcmp(format, "vernier-checkpoint") != 0)
		vn_refuse(s, "",
		          "an HDF5 file, but not a recording: it has no attribute format = vernier-checkpoint (vernier help "
		          "checkpoint.md; vernier import converts .npz)");
	if (!vn_scan_int(s, file, "/", "format_version", &version) || version != 1)
		vn_refuse(s, "/", "format_version is %" PRId64 ", this vernier reads 1", version);
	if (!vn_scan_int(s, file, "/", "complete", &complete) || (complete != 0 && complete != 1))
		vn_refuse(s, "/", "attribute complete is missing or neither 0 nor 1");
	w->complete = complete == 1;
	vn_child_send(s->pipe, VN_FRAME_COMPLETE, &(int32_t) { (int32_t)complete }, sizeof(int32_t));
	vn_scan_attributes(s, file, "/", VN_FRAME_ROOT);
}

void vn_scan_file(void *ctx, int pipe)
{
	group_walk w = { .s = ctx };
	H5O_info_t info;

	w.s->pipe = pipe;
	w.file = vn_scan_open(w.s, 0);
	w.reader = vn_scan_reader(w.s, w.file);
	hid_t root = H5Gopen2(w.file, "/", H5P_DEFAULT);
	if (root < 0 || H5Oget_info2(root, &info, H5O_INFO_BASIC) < 0)
		vn_refuse(w.s, "/", "it cannot be opened");
	enter_group(&w, info.addr, "/");
	check_root(&w, root);
	scan_run(&w);
	scan_model(&w);
	scan_plan(&w);
	if (w.replayed)
		scan_replayed(&w);
	if (H5Literate(root, H5_INDEX_NAME, H5_ITER_INC, NULL, visit_root, &w) < 0)
		vn_refuse(w.s, "/", "its links cannot be read");
	vn_child_send(pipe, VN_FRAME_DONE, "", 0);
}
