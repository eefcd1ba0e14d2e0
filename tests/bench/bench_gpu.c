/* bench_gpu.c: milliseconds of a forward pass on a Vulkan device.
 *
 *   bench_gpu [--json] MODEL [PRECISION [ROUNDS [TOKENS...]]]
 *
 * Default: f16, 5 rounds, 128 512 2048 tokens and 1 after each.
 *
 * First prints how long it took to open the device and load the weights; with 0 rounds, nothing
 * else. Then, for each number of tokens and for one decoded token after them, without taps: the
 * device's own time (first timestamp to last), the wall time of the call, and the time until the
 * host has recorded the call. Then, in calls that time every node, for each operation:
 * milliseconds, share of the whole, the rate of operands (each counted once, including cached keys
 * and values, and of experts only those that some token goes through), and the arithmetic rate of
 * products, attention and the delta rule. Nodes that one command computes count as one operation,
 * that of the first node; values that only pass between them count as written, not as read. Last,
 * the seconds that calls spent on compiling shaders, which no other number contains. Prints
 * medians; --json prints every round (bench_gpu.py reads it). */
#include "libgpu/gpu.h"
#include "libref/base/json.h"
#include "libref/base/progress.h"
#include "libref/model/model.h"
#include "tests/support/median.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ROUNDS = 31 };

static json_t *calls; /* with --json, instead of text */

static void fail(const vn_error *err)
{
	fprintf(stderr, "bench_gpu: %s\n", err->text);
	exit(2);
}

static json_t *all_of(const double *x, int n)
{
	json_t *list = json_array();

	for (int i = 0; i < n; i++)
		json_array_append_new(list, json_real(x[i]));
	return list;
}

/* One operation in a pass. */
typedef struct work {
	double ms[MAX_ROUNDS], bytes, flops;
	int    nodes, of[VN_N_OPS]; /* number of nodes; of[]: nodes by operation that its commands compute */
} work;

static double elements(const vn_plan *p, int value, int64_t T, int64_t S)
{
	const vn_shape s = vn_value_shape(&p->value[value], T, S);

	return p->value[value].on_demand ? 0.0 : (double)vn_shape_count(&s);
}

/* Adds the work of T queries after `past` tokens: pairs of query and key, and cached keys and
 * values, counted once. */
static void count_attention(const vn_node *n, int64_t T, int64_t past, double element, work *w)
{
	const int64_t window = n->c.attention.window ? n->c.attention.window : INT64_MAX;
	double        pairs = 0;

	for (int64_t t = 0; t < T; t++) {
		const int64_t causal = past + (n->c.attention.causal ? t + 1 : T);
		pairs += (double)(causal < window ? causal : window);
	}
	w->flops += 4 * pairs * n->c.attention.heads * n->c.attention.head_dim;
	w->bytes += 2 * element * (double)(past < window ? past : window) * n->c.attention.kv_heads *
	            n->c.attention.head_dim;
}

/* For each token, a state is multiplied by k, updated, and multiplied by q. */
static void count_rule(const vn_node *n, int64_t T, work *w)
{
	const double state = (double)n->c.delta.value_heads * n->c.delta.key_dim * n->c.delta.value_dim;

	w->flops += 6 * (double)T * state;
	w->bytes += 2 * sizeof(float) * state;
}

/* Of T tokens, k of E experts each: the experts that some token goes through are read once. */
static void count_experts(const vn_plan *p, const vn_node *n, int64_t T, int touched, double element, work *w)
{
	const double each = 3 * (double)vn_shape_count(&p->weight[n->w[VN_EXPERT_GATE]].shape);

	w->bytes += element * touched * each;
	w->flops += 2 * (double)T * (double)vn_value_row(&p->value[n->in[VN_EXPERTS_IDS]]) * each;
}

/* Adds the operands and the arithmetic of node i to the command that begins with node `first`. */
static void count(const vn_plan *p, int i, int first, int64_t T, int64_t past, int touched, double element, work *w)
{
	const vn_node *n = &p->node[i];
	double         all = 0;

	for (int k = 0; k < n->n_in; k++)
		all += n->in[k] >= 0 && p->value[n->in[k]].node >= first ? 0 : elements(p, n->in[k], T, past + T);
	for (int k = 0; k < n->n_out; k++)
		all += n->out[k] < 0 || p->value[n->out[k]].state >= 0 ? 0 : elements(p, n->out[k], T, past + T);
	for (int k = 0; k < n->n_w && n->op != VN_OP_EMBED && n->op != VN_OP_EXPERTS; k++)
		all += n->w[k] < 0 ? 0 : (double)vn_shape_count(&p->weight[n->w[k]].shape);
	w->of[n->op]++;
	w->bytes += element * all;
	if (n->op == VN_OP_LINEAR)
		w->flops += 2.0 * (double)T * (double)vn_shape_count(&p->weight[n->w[0]].shape);
	if (n->op == VN_OP_ATTENTION)
		count_attention(n, T, past, element, w);
	if (n->op == VN_OP_DELTA_RULE)
		count_rule(n, T, w);
	if (n->op == VN_OP_EXPERTS)
		count_experts(p, n, T, touched, element, w);
}

/* Goes back to `past` tokens, the first of ids. */
static void go_back(vn_gpu *g, const int32_t *ids, int64_t past)
{
	vn_error err = { "" };

	vn_gpu_ops.reset(g);
	if (past && vn_gpu_ops.forward(g, ids, past, NULL, &err))
		fail(&err);
}

/* How many experts of each node (n_nodes) some token of a call goes through. */
static void find_touched(vn_gpu *g, const vn_plan *p, const int32_t *ids, int64_t T, int64_t past, int *touched)
{
	vn_error err = { "" };
	int      from = 0;

	go_back(g, ids, past);
	if (vn_gpu_ops.begin(g, ids, T, NULL, &err))
		fail(&err);
	for (int i = 0; i < p->n_nodes; i++) {
		const vn_node *n = &p->node[i];
		if (n->op != VN_OP_EXPERTS)
			continue;
		const int64_t pairs = T * vn_value_row(&p->value[n->in[VN_EXPERTS_IDS]]);
		float        *chosen = malloc((size_t)pairs * sizeof *chosen);
		bool         *seen = calloc((size_t)n->c.experts.experts, sizeof *seen);
		if (!chosen || !seen)
			exit(2);
		if (vn_gpu_ops.run(g, from, i, &err) || vn_gpu_ops.read(g, n->in[VN_EXPERTS_IDS], chosen, &err))
			fail(&err);
		for (int64_t k = 0; k < pairs; k++) {
			touched[i] += !seen[(int)chosen[k]];
			seen[(int)chosen[k]] = true;
		}
		from = i;
		free(seen);
		free(chosen);
	}
	if (vn_gpu_ops.run(g, from, p->n_nodes, &err) || vn_gpu_ops.end(g, true, &err))
		fail(&err);
}

static bool computed(const vn_plan *p, int node)
{
	return p->node[node].out[0] < 0 || !p->value[p->node[node].out[0]].on_demand;
}

static void time_operations(vn_gpu *g, const vn_plan *p, const int32_t *ids, int64_t T, int64_t past, int rounds,
                            double element, work *of)
{
	vn_error err = { "" };
	double  *ms = calloc((size_t)p->n_nodes, sizeof *ms);
	int     *touched = calloc((size_t)p->n_nodes, sizeof *touched);

	if (!ms || !touched)
		exit(2);
	find_touched(g, p, ids, T, past, touched);
	vn_gpu_time_nodes(g, true);
	for (int i = 0; i < rounds; i++) {
		go_back(g, ids, past);
		if (vn_gpu_ops.forward(g, ids, T, NULL, &err))
			fail(&err);
		const double *node = vn_gpu_node_ms(g, NULL);
		for (int n = 0; node && n < p->n_nodes; n++) {
			of[p->node[n].op].ms[i] += node[n];
			ms[n] += node[n];
		}
	}
	vn_gpu_time_nodes(g, false);
	for (int n = 0, first = 0; n < p->n_nodes; n++) {
		if (!computed(p, n))
			continue;
		first = ms[n] > 0 ? n : first;
		of[p->node[n].op].nodes++;
		count(p, n, first, T, past, touched[n], element, &of[p->node[first].op]);
	}
	free(touched);
	free(ms);
}

static json_t *list_operations(const work *of, int rounds)
{
	json_t *list = json_array();

	for (int op = 0; op < VN_N_OPS; op++) {
		if (!of[op].nodes)
			continue;
		json_t *computes = json_object();
		for (int other = 0; other < VN_N_OPS; other++)
			if (of[op].of[other])
				json_object_set_new(computes, vn_op_name((vn_op)other), json_integer(of[op].of[other]));
		json_array_append_new(list, json_pack("{s:s, s:i, s:o, s:o, s:f, s:f}", "operation", vn_op_name((vn_op)op),
		                                      "nodes", of[op].nodes, "computes", computes, "ms",
		                                      all_of(of[op].ms, rounds), "bytes", of[op].bytes, "flops", of[op].flops));
	}
	return list;
}

static void print_operations(work *of, int rounds)
{
	double ms[VN_N_OPS], all = 0;

	for (int op = 0; op < VN_N_OPS; op++)
		all += ms[op] = median(of[op].ms, rounds);
	for (int op = 0; op < VN_N_OPS; op++) {
		if (!of[op].nodes)
			continue;
		printf("      %-12s %8.3f ms %3.0f%%", vn_op_name((vn_op)op), ms[op], 100 * ms[op] / all);
		if (of[op].bytes > 0)
			printf("  %8.1f GB/s", of[op].bytes / ms[op] * 1e-6);
		if (of[op].flops > 0)
			printf("  %8.1f TFLOP/s", of[op].flops / ms[op] * 1e-9);
		for (int other = 0; other < VN_N_OPS; other++)
			if (other != op && of[op].of[other])
				printf("  with %d %s", of[op].of[other], vn_op_name((vn_op)other));
		putchar('\n');
	}
}

/* T tokens after `past`. */
static void measure(vn_gpu *g, const vn_plan *p, const int32_t *ids, int64_t T, int64_t past, int rounds,
                    double element)
{
	double   device[MAX_ROUNDS], wall[MAX_ROUNDS], host[MAX_ROUNDS];
	work     of[VN_N_OPS] = { { .nodes = 0 } };
	vn_error err = { "" };

	for (int i = -3; i < rounds; i++) { /* the first warm up */
		go_back(g, ids, past);
		const double start = vn_seconds();
		if (vn_gpu_ops.begin(g, ids, T, NULL, &err) || vn_gpu_ops.run(g, 0, p->n_nodes, &err))
			fail(&err);
		const double listed = vn_seconds();
		if (vn_gpu_ops.end(g, true, &err))
			fail(&err);
		if (i >= 0) {
			wall[i] = (vn_seconds() - start) * 1e3;
			host[i] = (listed - start) * 1e3;
			vn_gpu_node_ms(g, &device[i]);
		}
	}
	time_operations(g, p, ids, T, past, rounds, element, of);
	if (calls) {
		json_array_append_new(calls, json_pack("{s:I, s:I, s:o, s:o, s:o, s:o}", "tokens", (json_int_t)T, "behind",
		                                       (json_int_t)past, "device_ms", all_of(device, rounds), "wall_ms",
		                                       all_of(wall, rounds), "host_ms", all_of(host, rounds), "operations",
		                                       list_operations(of, rounds)));
		return;
	}
	printf("%5lld tokens behind %4lld: %8.2f ms on the device, %8.2f ms wall, %5.2f ms before the host waits\n",
	       (long long)T, (long long)past, median(device, rounds), median(wall, rounds), median(host, rounds));
	print_operations(of, rounds);
}

static void measure_both(vn_gpu *g, const vn_plan *p, int64_t T, int rounds, double element)
{
	int32_t *ids = malloc((size_t)T * sizeof *ids);

	if (!ids)
		exit(2);
	for (int64_t t = 0; t < T; t++)
		ids[t] = (int32_t)((t * 7919 + 13) % p->vocab);
	measure(g, p, ids, T, 0, rounds, element);
	if (T < p->context)
		measure(g, p, ids, 1, T, rounds, element);
	free(ids);
}

int main(int argc, char **argv)
{
	const bool     json = argc > 1 && strcmp(argv[1], "--json") == 0;
	vn_error       err = { "" };
	vn_model      *m;
	vn_gpu        *g;
	vn_gpu_options o = { .policy = { VN_F16, VN_F32, 0, { 0 } }, .device = -1 };
	vn_facts       facts = { 0 };

	argc -= json;
	argv += json;
	int rounds = argc > 3 ? atoi(argv[3]) : 5;
	if (argc < 2 || (argc > 2 && !vn_policy_from_name(argv[2], &o.policy))) {
		fprintf(stderr, "usage: bench_gpu [--json] MODEL [PRECISION [ROUNDS [TOKENS...]]]\n");
		return 2;
	}
	rounds = rounds < 0 ? 0 : rounds > MAX_ROUNDS ? MAX_ROUNDS : rounds;
	calls = json ? json_array() : NULL;
	if (vn_model_open(argv[1], &m, &err))
		fail(&err);
	const double start = vn_seconds();
	if (vn_gpu_create(vn_model_plan(m), vn_model_weights(m), &o, &g, &err))
		fail(&err);
	const double created = vn_seconds() - start;
	vn_gpu_ops.facts(g, &facts);
	const double gigabytes = atof(vn_facts_get(&facts, "bytes_weights")) * 1e-9;
	if (!json) {
		printf("%s on %s, %s\n", argv[1], vn_facts_get(&facts, "device"), vn_policy_name(o.policy));
		printf("created in %.3f s, %.2f GB of weights: %.2f GB/s\n", created, gigabytes, gigabytes / created);
	}
	const double element = (double)vn_dtype_size(o.policy.storage);
	if (argc > 4)
		for (int i = 4; rounds && i < argc; i++)
			measure_both(g, vn_model_plan(m), atol(argv[i]), rounds, element);
	else
		for (int i = 0; rounds && i < 3; i++)
			measure_both(g, vn_model_plan(m), (const int64_t[]) { 128, 512, 2048 }[i], rounds, element);
	json_t *said = !json ? NULL
	                     : json_pack("{s:s, s:s, s:f, s:f, s:f, s:o}", "device", vn_facts_get(&facts, "device"),
	                                 "precision", vn_policy_name(o.policy), "created_s", created, "weights_gb",
	                                 gigabytes, "compiling_s", vn_gpu_ops.compiling(g), "calls", calls);
	if (!json)
		printf("shaders: %.3f s, %s a cache\n", vn_gpu_ops.compiling(g), vn_gpu_compiles(g) ? "without" : "with");
	else if (!vn_json_print(said, stdout, JSON_INDENT(1)))
		return 2;
	json_decref(said);
	vn_gpu_ops.destroy(g);
	vn_model_close(m);
	return 0;
}
