/* prompts.h: records many prompts with one model: NAME.h5 in a folder for each scenario.
 *
 * A recording that is already in the folder is kept if it is complete and was made by the same
 * command from the same tokens, tokenizer, config and weights, on the same engine and device, and
 * was judged by the same reference and limits. So repeating the command continues an interrupted
 * run. What a kept recording warned of is said again, so that --strict gives the same status.
 * If mpirun started several processes, they share the scenarios (libref/base/cluster.h).
 */
#pragma once

#include "capture/run/run.h"

typedef struct vn_prompts_job {
	const char              *file;   /* of the prompts (scenario.h) */
	const char              *folder; /* created if it is not there */
	const char              *model;
	bool                     no_special; /* vn_prompt_source */
	const vn_engine_options *run;
	const char *const       *inject;
	int                      n_inject;
	const vn_recipe         *recipe;      /* of every scenario; one may have its own decode, temperature, seed */
	const char              *forced_from; /* NULL, or a folder: each decodes what its NAME.h5 there decoded */
} vn_prompts_job;

/* Reports on stderr what was recorded, as `vernier capture` does, with warnings about the
 * weights. */
void vn_prompts_say(const char *path, const vn_recorded *done);

/* Checks all scenarios, then records those that are not there yet (with recipe->force all), and
 * says so on stderr. Stops at the first that fails. */
vn_status vn_prompts_record(const vn_prompts_job *job, vn_error *err);
