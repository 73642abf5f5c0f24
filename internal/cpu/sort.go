package cpu

import (
	"cmp"
	"math"
	"slices"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/par"
)

func init() { offer(prepareSort, ir.Sort) }

// Elements are sorted by keys, unsigned integers of the same order: of a NaN the largest, of both zeros one. A key of up to 32
// bits and the element's place are one word (item); wider keys have their place beside them (placed). Either way no two are
// equal, so that any method keeps the order of equal elements.

type item = uint64

type placed struct {
	key uint64
	at  uint32
}

// sorting is Sort of elements stored as T.
type sorting[T, I any] struct {
	along
	k      int // of the first
	chunks *loop[[]device.Arg]
	load   func(dst []I, x []T, first, step int, flip uint64)
	flip   uint64 // turns the order of keys around
	method method[I]
	spare  *spare[[]I]
}

// method is how items are put in order.
type method[I any] struct {
	compare func(a, b I) int
	few     func(items []I)              // sorts them by comparisons
	below   func(items []I, bound I) []I // those up to bound, in their place
	split   func(items []I, pivot I) int // puts those before the pivot, which it counts, before the others
	passes  int                          // of a sort by digits, one each
	digit   func(items []I, pass int, counts *[digits]uint32)
	scatter func(dst, src []I, pass int, next *[digits]uint32)
	place   func(i I) int
}

const (
	digitBits = 8
	digits    = 1 << digitBits
	fewItems  = 1 << 7  // sorted by comparisons
	manyItems = 1 << 15 // of a line, which more than one thread sorts
)

func prepareSort(k *device.Kernel) (run, error) {
	switch dt := k.Op.In(0).DType; dt {
	case dtype.F32:
		return sortedBy(k, loadF32, items(32), math.MaxUint32<<32), nil
	case dtype.I32:
		return sortedBy(k, loadI32, items(32), math.MaxUint32<<32), nil
	case dtype.F16:
		return sortedBy(k, load16(0x7c00), items(16), math.MaxUint16<<32), nil
	case dtype.BF16:
		return sortedBy(k, load16(0x7f80), items(16), math.MaxUint16<<32), nil
	case dtype.U8:
		return sortedBy(k, loadU8, items(8), math.MaxUint8<<32), nil
	case dtype.F64:
		return sortedBy(k, loadF64, placedKeys, math.MaxUint64), nil
	case dtype.I64:
		return sortedBy(k, loadI64, placedKeys, math.MaxUint64), nil
	default:
		return nil, unsupported(&k.Op, dt)
	}
}

func sortedBy[T, I any](k *device.Kernel, load func(dst []I, x []T, first, step int, flip uint64), m method[I], mask uint64) run {
	x := k.Op.In(0)
	s := &sorting[T, I]{along: alongOf(x, k.Op.Attr.Axis), k: k.Out[0].Dim(int(k.Op.Attr.Axis)), load: load, method: m}
	if k.Op.Attr.Flag&ir.Descending != 0 {
		s.flip = mask
	}
	s.spare = newSpare(func() []I { return make([]I, 2*s.n) })
	s.chunks = newLoop(func(args *[]device.Arg, lo, hi int) {
		buf := s.spare.get()
		defer s.spare.put(buf)
		for line := lo; line < hi; line++ {
			s.line(*args, line, *buf)
		}
	})
	return func(args []device.Arg, _ *device.Params) error {
		switch lines := s.outer * s.inner; {
		case s.n == 0 || lines == 0:
		case s.n >= manyItems && lines < par.Threads():
			for line := range lines {
				s.wholeLine(args, line, min(par.Threads(), 16))
			}
		default:
			s.chunks.run(lines, grainOf(s.n*16), args)
		}
		return nil
	}
}

// line sorts one line in a buffer of twice its length.
func (s *sorting[T, I]) line(args []device.Arg, line int, buf []I) {
	x, first := values[T](args[2], s.outer*s.inner*s.n), s.first(line, s.n)
	all, room := buf[:s.n], buf[s.n:2*s.n]
	switch {
	case s.k*8 <= s.n && s.n > fewItems:
		all = s.smallest(x, first, 0, s.n, room[:0])
	default:
		s.load(all, x[first:], 0, s.inner, s.flip)
		all = s.method.sorted(s.method.firstOf(all, s.k, room), room)
	}
	s.store(args, line, x[first:], all, 0, s.k)
}

// wholeLine is line by a number of threads.
func (s *sorting[T, I]) wholeLine(args []device.Arg, line, threads int) {
	buf := s.spare.get()
	defer s.spare.put(buf)
	x, first := values[T](args[2], s.outer*s.inner*s.n), s.first(line, s.n)
	all, room := (*buf)[:s.n], (*buf)[s.n:2*s.n]
	size := (s.n + threads - 1) / threads
	if s.k*8 <= size {
		kept := make([][]I, threads)
		par.For(s.n, size, func(lo, hi int) { kept[lo/size] = s.smallest(x, first, lo, hi, room[lo:lo:hi]) })
		all = slices.Concat(kept...)
		s.method.few(all)
	} else {
		par.For(s.n, size, func(lo, hi int) { s.load(all[lo:hi], x[first+lo*s.inner:], lo, s.inner, s.flip) })
		all = s.method.sortedBy(threads, s.method.firstOf(all, s.k, room), room)
	}
	par.For(s.k, (s.k+threads-1)/threads, func(lo, hi int) { s.store(args, line, x[first:], all, lo, hi) })
}

// first is the place of the first element of a line in a value with n elements in each.
func (s *sorting[T, I]) first(line, n int) int { return line/s.inner*n*s.inner + line%s.inner }

// store writes elements lo to hi of a line that is in order.
func (s *sorting[T, I]) store(args []device.Arg, line int, x []T, best []I, lo, hi int) {
	total, to := s.outer*s.inner*s.k, s.first(line, s.k)
	values, places := values[T](args[0], total), values[int64](args[1], total)
	for j := lo; j < hi; j++ {
		p := s.method.place(best[j])
		values[to+j*s.inner], places[to+j*s.inner] = x[p*s.inner], int64(p)
	}
}

// smallest are the first k of elements lo to hi of a line, in order: of all that come before a bound k are kept, whenever
// twice as many have gathered. The bound is the k-th best of those so far; at first a guess from a sample, which may leave
// too few.
func (s *sorting[T, I]) smallest(x []T, first, lo, hi int, kept []I) []I {
	bound, guessed := s.guess(x, first, lo, hi)
	if guessed {
		if all := s.upTo(x, first, lo, hi, kept, bound, true); len(all) >= s.k {
			return s.best(all)
		}
	}
	return s.best(s.upTo(x, first, lo, hi, kept, bound, false))
}

// best are the first k, in order.
func (s *sorting[T, I]) best(items []I) []I {
	if len(items) > s.k {
		s.method.part(items, s.k)
	}
	s.method.few(items[:s.k])
	return items[:s.k]
}

// guess is an item of elements lo to hi that some more than k of them should come before, if there are enough.
func (s *sorting[T, I]) guess(x []T, first, lo, hi int) (bound I, ok bool) {
	var sample [32]I
	rank := (len(sample)*s.k+hi-lo-1)/(hi-lo) + 3
	if rank > len(sample)/2 {
		return bound, false
	}
	stride := (hi - lo) / len(sample)
	s.load(sample[:], x[first+lo*s.inner:], lo, s.inner*stride, s.flip) // of their places only the order counts
	s.method.few(sample[:])
	return sample[rank-1], true
}

func (s *sorting[T, I]) upTo(x []T, first, lo, hi int, kept []I, bound I, bounded bool) []I {
	var tile [256]I
	for ; lo < hi; lo += len(tile) {
		part := tile[:min(len(tile), hi-lo)]
		s.load(part, x[first+lo*s.inner:], lo, s.inner, s.flip)
		if bounded {
			part = s.method.below(part, bound)
		}
		for len(part) > 0 {
			n := min(len(part), 2*s.k+64-len(kept))
			kept, part = append(kept, part[:n]...), part[n:]
			if len(kept) == 2*s.k+64 {
				s.method.part(kept, s.k)
				kept = kept[:s.k]
				bound, bounded = slices.MaxFunc(kept, s.method.compare), true
				part = s.method.below(part, bound)
			}
		}
	}
	return kept
}

// firstOf is the first k of items in the order in which they lie, which a sort by digits of keys alone needs.
func (m *method[I]) firstOf(items []I, k int, room []I) []I {
	if k == len(items) {
		return items
	}
	copy(room, items)
	m.part(room[:len(items)], k)
	return m.below(items, slices.MaxFunc(room[:k], m.compare))
}

// part puts the first k of the items, 0 < k < their number, before the others, by halves that a median of three makes.
func (m *method[I]) part(a []I, k int) {
	for len(a) > 16 {
		pivot := a[len(a)/2]
		if x, y := a[0], a[len(a)-1]; m.compare(x, pivot) > 0 == (m.compare(x, y) < 0) {
			pivot = x
		} else if m.compare(y, pivot) > 0 == (m.compare(y, x) < 0) {
			pivot = y
		}
		if n := m.split(a, pivot); k <= n { // 0 < n < len(a), as no two are equal
			a = a[:n]
		} else {
			a, k = a[n:], k-n
		}
	}
	m.few(a)
}

// sorted is a in order, in a or b: by comparisons where they are few, else digit by digit from the lowest.
func (m *method[I]) sorted(a, b []I) []I {
	if len(a) <= fewItems {
		m.few(a)
		return a
	}
	var counts [1][digits]uint32
	for pass := range m.passes {
		counts[0] = [digits]uint32{}
		m.digit(a, pass, &counts[0])
		if starts(counts[:], len(a)) {
			m.scatter(b[:len(a)], a, pass, &counts[0])
			a, b = b[:len(a)], a
		}
	}
	return a
}

// sortedBy is sorted by a number of threads, a part of the items each.
func (m *method[I]) sortedBy(threads int, a, b []I) []I {
	b = b[:len(a)]
	size := (len(a) + threads - 1) / threads
	counts := make([][digits]uint32, threads)
	for pass := range m.passes {
		clear(counts)
		par.For(len(a), size, func(lo, hi int) { m.digit(a[lo:hi], pass, &counts[lo/size]) })
		if starts(counts, len(a)) {
			par.For(len(a), size, func(lo, hi int) { m.scatter(b, a[lo:hi], pass, &counts[lo/size]) })
			a, b = b, a
		}
	}
	return a
}

// starts turns the numbers of each digit in each part into the places where these begin. It reports false where all n
// have one digit.
func starts(counts [][digits]uint32, n int) bool {
	next := uint32(0)
	for d := range digits {
		begin := next
		for p := range counts {
			c := counts[p][d]
			counts[p][d] = next
			next += c
		}
		if int(next-begin) == n {
			return false
		}
	}
	return true
}

// items is the method of keys of some bits above 32 bits of place.
func items(bits int) method[item] {
	return method[item]{
		compare: cmp.Compare[item],
		few:     sortFew,
		below: func(items []item, bound item) []item {
			n := 0
			for _, v := range items { // written always, as a branch would be guessed wrong
				items[n] = v
				if v <= bound {
					n++
				}
			}
			return items[:n]
		},
		split: func(items []item, pivot item) int {
			n := 0
			for i, v := range items {
				items[i] = items[n]
				items[n] = v
				if v < pivot {
					n++
				}
			}
			return n
		},
		passes: bits / digitBits,
		digit: func(items []item, pass int, counts *[digits]uint32) {
			shift := 32 + digitBits*pass
			for _, v := range items {
				counts[uint8(v>>shift)]++
			}
		},
		scatter: func(dst, src []item, pass int, next *[digits]uint32) {
			shift := 32 + digitBits*pass
			for _, v := range src {
				d := uint8(v >> shift)
				dst[next[d]] = v
				next[d]++
			}
		},
		place: func(v item) int { return int(uint32(v)) },
	}
}

// sortFew inserts where that is quickest.
func sortFew(a []item) {
	if len(a) > 24 {
		slices.Sort(a)
		return
	}
	for i := 1; i < len(a); i++ {
		v, j := a[i], i
		for ; j > 0 && a[j-1] > v; j-- {
			a[j] = a[j-1]
		}
		a[j] = v
	}
}

// before is a comparison.
func (a placed) before(b placed) int {
	if a.key != b.key {
		return cmp.Compare(a.key, b.key)
	}
	return cmp.Compare(a.at, b.at)
}

var placedKeys = method[placed]{
	compare: placed.before,
	few:     func(items []placed) { slices.SortFunc(items, placed.before) },
	below: func(items []placed, bound placed) []placed {
		n := 0
		for _, v := range items {
			if v.key < bound.key || v.key == bound.key && v.at <= bound.at {
				items[n] = v
				n++
			}
		}
		return items[:n]
	},
	split: func(items []placed, pivot placed) int {
		n := 0
		for i, v := range items {
			if v.before(pivot) < 0 {
				items[i], items[n] = items[n], v
				n++
			}
		}
		return n
	},
	passes: 64 / digitBits,
	digit: func(items []placed, pass int, counts *[digits]uint32) {
		for i := range items {
			counts[uint8(items[i].key>>(digitBits*pass))]++
		}
	},
	scatter: func(dst, src []placed, pass int, next *[digits]uint32) {
		for i := range src {
			d := uint8(src[i].key >> (digitBits * pass))
			dst[next[d]] = src[i]
			next[d]++
		}
	},
	place: func(v placed) int { return int(v.at) },
}

func loadF32(dst []item, x []uint32, first, step int, flip uint64) {
	for i := range dst {
		b := x[i*step]
		switch {
		case b&0x7fffffff > 0x7f800000:
			b = math.MaxUint32
		case b == 1<<31: // -0, whose key is 0's
		default:
			b ^= uint32(int32(b)>>31) | 1<<31
		}
		dst[i] = (uint64(b)<<32 ^ flip) | uint64(first+i)
	}
}

func loadI32(dst []item, x []uint32, first, step int, flip uint64) {
	for i := range dst {
		dst[i] = (uint64(x[i*step]^1<<31)<<32 ^ flip) | uint64(first+i)
	}
}

func loadU8(dst []item, x []uint8, first, step int, flip uint64) {
	for i := range dst {
		dst[i] = (uint64(x[i*step])<<32 ^ flip) | uint64(first+i)
	}
}

// load16 is for the dtype with these bits of infinity.
func load16(infinity uint16) func(dst []item, x []uint16, first, step int, flip uint64) {
	return func(dst []item, x []uint16, first, step int, flip uint64) {
		for i := range dst {
			b := x[i*step]
			switch {
			case b&0x7fff > infinity:
				b = math.MaxUint16
			case b == 1<<15:
			default:
				b ^= uint16(int16(b)>>15) | 1<<15
			}
			dst[i] = (uint64(b)<<32 ^ flip) | uint64(first+i)
		}
	}
}

func loadF64(dst []placed, x []uint64, first, step int, flip uint64) {
	for i := range dst {
		b := x[i*step]
		switch {
		case b&^(1<<63) > 0x7ff<<52:
			b = math.MaxUint64
		case b == 1<<63:
		default:
			b ^= uint64(int64(b)>>63) | 1<<63
		}
		dst[i] = placed{b ^ flip, uint32(first + i)}
	}
}

func loadI64(dst []placed, x []uint64, first, step int, flip uint64) {
	for i := range dst {
		dst[i] = placed{x[i*step] ^ 1<<63 ^ flip, uint32(first + i)}
	}
}
