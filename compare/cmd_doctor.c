/* cmd_doctor.c: vernier doctor: what works on this machine, on one screen. */
#include "compare/commands.h"
#include "compare/limits/limits.h"
#include "compare/metrics/kernel.h"
#include "compare/options.h"
#include "compare/project.h"

#include "capture/base/shipped.h"
#include "capture/file/child.h"
#include "capture/names/name_map.h"
#include "libref/base/say.h"
#include "libref/model/hub.h"
#include "libref/ops/blas.h"
#ifdef VERNIER_GPU
#include "libgpu/suitable.h"
#endif

#include <getopt.h>
#include <stdarg.h>
#include <stdbool.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

const vn_command vn_doctor_command = {
	.name = "doctor",
	.synopsis = "",
	.about = "Print what works on this machine and what does not: the version, processors, the GPU, the sandbox, the "
			 "installed files, the settings of vernier.yaml and of the environment.",
	.examples = "vernier doctor\n"
				"vernier doctor >machine.txt",
	.status = "0 everything works, 1 something does not, 2 trouble",
};

/* Prints a row. Returns whether it works. */
__attribute__((format(printf, 3, 4))) static bool row(const char *what, bool works, const char *format, ...)
{
	va_list args;

	vn_say(stdout, "%-10s %-4s ", what, works ? "yes" : "NO");
	va_start(args, format);
	vn_say_args(stdout, format, args);
	va_end(args);
	vn_say(stdout, "\n");
	return works;
}

static bool check_machine(void)
{
	struct utsname here;
	const double   memory = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE) / (1 << 30);

	memset(&here, 0, sizeof here);
	uname(&here);
	return row("machine", true, "%s %s, %s, %ld processors, %.1f GiB", here.sysname, here.release, here.machine,
	           sysconf(_SC_NPROCESSORS_ONLN), memory);
}

static bool check_reference(void)
{
	vn_error err;

	if (vn_blas_prepare(1, &err))
		return row("reference", false, "capture ref, --model: %s", err.text);
	return row("reference", true, "capture ref, --model: %s; metrics by %s", vn_blas_version(),
	           vn_metric_kernel_best()->name);
}

static bool check_gpu(void)
{
#ifdef VERNIER_GPU
	vn_gpu_device *list = NULL;
	int            n = 0, best = -1;
	vn_error       err;

	if (vn_gpu_devices(&list, &n, &err))
		return row("gpu", false, "capture gpu: %s", err.text);
	for (int i = n - 1; i >= 0; i--)
		best = list[i].missing[0] ? best : i;
	const bool works = best >= 0 ? row("gpu", true, "capture gpu: %s, Vulkan %s, %s (%d in all)", list[best].name,
	                                   list[best].api, list[best].driver, n)
	                   : n       ? row("gpu", false, "capture gpu: %s lacks %s", list[0].name, list[0].missing)
	                             : row("gpu", false,
	                                   "capture gpu: no Vulkan device (Mesa's lavapipe needs no GPU: "
	                                         "mesa-vulkan-drivers)");
	free(list);
	return works;
#else
	vn_say(stdout, "%-10s %-4s this build has no GPU engine (-DVERNIER_GPU=OFF)\n", "gpu", "-");
	return true;
#endif
}

static bool check_sandbox(void)
{
	char     missing[64] = "";
	vn_error err;

	if (vn_child_sandbox_gaps(missing, sizeof missing, &err))
		return row("sandbox", false, "recordings and .npz cannot be read: %s", err.text);
	return row("sandbox", !*missing,
	           *missing ? "in part: no %s (files of others are read with less protection)"
	                    : "recordings and .npz are read behind Landlock and seccomp%s",
	           missing);
}

static bool check_files(void)
{
	char     path[PATH_MAX];
	vn_error err;

	if (vn_shipped_find("limits", "fp32.yaml", path, &err))
		return row("files", false, "limits, name maps, pages: %s", err.text);
	path[strlen(path) - strlen("/limits/fp32.yaml")] = '\0';
	return row("files", true, "limits, name maps, pages: %s", path);
}

/* Whether what the settings name is there. */
static bool finds_settings(const vn_project *p, vn_error *err)
{
	vn_limits   *limits = NULL;
	vn_name_map *names = NULL;
	bool         found = true;

	if (p->model && !vn_is_model(p->model))
		found = !vn_fail(err, VN_ERR_NOTFOUND, "model %s: no HuggingFace directory and no GGUF file", p->model);
	found = found && (!p->limits || !vn_limits_open(p->limits, &limits, err)) &&
	        (!p->names || !vn_name_map_open(p->names, &names, err));
	vn_limits_destroy(limits);
	vn_name_map_destroy(names);
	return found;
}

static bool check_project(void)
{
	vn_project p;
	vn_error   err;
	bool       works = true;

	if (vn_project_read(&p, &err))
		works = row("project", false, "%s", err.text);
	else if (p.ignored)
		works = row("project", false, "%s belongs to another user and is not read", p.ignored);
	else if (p.path && !finds_settings(&p, &err))
		works = row("project", false, "%s: %s", p.path, err.text);
	else if (p.path)
		row("project", true, "%s: model %s, limits %s, names %s, format %s", p.path, p.model ? p.model : "-",
		    p.limits ? p.limits : "-", p.names ? p.names : "-", p.format ? p.format : "-");
	else
		row("project", true, "no " VN_PROJECT_FILE " here or above");
	vn_project_free(&p);
	return works;
}

/* Variables that change what vernier does. Returns whether VERNIER_MODEL, if set, is a model. */
static bool check_environment(void)
{
	static const char *const names[] = { "VERNIER_MODEL",     "VERNIER_SPECS", "VERNIER_DEVICE",  "VERNIER_KERNEL",
		                                 "VERNIER_FORCE_REF", "HF_HUB_CACHE",  "HF_HOME",         "NO_COLOR",
		                                 "CLICOLOR_FORCE",    "PAGER",         "OMP_NUM_THREADS", "VK_DRIVER_FILES" };
	const char              *model = getenv("VERNIER_MODEL");
	const char              *path = model && *model ? vn_hub_path(model) : NULL;
	const bool               works = !path || vn_is_model(path);
	bool                     any = false;

	if (path != model)
		free((char *)path);
	vn_say(stdout, "%-11s %-3s ", "environment", works ? "" : "NO");
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		const char *value = getenv(names[i]);
		if (value && *value) {
			vn_say(stdout, "%s%s=%s", any ? ", " : "", names[i], value);
			any = true;
		}
	}
	vn_say(stdout, "%s%s\n", any ? "" : "no variable of vernier is set", works ? "" : " (VERNIER_MODEL is no model)");
	return works;
}

int cmd_doctor(int argc, char **argv)
{
	static bool (*const checks[])(void) = { check_machine, check_reference, check_gpu,        check_sandbox,
		                                    check_files,   check_project,   check_environment };
	int broken = 0;

	const int said = vn_options_read(&vn_doctor_command, argc, argv, NULL);
	if (said)
		return said == 1 ? 0 : 2;
	if (optind < argc)
		return vn_complain("doctor", "'%s': this command takes no arguments", argv[optind]);
	vn_say(stdout, "%-10s %-4s vernier " VERNIER_VERSION "\n", "version", "");
	for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
		broken += !checks[i]();
	return broken ? 1 : 0;
}
