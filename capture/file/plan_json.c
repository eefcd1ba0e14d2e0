/* plan_json.c: see plan_json.h. The rules a plan must obey: libref/plan/check.c, op_*.c. */
#include "capture/file/plan_json.h"

#include "libref/base/json.h"
#include "libref/base/order.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* More than any model has, but few enough that a hostile file cannot cost hours. */
enum { MOST_LINES = 1000000 };

/* ---- writing ---------------------------------------------------------------- */

static json_t *value_names(const vn_plan *p, const int *list, int n)
{
	json_t *a = json_array();
	for (int i = 0; i < n; i++)
		json_array_append_new(a, list[i] < 0 ? json_null() : json_string(p->value[list[i]].name));
	return a;
}

static json_t *weight_names(const vn_plan *p, const int *list, int n)
{
	json_t *a = json_array();
	for (int i = 0; i < n; i++)
		json_array_append_new(a, list[i] < 0 ? json_null() : json_string(p->weight[list[i]].name));
	return a;
}

/* Writes whole numbers without a fraction: "heads": 14, not 14.0. */
static json_t *number_as_json(double x)
{
	return x == floor(x) && fabs(x) < 1e15 ? json_integer((json_int_t)x) : json_real(x);
}

/* A list of the plan by its number + 1; 0: none. */
static json_t *numbers_json(const vn_plan *p, int list)
{
	json_t *a = json_array();
	for (int i = 0; list && i < p->list[list - 1].n; i++)
		json_array_append_new(a, number_as_json((double)p->list[list - 1].x[i]));
	return a;
}

static json_t *node_row(const vn_plan *p, int row)
{
	const vn_node *n = &p->node[row];
	json_t        *c = json_object();
	const char    *name;

	for (int i = 0; (name = vn_const_name(n->op, i)); i++)
		json_object_set_new(c, name,
		                    vn_const_is_list(n->op, i) ? numbers_json(p, (int)vn_const_get(n, i))
		                                               : number_as_json(vn_const_get(n, i)));
	return json_pack("{s:s, s:i, s:o, s:o, s:o, s:o}", "op", vn_op_name(n->op), "layer", n->layer, "in",
	                 value_names(p, n->in, n->n_in), "out", value_names(p, n->out, n->n_out), "const", c, "weights",
	                 weight_names(p, n->w, n->n_w));
}

static json_t *value_row(const vn_plan *p, int row)
{
	const vn_value      *v = &p->value[row];
	const vn_point_info *point = vn_point_get(v->point);
	json_t              *sizes = json_array();

	for (int i = 0; i < v->rank; i++)
		json_array_append_new(sizes, v->size[i] == VN_T   ? json_string("T")
		                             : v->size[i] == VN_S ? json_string("S")
		                                                  : json_integer(v->size[i]));
	return json_pack("{s:s, s:i, s:s, s:s, s:s, s:o, s:o, s:b, s:b}", "name", v->name, "layer", v->layer, "point",
	                 point->name, "basis", point->basis, "axes", point->axes, "sizes", sizes, "alias_of",
	                 v->alias_of < 0 ? json_null() : json_string(p->value[v->alias_of].name), "on_demand",
	                 (int)v->on_demand, "wide", (int)v->wide);
}

static json_t *weight_row(const vn_plan *p, int row)
{
	const vn_weight *w = &p->weight[row];
	json_t          *shape = json_array();
	for (int i = 0; i < w->shape.rank; i++)
		json_array_append_new(shape, json_integer(w->shape.dim[i]));
	return json_pack("{s:s, s:o}", "name", w->name, "shape", shape);
}

static void free_lines(char **line, int n)
{
	for (int i = 0; line && i < n; i++)
		free(line[i]);
	free(line);
}

/* Returns a line for each of n rows; NULL: no memory. */
static char **write_rows(const vn_plan *p, int n, json_t *(*row)(const vn_plan *p, int row))
{
	char **line = calloc((size_t)n + 1, sizeof *line);

	for (int i = 0; line && i < n; i++) {
		json_t *j = row(p, i);
		line[i] = vn_json_dump(j, JSON_REAL_PRECISION(17));
		json_decref(j);
		if (!line[i]) {
			free_lines(line, n);
			return NULL;
		}
	}
	return line;
}

vn_status vn_plan_to_text(const vn_plan *p, vn_plan_text *t, vn_error *err)
{
	*t = (vn_plan_text) { .layers = p->layers,
		                  .vocab = p->vocab,
		                  .context = p->context,
		                  .n_nodes = p->n_nodes,
		                  .n_values = p->n_values,
		                  .n_weights = p->n_weights };
	if ((t->node = write_rows(p, p->n_nodes, node_row)) && (t->value = write_rows(p, p->n_values, value_row)) &&
	    (t->weight = write_rows(p, p->n_weights, weight_row)))
		return VN_OK;
	vn_plan_text_free(t);
	return vn_fail(err, VN_ERR_NOMEM, "no memory for the text of a plan");
}

void vn_plan_text_free(vn_plan_text *t)
{
	free_lines(t->node, t->n_nodes);
	free_lines(t->value, t->n_values);
	free_lines(t->weight, t->n_weights);
	*t = (vn_plan_text) { 0 };
}

/* ---- reading ---------------------------------------------------------------- */

/* Names and their numbers, sorted for lookup. */
typedef struct named {
	const char *name;
	int         number;
} named;

VN_ORDER_BY(compare_names, named, strcmp(x->name, y->name))

static int look_up(const named *list, int n, const char *name)
{
	named  key = { .name = name };
	named *hit = n ? bsearch(&key, list, (size_t)n, sizeof *list, compare_names) : NULL;
	return hit ? hit->number : -1;
}

typedef struct plan_reader {
	vn_plan  *p;
	named    *value, *weight; /* sorted once all are read */
	vn_error *err;
} plan_reader;

/* Reads row i of a table. Returns what is wrong with it; NULL: nothing. */
typedef const char *row_reader(plan_reader *r, const json_t *j, int i);

static vn_status read_rows(plan_reader *r, const char *table, char *const *line, int n, row_reader *read)
{
	for (int i = 0; i < n; i++) {
		json_t     *j = vn_json_parse(line[i], JSON_REJECT_DUPLICATES);
		const char *why = json_is_object(j) ? read(r, j, i) : "not a JSON object";
		json_decref(j);
		if (why)
			return vn_fail(r->err, VN_ERR_FORMAT, "/plan/%s[%d]: %s", table, i, why);
	}
	return VN_OK;
}

/* Sorts the names of a table, which must be distinct. */
static vn_status sort_names(const plan_reader *r, const char *table, named *list, int n)
{
	if (n)
		qsort(list, (size_t)n, sizeof *list, compare_names);
	for (int i = 1; i < n; i++)
		if (strcmp(list[i - 1].name, list[i].name) == 0)
			return vn_fail(r->err, VN_ERR_FORMAT, "/plan/%s: %s is listed twice", table, list[i].name);
	return VN_OK;
}

static bool read_int(const json_t *j, json_int_t low, json_int_t high, int64_t *x)
{
	*x = json_integer_value(j);
	return json_is_integer(j) && *x >= low && *x <= high;
}

static bool copy_name(const json_t *j, char *name)
{
	const char *s = json_string_value(j);
	if (!s || !*s || strlen(s) >= VN_NAME_MAX)
		return false;
	memcpy(name, s, strlen(s) + 1);
	return true;
}

static const char *read_weight(plan_reader *r, const json_t *j, int i)
{
	vn_weight    *w = &r->p->weight[i];
	const json_t *shape = json_object_get(j, "shape");

	if (!copy_name(json_object_get(j, "name"), w->name))
		return "no name, or one longer than 127 bytes";
	if (!json_is_array(shape) || json_array_size(shape) > VN_PLAN_RANK)
		return "no shape, or one of more than 4 axes";
	w->shape.rank = (int)json_array_size(shape);
	for (int k = 0; k < w->shape.rank; k++)
		if (!read_int(json_array_get(shape, (size_t)k), 1, INT32_MAX, &w->shape.dim[k]))
			return "its shape is not a list of sizes";
	r->weight[i] = (named) { w->name, i };
	return NULL;
}

static const char *read_value(plan_reader *r, const json_t *j, int i)
{
	vn_value     *v = &r->p->value[i];
	const json_t *sizes = json_object_get(j, "sizes");
	const char   *point = json_string_value(json_object_get(j, "point"));
	int64_t       x;

	if (!copy_name(json_object_get(j, "name"), v->name))
		return "no name, or one longer than 127 bytes";
	if (!point || !vn_point_from_name(point, &v->point))
		return "its point is not one of `vernier points`";
	if (!read_int(json_object_get(j, "layer"), -1, r->p->layers - 1, &x))
		return "the model has no such layer";
	v->layer = (int)x;
	v->on_demand = json_is_true(json_object_get(j, "on_demand"));
	v->wide = json_is_true(json_object_get(j, "wide"));
	if (!json_is_array(sizes) || json_array_size(sizes) < 1 || json_array_size(sizes) > VN_PLAN_RANK)
		return "no sizes, or more than 4";
	v->rank = (int)json_array_size(sizes);
	for (int k = 0; k < v->rank; k++) {
		const json_t *size = json_array_get(sizes, (size_t)k);
		const char   *word = json_string_value(size);
		if (word && strcmp(word, "T") == 0)
			v->size[k] = VN_T;
		else if (word && strcmp(word, "S") == 0)
			v->size[k] = VN_S;
		else if (read_int(size, 1, INT32_MAX, &x))
			v->size[k] = (int)x;
		else
			return "its sizes are not whole numbers";
	}
	r->value[i] = (named) { v->name, i };
	return NULL;
}

/* For when the names of all values are known. */
static const char *read_alias(plan_reader *r, const json_t *j, int i)
{
	const json_t *of = json_object_get(j, "alias_of");

	r->p->value[i].alias_of = json_is_string(of) ? look_up(r->value, r->p->n_values, json_string_value(of)) : -1;
	return !of || json_is_null(of) || r->p->value[i].alias_of >= 0
	           ? NULL
	           : "alias_of names a value that the plan does not have";
}

/* Looks up the numbers for a list of names; null becomes -1. */
static const char *read_list(const json_t *a, const named *names, int n_names, int most, int *list, int *n)
{
	if (!json_is_array(a) || json_array_size(a) > (size_t)most)
		return "a list is missing or too long";
	*n = (int)json_array_size(a);
	for (int i = 0; i < *n; i++) {
		const json_t *name = json_array_get(a, (size_t)i);
		list[i] = json_is_string(name) ? look_up(names, n_names, json_string_value(name)) : -1;
		if (!json_is_null(name) && list[i] < 0)
			return "it names a value or weight that the plan does not have";
	}
	return NULL;
}

/* Adds a list of numbers to the plan. Returns its number in the form of a constant; -1: it holds
 * other things than numbers, or there is no memory. */
static int read_numbers(vn_plan *p, const json_t *a)
{
	enum { MOST = 32768 }; /* frequencies of the widest head */
	const size_t n = json_array_size(a);
	float       *x;
	int          list = -1;

	if (n == 0)
		return 0;
	if (n > MOST || !(x = malloc(n * sizeof *x)))
		return -1;
	bool good = true;
	for (size_t i = 0; good && i < n; i++) {
		good = json_is_number(json_array_get(a, i)) && fabs(json_number_value(json_array_get(a, i))) <= FLT_MAX;
		x[i] = good ? (float)json_number_value(json_array_get(a, i)) : 0.0f;
	}
	if (good)
		list = vn_list_add(p, (int)n, x);
	free(x);
	return list > 0 ? list : -1;
}

static const char *read_constants(vn_plan *p, const json_t *constants, vn_node *n)
{
	const char *name;
	/* files written before states existed store the number of an attention's cache */
	size_t      have = n->op == VN_OP_ATTENTION && json_object_get(constants, "cache");

	for (int i = 0; (name = vn_const_name(n->op, i)); i++) {
		const json_t *c = json_object_get(constants, name);
		const bool    list = vn_const_is_list(n->op, i);
		vn_error      e;

		if (!c && vn_const_is_optional(n->op, i))
			continue;
		if (!c)
			return "a constant is missing";
		const double x = list && json_is_array(c) ? read_numbers(p, c) : json_number_value(c);
		if (!(list ? json_is_array(c) && x >= 0 : json_is_number(c)) || vn_const_set(n, name, x, &e))
			return "a constant is out of range";
		have++;
	}
	return have == json_object_size(constants) ? NULL : "a constant is unknown";
}

static const char *read_node(plan_reader *r, const json_t *j, int i)
{
	vn_node    *n = &r->p->node[i];
	const char *op = json_string_value(json_object_get(j, "op"));
	const char *why;
	int64_t     layer;

	if (!op || !vn_op_from_name(op, &n->op))
		return "its op is unknown";
	if (!read_int(json_object_get(j, "layer"), -1, r->p->layers - 1, &layer))
		return "the model has no such layer";
	n->layer = (int)layer;
	if ((why = read_list(json_object_get(j, "in"), r->value, r->p->n_values, VN_MAX_IN, n->in, &n->n_in)) ||
	    (why = read_list(json_object_get(j, "out"), r->value, r->p->n_values, VN_MAX_OUT, n->out, &n->n_out)) ||
	    (why = read_list(json_object_get(j, "weights"), r->weight, r->p->n_weights, VN_MAX_W, n->w, &n->n_w)))
		return why;
	return read_constants(r->p, json_object_get(j, "const"), n);
}

/* A plan that breaks a rule means a damaged file here. */
static vn_status settle_plan(vn_plan *p, vn_error *err)
{
	vn_error  e;
	vn_status st = vn_plan_settle(p, &e);

	return st ? vn_fail(err, st == VN_ERR_UNSUPPORTED ? VN_ERR_FORMAT : st, "/plan/%s", e.text) : VN_OK;
}

static void end_reader(plan_reader *r)
{
	VN_FREE(r->value, r->weight);
	vn_plan_destroy(r->p);
}

vn_status vn_plan_from_text(const vn_plan_text *t, vn_plan **plan, vn_error *err)
{
	VN_ENDS(end_reader) plan_reader r = { .p = calloc(1, sizeof *r.p), .err = err };
	vn_status                       st;

	*plan = NULL;
	if (t->n_nodes > MOST_LINES || t->n_values > MOST_LINES || t->n_weights > MOST_LINES)
		return vn_fail(err, VN_ERR_FORMAT, "/plan: more than %d lines", MOST_LINES);
	if (t->layers < 0 || t->vocab < 1 || t->context < 1)
		return vn_fail(err, VN_ERR_FORMAT, "/plan: invalid layers %d, vocab %d or context %d", t->layers, t->vocab,
		               t->context);
	r.value = calloc((size_t)t->n_values + 1, sizeof *r.value);
	r.weight = calloc((size_t)t->n_weights + 1, sizeof *r.weight);
	if (r.p) {
		r.p->layers = t->layers;
		r.p->vocab = t->vocab;
		r.p->context = t->context;
		r.p->n_nodes = t->n_nodes;
		r.p->n_values = t->n_values;
		r.p->n_weights = t->n_weights;
		r.p->node = calloc((size_t)t->n_nodes + 1, sizeof *r.p->node);
		r.p->value = calloc((size_t)t->n_values + 1, sizeof *r.p->value);
		r.p->weight = calloc((size_t)t->n_weights + 1, sizeof *r.p->weight);
	}
	if (!r.p || !r.value || !r.weight || !r.p->node || !r.p->value || !r.p->weight)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for a plan of %d nodes", t->n_nodes);
	if ((st = read_rows(&r, "weights", t->weight, t->n_weights, read_weight)) ||
	    (st = sort_names(&r, "weights", r.weight, t->n_weights)) ||
	    (st = read_rows(&r, "values", t->value, t->n_values, read_value)) ||
	    (st = sort_names(&r, "values", r.value, t->n_values)) ||
	    (st = read_rows(&r, "values", t->value, t->n_values, read_alias)) ||
	    (st = read_rows(&r, "nodes", t->node, t->n_nodes, read_node)) || (st = settle_plan(r.p, err)))
		return st;
	*plan = r.p;
	r.p = NULL;
	return VN_OK;
}
