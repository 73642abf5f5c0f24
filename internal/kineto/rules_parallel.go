package kineto

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/sorting"
)

// marks are the operators and ranges of a class that begin within the steps that are looked at.
func (a *analysis) marks(c class) (found []*event) {
	for i := range a.ops {
		if e := &a.ops[i]; a.class(e)&c != 0 && e.start >= a.marked.Start && e.start < a.marked.End {
			found = append(found, e)
		}
	}
	return found
}

// devicesUsed is how many devices of this process have kernels in the window.
func (a *analysis) devicesUsed() int {
	used := map[int]bool{}
	for i := a.first; i < a.last; i++ {
		if e := &a.device[i]; e.kind == kernel {
			used[a.tracks[e.track].device] = true
		}
	}
	return len(used)
}

// marksOps tells that operators and ranges of the host were recorded.
func (a *analysis) marksOps() bool { return a.stepped() && len(a.ops) > 0 }

// dataParallel: one process that drives several cards copies the model to each in every step.
func dataParallel(a *analysis) *finding.Finding {
	n, calls := a.devicesUsed(), a.marks(isReplicated)
	if n < 2 || len(calls) == 0 {
		return nil
	}
	return &finding.Finding{
		Title: fmt.Sprintf("One process drives %d cards by DataParallel: it copies the model to each in every step, and gathers on the first", n),
		Evidence: []finding.Evidence{counted("calls", len(calls), "DataParallel.forward: %d in %s", len(calls), a.windowText()),
			counted("devices", n, "%d devices of this process have kernels", n)},
		Fix:         "DistributedDataParallel with one process for each card: torchrun --nproc-per-node=" + fmt.Sprint(n) + " train.py, model = DistributedDataParallel(model.to(local_rank), device_ids=[local_rank])",
		Gain:        finding.Gain{Text: "the copies of the model, and threads that wait for each other's interpreter; gradients are then reduced while backward goes on"},
		Confidence:  finding.High,
		DisprovedBy: "the same training under torchrun, no faster",
	}
}

// backed tells that the file says which library the job communicates by.
func (a *analysis) backed() bool { return a.worked() && a.Backend != "" }

// gloo: its collectives go through the host's memory.
func gloo(a *analysis) *finding.Finding {
	if !strings.EqualFold(a.Backend, "gloo") {
		return nil
	}
	f := &finding.Finding{
		Title:       "The job communicates by Gloo, whose collectives take the cards' data through the host",
		Evidence:    []finding.Evidence{{Name: "backend", Value: a.Backend, Text: fmt.Sprintf("the file's distributedInfo says backend %q, and the device has %d kernels", a.Backend, a.kernels)}},
		Fix:         `torch.distributed.init_process_group("nccl"); "cpu:gloo,cuda:nccl" where tensors of the host are exchanged too`,
		Gain:        finding.Gain{Text: "copies to the host and back around each collective, and a network that the cards reach themselves"},
		Confidence:  finding.High,
		DisprovedBy: "only tensors of the host are exchanged",
	}
	in := a.ranges(isGloo).in(a.marked).total()
	if in > 0 {
		f.Evidence = append(f.Evidence, timing("gloo", a.perStep(in), "ranges named gloo: take %s %s", duration(a.perStep(in)), a.each()))
	}
	return f
}

// reductions are how many bytes each forward pass of a replica is followed by in all-reduces, up to the next.
func (a *analysis) reductions() (bytes []int64) {
	forwards := a.marks(isReplica)
	sorting.By(forwards, byStart)
	bytes = make([]int64, len(forwards))
	for i := range a.Collectives {
		c := &a.Collectives[i]
		if c.Launched >= a.marked.End || !strings.Contains(strings.ToLower(c.Name), "allreduce") {
			continue
		}
		if at := sort.Search(len(forwards), func(k int) bool { return forwards[k].start > c.Launched }); at > 0 {
			bytes[at-1] += max(c.MessageBytes(), 1)
		}
	}
	return bytes
}

// accumulates tells that forward passes of replicas, all-reduces and the optimizer's steps were recorded.
func (a *analysis) accumulates() bool {
	return a.communicates() && len(a.marks(isReplica)) > 0 && len(a.marks(isOptim)) > 0 && slices.ContainsFunc(a.reductions(), func(n int64) bool { return n > 0 })
}

// reducesEachPass: gradients that are summed over several batches need one reduction, not one for each.
func reducesEachPass(a *analysis) *finding.Finding {
	passes, steps := a.reductions(), len(a.marks(isOptim))
	k := len(passes) / steps
	if k < 2 || len(passes)%steps != 0 {
		return nil
	}
	sorted := slices.Sorted(slices.Values(passes))
	if least := sorted[0]; 2*least < sorted[len(sorted)-1] {
		return nil // of some passes nothing is reduced, or not all of the gradients
	}
	alone := a.comm.without(a.compute).total()
	spared := alone - alone/int64(k)
	if !a.worth(time.Duration(a.perStep(spared))) {
		return nil
	}
	return &finding.Finding{
		Title: fmt.Sprintf("Gradients of %d batches are accumulated, and reduced after each of them: once would do", k),
		Evidence: []finding.Evidence{counted("passes", len(passes), "%d forward passes of DistributedDataParallel and %d steps of the optimizer in %s, and all-reduces behind every pass", len(passes), steps, a.windowText()),
			timing("comm_exposed", a.perStep(alone), "%s %s of communication overlap nothing", duration(a.perStep(alone)), a.each())},
		Fix:         "with model.no_sync(): around forward and backward of all batches but the last before optimizer.step() (FSDP2: model.set_requires_gradient_sync(False); accelerate: with accelerator.accumulate(model):)",
		Gain:        a.saves(time.Duration(a.perStep(spared)), fmt.Sprintf("at most: %d of %d reductions, as far as they overlap nothing", k-1, k)),
		Confidence:  finding.High,
		DisprovedBy: "the passes are of different models, each with gradients of its own",
	}
}
