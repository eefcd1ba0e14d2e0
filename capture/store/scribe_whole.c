/* scribe_whole.c: how the scribe writes the steps of a file that nothing reads before its end
 * (vn_store_create_whole): as bytes (bulk.h), each step's groups after its tensors. See
 * scribe_internal.h. */
#include "capture/store/scribe_internal.h"

#include "libref/base/grow.h"
#include "libref/base/order.h"
#include "libref/base/system.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

const char *const vn_scribe_step_value[VN_SCRIBE_STEP_VALUES] = { "position", "tokens", "first_row", "rows" };

/* A group of the step: the step's own, or one of a layer. */
typedef struct group {
	char         *path; /* below the step: "layer3/mlp" is in the group "layer3"; "" for the step's own */
	struct group *in;   /* NULL: the root */
	vn_bulk_link *link;
	size_t        n;
} group;

struct vn_scribe_step {
	int     number;
	int64_t value[VN_SCRIBE_STEP_VALUES];
	group **group; /* each behind the one it is in */
	size_t  n;
	void   *by_path; /* the same, a tree of tsearch */
	group  *last;    /* the one of the last tensor */
};

static vn_status no_memory(const vn_scribe_file *f, vn_error *err)
{
	return vn_fail(err, VN_ERR_NOMEM, "%s: no memory", f->path);
}

static bool add_link(group *g, const char *name, uint64_t address)
{
	vn_bulk_link *link = vn_grown(g->link, g->n, sizeof *link);
	char         *copy = link ? strdup(name) : NULL;

	if (link)
		g->link = link;
	if (copy)
		g->link[g->n++] = (vn_bulk_link) { .name = copy, .address = address };
	return copy != NULL;
}

VN_ORDER_BY(order_by_path, group, strcmp(x->path, y->path))

static group *add_group(vn_scribe_step *s, const char *path, group *in)
{
	group **list = vn_grown(s->group, s->n, sizeof *list), *g = calloc(1, sizeof *g);

	if (list)
		s->group = list;
	if (g)
		*g = (group) { .path = strdup(path), .in = in };
	if (list && g && g->path && tsearch(g, &s->by_path, order_by_path))
		return s->group[s->n++] = g;
	if (g)
		free(g->path);
	free(g);
	return NULL;
}

/* The group of this path, made with those that it is in. NULL: no memory. */
static group *group_of(vn_scribe_step *s, char *path)
{
	group        key = { .path = path };
	void *const *found = tfind(&key, &s->by_path, order_by_path);

	if (found)
		return *found;
	char  *slash = strrchr(path, '/');
	group *in;
	if (slash) {
		*slash = '\0';
		in = group_of(s, path);
		*slash = '/';
	} else {
		in = s->group[0];
	}
	return in ? add_group(s, path, in) : NULL;
}

/* The group of a name, and the name's last part. Foreign names may contain dots: "model" and
 * "model.norm" are two tensors, not a group. */
static group *parent_of(vn_scribe_step *s, const char *name, const char **last)
{
	const char *dot = vn_name_layer(name) >= 0 ? strrchr(name, '.') : NULL;
	char        path[VN_NAME_MAX] = "";

	*last = dot ? dot + 1 : name;
	if (!dot)
		return s->group[0];
	memcpy(path, name, (size_t)(dot - name));
	for (char *p = path; *p; p++)
		if (*p == '.')
			*p = '/';
	if (!s->last || strcmp(s->last->path, path) != 0)
		s->last = group_of(s, path);
	return s->last;
}

static void leave_alone(void *g)
{
	(void)g;
}

void vn_scribe_whole_drop(vn_scribe_file *f)
{
	vn_scribe_step *s = f->whole;

	for (size_t k = 0; s && k < s->n; k++) {
		for (size_t i = 0; i < s->group[k]->n; i++)
			free((char *)s->group[k]->link[i].name);
		VN_FREE(s->group[k]->link, s->group[k]->path, s->group[k]);
	}
	if (s) {
		vn_tree_free(s->by_path, leave_alone);
		free(s->group);
	}
	free(s);
	f->whole = NULL;
}

vn_status vn_scribe_whole_step(vn_scribe_file *f, int number, const int64_t *value, vn_error *err)
{
	vn_status st = vn_scribe_whole_end(f, err);

	if (st)
		return st;
	if (!(f->whole = calloc(1, sizeof *f->whole)))
		return no_memory(f, err);
	f->whole->number = number;
	memcpy(f->whole->value, value, sizeof f->whole->value);
	return add_group(f->whole, "", NULL) ? VN_OK : no_memory(f, err);
}

vn_status vn_scribe_whole_tensor(vn_scribe_file *f, const char *name, vn_error *err)
{
	const uint64_t at = vn_bulk_end_dataset(f->bulk);
	const char    *last;
	group         *g = f->whole ? parent_of(f->whole, name, &last) : NULL;

	if (!f->whole)
		return vn_fail(err, VN_ERR_USAGE, "%s: %s is in no step", f->path, name);
	return g && add_link(g, last, at) ? vn_bulk_status(f->bulk, err) : no_memory(f, err);
}

/* Links the group of the step to the root, which HDF5 writes. */
static bool link_step(const vn_scribe_file *f, uint64_t address)
{
	char        name[32];
	const hid_t o = H5Oopen_by_addr(f->file, address);

	snprintf(name, sizeof name, "step.%d", f->whole->number);
	const bool good = o >= 0 && H5Olink(o, f->file, name, H5P_DEFAULT, H5P_DEFAULT) >= 0;
	return vn_h5_close(o) && good;
}

/* Two tensors of a group have one name, or a tensor has that of a group. */
static vn_status refuse_twice(const vn_scribe_file *f, const group *in, const char *last, vn_error *err)
{
	char name[VN_NAME_MAX];

	snprintf(name, sizeof name, "%s%s%s", in->path, *in->path ? "/" : "", last);
	const bool is_group = tfind(&(group) { .path = name }, &f->whole->by_path, order_by_path);
	for (char *p = name; *p; p++)
		if (*p == '/')
			*p = '.';
	if (is_group)
		return vn_fail(err, VN_ERR_FORMAT, "%s: %s is a tensor, and others are named %s.NAME: a file cannot hold both",
		               f->path, name, name);
	return vn_fail(err, VN_ERR_FORMAT, "%s: %s is given twice in one step", f->path, name);
}

vn_status vn_scribe_whole_end(vn_scribe_file *f, vn_error *err)
{
	vn_scribe_step *s = f->whole;
	vn_status       st = VN_OK;
	uint64_t        at = 0;

	if (!s)
		return VN_OK;
	for (size_t k = s->n; !st && k-- > 0;) {
		group      *g = s->group[k];
		const char *twice = NULL, *name = strrchr(g->path, '/');

		vn_bulk_begin_group(f->bulk, !g->in);
		for (size_t i = 0; !g->in && i < VN_SCRIBE_STEP_VALUES; i++)
			vn_bulk_put_int(f->bulk, vn_scribe_step_value[i], s->value[i]);
		at = vn_bulk_end_group(f->bulk, g->link, g->n, &twice);
		if (twice)
			st = refuse_twice(f, g, twice, err);
		else if (g->in && !add_link(g->in, name ? name + 1 : g->path, at))
			st = no_memory(f, err);
	}
	if (!st && !(st = vn_bulk_end(f->bulk, err)) && !link_step(f, at))
		st = vn_scribe_file_failed(f, "a step", err);
	vn_scribe_whole_drop(f);
	return st;
}
