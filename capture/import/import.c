/* import.c: a dump under our names, checked; see import.h. */
#include "capture/import/import.h"

#include "capture/file/output.h"
#include "capture/run/arguments.h"
#include "capture/run/ids_from.h"
#include "capture/recording/derive.h"
#include "capture/recording/packed.h"
#include "capture/names/layout.h"
#include "capture/recording/shown.h"
#include "capture/store/label.h"
#include "capture/recording/recording_internal.h"
#include "libref/base/alloc.h"
#include "libref/base/intern.h"
#include "libref/base/text.h"
#include "libref/family/family.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- tokens -------------------------------------------------------------------------------- */

/* Positions of the prompts of a batch: each counts from 0, and padding (-1) does not count. */
static int32_t *count_positions(const int32_t *ids, int64_t n, int64_t columns)
{
	int32_t at = 0, *positions = vn_alloc((size_t)n, sizeof *positions);
	for (int64_t i = 0; i < n; i++) {
		at = i % columns ? at : 0;
		positions[i] = ids[i] < 0 ? -1 : at++;
	}
	return positions;
}

/* Ids on the command line, for all steps. */
static vn_status take_ids(const vn_import_options *o, vn_dump *d, vn_error *err)
{
	VN_FREED int32_t   *ids = NULL, *positions = NULL;
	int64_t             n = 0, m = 0, rows = 0, columns = 0;
	const vn_ids_source from = o->ids_from ? (vn_ids_source) { "--ids-from", o->ids_from, -1 }
	                                       : (vn_ids_source) { "--like", o->like, -1 };
	vn_status           st = o->ids ? vn_arguments_read_rows("--ids", o->ids, &ids, &n, &rows, err)
	                                : vn_ids_from(&from, VN_IDS_ALL, &ids, &n, err);

	if (!st && o->positions)
		st = vn_arguments_read_rows("--positions", o->positions, &positions, &m, &columns, err);
	if (!st && positions && (m != n || columns != rows))
		st = vn_fail(err, VN_ERR_USAGE, "--positions: %" PRId64 " positions for %" PRId64 " ids", m, n);
	if (!st && rows && !positions)
		positions = count_positions(ids, n, n / rows);
	for (int64_t k = 0; !st && rows && k < n; k++)
		if (ids[k] < 0 || positions[k] < 0) {
			ids[k] = 0;
			positions[k] = -1;
		}
	if (!st && d->n_ids && (d->n_ids != n || memcmp(d->ids, ids, (size_t)n * sizeof *ids) != 0))
		st = vn_fail(err, VN_ERR_USAGE, "--ids are not the tokens that %s records", d->path);
	if (!st && d->n_ids && positions)
		st = vn_fail(err, VN_ERR_USAGE, "--positions: %s records its own", d->path);
	d->batch = rows;
	if (!st && !d->n_ids && (rows ? n / rows : n) < d->n_steps)
		st = vn_fail(err, VN_ERR_USAGE, "--ids: %" PRId64 " token%s, and %s has %d steps", n, n == 1 ? "" : "s",
		             d->path, d->n_steps);
	if (!st && !d->n_ids && !(st = vn_dump_ids(d, ids, positions, n, err)))
		vn_dump_divide(d);
	return st;
}

/* Is each array a weight or a bias? Then it is a model, of GGUF, too. */
static bool holds_weights(const vn_dump *d)
{
	for (int k = 0; k < d->n; k++)
		if (!vn_text_ends(d->array[k].name, ".weight") && !vn_text_ends(d->array[k].name, ".bias"))
			return false;
	return d->n > 0;
}

static vn_status settle_ids(const vn_import_options *o, vn_dump *d, vn_error *err)
{
	if (!o->dry && !o->n_names && o->unmapped == VN_UNMAPPED_REFUSED && holds_weights(d))
		return vn_fail(
			err, VN_ERR_USAGE,
			"%s: seems to hold weights (first: %s), not what a run computes: vernier capture ref MODEL records a "
			"run (--names or --unmapped keep import what is called so all the same)",
			d->path, d->array[0].name);
	if (o->ids || o->ids_from || (o->like && !d->n_ids))
		return take_ids(o, d, err);
	if (o->positions)
		return vn_fail(err, VN_ERR_USAGE, "--positions needs --ids");
	for (int k = 0; o->dry && !d->n_ids && k < d->n_steps; k++)
		d->step[k].rows = -1; /* not known */
	if (d->n_ids || o->dry)
		return VN_OK;
	return vn_fail(err, VN_ERR_USAGE,
	               "%s: does not record the tokens: give --ids LIST, --ids-from REC, or --like REC, by whose "
	               "numbers the names are found too",
	               d->path);
}

/* Names are proposed by numbers, so those of --like must be of the same tokens; either may end
 * earlier. */
static vn_status check_like(const vn_import *i, const vn_dump *d, vn_error *err)
{
	const int32_t *ids;
	const int64_t  n = i->like ? vn_recording_tokens(i->like, &ids, NULL) : 0, both = n < d->n_ids ? n : d->n_ids;
	if (!i->like)
		return VN_OK;
	if (d->batch || vn_recording_batch(i->like))
		return vn_fail(err, VN_ERR_USAGE, "--like: %s holds a batch of prompts; it takes one prompt",
		               d->batch ? d->path : i->o->like);
	for (int64_t k = 0; k < both; k++)
		if (d->ids[k] != ids[k])
			return vn_fail(err, VN_ERR_USAGE,
			               "--like %s: its token %" PRId64
			               " is %d, that of %s is %d: record the reference with the same "
			               "tokens",
			               i->o->like, k, ids[k], d->path, d->ids[k]);
	return VN_OK;
}

/* ---- what it says of itself ------------------------------------------------------------------ */

/* The widest format among the tensors. */
static const char *widest_format(const vn_dump *d)
{
	static const vn_dtype order[] = { VN_F64, VN_F32, VN_BF16, VN_F16, VN_F8_E4M3, VN_F8_E5M2 };
	for (size_t k = 0; k < sizeof order / sizeof *order; k++)
		for (int i = 0; i < d->n; i++)
			if (d->array[i].layout.dtype == order[k] && !d->array[i].layout.unread)
				return vn_dtype_name(order[k]);
	return "f32";
}

static vn_status settle_bits(const vn_import_options *o, vn_dump *d, vn_error *err)
{
	vn_dtype bits;
	if (o->bits &&
	    (!vn_dtype_from_name(o->bits, &bits) || (bits != VN_BF16 && bits != VN_F8_E4M3 && bits != VN_F8_E5M2)))
		return vn_fail(err, VN_ERR_USAGE, "--bits is bf16, f8_e4m3 or f8_e5m2, not '%s'", o->bits);
	for (int i = 0; i < d->n; i++) {
		vn_import_layout *l = &d->array[i].layout;
		if (!l->bits || (o->bits && vn_import_layout_is(l, bits)))
			continue;
		l->unread = l->width == 2 ? "its numbers of 2 bytes may or may not be bfloat16: state the format in a manifest "
		                            "or with --bits"
		                          : "its numbers of 1 byte may or may not be float8: state the format in a manifest or "
		                            "with --bits";
	}
	return VN_OK;
}

static void settle_facts(const vn_import_options *o, vn_dump *d)
{
	char maps[VN_FACT_VALUE] = "";
	if (o->engine || !vn_facts_get(&d->run, "engine"))
		vn_facts_set(&d->run, "engine", "%s", o->engine ? o->engine : "unknown");
	if (o->precision)
		vn_facts_set(&d->run, "precision", "%s", o->precision);
	vn_facts_set(&d->run, "imported", "%s %s", d->kind, d->path);
	for (int i = 0; i < o->n_names; i++)
		vn_text_add(maps, sizeof maps, "%s%s", i ? " " : "", o->names[i]);
	if (o->like)
		vn_text_add(maps, sizeof maps, "%sproposed by %s", o->n_names ? " " : "", o->like);
	if (o->n_names || o->like)
		vn_facts_set(&d->run, "names", "%s", maps);
}

static vn_status settle_model(vn_import *i, vn_dump *d, vn_error *err)
{
	vn_status st;
	if (i->o->model) {
		if ((st = vn_model_open_as(i->o->model, vn_model_with(i->o->mtp), &i->model, err)))
			return st;
		i->plan = vn_model_plan(i->model);
		i->family = vn_model_family(i->model);
		return VN_OK;
	}
	if (d->config)
		i->plan = i->own = vn_family_plan(d->config, &i->family);
	if (!i->plan && i->like)
		i->plan = vn_recording_plan(i->like);
	return VN_OK;
}

/* Describes the model before the maps are read, because map rules may apply to one family only. */
static void say_model(vn_import *i)
{
	vn_dump_model_word(i->r, "family", i->family);
	vn_dump_model_word(i->r, "config", i->model ? vn_model_config(i->model) : i->dump->config);
}

/* ---- names ----------------------------------------------------------------------------------- */

static void keep_trouble(void *context, const char *words)
{
	vn_import *i = context;
	const int  last = i->n_troubles - 1;
	if (last >= 0 && last < VN_IMPORT_TROUBLES && strcmp(i->trouble[last], words) == 0)
		return; /* the same for each part of a tensor */
	if (i->n_troubles < VN_IMPORT_TROUBLES)
		snprintf(i->trouble[i->n_troubles], sizeof *i->trouble, "%s", words);
	i->n_troubles++;
}

/* With --dry-run, an error that stops an import still allows the full list. */
static vn_status unless_dry(vn_import *i, vn_status st, const vn_error *err)
{
	if (st != VN_ERR_MISMATCH && st != VN_ERR_FORMAT)
		return st;
	if (!i->o->dry)
		return st;
	keep_trouble(i, err->text);
	return VN_OK;
}

static vn_status apply_map(vn_import *i, const vn_name_map *m, bool asked, vn_error *err)
{
	vn_like like;
	vn_like_init(&like, i->like, i->plan, 1);
	vn_name_map_use use = { .like = &like, .say = i->o->say, .trouble = i->o->dry ? keep_trouble : NULL, .context = i };
	const vn_status st = vn_name_map_apply(m, &i->r, &use, err);
	if (!st && asked && use.mapped + use.ignored == 0)
		return unless_dry(i,
		                  vn_fail(err, VN_ERR_MISMATCH, "%s: no rule of %s matches any of its %d names (first: %s)",
		                          vn_recording_path(i->r), m->path, vn_recording_count(i->r),
		                          vn_recording_count(i->r) ? vn_recording_entry(i->r, 0)->name : "none"),
		                  err);
	return st;
}

/* Renames axes that a manifest describes to ours: drops a batch of one, splits rows into heads,
 * and reorders axes. */
static vn_status own_names(vn_name_map **m, vn_error *err)
{
	const size_t   room = VN_N_POINTS * 160 + 64;
	VN_FREED char *text = vn_alloc_zero(1, room);
	vn_text_add(text, room, "version: 1\nname: our own\nrules:\n");
	for (int p = 0; p < VN_N_POINTS; p++) {
		const vn_point_info *x = vn_point_get((vn_point)p);
		const char          *layer = x->place == VN_INSIDE_LAYER ? "layer{n}." : "";
		vn_text_add(text, room, "  - { from: \"%s%s\", to: \"%s%s\" }\n", layer, x->name, layer, x->name);
	}
	return vn_name_map_parse("our own names", text, strlen(text), m, err);
}

static int words_of(const char *axes)
{
	int    n = 0;
	size_t length = 1;
	while (length && n <= VN_MAX_RANK)
		vn_axes_word(axes, n, &length), n += length != 0;
	return n;
}

/* If an array without axis names has one axis more than its checkpoint, and the first axis has
 * length one, it is a batch of one, as usual in PyTorch. own_names drops that axis. */
static void name_batches(vn_import *i)
{
	char axes[VN_AXES_MAX];
	for (int k = 0; k < i->r->n_entries; k++) {
		vn_entry            *e = &i->r->entry[k];
		const vn_point_info *p = *e->axes ? NULL : vn_label_point(e->name);
		if (!p || words_of(p->axes) + 1 != e->shape.rank || (e->shape.dim[0] != 1 && e->shape.dim[0] != i->r->batch))
			continue;
		snprintf(axes, sizeof axes, "batch %s", p->axes);
		e->axes = vn_alloc_check(vn_intern(axes));
	}
}

/* ONNX, Keras and TensorFlow name tensors by paths: "/model/layers.0/attn". A checkpoint file has
 * no slash in a name, so it is "model.layers.0.attn" there. */
static vn_status dot_names(vn_import *i, vn_error *err)
{
	vn_recording *from = i->r, *made = NULL;
	vn_status     st;
	char          name[VN_NAME_MAX];
	int           n = 0;
	for (int k = 0; k < vn_recording_count(from); k++)
		n += strchr(vn_recording_entry(from, k)->name, '/') != NULL;
	if (!n)
		return VN_OK;
	if ((st = vn_derive(vn_recording_path(from), &i->r, 1, &made, err)))
		return st;
	i->r = made; /* owns `from` from here on */
	for (int k = 0; !st && k < vn_recording_count(from); k++) {
		vn_entry e = *vn_recording_entry(from, k);
		vn_dump_dotted(e.name, name);
		const int other = strcmp(name, e.name) != 0 ? vn_recording_find(from, e.step, name) : -1;
		if (other >= 0)
			return vn_fail(err, VN_ERR_FORMAT, "%s: %s and %s are one name in a recording", vn_recording_path(from),
			               e.name, name);
		e.name = name;
		e.layer = vn_name_layer(name);
		st = vn_derive_keep(made, &e, 0, k, err);
	}
	return st ? st : vn_derive_end(made, err);
}

/* Names that no map knows, by the numbers of --like. */
static vn_status apply_proposal(vn_import *i, vn_error *err)
{
	VN_FREED char *text = NULL;
	size_t         bytes = 0;
	vn_name_map   *m = NULL;
	vn_status      st = vn_propose(i->r, i->like, &i->proposal, err);
	if (st || i->proposal.n == 0)
		return st;
	FILE *to = vn_alloc_check(open_memstream(&text, &bytes));
	vn_proposal_write(&i->proposal, i->o->like, to);
	vn_alloc_check(vn_text_close(to, &text) ? text : NULL);
	if (!(st = vn_name_map_parse("proposed map", text, strlen(text), &m, err)))
		st = apply_map(i, m, false, err);
	vn_name_map_destroy(m);
	return st;
}

static bool has_slash(const vn_name_map *m)
{
	bool has = false;
	for (int k = 0; k < m->n && !has; k++)
		has = m->rule[k].from && strchr(m->rule[k].from, '/');
	return has;
}

/* A map whose rules have slashes sees names as the dump has them, every other with dots. */
static vn_status map_names(vn_import *i, vn_error *err)
{
	vn_name_map *m = NULL;
	vn_status    st = VN_OK;
	for (int k = 0; !st && k <= i->o->n_names + 1; k++) {
		const bool asked = k < i->o->n_names;
		if (k == i->o->n_names && i->like && ((st = dot_names(i, err)) || (st = apply_proposal(i, err))))
			break;
		st = asked                ? vn_name_map_open(i->o->names[k], &m, err)
		     : k == i->o->n_names ? vn_name_map_open("fused", &m, err)
		                          : own_names(&m, err);
		if (!st && !has_slash(m))
			st = dot_names(i, err);
		if (!st && k > i->o->n_names)
			name_batches(i);
		st = st ? st : apply_map(i, m, asked, err);
		vn_name_map_destroy(m);
		m = NULL;
	}
	return st;
}

/* ---- is it fit to be written? ---------------------------------------------------------------- */

/* Gives a tensor without axis names those of its checkpoint, if the rank matches. */
static void name_axes(vn_import *i)
{
	for (int k = 0; k < i->r->n_entries; k++) {
		vn_entry            *e = &i->r->entry[k];
		const vn_point_info *p = *e->axes ? NULL : vn_label_point(e->name);
		if (p && words_of(p->axes) == e->shape.rank)
			e->axes = vn_alloc_check(vn_intern(p->axes));
	}
}

/* Engines asked for the logits of some tokens, or none, may compute only those rows in the last
 * layer, as llama.cpp does. */
typedef struct fewer {
	const vn_recording *r;
	int                 last;    /* layer */
	int64_t             prompts; /* final_norm and logits may have one row for each */
} fewer;

/* Returns the number of token rows of a tensor, if it is less than its step's; else -1. */
static int64_t fewer_rows(const fewer *f, const vn_entry *e)
{
	const vn_step *s = vn_recording_step(f->r, e->step);
	const int      axis = vn_axes_find(e->axes, "token");
	return s && axis >= 0 && axis < e->shape.rank && e->shape.dim[axis] < s->rows ? e->shape.dim[axis] : -1;
}

static bool has_rows(const fewer *f, int step, const char *name, int64_t n)
{
	const int k = vn_recording_find(f->r, step, name);
	return k >= 0 && fewer_rows(f, vn_recording_entry(f->r, k)) == n;
}

/* Whether tensors in and after the last layer also have n rows, which rules out an
 * error in one of them. */
static bool goes_on_with(const fewer *f, int step, int64_t n)
{
	char name[VN_NAME_MAX];
	bool found = false, behind = false;
	for (int p = 0; p < VN_N_POINTS && !(found && behind); p++) {
		const vn_point_info *x = vn_point_get((vn_point)p);
		snprintf(name, sizeof name, "layer%d.%s", f->last, x->name);
		found = found || has_rows(f, step, name, n);
		behind = behind || (x->place == VN_BEHIND_LAYERS && has_rows(f, step, x->name, n));
	}
	return found && behind;
}

static bool is_alone(const fewer *f, const vn_entry *e)
{
	const int64_t n = fewer_rows(f, e);
	const bool    behind = vn_entry_last(e);
	if (n < 0 || f->last <= 0 || (!behind && vn_name_layer(e->name) != f->last))
		return false;
	if (n == 1 || (behind && n > 0 && n == f->prompts))
		return !behind;
	return goes_on_with(f, e->step, n);
}

static int last_layer(const vn_recording *r)
{
	int last = -1;
	for (int k = 0; k < vn_recording_count(r); k++) {
		const int layer = vn_name_layer(vn_recording_entry(r, k)->name);
		last = layer > last ? layer : last;
	}
	return last;
}

static vn_status leave_out_alone(vn_import *i, vn_error *err)
{
	const fewer   f = { .r = i->r, .last = last_layer(i->r), .prompts = vn_packed_count(i->r) };
	vn_recording *made = NULL;
	vn_status     st = VN_OK;
	char          shape[VN_SHAPE_TEXT];
	for (int k = 0; k < vn_recording_count(f.r); k++) {
		const vn_entry *e = vn_recording_entry(f.r, k);
		if (is_alone(&f, e) && i->n_alone++ == 0)
			snprintf(i->alone, sizeof i->alone, "%s of shape %s", e->name, vn_shape_text(&e->shape, shape));
	}
	if (i->n_alone == 0)
		return VN_OK;
	if ((st = vn_derive(vn_recording_path(i->r), &i->r, 1, &made, err)))
		return st;
	i->r = made; /* owned by made from here on */
	for (int k = 0; !st && k < vn_recording_count(f.r); k++)
		if (!is_alone(&f, vn_recording_entry(f.r, k)))
			st = vn_derive_keep(made, vn_recording_entry(f.r, k), 0, k, err);
	return st ? st : vn_derive_end(made, err);
}

/* Writes what to do if a tensor of the dump holds its checkpoint, of this shape, with its axes in
 * another order or with rows behind the tokens; else "". */
static void say_remedy(const vn_import *i, int entry, const vn_shape *own, char *to, size_t room)
{
	const vn_entry      *e = vn_recording_entry(i->r, entry), *from = e;
	const vn_point_info *p = vn_label_point(e->name);
	char                 list[VN_LAYOUTS][VN_LAYOUT_DIMS];
	vn_axis_length       axis[VN_MAX_RANK];
	int                  origin;

	*to = '\0';
	if (vn_derive_origins(i->r, entry, &origin, 1) == 1)
		from = vn_recording_entry(i->original, origin);
	const int n = p ? vn_axis_lengths(p->axes, own, axis) : 0, token = p ? vn_axes_find(p->axes, "token") : -1;
	if (!n || vn_shape_equal(own, &e->shape))
		return;
	if (vn_layouts(&from->shape, axis, n, list)) {
		snprintf(to, room, "; %sa name map arranges it: { from: \"%s\", to: \"%s\", axes: \"%s\" }",
		         i->like ? "" : "--like REC or ", from->name, e->name, list[0]);
	} else if (token >= 0 && e->shape.rank == n && e->shape.dim[token] > axis[token].size) {
		axis[token].size = e->shape.dim[token];
		if (vn_layouts(&from->shape, axis, n, list))
			snprintf(to, room, "; a name map drops padding: { from: \"%s\", to: \"%s\", axes: \"%s\", cut: token }",
			         from->name, e->name, list[0]);
	}
}

/* The shape of a checkpoint in its step. Returns false if it is not known. */
static bool own_shape(const vn_import *i, const vn_entry *e, vn_shape *shape)
{
	const vn_step *s = vn_recording_step(i->r, e->step);
	const int      value = i->plan ? vn_plan_find(i->plan, e->name) : -1;
	if (value < 0 || !s || s->rows < 0)
		return false;
	*shape = vn_value_shape(&i->plan->value[value], s->rows, s->position + s->tokens);
	return true;
}

/* Adds the remedy to an error about the rows of a tensor. */
static void add_remedy(const vn_import *i, vn_error *err)
{
	char     remedy[4 * VN_NAME_MAX] = "";
	vn_shape own;
	for (int k = 0; k < vn_recording_count(i->r) && !*remedy; k++)
		if (own_shape(i, vn_recording_entry(i->r, k), &own))
			say_remedy(i, k, &own, remedy, sizeof remedy);
	vn_text_add(err->text, sizeof err->text, "%s", remedy);
}

/* Is it a batch of several prompts? rest: the shape of one. */
static bool is_batch(const vn_entry *e, const vn_point_info *p, vn_shape *rest)
{
	if (strncmp(e->axes, "batch ", 6) != 0 || strcmp(e->axes + 6, p->axes) != 0 || e->shape.rank < 2 ||
	    e->shape.dim[0] < 2)
		return false;
	*rest = (vn_shape) { .rank = e->shape.rank - 1 };
	memcpy(rest->dim, e->shape.dim + 1, (size_t)rest->rank * sizeof *rest->dim);
	return true;
}

static void look_at_shape(vn_import *i, int entry)
{
	const vn_entry      *e = vn_recording_entry(i->r, entry);
	const vn_point_info *p = vn_label_point(e->name);
	char                 is[VN_SHAPE_TEXT], like[VN_SHAPE_TEXT] = "", remedy[4 * VN_NAME_MAX] = "";
	vn_shape             shape, is_of = e->shape;
	if (!p)
		return;
	const bool batch = is_batch(e, p, &is_of),
			   own_axes = !*e->axes || strcmp(e->axes, p->axes) == 0 || (batch && e->shape.dim[0] == i->r->batch);
	if (own_shape(i, e, &shape)) {
		if (own_axes && (vn_shape_equal(&shape, &is_of) ||
		                 (vn_entry_last(e) && e->shape.rank == shape.rank && e->shape.dim[0] == 1)))
			return;
		vn_shape_text(&shape, like);
		if (i->n_misshapen == 0 && batch)
			snprintf(remedy, sizeof remedy,
			         "; a batch of %" PRId64
			         " prompts: --ids '[[1,2],[3,-1]]' has a row of tokens for each, and -1 for padding",
			         e->shape.dim[0]);
		else if (i->n_misshapen == 0)
			say_remedy(i, entry, &shape, remedy, sizeof remedy);
	} else if (e->shape.rank == words_of(p->axes) && own_axes) {
		return;
	}
	if (i->n_misshapen++ == 0)
		snprintf(i->misshapen, sizeof i->misshapen, "%s is %s%s%s%s, as a checkpoint '%s'%s%s%s", e->name,
		         vn_shape_text(&e->shape, is), *e->axes ? " '" : "", e->axes, *e->axes ? "'" : "", p->axes,
		         *like ? " " : "", like, remedy);
}

/* If the user chose no map: returns the shipped map that knows most of the names that are no
 * checkpoint's; else NULL. */
static const char *fitting_map(const vn_import *i)
{
	const int             all = vn_recording_count(i->r);
	VN_FREED const char **name = i->o->n_names == 0 && all > 0 ? malloc((size_t)all * sizeof *name) : NULL;
	const char           *best = NULL;
	vn_error              err;
	int                   fits, n = 0;

	for (int k = 0; name && k < all; k++)
		if (!vn_import_knows(i->plan, vn_recording_entry(i->r, k)->name))
			name[n++] = vn_recording_entry(i->r, k)->name;
	if (!name || vn_name_map_fit(name, n, &best, &fits, &err))
		best = NULL; /* a hint is not worth an error */
	return best;
}

/* Refuses an entry whose numbers cannot be read. */
static vn_status check_readable(const vn_import *i, int entry, vn_error *err)
{
	int       origin;
	const int n = vn_derive_origins(i->r, entry, &origin, 1);
	if (n < 1)
		return VN_OK;
	const vn_array *a = &i->dump->array[i->original->source[origin].foreign - 1];
	return !a->layout.unread ? VN_OK
	                         : vn_fail(err, VN_ERR_FORMAT, "%s: %s: %s", i->dump->path, a->name, a->layout.unread);
}

/* Has an earlier step an entry of this name, too? */
static bool is_repeated(const vn_recording *r, int k)
{
	const vn_entry *e = vn_recording_entry(r, k);
	const vn_step  *step;
	const int       n = vn_recording_steps(r, &step);

	for (int i = 0; i < n && step[i].number < e->step; i++)
		if (vn_recording_find(r, step[i].number, e->name) >= 0)
			return true;
	return false;
}

static vn_status check_dump(vn_import *i, vn_error *err)
{
	const char *first = NULL;
	char        near[VN_NAME_MAX], text[VN_NAME_MAX], head[96] = "";
	int         names = 0;
	vn_status   st;

	name_axes(i);
	if ((st = leave_out_alone(i, err)))
		return st;
	if ((st = vn_recording_check_rows(i->r, err)))
		add_remedy(i, err);
	if ((st = unless_dry(i, st, err)))
		return st;
	for (int k = 0; k < vn_recording_count(i->r); k++) {
		const vn_entry *e = vn_recording_entry(i->r, k);
		const bool      known = vn_import_knows(i->plan, e->name), again = is_repeated(i->r, k);
		names += !again;
		if ((known || i->o->unmapped != VN_UNMAPPED_LEFT_OUT) && (st = unless_dry(i, check_readable(i, k, err), err)))
			return st;
		if (!known) {
			i->unmapped++;
			i->unmapped_names += !again;
			i->of_head += !again && !i->o->mtp && (strstr(e->name, "mtp") || strstr(e->name, "nextn"));
			first = first ? first : e->name;
			continue;
		}
		const vn_status wrong = vn_import_check_dims(i, k, err);
		if (!wrong)
			look_at_shape(i, k);
		else if ((st = unless_dry(i, wrong, err)))
			return st;
	}
	if (!first || i->o->dry || i->o->unmapped != VN_UNMAPPED_REFUSED)
		return VN_OK;
	snprintf(text, sizeof text, "%s", first);
	vn_import_nearest(i->plan, first, near, sizeof near);
	const char *map = fitting_map(i);
	if (i->of_head)
		snprintf(head, sizeof head, "; %d of them seem to be of a multi-token-prediction head: --mtp", i->of_head);
	return vn_fail(
		err, VN_ERR_NOTFOUND,
		"%s: %d of %d names are not checkpoint names (first: %s; nearest: %s): --names %s maps them, %s--unmapped "
		"keep|drop keeps or drops them, --dry-run lists them%s",
		vn_recording_path(i->r), i->unmapped_names, names, text, near, map ? map : "MAP",
		i->o->like ? "" : "--like REF.h5 finds them by the numbers, ", head);
}

/* ---- its precision --------------------------------------------------------------------------- */

/* Nobody stated a precision: it is what the numbers show. Little of them: what they are stored
 * in. */
static void take_shown(vn_import *i, const vn_shown_precision *s)
{
	vn_facts_set(&i->r->run, "precision", "%s", s->votes ? vn_shown_word(s) : widest_format(i->dump));
	vn_facts_set(&i->r->run, VN_PRECISION_FROM, "numbers");
	if (s->widened)
		vn_text_add(i->precision, sizeof i->precision,
		            "precision %s: the numbers of %d tensor%s it, although stored in a wider format", vn_shown_word(s),
		            s->agree, s->agree == 1 ? " fits" : "s fit");
	else if (*s->others)
		vn_text_add(i->precision, sizeof i->precision, "precision %s", vn_shown_word(s));
	if (*s->others)
		vn_text_add(i->precision, sizeof i->precision, "; other tensors: %s", s->others);
}

static void doubt_claim(vn_import *i, const vn_shown_precision *s, const char *word)
{
	if (!vn_shown_denies(s, word))
		return;
	snprintf(
		i->claim, sizeof i->claim,
		"precision %.32s is claimed, but the numbers of %d of %d tensors are %s: without --precision, %s is recorded",
		word, s->agree, s->votes, vn_dtype_name(s->format), vn_shown_word(s));
}

/* Files that state their precision are believed: compare checks the claim (precision.h). */
static vn_status settle_precision(vn_import *i, vn_error *err)
{
	const char        *word = vn_facts_get(&i->r->run, "precision");
	vn_shown_precision s;
	vn_status          st = vn_shown_format(i->r, 0, &s, err);

	if (!st && !word)
		take_shown(i, &s);
	else if (!st && i->o->precision)
		doubt_claim(i, &s, word);
	return st;
}

/* ---- all of it ------------------------------------------------------------------------------- */

vn_status vn_import_open(const vn_import_options *o, vn_import *i, vn_error *err)
{
	vn_dump  *d = NULL;
	vn_status st;

	*i = (vn_import) { .o = o };
	if (o->like && (st = vn_recording_open(o->like, &i->like, err)))
		return st;
	if ((st = vn_dump_open(o->path, &d, err)))
		return st;
	i->dump = d;
	if (!d->complete && !o->partial && !o->dry)
		st = vn_fail(
			err, VN_ERR_FORMAT,
			"%s: incomplete: the program that wrote it was interrupted, or never called close; --partial imports its "
			"%d whole tensors",
			d->path, d->n);
	if (st || (st = settle_bits(o, d, err)) || (st = settle_ids(o, d, err)) || (st = check_like(i, d, err)) ||
	    (st = settle_model(i, d, err))) {
		vn_dump_close(d);
		return st;
	}
	settle_facts(o, d);
	if (i->model && !d->n_weights)
		vn_facts_set(&d->run, VN_WEIGHTS_FROM, "model");
	if ((st = vn_dump_recording(d, &i->r, err)))
		return st;
	i->original = i->r;
	say_model(i);
	if ((st = map_names(i, err)) || (st = check_dump(i, err)))
		return st;
	return settle_precision(i, err);
}

void vn_import_close(vn_import *i)
{
	vn_recording_close(i->r);
	vn_model_close(i->model);
	vn_plan_destroy(i->own);
	vn_recording_close(i->like);
	vn_proposal_finish(&i->proposal);
	*i = (vn_import) { .o = i->o };
}
