/* run_plan.c: see run_plan.h. */
#include "capture/recording/run_plan.h"

#include "libref/base/grow.h"
#include "libref/base/intern.h"
#include "libref/base/json.h"
#include "libref/base/order.h"
#include "libref/plan/plan.h"

#include <stdlib.h>
#include <string.h>

/* Nodes of a plan at most: a line may repeat those of a whole step. */
enum { MOST_NODES = 1 << 22 };

/* What is read, and what is wrong with it; NULL: nothing yet. */
typedef struct node_reader {
	vn_run_plan *p;
	json_t     **line;  /* (p->n): their inputs are looked up once all results are known */
	int          at;    /* the line that is read */
	int          first; /* node of the last step */
	const char  *why;
} node_reader;

static const char NO_MEMORY[] = "no memory";

/* Returns a text of an object, kept; "" if it has none; NULL and *why if it is no text. */
static const char *text_of(const json_t *j, const char *key, const char **why)
{
	const json_t *member = vn_json_field(j, key);
	const char   *s = member ? json_string_value(member) : "";

	if (!s || strlen(s) >= VN_NAME_MAX) {
		*why = "a name is missing, no text, or longer than 127 bytes";
		return NULL;
	}
	if (!(s = vn_intern(s)))
		*why = NO_MEMORY;
	return s;
}

/* Reads the number of a step; false: it is none. Absent: `else_`. */
static bool read_step(const json_t *j, int else_, int *step)
{
	const json_t *s = json_object_get(j, "step");

	*step = s ? (int)json_integer_value(s) : else_;
	return !s || (json_is_integer(s) && json_integer_value(s) >= 0 && json_integer_value(s) <= INT32_MAX);
}

static void add_value(node_reader *r, const json_t *name, int node)
{
	const char *s = json_string_value(name);

	if (json_is_null(name) || r->why)
		return;
	if (!s || !*s || strlen(s) >= VN_NAME_MAX) {
		r->why = "out: not a name, or one longer than 127 bytes";
		return;
	}
	if (!(s = vn_intern(s)) || !VN_GROW(r->p->value, r->p->n_values)) {
		r->why = NO_MEMORY;
		return;
	}
	r->p->value[r->p->n_values++] = (vn_run_value) { s, r->p->node[node].step, node };
}

/* Adds a node, whose line it keeps. */
static vn_run_node *add_node(node_reader *r, json_t *j)
{
	const size_t n = (size_t)r->p->n;

	if (n >= MOST_NODES || !VN_GROW(r->p->node, n) || !VN_GROW(r->line, n)) {
		r->why = n >= MOST_NODES ? "more than four million nodes" : NO_MEMORY;
		return NULL;
	}
	r->line[n] = json_incref(j);
	r->p->node[n] = (vn_run_node) { 0 };
	r->p->n++;
	return &r->p->node[n];
}

static void read_node(node_reader *r, json_t *j)
{
	const json_t *out = json_object_get(j, "out"), *in = json_object_get(j, "in");
	vn_run_node  *n = add_node(r, j);

	if (r->why || !(n->op = text_of(j, "op", &r->why)) || !(n->path = text_of(j, "path", &r->why)))
		return;
	if (!read_step(j, 0, &n->step))
		r->why = "its step is not a number from 0 on";
	else if (r->p->n > 1 && n->step < n[-1].step)
		r->why = "its step comes before that of the line before";
	else if (!json_is_array(out) || (in && !json_is_array(in)))
		r->why = "out or in is not a list";
	if (r->p->n > 1 && n->step != n[-1].step)
		r->first = r->p->n - 1;
	for (size_t k = 0; !r->why && k < json_array_size(out); k++)
		add_value(r, json_array_get(out, k), r->p->n - 1);
}

/* {"step": 6, "same_as": 5}: the nodes of the step before once more. */
static void repeat_step(node_reader *r, const json_t *j)
{
	const json_t *as = json_object_get(j, "same_as");
	const int     from = r->first, to = r->p->n;
	int           step;

	if (!read_step(j, -1, &step) || to == 0 || !json_is_integer(as) ||
	    json_integer_value(as) != r->p->node[from].step || step <= r->p->node[from].step) {
		r->why = "same_as is not the number of the step before";
		return;
	}
	r->first = to;
	for (int i = from; i < to && !r->why; i++) {
		vn_run_node  *n = add_node(r, r->line[i]);
		const json_t *out = json_object_get(r->line[i], "out");
		if (r->why)
			return;
		*n = r->p->node[i];
		n->step = step;
		for (size_t k = 0; !r->why && k < json_array_size(out); k++)
			add_value(r, json_array_get(out, k), r->p->n - 1);
	}
}

static void read_line(node_reader *r, json_t *j)
{
	if (!json_is_object(j))
		r->why = "not a JSON object";
	else if (json_object_get(j, "same_as"))
		repeat_step(r, j);
	else
		read_node(r, j);
}

VN_ORDER_BY(order_values, vn_run_value, VN_ORDER(x->step, y->step), strcmp(x->name, y->name))

int vn_run_plan_value(const vn_run_plan *plan, int step, const char *name)
{
	const vn_run_value  key = { name, step, 0 };
	const vn_run_value *hit = plan->n_values
	                              ? bsearch(&key, plan->value, (size_t)plan->n_values, sizeof key, order_values)
	                              : NULL;
	return hit ? (int)(hit - plan->value) : -1;
}

int vn_run_plan_maker(const vn_run_plan *plan, int step, const char *name)
{
	const int value = vn_run_plan_value(plan, step, name);
	return value < 0 ? -1 : plan->value[value].node;
}

/* An input from {"from": NAME, "back": STEPS}, of this step or of one before. Parameters, constants
 * and the run's own inputs have no maker. */
static void read_input(node_reader *r, const json_t *ref, int i)
{
	const char      *from = json_string_value(vn_json_field(ref, "from"));
	const json_t    *back = json_object_get(ref, "back");
	const json_int_t by = json_integer_value(back);
	int              value;

	if (!json_is_object(ref) || (back && !json_is_integer(back)) || by < 0 || by > r->p->node[i].step) {
		r->why = "in: not a list of objects, or a step that does not exist";
		return;
	}
	if (!from || strncmp(from, "in.", 3) == 0)
		return;
	value = vn_run_plan_value(r->p, r->p->node[i].step - (int)by, from);
	if (value < 0 || r->p->value[value].node > i) {
		r->why = "it reads a result that no node before it makes";
		return;
	}
	if (!VN_GROW(r->p->in, r->p->n_in)) {
		r->why = NO_MEMORY;
		return;
	}
	r->p->in[r->p->n_in++] = value;
	r->p->node[i].n_in++;
}

static void read_inputs(node_reader *r, int i)
{
	const json_t *in = json_object_get(r->line[i], "in");

	r->p->node[i].first_in = r->p->n_in;
	for (size_t k = 0; !r->why && k < json_array_size(in); k++)
		read_input(r, json_array_get(in, k), i);
}

static void find_twice(node_reader *r)
{
	for (int i = 1; i < r->p->n_values && !r->why; i++)
		if (order_values(&r->p->value[i - 1], &r->p->value[i]) == 0) {
			r->at = r->p->value[i].node;
			r->why = "another node of its step has a result of the same name";
		}
}

static void read_all(node_reader *r, char *const *line, int n)
{
	for (int i = 0; i < n && !r->why; i++) {
		VN_OWNED json_t *j = vn_json_parse(line[r->at = i], JSON_REJECT_DUPLICATES);
		read_line(r, j);
	}
	if (!r->why && r->p->n_values)
		qsort(r->p->value, (size_t)r->p->n_values, sizeof *r->p->value, order_values);
	find_twice(r);
	for (int i = 0; i < r->p->n && !r->why; i++)
		read_inputs(r, r->at = i);
}

vn_status vn_run_plan_read(char *const *line, int n, vn_run_plan **plan, vn_error *err)
{
	node_reader r = { .p = calloc(1, sizeof *r.p) };

	*plan = NULL;
	if (!r.p)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for a plan of %d lines", n);
	read_all(&r, line, n);
	for (int i = 0; i < r.p->n; i++)
		json_decref(r.line[i]);
	free(r.line);
	if (!r.why) {
		*plan = r.p;
		return VN_OK;
	}
	vn_run_plan_free(r.p);
	return r.why == NO_MEMORY ? vn_fail(err, VN_ERR_NOMEM, "no memory for a plan of %d lines", n)
	                          : vn_fail(err, VN_ERR_FORMAT, "/plan/nodes: node %d: %s", r.at, r.why);
}

void vn_run_plan_free(vn_run_plan *plan)
{
	if (!plan)
		return;
	VN_FREE(plan->node, plan->value, plan->in, plan);
}
