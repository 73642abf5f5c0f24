// Package gpusim is a GPU in Go: it runs the PTX of sm_80 and later on the CPU, checks every memory access, and counts.
//
// A Device has memory; Load compiles a module for it, or LoadSource one that several devices share, Launch runs one of its
// kernels over blocks on several cores and makes the Report. The parts below, of which each knows only those before it:
//
//	simt      lanes of a warp: masks, vectors, banks of registers
//	memory    allocations, and what was written; the windows of generic addresses
//	arith     the arithmetic of one lane's bits, and loops over whole warps
//	flow      a kernel with its calls inlined, its basic blocks, liveness, slots for registers
//	check     findings; who accessed shared memory in what order, what a launch reads by .nc
//	lanes     the assembly, which runs programs for whole warps up to what only Go does
//	warp      lanes that part and meet again, blocks, barriers, accesses to memory, endless loops
//	compile   instructions become operations on warps, and programs for the assembly
//
// Warps run one at a time within a block, so a launch is deterministic for a seed. Kernels whose blocks talk to each
// other (atomics, fences, strong accesses) run on one core, the rest on as many as Options allows.
//
// The semantics are those of NVIDIA's "PTX ISA" document. Approximate instructions are computed in float64 and rounded
// once, which is within the error that the document allows; tensor cores have the two models of Numerics.
package gpusim
