/* project.h: vernier.yaml, the settings of a project, found upwards from the working directory.
 *
 *	version: 1
 *	model: models/qwen2        # as --model, or MODEL; also a name in HuggingFace's cache
 *	limits: limits.yaml        # as --limits: a file, or the name of shipped limits
 *	names: ours.yaml           # as --names
 *	format: markdown           # as --format, in commands that have this form and no -o
 *
 * The command line counts before the environment (VERNIER_MODEL), and that before the file. Paths
 * are relative to the file.
 *
 * Owner  a vn_project owns its texts, until vn_project_free.
 */
#pragma once

#include "libref/base/options.h"

#define VN_PROJECT_FILE "vernier.yaml"

typedef struct vn_project {
	char *path;                            /* of the file; NULL: there is none */
	char *model, *limits, *names, *format; /* NULL: not given */
	char *ignored;                         /* a file that is not read, because another user owns it */
} vn_project;

/* Reads the next vernier.yaml: of the working directory, or of one above it. Unknown keys are
 * refused. Call vn_project_free afterwards, also after a failure. */
vn_status vn_project_read(vn_project *p, vn_error *err);
void      vn_project_free(vn_project *p); /* p may be zeroed */

/* What VERNIER_MODEL and the file give, for vn_options_settings. */
vn_option_setting vn_project_setting;
