// Package oom is what people and programs are told when memory has run out: what was asked for and what there is, who holds
// it, what would have fitted, and what to do about it. It has the words and their order; package tensor has the facts, and
// package plan what is found by running the program again. All sizes are bytes.
package oom

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/warpline-ml/warpline/internal/sorting"
)

// Holder is memory in use that is of one kind, module and line of the program.
type Holder struct {
	Kind   string // a label of memory: parameter, buffer, optimizer state, gradient, activation, batch, workspace, other
	Module string // whose parameters it is, or is made of: the nearest before it; "" where there are none
	Line   string // of the program, where it was made: "train.go:12"
	Bytes  int64  // asked for
	Values int    // how many
	Turns  int    // in how many turns of the program's loop they were made
}

// Lever is something to do so that the program fits.
type Lever struct {
	Flag  string `json:"flag"`        // what to change
	Saves int64  `json:"saves_bytes"` // of the most that the program holds at once
	Cost  string `json:"cost"`        // what it costs
	Tried bool   `json:"-"`           // the program was run again with it, under the same limit, on a device that computes nothing
	Fits  bool   `json:"-"`           // and ran
	Fault bool   `json:"-"`           // what it changes is a mistake, which smaller batches put off at best: it comes first
	Line  string `json:"-"`           // of the program that makes it; "": none
}

// Report is a structured out-of-memory.
type Report struct {
	Device      string
	Op          string // the operation that asked
	Line        string // where in the user's program
	Module      string // that it was a part of, by the nearest parameter before it; "" where there is none
	Asked       int64
	Allocated   int64 // in use, rounded as the allocator does
	Reserved    int64 // got from the device: in use and cached
	LargestFree int64 // the largest cached piece, or what a limit of the bytes in use leaves
	Limit       int64 // memory or the limit set; 0 when unknown
	Free        int64 // what the device has for this process or another; -1 when it was not asked
	Stuck       int64 // free in pieces of segments in use, where less fragmented memory would have had room; 0 otherwise

	Holders []Holder // largest first
	Levers  []Lever  // mistakes first, then what is known to suffice, then the rest; among these by what they save

	Rehearsed    bool  // the program was run again: what follows is known
	Batch        int   // samples of a step of the program that failed
	LargestBatch int   // that fits; 0: none
	Needed       int64 // the limit under which the program as it is would have run
	Least        int64 // the same with all that helps, for one sample a step
}

// Sum adds the bytes of holders by a key.
func Sum(all []Holder, key func(*Holder) string) map[string]int64 {
	sums := map[string]int64{}
	for i := range all {
		sums[key(&all[i])] += all[i].Bytes
	}
	return sums
}

// The keys of [Sum].
func byKind(h *Holder) string   { return h.Kind }
func byModule(h *Holder) string { return h.Module }
func byLine(h *Holder) string   { return h.Line }

// ByKind is the bytes in use by what they serve for.
func (r *Report) ByKind() map[string]int64 { return Sum(r.Holders, byKind) }

// ByModule is the bytes in use by module; "" is for what no parameter comes before.
func (r *Report) ByModule() map[string]int64 { return Sum(r.Holders, byModule) }

// ByLine is the bytes in use by line of the program.
func (r *Report) ByLine() map[string]int64 { return Sum(r.Holders, byLine) }

// Suggest adds a lever. One of the same flag is replaced.
func (r *Report) Suggest(levers ...Lever) {
	for _, l := range levers {
		r.Levers = slices.DeleteFunc(slices.Clone(r.Levers), func(o Lever) bool { return o.Flag == l.Flag })
		r.Levers = append(r.Levers, l)
	}
	sorting.By(r.Levers, func(a, b Lever) int {
		return cmp.Or(cmp.Compare(b.rank(), a.rank()), cmp.Compare(b.Saves, a.Saves))
	})
}

// rank tells mistakes and what is known to suffice from the rest.
func (l *Lever) rank() int {
	switch {
	case l.Fault && (l.Fits || !l.Tried):
		return 2
	case l.Fits:
		return 1
	}
	return 0
}

// MarshalJSON writes the report for machines, all sizes in bytes. largest_batch is 0 where none fits or none is known.
func (r *Report) MarshalJSON() ([]byte, error) {
	levers := r.Levers
	if levers == nil {
		levers = []Lever{}
	}
	return json.Marshal(struct {
		Device       string           `json:"device"`
		Op           string           `json:"op"`
		Line         string           `json:"line"`
		Module       string           `json:"module"`
		Asked        int64            `json:"asked"`
		Allocated    int64            `json:"allocated"`
		Reserved     int64            `json:"reserved"`
		LargestFree  int64            `json:"largest_free"`
		Limit        int64            `json:"limit"`
		ByKind       map[string]int64 `json:"by_kind"`
		ByModule     map[string]int64 `json:"by_module"`
		ByLine       map[string]int64 `json:"by_line"`
		LargestBatch int              `json:"largest_batch"`
		Levers       []Lever          `json:"levers"`
	}{r.Device, r.Op, r.Line, r.Module, r.Asked, r.Allocated, r.Reserved, r.LargestFree, r.Limit,
		r.ByKind(), r.ByModule(), r.ByLine(), r.LargestBatch, levers})
}
