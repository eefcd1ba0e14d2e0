// push.glsl: how a shader gets its push block: PUSH_BLOCK { ... } PUSHED;
//
// With PUSH_IN_MEMORY the block is in memory and its address is pushed, so that a command buffer
// can be submitted again with another block (tape.h). It is read once, at the start.
#ifndef PUSH_GLSL
#define PUSH_GLSL

#extension GL_EXT_buffer_reference : require

#if PUSH_IN_MEMORY
#define PUSH_BLOCK struct Push
#define PUSHED \
	; \
	layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer PushAt { Push block; }; \
	layout(push_constant) uniform Where { PushAt at; } where; \
	Push p = where.at.block
#else
#define PUSH_BLOCK layout(push_constant) uniform Push
#define PUSHED     p
#endif

#endif
