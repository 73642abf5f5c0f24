package tensormap

// Run is bytes of a box that lie one after the other in the tensor and, but for the swizzle, in shared memory.
type Run struct {
	At     int    // in the box
	Addr   uint64 // in global memory; of no meaning outside
	Bytes  int
	Inside bool // of the tensor; what is outside is filled, and never stored
}

// BoxBytes is what a box takes in shared memory, and what its copy counts for an mbarrier.
func (m *Map) BoxBytes() int {
	if m.Im2col {
		return m.Pixels * m.rowBytes() * m.slices()
	}
	n := m.rowBytes() * m.slices()
	for i := 1; i < m.Rank; i++ {
		n *= m.extent(i)
	}
	return n
}

// Span is the bytes of shared memory within which a box lies: with a swizzle whole lines of 128, since units of 16 bytes are
// exchanged within those.
func (m *Map) Span() int {
	n := m.BoxBytes()
	if m.Swizzle != NoSwizzle {
		n = (n + 127) / 128 * 128
	}
	return n
}

// extent is the elements of a box in a dimension.
func (m *Map) extent(i int) int { return (m.Box[i] + m.Step[i] - 1) / m.Step[i] }

// channels is the elements of a box in dimension 0, whose element stride means nothing.
func (m *Map) channels() int {
	if m.Im2col {
		return m.Channels
	}
	return m.Box[0]
}

// rowBytes is what lies together of a pixel: all its channels, or a slice of them.
func (m *Map) rowBytes() int {
	if slice := m.Interleave.Bytes(); slice > 0 {
		return slice
	}
	return m.channels() * m.Elem.Bytes()
}

// slices is how many of them a pixel has.
func (m *Map) slices() int {
	if m.Interleave == NoInterleave {
		return 1
	}
	per := m.Interleave.Bytes() / m.Elem.Bytes()
	return (m.channels() + per - 1) / per
}

// Runs appends the runs of the box at some coordinates, in the order of shared memory. offsets are those of im2col: what is
// added to the position of each pixel.
func (m *Map) Runs(list []Run, coords []int32, offsets []uint16) []Run {
	if m.Im2col {
		return m.im2col(list, coords, offsets)
	}
	var at, i [MaxRank]int64
	for d := range m.Rank {
		at[d] = int64(coords[d])
	}
	r := runs{m: m, list: list}
	outer := m.Rank - 1
	if m.Interleave != NoInterleave {
		outer-- // slices are between images and pixels
	}
	images := 1
	if outer < m.Rank-1 {
		images = m.extent(m.Rank - 1)
	}
	for n := range images {
		for s := range m.slices() {
			clear(i[:])
			i[m.Rank-1] = int64(n * m.Step[m.Rank-1])
			for more := true; more; more = m.next(&i, outer) {
				var p [MaxRank]int64
				for d := 1; d < m.Rank; d++ {
					p[d] = at[d] + i[d]
				}
				r.row(at[0], s, &p)
			}
		}
	}
	return r.list
}

// Rows is the box at some coordinates where it is a plain one of two dimensions inside of the tensor: rows of so many bytes, from an
// address on, a stride apart.
func (m *Map) Rows(coords []int32) (addr uint64, rows, bytes int, plain bool) {
	if m.Rank != 2 || m.Interleave != NoInterleave || m.Step[1] != 1 {
		return 0, 0, 0, false
	}
	x, y := int64(coords[0]), int64(coords[1])
	if x < 0 || y < 0 || uint64(x)+uint64(m.Box[0]) > m.Dim[0] || uint64(y)+uint64(m.Box[1]) > m.Dim[1] {
		return 0, 0, 0, false
	}
	size := m.Elem.Bytes()
	return m.Addr + uint64(x)*uint64(size) + uint64(y)*m.Stride[1], m.Box[1], m.Box[0] * size, true
}

// next steps to the next row in dimensions 1 to last.
func (m *Map) next(i *[MaxRank]int64, last int) bool {
	for d := 1; d <= last; d++ {
		if i[d] += int64(m.Step[d]); i[d] < int64(m.Box[d]) {
			return true
		}
		i[d] = 0
	}
	return false
}

// runs collects runs.
type runs struct {
	m    *Map
	list []Run
	at   int
}

// row adds slice s of the channels from c on of the pixel at p.
func (r *runs) row(c int64, s int, p *[MaxRank]int64) {
	m := r.m
	size := int64(m.Elem.Bytes())
	n := int64(m.rowBytes()) / size
	base, inside := m.Addr, true
	for d := 1; d < m.Rank; d++ {
		inside = inside && p[d] >= 0 && uint64(p[d]) < m.Dim[d]
		base += uint64(p[d]) * m.Stride[d]
	}
	first, limit := c, int64(m.Dim[0])
	if m.Interleave != NoInterleave {
		first += int64(s) * n // a multiple of n
		base += uint64(floorDiv(first, n)) * m.sliceStride()
		base -= uint64(floorDiv(first, n) * n * size)
	}
	before, within := clamp(-first, n), clamp(limit-first, n)
	if !inside || within <= before {
		r.add(0, n*size, false)
		return
	}
	r.add(0, before*size, false)
	r.add(base+uint64((first+before)*size), (within-before)*size, true)
	r.add(0, (n-within)*size, false)
}

// sliceStride is how far the next slice of channels is: behind all pixels of an image.
func (m *Map) sliceStride() uint64 { return m.Dim[m.Rank-2] * m.Stride[m.Rank-2] }

func clamp(v, most int64) int64 { return min(max(v, 0), most) }

func floorDiv(a, b int64) int64 {
	if a < 0 {
		return -((-a + b - 1) / b)
	}
	return a / b
}

func (r *runs) add(addr uint64, n int64, inside bool) {
	if n > 0 {
		r.list = append(r.list, Run{r.at, addr, int(n), inside})
		r.at += int(n)
	}
}

// im2col walks pixels from the coordinates on, within the bounds: along the first dimension between channels and images,
// then the next, then the images.
func (m *Map) im2col(list []Run, coords []int32, offsets []uint16) []Run {
	r := runs{m: m, list: list}
	for s := range m.slices() {
		var p, q [MaxRank]int64
		for d := range m.Rank {
			p[d] = int64(coords[d])
		}
		for range m.Pixels {
			q = p
			for d := 1; d < m.Rank-1; d++ {
				q[d] += int64(offsets[d-1])
			}
			r.row(p[0], s, &q)
			m.nextPixel(&p)
		}
	}
	return r.list
}

func (m *Map) nextPixel(p *[MaxRank]int64) {
	for d := 1; d < m.Rank-1; d++ {
		if p[d] += int64(m.Step[d]); p[d] < int64(m.Dim[d])+int64(m.Upper[d-1]) {
			return
		}
		p[d] = int64(m.Lower[d-1])
	}
	p[m.Rank-1]++
}
