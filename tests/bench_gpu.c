/* bench_gpu.c: milliseconds of a forward pass on a Vulkan device.
 *
 *   bench_gpu MODEL [PRECISION [ROUNDS [TOKENS...]]]      default: f16, 5 rounds, 128 512 2048 tokens and 1 after each
 *
 * Per number of tokens, and for one decoded token behind them: the device's own time (first timestamp to last), the wall
 * time of the call, and that until the host has nothing to do but to end the call; medians, without taps. Then, in calls that time every node, by operation: milliseconds, share of the whole,
 * the rate at which operands pass (each once: what is read again, or from a cache, is not counted), and of products the arithmetic.
 * First: how long it took to open the device and load the weights. At the end: the seconds that calls spent on compiling shaders, which are part of no other number.
 * BENCH_LIMITS="GB/s TFLOP/s" of the device, from its data sheet: the rates as shares of them, too. */
#include "libgpu/gpu.h"
#include "libref/base/progress.h"
#include "libref/model/model.h"
#include "tests/median.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_ROUNDS = 31 };

static void fail(const vn_error *err)
{
	fprintf(stderr, "bench_gpu: %s\n", err->text);
	exit(2);
}

typedef struct rates {
	double ms, bytes, flops;
} rates;

static double limit_[2]; /* bytes and operations in a second; 0: not known */

static double elements(const vn_plan *p, int value, int64_t T, int64_t S)
{
	const vn_shape s = vn_value_shape(&p->value[value], T, S);

	return p->value[value].on_demand ? 0.0 : (double)vn_shape_count(&s);
}

/* What a node reads and writes, and multiplies; of T tokens that see S keys. */
static void count(const vn_plan *p, const vn_node *n, int64_t T, int64_t S, double element, rates *r)
{
	double all = 0;

	for (int k = 0; k < n->n_in; k++)
		all += elements(p, n->in[k], T, S);
	for (int k = 0; k < n->n_out; k++)
		all += n->out[k] < 0 || p->value[n->out[k]].state >= 0 ? 0 : elements(p, n->out[k], T, S);
	for (int k = 0; k < n->n_w && n->op != VN_OP_EMBED; k++)
		all += n->w[k] < 0 ? 0 : (double)vn_shape_count(&p->weight[n->w[k]].shape);
	r->bytes += element * all;
	if (n->op == VN_OP_LINEAR)
		r->flops += 2.0 * (double)T * (double)vn_shape_count(&p->weight[n->w[0]].shape);
}

static void show(const char *word, double rate, double limit, double scale)
{
	printf("  %8.1f %s", rate / scale, word);
	if (limit > 0)
		printf(" (%.0f%%)", 100 * rate / limit);
}

static void by_operation(vn_gpu *g, const vn_plan *p, const int32_t *ids, int64_t T, int64_t past, int rounds,
                         double element)
{
	rates    of[VN_N_OPS] = { { 0 } };
	double   all = 0;
	vn_error err = { "" };

	vn_gpu_time_nodes(g, true);
	for (int i = 0; i < rounds; i++) {
		if (vn_gpu_rewind(g, past, &err) || vn_gpu_forward(g, ids, T, NULL, &err))
			fail(&err);
		const double *node = vn_gpu_node_ms(g, NULL);
		for (int n = 0; node && n < p->n_nodes; n++) {
			of[p->node[n].op].ms += node[n];
			all += node[n];
			count(p, &p->node[n], T, past + T, element, &of[p->node[n].op]);
		}
	}
	vn_gpu_time_nodes(g, false);
	for (int op = 0; op < VN_N_OPS; op++)
		if (of[op].ms > 0) {
			printf("      %-12s %8.3f ms %3.0f%%", vn_op_name((vn_op)op), of[op].ms / rounds, 100 * of[op].ms / all);
			show("GB/s", of[op].bytes / of[op].ms * 1e3, limit_[0], 1e9);
			if (of[op].flops > 0)
				show("TFLOP/s", of[op].flops / of[op].ms * 1e3, limit_[1], 1e12);
			putchar('\n');
		}
}

/* T tokens behind `past`: the device's time and the wall's, medians. */
static void measure(vn_gpu *g, const vn_plan *p, const int32_t *ids, int64_t T, int64_t past, int rounds,
                    double element)
{
	double   device[MAX_ROUNDS], wall[MAX_ROUNDS], host[MAX_ROUNDS];
	vn_error err = { "" };

	for (int i = -3; i < rounds; i++) { /* the first warm up */
		if (vn_gpu_rewind(g, past, &err))
			fail(&err);
		const double start = vn_seconds();
		if (vn_gpu_begin(g, ids, T, NULL, &err) || vn_gpu_run(g, 0, p->n_nodes, &err))
			fail(&err);
		const double listed = vn_seconds();
		if (vn_gpu_end(g, true, &err))
			fail(&err);
		if (i >= 0) {
			wall[i] = (vn_seconds() - start) * 1e3;
			host[i] = (listed - start) * 1e3;
			vn_gpu_node_ms(g, &device[i]);
		}
	}
	printf("%5lld tokens behind %4lld: %8.2f ms on the device, %8.2f ms wall, %5.2f ms before the host waits\n",
	       (long long)T, (long long)past, median(device, rounds), median(wall, rounds), median(host, rounds));
	by_operation(g, p, ids, T, past, rounds, element);
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
	vn_error       err = { "" };
	vn_model      *m;
	vn_gpu        *g;
	vn_gpu_options o = { .policy = { VN_F16, VN_F32, 0 }, .device = -1 };
	vn_facts       facts = { 0 };
	int            rounds = argc > 3 ? atoi(argv[3]) : 5;

	if (argc < 2 || (argc > 2 && !vn_policy_from_name(argv[2], &o.policy))) {
		fprintf(stderr, "usage: bench_gpu MODEL [PRECISION [ROUNDS [TOKENS...]]]\n");
		return 2;
	}
	if (getenv("BENCH_LIMITS") && sscanf(getenv("BENCH_LIMITS"), "%lf %lf", &limit_[0], &limit_[1]) == 2) {
		limit_[0] *= 1e9;
		limit_[1] *= 1e12;
	}
	rounds = rounds < 1 ? 1 : rounds > MAX_ROUNDS ? MAX_ROUNDS : rounds;
	if (vn_model_open(argv[1], &m, &err))
		fail(&err);
	const double start = vn_seconds();
	if (vn_gpu_create(vn_model_plan(m), vn_model_weights(m), &o, &g, &err))
		fail(&err);
	vn_gpu_facts(g, &facts);
	printf("%s on %s, %s\n", argv[1], vn_facts_get(&facts, "device"), vn_policy_name(o.policy));
	const double created = vn_seconds() - start, gigabytes = atof(vn_facts_get(&facts, "bytes_weights")) * 1e-9;
	printf("created in %.3f s, %.2f GB of weights: %.2f GB/s\n", created, gigabytes, gigabytes / created);
	const double element = (double)vn_dtype_size(o.policy.storage);
	if (argc > 4)
		for (int i = 4; i < argc; i++)
			measure_both(g, vn_model_plan(m), atol(argv[i]), rounds, element);
	else
		for (int i = 0; i < 3; i++)
			measure_both(g, vn_model_plan(m), (const int64_t[]) { 128, 512, 2048 }[i], rounds, element);
	printf("shaders: %.3f s, %s a cache\n", vn_gpu_compiling(g), vn_gpu_compiles(g) ? "without" : "with");
	vn_gpu_destroy(g);
	vn_model_close(m);
	return 0;
}
