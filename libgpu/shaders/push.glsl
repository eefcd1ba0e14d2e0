// push.glsl: how a shader gets its push block p: PUSH(vn_push_NAME);
//
// With PUSH_IN_MEMORY the block is in memory and its address is pushed, so that a command buffer
// can be submitted again with another block (tape.h). It is read once, at the start.
#define Address     uvec2
#define BLOCK(name) struct name
#include "blocks.glsl"

#if PUSH_IN_MEMORY
#define PUSH(name) \
	layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer PushAt { name block; }; \
	layout(push_constant) uniform Where { PushAt at; } where; \
	name p = where.at.block
#else
#define PUSH(name) layout(push_constant) uniform Push { name p; }
#endif
