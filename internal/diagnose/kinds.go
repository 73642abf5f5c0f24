package diagnose

import (
	"context"
	"io"
	"slices"

	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/joblog"
	"github.com/warpline-ml/warpline/internal/kineto"
	"github.com/warpline-ml/warpline/internal/machinefile"
	"github.com/warpline-ml/warpline/internal/snapshot"
)

// kind is a row of the table of what is understood.
type kind struct {
	words    string                 // what it is, for people
	is       func(head []byte) bool // whether a file begins like one; head is up to headBytes of it, decompressed
	diagnose func(ctx context.Context, name string, r io.Reader) (*finding.Report, error)
}

// kinds are asked in this order, and the first that knows a file reads it: what begins in a way of its own stands before what
// is any text.
func (c *Config) kinds() []kind {
	all := []kind{
		{"flight-recorder files of NCCL (JSON and pickle)", joblog.IsRecorder, joblog.Recorder},
		{"traces of PyTorch's profiler, and Chrome traces in their form", kineto.Is, kineto.Diagnose},
		{"memory snapshots of PyTorch and Warpline", snapshot.Is, snapshot.Diagnose},
		{"raw memory timelines (export_memory_timeline)", snapshot.IsTimeline, snapshot.DiagnoseTimeline},
	}
	for _, k := range machinefile.Kinds {
		all = append(all, kind{k.Words, k.Is, k.Diagnose})
	}
	return append(all, kind{"error texts, job logs and NCCL logs", joblog.Is, joblog.Reader{Sizes: c.Sizes}.Diagnose})
}

// grouper says what several files of some kinds say together.
type grouper struct {
	kinds []string
	least int // so many are compared
	group func(ctx context.Context, members []*finding.Report) (*finding.Report, error)
}

// groupers are the rows of what is compared.
var groupers = []grouper{
	{[]string{"job-log", "nccl-log", "error", "flight-recorder"}, 2, joblog.Group},
	{[]string{"trace"}, 2, kineto.Group},
}

// among are those of some reports that are of the grouper's kinds.
func (g *grouper) among(all []*finding.Report) (of []*finding.Report) {
	for _, m := range all {
		if slices.Contains(g.kinds, m.Kind) {
			of = append(of, m)
		}
	}
	return of
}

// comparable tells that a report of a kind is put together with others of all: what matters of it is told of them together.
func comparable(kind string, all []*finding.Report) bool {
	return slices.ContainsFunc(groupers, func(g grouper) bool {
		return slices.Contains(g.kinds, kind) && len(g.among(all)) >= g.least
	})
}
