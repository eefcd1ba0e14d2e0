/* runner.c: see runner.h. */
#include "compare/isolate/runner.h"
#include "compare/chapters/compare.h"
#include "compare/match/sides.h"

#include "capture/run/hybrid.h"
#include "capture/run/interrupt.h"
#include "libref/base/alloc.h"
#include "libref/base/say.h"
#include "libref/base/temporary.h"
#include "libref/base/trouble.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

vn_status vn_runner_select(const vn_runner *x, const char *globs, bool *on, vn_error *err)
{
	VN_FREED char        *text = vn_alloc_text(globs);
	VN_FREED bool        *node = vn_alloc_zero((size_t)x->plan->n_nodes, sizeof *node);
	int                   n;
	VN_FREED const char **list = vn_toggles_split(text, &n);
	vn_status             st = VN_OK;

	for (int i = 0; i < n && !st; i++)
		st = vn_toggles_match(x->plan, list[i], node, err);
	for (int i = 0; i < x->n && !st; i++)
		on[i] = node[x->node[i]];
	return st;
}

/* Does an earlier toggle of the set have the same component? */
static bool has_begun(const vn_runner *x, const bool *on, int at)
{
	for (int i = 0; i < at; i++)
		if (on[i] && x->component[i] == x->component[at])
			return true;
	return false;
}

/* Counts the toggles of this component that are in a layer: those of the set, or (on NULL) all. */
static int count_switched(const vn_runner *x, const bool *on, int component)
{
	int n = 0;

	for (int i = 0; i < x->n; i++)
		n += x->component[i] == component && x->layer[i] >= 0 && (!on || on[i]);
	return n;
}

static void put_layers(const vn_runner *x, const bool *on, int component, FILE *out)
{
	const char *comma = "";

	for (int i = 0; i < x->n; i++)
		if (on[i] && x->component[i] == component && x->layer[i] >= 0) {
			vn_say(out, "%s%d", comma, x->layer[i]);
			comma = ",";
		}
}

static void put_component(const vn_runner *x, const bool *on, int first, FILE *out)
{
	const int   component = x->component[first], n = count_switched(x, on, component);
	const char *name = vn_name_in_layer(x->name[first]);

	if (x->layer[first] < 0 || n == 1) {
		vn_say(out, "%s", x->name[first]);
		return;
	}
	if (n == count_switched(x, NULL, component)) {
		vn_say(out, "*.%s", name);
		return;
	}
	fputs("layer{", out);
	put_layers(x, on, component, out);
	vn_say(out, "}.%s", name);
}

char *vn_runner_switch(const vn_runner *x, const bool *on)
{
	vn_text_stream s;
	const char    *comma = "";
	FILE          *out = vn_alloc_stream(&s);

	for (int i = 0; i < x->n; i++)
		if (on[i] && !has_begun(x, on, i)) {
			vn_say(out, "%s", comma);
			put_component(x, on, i, out);
			comma = ",";
		}
	return vn_alloc_streamed(&s);
}

/* The names of the set's toggles, joined by commas, to be freed. */
static char *list_switched(const vn_runner *x, const bool *on)
{
	vn_text_stream s;
	const char    *comma = "";
	FILE          *out = vn_alloc_stream(&s);

	for (int i = 0; i < x->n; i++)
		if (on[i]) {
			vn_say(out, "%s%s", comma, x->name[i]);
			comma = ",";
		}
	return vn_alloc_streamed(&s);
}

__attribute__((noreturn)) static void run_command(const char *command, const char *toggles)
{
	const int nothing = open("/dev/null", O_RDWR);

	setpgid(0, 0);
	if (nothing < 0 || dup2(nothing, 0) < 0 || dup2(nothing, 1) < 0 || setenv("VERNIER_FORCE_REF", toggles, 1))
		_exit(127);
	signal(SIGXFSZ, SIG_DFL); /* vernier ignores it */
	signal(SIGPIPE, SIG_DFL); /* exec keeps ignored signals ignored */
	signal(SIGTTOU, SIG_IGN); /* may write to a terminal, though not in its foreground */
	execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	_exit(127);
}

enum { POLL = 20, GRACE = 2000 }; /* milliseconds */

/* Waits a little. A signal to this program is passed on to all of the group, which has GRACE
 * milliseconds to end. */
static void wait_on(pid_t group, int *waited)
{
	if (vn_interrupted() && *waited <= GRACE) {
		if (*waited % GRACE == 0)
			kill(-group, *waited ? SIGKILL : vn_interrupted_by());
		*waited += POLL;
	}
	nanosleep(&(struct timespec) { .tv_nsec = POLL * 1000000 }, NULL);
}

/* Waits for a command, whose process group is its own, and after a signal for all of the group.
 * *stopped: it was, since its group is not in the terminal's foreground. */
static pid_t await_command(pid_t pid, int *status, bool *stopped)
{
	pid_t ended;
	int   waited = 0;

	*stopped = false;
	setpgid(pid, pid); /* in case that it has not begun to run */
	while ((ended = waitpid(pid, status, WNOHANG | WUNTRACED)) == 0 || (ended < 0 && errno == EINTR) ||
	       (ended > 0 && WIFSTOPPED(*status))) {
		if (ended > 0 && WSTOPSIG(*status) == SIGTTIN) {
			*stopped = true;
			kill(-pid, SIGKILL);
		}
		wait_on(pid, &waited);
	}
	while (vn_interrupted() && waited <= GRACE && kill(-pid, 0) == 0)
		wait_on(pid, &waited);
	return ended;
}

/* For vn_runner_run: runs the command with the toggles on[i] (n) in VERNIER_FORCE_REF; its standard
 * output is discarded. *good: the answer by exit status; a command that writes a recording must
 * exit with 0. VN_ERR_IO: it gave no answer. */
static vn_status ask_engine(const vn_runner *x, const bool *on, bool *good, vn_error *err)
{
	char *toggles = list_switched(x, on);
	bool  stopped;
	int   status;
	pid_t pid;

	pid = fork();
	if (pid == 0)
		run_command(x->o.check, toggles);
	free(toggles);
	if (pid < 0)
		return vn_fail(err, VN_ERR_IO, "the check cannot be started: %s", strerror(errno));
	if (await_command(pid, &status, &stopped) < 0)
		return vn_fail(err, VN_ERR_IO, "cannot wait for the check: %s", strerror(errno));
	if (vn_interrupted())
		return vn_fail(err, VN_ERR_INTERRUPTED, "interrupted");
	if (stopped)
		return vn_fail(err, VN_ERR_IO, "the check '%.200s' was stopped: it reads the terminal", x->o.check);
	if (WIFSIGNALED(status))
		return vn_fail(err, VN_ERR_IO, "the check '%.200s' was ended by signal %d", x->o.check, WTERMSIG(status));
	*good = WEXITSTATUS(status) == 0;
	if (WEXITSTATUS(status) > 1 || (x->o.recording && !*good))
		return vn_fail(err, VN_ERR_IO, "the check '%.200s' ended with status %d%s", x->o.check, WEXITSTATUS(status),
		               x->o.recording ? "; it must end with 0 when it has written its recording"
		                              : "; expected 0 (good) or 1 (bad)");
	if (x->o.recording && access(x->o.recording, F_OK) != 0)
		return vn_fail(err, VN_ERR_IO, "the check '%.200s' left no recording %s: %s", x->o.check, x->o.recording,
		               strerror(errno));
	return VN_OK;
}

/* ---- its life ------------------------------------------------------------------- */

/* Every node that a default run makes. */
static void list_toggles(vn_runner *x)
{
	const vn_plan *p = x->plan;

	x->nodes = vn_alloc(3 * (size_t)p->n_nodes, sizeof *x->nodes);
	x->name = vn_alloc((size_t)p->n_nodes, sizeof *x->name);
	x->forced = vn_alloc_zero((size_t)p->n_nodes, sizeof *x->forced);
	for (int i = 0; i < p->n_nodes; i++) {
		const vn_value *v = &p->value[p->node[i].out[0]];
		if (v->on_demand)
			continue;
		x->nodes[x->n] = i;
		x->nodes[p->n_nodes + x->n] = (int)v->point;
		x->nodes[2 * p->n_nodes + x->n] = v->layer;
		x->name[x->n++] = v->name;
	}
	x->node = x->nodes;
	x->component = x->nodes + p->n_nodes;
	x->layer = x->nodes + 2 * p->n_nodes;
}

static vn_status make_place(vn_runner *x, vn_error *err)
{
	const char *tmp = getenv("TMPDIR");

	vn_temporary_begin();
	const bool made = snprintf(x->dir, sizeof x->dir - 16, "%s/vernier-isolate-XXXXXX", tmp && *tmp ? tmp : "/tmp") <
	                      (int)sizeof x->dir - 16 &&
	                  mkdtemp(x->dir);
	vn_temporary_add(made ? x->dir : NULL);
	if (!made) {
		x->dir[0] = '\0';
		return vn_fail(err, VN_ERR_IO, "cannot create a directory for recordings in %s", tmp && *tmp ? tmp : "/tmp");
	}
	stpcpy(stpcpy(x->ref, x->dir), "/ref.h5");
	stpcpy(stpcpy(x->floor, x->dir), "/floor.h5");
	stpcpy(stpcpy(x->cand, x->dir), "/cand.h5");
	return VN_OK;
}

static vn_status record_run(vn_runner *x, const char *path, const vn_engine *e, vn_policy policy, vn_error *err)
{
	vn_recipe   r = x->o.recipe;
	vn_recorded done;

	r.path = path;
	r.force = true;
	r.precision = vn_policy_name(policy);
	r.threads = x->o.cand.threads;
	return vn_record(&r, x->o.model, e, &done, err);
}

/* Records a run of the reference. */
static vn_status record_ref(vn_runner *x, const char *path, vn_policy policy, vn_error *err)
{
	const vn_engine_options o = { .policy = policy, .threads = x->o.cand.threads, .quiet = x->o.cand.quiet };
	vn_engine               e;
	vn_status               st = vn_engine_open(&e, x->o.model, &o, err);

	st = st ? st : record_run(x, path, &e, policy, err);
	vn_engine_close(&e);
	return st;
}

vn_status vn_runner_open(vn_runner *x, const vn_runner_options *o, vn_error *err)
{
	const vn_policy f32 = { VN_F32, VN_F32, 0, { 0 } };
	vn_status       st;

	*x = (vn_runner) { .o = *o, .plan = vn_model_plan(o->model) };
	list_toggles(x);
	if ((st = make_place(x, err)))
		return st;
	x->o.recipe.path = x->ref;
	x->o.recipe.command = "vernier isolate";
	if (vn_runner_compares(x) &&
	    ((st = vn_recipe_check(&x->o.recipe, x->plan, err)) || (st = record_ref(x, x->ref, f32, err))))
		return st;
	if (o->check) { /* the floor is computed for the precision of each recording */
		x->floor[0] = '\0';
		x->o.compare.model = vn_model_path(o->model);
		return VN_OK;
	}
	const vn_policy floor = o->as ? *o->as : o->cand.policy; /* the precision of a run with all replaced */
	if (floor.storage == VN_F32 || floor.storage == VN_F64)
		x->floor[0] = '\0';
	else if ((st = record_ref(x, x->floor, floor, err)))
		return st;
	if (x->floor[0])
		x->o.compare.floor_policy = o->as;
	return vn_hybrid_open(&x->engine, o->model, &x->o.cand, err);
}

void vn_runner_close(vn_runner *x)
{
	vn_progress_stop(&x->bar);
	vn_engine_close(&x->engine);
	if (x->dir[0] && !vn_temporary_clear(x->dir)) { /* the user must remove it, whatever else went wrong */
		vn_say(stderr, "vernier: %s cannot be removed\n", x->dir);
		vn_trouble_note("a temporary folder cannot be removed");
	}
	VN_FREE(x->nodes, x->name, x->forced);
	*x = (vn_runner) { 0 };
}

bool vn_runner_compares(const vn_runner *x)
{
	return !x->o.check || x->o.recording;
}

/* ---- judging ---------------------------------------------------------------------- */

static void begin_trial(const vn_runner *x, vn_isolate_trial *t)
{
	const size_t n = (size_t)x->n;

	vn_isolate_trial_finish(t);
	t->kl = NAN;
	t->bad = vn_alloc_zero(n, sizeof *t->bad);
	t->origin = vn_alloc_zero(n, sizeof *t->origin);
	t->error = vn_alloc_zero(n, sizeof *t->error);
}

void vn_isolate_trial_finish(vn_isolate_trial *t)
{
	VN_FREE(t->bad, t->origin, t->error);
	*t = (vn_isolate_trial) { 0 };
}

/* The toggle whose node makes this checkpoint; -1: no toggle. */
static int toggle_of(const vn_runner *x, const char *name)
{
	const int value = vn_plan_find(x->plan, name);
	const int node = value < 0 ? -1 : x->plan->value[vn_plan_root(x->plan, value)].node;

	for (int i = 0; i < x->n; i++)
		if (x->node[i] == node)
			return i;
	return -1;
}

static double error_of(const vn_checkpoint *p)
{
	const double e = p->m.has[VN_M_NMSE] ? p->m.value[VN_M_NMSE] : NAN;

	if (p->m.n == 0)
		return p->fails ? INFINITY : 0.0;
	if (!(e >= 0.0))
		return INFINITY;
	return p->has_floor && p->floor[VN_M_NMSE] > 0.0 ? e / p->floor[VN_M_NMSE] : e;
}

/* The KL divergence of the logits: of the steps together if there are several, else of the
 * prompt. */
static double divergence_of(const vn_result *r)
{
	double sum = 0.0, rows = 0.0;

	for (int i = 0; i < r->checkpoints.n; i++) {
		const vn_checkpoint *p = &r->checkpoints.of[i];
		if (!p->scores || !p->m.has[VN_M_KL_MEAN])
			continue;
		sum += p->m.value[VN_M_KL_MEAN] * (double)p->rows;
		rows += (double)p->rows;
	}
	return rows > 0.0 ? sum / rows : NAN;
}

static void fill_trial(vn_runner *x, const vn_opened *o, const vn_result *r, vn_isolate_trial *t)
{
	int first = r->localised.first;

	for (int i = 0; first < 0 && i < r->checkpoints.n; i++)
		first = r->checkpoints.of[i].fails ? i : -1;
	t->within = r->verdict.within;
	t->outside = r->verdict.n_fails;
	t->kl = divergence_of(r);
	x->compared = r->checkpoints.n;
	vn_report_say_recorder(o->ref, x->recorded_by[0]);
	vn_report_say_recorder(o->cand, x->recorded_by[1]);
	if (first >= 0)
		vn_label(&r->checkpoints.of[first], t->first);
	for (int i = 0; i < r->checkpoints.n; i++) {
		const vn_checkpoint *p = &r->checkpoints.of[i];
		const int            at = toggle_of(x, p->name);
		if (at < 0)
			continue;
		t->bad[at] |= p->fails;
		t->origin[at] |= p->origin;
		t->error[at] = fmax(t->error[at], error_of(p));
	}
}

static vn_status open_limits(vn_runner *x, vn_opened *o, vn_error *err)
{
	const char     *precision = vn_facts_get(vn_recording_run(o->cand), "precision");
	const vn_status st = x->o.limits ? vn_limits_open(x->o.limits, &o->request.limits, err)
	                                 : vn_limits_own(precision ? precision : "", vn_recording_family(o->cand),
	                                                 &o->request.limits, err);

	if (!st)
		snprintf(x->limits, sizeof x->limits, "%s", o->request.limits->path);
	return st;
}

static vn_status judge_recording(vn_runner *x, const char *path, vn_isolate_trial *t, vn_error *err)
{
	const char    *cand[] = { path };
	const vn_sides sides = {
		.ref = x->ref, .cand = cand, .n_cand = 1, .floor = *x->floor ? x->floor : NULL, .batch_row = -1
	};
	vn_status st;

	VN_ENDS(vn_comparison_close) vn_comparison c = { .opened.request.options = &x->o.compare };
	if (!(st = vn_sides_open(&sides, &c.opened, &c.result.remarks, err)) && !(st = open_limits(x, &c.opened, err)) &&
	    !(st = vn_compare(&c, err)))
		fill_trial(x, &c.opened, &c.result, t);
	else if (c.result.remarks.refusals.n)
		vn_context(err, st, "%s", c.result.remarks.refusals.line[0]);
	return st;
}

vn_status vn_runner_run(vn_runner *x, const bool *on, vn_isolate_trial *t, vn_error *err)
{
	vn_status st = VN_OK;

	begin_trial(x, t);
	if (vn_interrupted()) /* a signal came that the command ignored */
		return vn_fail(err, VN_ERR_INTERRUPTED, "interrupted");
	if (x->runs == 0)
		vn_progress_start(&x->bar, "run", 0);
	vn_progress_total(&x->bar,
	                  x->runs || x->left ? x->runs + 1 + x->left : 0); /* the total is unknown before the search */
	vn_progress_at(&x->bar, x->runs++);
	if (x->o.check) {
		if ((st = ask_engine(x, on, &t->within, err)) || !x->o.recording)
			return st;
		st = judge_recording(x, x->o.recording, t, err);
		unlink(x->o.recording); /* a later run that writes none must not read it */
		return st;
	}
	memset(x->forced, 0, (size_t)x->plan->n_nodes * sizeof *x->forced);
	for (int i = 0; i < x->n; i++)
		x->forced[x->node[i]] = on[i];
	if ((st = vn_hybrid_force(&x->engine, x->forced, x->o.as, err)) ||
	    (st = record_run(x, x->cand, &x->engine, x->o.cand.policy, err)))
		return st;
	return judge_recording(x, x->cand, t, err);
}
