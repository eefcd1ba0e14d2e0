/* dump.c: what the kinds of dumps share: arrays, steps, ids, numbers; see dump.h. */
#include "capture/import/dump.h"

#include "capture/view/dims.h"
#include "libref/base/order.h"
#include "libref/base/text.h"
#include "libref/base/utf8.h"
#include "libref/base/grow.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void vn_dump_close(vn_dump *d)
{
	if (!d)
		return;
	if (d->close)
		d->close(d);
	for (int i = 0; i < d->n; i++)
		VN_FREE(d->array[i].file, d->array[i].source_line);
	for (int i = 0; i < d->n_weights; i++)
		free((char *)(uintptr_t)d->weight[i].name);
	VN_FREE(d->weight, d->array, d->step, d->ids, d->positions, d->config, d->path, d);
}

/* ---- weights -------------------------------------------------------------------------------- */

vn_status vn_dump_weight(vn_dump *d, const vn_weight_row *row, vn_error *err)
{
	if (d->n_weights >= VN_DUMP_MOST)
		return vn_fail(err, VN_ERR_FORMAT, "%s: more than %d weights", d->path, VN_DUMP_MOST);
	char *name = VN_GROW(d->weight, d->n_weights) ? strdup(row->name) : NULL;
	if (!name)
		return vn_fail(err, VN_ERR_NOMEM, "%s: no memory for weights", d->path);
	d->weight[d->n_weights] = *row;
	d->weight[d->n_weights++].name = name;
	return VN_OK;
}

VN_ORDER_BY(compare_weights, vn_weight_row, strcmp(x->name, y->name))

vn_status vn_dump_sort_weights(vn_dump *d, const char *path, vn_error *err)
{
	if (d->n_weights)
		qsort(d->weight, (size_t)d->n_weights, sizeof *d->weight, compare_weights);
	for (int i = 1; i < d->n_weights; i++)
		if (compare_weights(&d->weight[i - 1], &d->weight[i]) == 0)
			return vn_fail(err, VN_ERR_FORMAT, "%s: the weight %s is listed twice", path, d->weight[i].name);
	return VN_OK;
}

/* ---- arrays, steps, ids ---------------------------------------------------------------------- */

const char *vn_dump_fact_wrong(const vn_dump *d, const char *key, const char *value)
{
	if (!key || !*key || strlen(key) >= VN_FACT_KEY || !value || strlen(value) >= VN_FACT_VALUE)
		return "is not a key of up to 31 bytes with a string of up to 255";
	for (const char *p = key; *p; p++)
		if (vn_text_control(*p) || *p == '/')
			return "is not a key";
	if (vn_text_is_word("token_ids|positions|token_text|left_out", key))
		return "cannot be set here";
	if (vn_facts_get(&d->run, key))
		return "is given twice";
	return d->run.n >= VN_FACTS_MAX - 8 ? "is one too many" : NULL;
}

/* The name must survive a round trip through a checkpoint file. */
const char *vn_dump_name_wrong(const char *name)
{
	if (!*name)
		return "is empty";
	if (strlen(name) >= VN_NAME_MAX)
		return "has more than 127 bytes";
	if (*name == '.' || name[strlen(name) - 1] == '.' || strstr(name, ".."))
		return "has nothing before or after a dot";
	for (const char *p = name; *p; p++)
		if (vn_text_control(*p) || *p == '/')
			return "has a slash or a control character";
	return vn_utf8_good(name, strlen(name)) == strlen(name) ? NULL : "is not UTF-8";
}

void vn_dump_dotted(const char *name, char to[VN_NAME_MAX])
{
	char *at = to;
	for (const char *p = name; *p && at < to + VN_NAME_MAX - 1; p++)
		if (*p != '/')
			*at++ = *p;
		else if (at > to && at[-1] != '.')
			*at++ = '.';
	while (at > to && at[-1] == '.' && name[strlen(name) - 1] == '/')
		at--;
	*at = '\0';
}

vn_array *vn_dump_add(vn_dump *d, const char *where, const char *name, const char *axes, const char *op, vn_error *err)
{
	char        shown[4 * VN_NAME_MAX], dotted[VN_NAME_MAX];
	const char *why;
	vn_dims     dims;
	vn_dump_dotted(name, dotted);
	why = vn_dump_name_wrong(strlen(name) < VN_NAME_MAX ? dotted : name);
	snprintf(shown, sizeof shown, "%s", name);
	vn_text_clean(shown, sizeof shown);
	if (why) {
		vn_fail(err, VN_ERR_FORMAT, "%s: the name '%s' %s", where, shown, why);
		return NULL;
	}
	if (axes && (strlen(axes) >= sizeof d->array->axes || !vn_dims_parse(axes, &dims, &why))) {
		vn_fail(err, VN_ERR_FORMAT, "%s: %s: its dims are not a dims string: %s", where, shown,
		        strlen(axes) >= sizeof d->array->axes ? "longer than 63 bytes" : why);
		return NULL;
	}
	if (op && strlen(op) >= sizeof d->array->op) {
		vn_fail(err, VN_ERR_FORMAT, "%s: %s: its op is longer than 31 bytes", where, shown);
		return NULL;
	}
	if (d->n == VN_DUMP_MOST) {
		vn_fail(err, VN_ERR_FORMAT, "%s: more than %d tensors", d->path, VN_DUMP_MOST);
		return NULL;
	}
	if (!VN_GROW(d->array, d->n)) {
		vn_fail(err, VN_ERR_NOMEM, "%s: no memory for %d tensors", d->path, d->n + 1);
		return NULL;
	}
	vn_array *a = &d->array[d->n++];
	*a = (vn_array) { .step = 0 };
	strcpy(a->name, name);
	strcpy(a->axes, axes ? axes : "");
	strcpy(a->op, op ? op : "");
	return a;
}

const char *vn_dump_step_of(const char *name, int *step)
{
	int64_t     n;
	const char *end = strncmp(name, "step.", 5) == 0 && isdigit((unsigned char)name[5]) ? vn_text_digits(name + 5, &n)
	                                                                                    : NULL;
	*step = 0;
	if (!end || *end != '/' || n > 99999)
		return name;
	*step = (int)n;
	return end + 1;
}

vn_status vn_dump_step(vn_dump *d, int64_t tokens, vn_error *err)
{
	if (!VN_GROW(d->step, d->n_steps))
		return vn_fail(err, VN_ERR_NOMEM, "%s: no memory for %d steps", d->path, d->n_steps + 1);
	const vn_step *before = d->n_steps ? &d->step[d->n_steps - 1] : NULL;
	d->step[d->n_steps] = (vn_step) { .number = d->n_steps,
		                              .position = before ? before->position + before->tokens : 0,
		                              .tokens = tokens,
		                              .rows = tokens };
	d->n_steps++;
	return VN_OK;
}

vn_status vn_dump_ids(vn_dump *d, const int32_t *ids, const int32_t *positions, int64_t n, vn_error *err)
{
	enum { MOST_IDS = 64 << 20 };
	if (n > MOST_IDS - d->n_ids)
		return vn_fail(err, VN_ERR_FORMAT, "%s: more than %d token ids", d->path, MOST_IDS);
	if (d->n_ids + n > d->room_ids) {
		const int64_t room = 2 * (d->n_ids + n);
		int32_t      *a = realloc(d->ids, (size_t)room * sizeof *a),
				*b = a ? realloc(d->positions, (size_t)room * sizeof *b) : NULL;
		d->ids = a ? a : d->ids;
		if (!b)
			return vn_fail(err, VN_ERR_NOMEM, "%s: no memory for %" PRId64 " token ids", d->path, room);
		d->positions = b;
		d->room_ids = room;
	}
	for (int64_t i = 0; i < n; i++) {
		const int32_t before = d->n_ids ? d->positions[d->n_ids - 1] : -1;
		if (!positions && before == INT32_MAX)
			return vn_fail(err, VN_ERR_FORMAT, "%s: no position after %d is possible", d->path, before);
		d->ids[d->n_ids] = ids[i];
		d->positions[d->n_ids++] = positions ? positions[i] : before + 1;
	}
	return VN_OK;
}

/* ---- numbers --------------------------------------------------------------------------------- */

static vn_status hold_bytes(vn_dump *d, int i, vn_error *err)
{
	if (d->held == i)
		return VN_OK;
	d->held = -1;
	d->held_data = d->array[i].data;
	const vn_status st = d->held_data ? VN_OK : d->bytes(d, &d->array[i], &d->held_data, err);
	d->held = st ? -1 : i;
	return st;
}

vn_status vn_dump_read(vn_dump *d, int i, size_t at, size_t n, void *to, vn_error *err)
{
	const vn_array *a = &d->array[i];
	const vn_status st = n ? hold_bytes(d, i, err) : VN_OK;
	if (st || n == 0)
		return st;
	if (!vn_import_layout_plain(&a->layout))
		return vn_import_layout_read(d->path, a->name, &a->layout, &a->shape, d->held_data, to, err);
	memcpy(to, d->held_data + at, n);
	return VN_OK;
}
