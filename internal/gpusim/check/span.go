package check

import (
	"maps"
	"slices"
)

// Span is bytes of global memory that a launch has touched, and who touched the first of them.
type Span struct {
	Lo, Hi uint64
	Kernel string // empty for what is no kernel
	Site   *Site
	By     Party
}

// Spans are what a launch has read and written, ascending, as far as it was looked at.
func (r *Races) Spans(kernel string, cores []*Global) (reads, writes []Span) {
	for _, g := range cores {
		if g != nil && !r.Apart {
			for number, p := range g.pages {
				r.add(number, p)
			}
		}
	}
	for _, number := range slices.Sorted(maps.Keys(r.summary)) {
		s := r.summary[number]
		for i := range s {
			r.share(&s[i])
			at := number<<pageBits + uint64(i)<<maxShift
			reads = r.spans(reads, &s[i].reads, at, kernel)
			writes = r.spans(writes, &s[i].writes, at, kernel)
		}
	}
	return reads, writes
}

// spans adds what was done to a row.
func (r *Races) spans(list []Span, e *extent, at uint64, kernel string) []Span {
	size := rowSize >> e.fine
	for off := 0; off < rowSize; off += size {
		first := r.ends(e, off).first
		if first.clock == 0 {
			continue
		}
		lo := at + uint64(off)
		if n := len(list); n > 0 && list[n-1].Hi == lo {
			list[n-1].Hi += uint64(size)
			continue
		}
		list = append(list, Span{lo, lo + uint64(size), kernel, r.accesses[first.access()].Site, Party{first.block, uint32(first.thread())}})
	}
	return list
}
