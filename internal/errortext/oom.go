package errortext

import (
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/internal/render"
)

// unknown is a figure that a text does not have.
const unknown = -1

// OOM is what an out-of-memory message says. Figures are bytes, below 0 where the message has none.
type OOM struct {
	Backend   string // "CUDA", "HIP", "XPU", "MPS", "JAX"; empty where the text does not say
	GPU       int    // below 0: unknown
	Asked     int64
	rounding  int64 // Asked may be off by so much: messages have two decimals
	Total     int64 // of the card
	Free      int64
	Used      int64 // by this process, with what PyTorch does not know of
	Allocated int64 // by PyTorch, in use
	Stuck     int64 // reserved by PyTorch and not in use: whole free segments have been given back before the message
	Private   int64 // of Allocated, in private pools
	Allowed   int64 // cap of the process
	Others    []Process
	old       bool // a message of before PyTorch 2.1, which has no expandable segments
}

// Process is another one on the card.
type Process struct {
	PID   int
	Bytes int64
}

// Other is what is neither free nor this process's: the rest of the card, others' or, in texts before PyTorch 2.1, this
// process's own context too. Unknown without the figures.
func (o *OOM) Other() int64 {
	switch {
	case o.Total < 0 || o.Free < 0 || o.Used < 0:
		return unknown
	default:
		return max(o.Total-o.Free-o.Used, 0)
	}
}

// Rest is what is neither free nor PyTorch's of this process.
func (o *OOM) Rest() int64 {
	if o.Total < 0 || o.Free < 0 || o.Allocated < 0 || o.Stuck < 0 {
		return unknown
	}
	return max(o.Total-o.Free-o.Allocated-o.Stuck, 0)
}

// Overhead is what this process has on the card beside PyTorch's allocator: the context, libraries, NCCL.
func (o *OOM) Overhead() int64 {
	if o.Used < 0 || o.Allocated < 0 || o.Stuck < 0 {
		return unknown
	}
	return max(o.Used-o.Allocated-o.Stuck, 0)
}

// Deficit is what lacked.
func (o *OOM) Deficit() int64 {
	if o.Free < 0 {
		return unknown
	}
	return o.Asked - o.Free
}

// segment is what PyTorch's allocator takes of the card for a request (CUDACachingAllocator.cpp): 2 MiB for one up to 1 MiB,
// 20 MiB below 10 MiB, else whole pieces of 2 MiB.
func segment(asked int64) int64 {
	switch {
	case asked <= 1<<20:
		return 2 << 20
	case asked < 10<<20:
		return 20 << 20
	}
	return (asked + 2<<20 - 1) &^ (2<<20 - 1)
}

// wanted is what the process would have reserved with the request.
func (o *OOM) wanted() int64 { return max(o.Allocated, 0) + max(o.Stuck, 0) + segment(o.Asked) }

// beyondCap tells that a cap of the process refused the request.
func (o *OOM) beyondCap() bool { return o.Allowed >= 0 && o.wanted() > o.Allowed }

const sizeOf = `(\d+(?:\.\d+)?)(bytes|[KMGTP]i?B)`

var (
	askedFor      = regexp.MustCompile(`(?i)Triedtoallocate(?:` + sizeOf + `|morethan1EB)`)
	whichGPU      = regexp.MustCompile(`GPU(\d+)(?:;|hasatotal|total:)`)
	otherProcess  = regexp.MustCompile(`Process(\d+)has` + sizeOf + `memoryinuse`)
	reservedTotal = regexp.MustCompile(sizeOf + `(?:reservedintotalbyPyTorch|cached)`)
)

// field is a figure of the message, in one of the forms that versions had.
type field struct {
	of    func(o *OOM) *int64
	forms *regexp.Regexp
}

func form(text string) *regexp.Regexp {
	return regexp.MustCompile(strings.ReplaceAll(text, "SIZE", sizeOf))
}

var fields = []field{
	{func(o *OOM) *int64 { return &o.Total }, form(`SIZEtotalcapacity|totalcapaci?tyofSIZE|GPU\d+total:SIZE`)},
	{func(o *OOM) *int64 { return &o.Free }, form(`SIZEfree|ofwhichSIZEisfree|Free:SIZE`)},
	{func(o *OOM) *int64 { return &o.Used }, form(`thisprocesshasSIZEmemoryinuse`)},
	{func(o *OOM) *int64 { return &o.Allocated }, form(`SIZEalreadyallocated|SIZEisallocatedbyPyTorch|PyTorchallocated:SIZE`)},
	{func(o *OOM) *int64 { return &o.Stuck }, form(`SIZEisreservedbyPyTorchbutunallocated`)},
	{func(o *OOM) *int64 { return &o.Private }, form(`SIZEallocatedinprivatepools`)},
	{func(o *OOM) *int64 { return &o.Allowed }, form(`SIZEallowed`)},
}

// parseOOM reads a message of PyTorch's allocators from its squeezed text, of which the first request is the one. end is
// where its last figure ends.
func parseOOM(text string) (o *OOM, end int) {
	o = &OOM{GPU: unknown, Asked: unknown, Total: unknown, Free: unknown, Used: unknown, Allocated: unknown, Stuck: unknown, Private: unknown, Allowed: unknown}
	at := askedFor.FindStringSubmatchIndex(text)
	if at == nil {
		return o, 0
	}
	o.Asked, o.rounding = 1<<60, 0
	if at[2] >= 0 {
		o.Asked, o.rounding = sized(text[at[2]:at[3]], text[at[4]:at[5]])
	}
	end = at[1]
	if next := askedFor.FindStringIndex(text[end:]); next != nil {
		text = text[:end+next[0]] // of the next message
	}
	if m := whichGPU.FindStringSubmatch(text[end:]); m != nil {
		o.GPU, _ = strconv.Atoi(m[1])
	}
	rest := text[end:]
	last := 0 // where the last figure ends
	for _, f := range fields {
		if n, stop := first(f.forms, rest); stop > 0 {
			*f.of(o), last = n, max(last, stop)
		}
	}
	if n, stop := first(reservedTotal, rest); stop > 0 {
		last = max(last, stop)
		if o.Allocated >= 0 {
			o.Stuck = max(n-o.Allocated, 0)
		}
	}
	o.old = strings.Contains(rest, "alreadyallocated")
	for _, m := range otherProcess.FindAllStringSubmatch(rest, 64) {
		pid, _ := strconv.Atoi(m[1])
		n, _ := sized(m[2], m[3])
		o.Others = append(o.Others, Process{pid, n})
	}
	return o, min(end+last, len(text))
}

// first is the first size of a form, and where it stops; 0 where there is none.
func first(forms *regexp.Regexp, text string) (n int64, stop int) {
	at := forms.FindStringSubmatchIndex(text)
	if at == nil {
		return 0, 0
	}
	for i := 2; i+3 < len(at); i += 4 {
		if at[i] >= 0 {
			n, _ = sized(text[at[i]:at[i+1]], text[at[i+2]:at[i+3]])
			return n, at[1]
		}
	}
	return 0, 0
}

// sized is a size in bytes, and by how much its rounding may be off. MPS and old texts write GB and mean GiB.
func sized(number, unit string) (bytes, off int64) {
	f, err := strconv.ParseFloat(number, 64)
	if err != nil || f < 0 || f > 1<<20 && unit != "bytes" {
		return unknown, 0
	}
	if unit == "bytes" {
		return int64(math.Min(f, 1<<60)), 0
	}
	scale := math.Pow(1024, float64(strings.IndexByte("KMGTP", unit[0]&^0x20)+1))
	return int64(math.Min(f*scale, 1<<60)), int64(0.005*scale) + 1
}

// figures are what a report has of a message.
func (o *OOM) figures() map[string]any {
	out := map[string]any{}
	add := func(name string, n int64) {
		if n >= 0 {
			out[name] = n
		}
	}
	add("asked", o.Asked)
	add("total", o.Total)
	add("free", o.Free)
	add("used", o.Used)
	add("allocated", o.Allocated)
	add("reserved_unallocated", o.Stuck)
	add("private", o.Private)
	add("allowed", o.Allowed)
	add("other", o.Other())
	add("overhead", o.Overhead())
	if o.GPU >= 0 {
		out["gpu"] = o.GPU
	}
	if o.Free >= 0 {
		out["deficit"] = o.Deficit()
	}
	if o.Allocated > 0 {
		out["ratio"] = float64(o.Asked) / float64(o.Allocated)
	}
	return out
}

// says is the message in words.
func (o *OOM) says() string {
	var parts []string
	add := func(n int64, what string) {
		if n >= 0 {
			parts = append(parts, render.Bytes(n)+" "+what)
		}
	}
	add(o.Asked, "asked for")
	add(o.Total, "on the card")
	add(o.Free, "free")
	add(o.Allocated, "allocated by PyTorch")
	add(o.Stuck, "reserved and not in use")
	add(o.Other(), "of others")
	return strings.Join(parts, ", ")
}
