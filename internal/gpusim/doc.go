// Package gpusim is a GPU in Go: it runs the PTX of sm_80 and later on the CPU, checks every memory access, and counts.
//
// A Device has memory; Load compiles a module for it, Launch runs one of its kernels. The parts, in the order in which
// an instruction meets them:
//
//	flat.go      a kernel with its calls inlined, as one list of instructions
//	emit*.go     an instruction becomes a Go closure over the 32 lanes of a warp
//	alu*.go      the meaning of arithmetic: functions of one lane's bits, chosen by form; fast.go has loops over whole warps
//	matrix.go    wmma, and mma.sync of small integers; mma.go has the shapes that the assembly knows
//	mbarrier.go  barriers in shared memory, and what they put in order
//	printf.go    C's printf; stack.go has alloca
//	cfg.go       basic blocks, post-dominators, liveness, register allocation
//	code.go      a compiled kernel; poison of registers that nobody wrote (initcheck), poison.go by byte and in local memory
//	chain.go     blocks that a whole warp goes through without a choice, as one program
//	lanes.go     the programs' form for the assembly, which runs them up to what only Go does; zz_lanes* are generated
//	warp.go      lanes that part, and meet again (meet.go)
//	cta.go       a block: its warps take turns, its findings; barrier.go its barriers (synccheck)
//	endless.go   blocks that go on forever
//	area.go      accesses of a warp that all lie in one place; watch.go checks those
//	async.go     when cp.async reads and writes, and who may not at that time
//	race.go      accesses to shared memory that nothing orders (racecheck); order.go what fences and strong accesses order,
//	             poll.go which loads wait for others; stale.go stores to what is read by .nc
//	launch.go    blocks across cores, the Report
//
// Warps run one at a time within a block, so a launch is deterministic for a seed. Kernels whose blocks talk to each
// other (atomics, fences, strong accesses) run on one core, the rest on as many as Options allows.
//
// The semantics are those of NVIDIA's "PTX ISA" document. Approximate instructions are computed in float64 and rounded
// once, which is within the error that the document allows; tensor cores have the two models of Numerics.
package gpusim
