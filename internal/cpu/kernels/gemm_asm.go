//go:build !purego && (amd64 || arm64)

package kernels

import (
	"sync"
	"unsafe"

	"github.com/warpline-ml/warpline/internal/hostmem"
	"github.com/warpline-ml/warpline/internal/par"
)

// Products by micro-kernels. k is split into slices. For each, A is packed
// into panels of up to 14 rows and B into panels of 32 columns (6 and 16 with
// AVX2), and then the tiles of C are computed. An operand that is read too few
// times to pay for packing is used as it lies.
//
// Every element of C is one chain of multiply-adds per slice, in the order of
// k, so it has the same bits whichever tile, block or thread computes it.

const (
	blockM       = 2048    // most rows packed at a time; bounds the buffer of A
	leastParts   = 32      // parts to split a block in, if its size allows
	someColumns  = 4       // panels of B for each thread, from which on parts are columns
	mostColumns  = 8       // such parts for each thread
	leastHeight  = 4       // no set has tiles of fewer rows
	neverPack    = 64      // up to so many rows of C, neither rows of A nor B are packed for their distances,
	packRows     = 512     // above as many always
	packCols     = 512     // above as many columns of C, more rows of A always
	farStep      = 4096    // and below that if its lines, so many bytes apart, fall into one set of the cache
	ways         = 8       // which holds so many of them
	closeSteps   = 2048    // steps of B a multiple of that apart fall into a set or two, and push out the lines of an A as it lies
	fewBeside    = 16      // fewer panels than that are packed one by one
	parallelWork = 1 << 19 // least multiply-adds to share
	largeBuffer  = 1 << 17 // bytes from which on a buffer takes whole large pages
	batchWork    = 1 << 22 // least multiply-adds of a product in a batch to share it alone
)

// span is a range of indexes.
type span struct{ from, n int }

// split divides n things in parts that differ by one at most.
type split struct{ n, parts int }

func splitBy(n, most int) split { return split{n, max(1, ceilDiv(n, most))} }

// part returns part i: the first ones are the larger ones.
func (s split) part(i int) span {
	n, more := s.n/s.parts, s.n%s.parts
	if i < more {
		return span{(n + 1) * i, n + 1}
	}
	return span{n*i + more, n}
}

// A product is a multiplication under way. It is used again for later ones:
// its buffers and functions cost too much to make for each.
type product struct {
	source       Product[float32] // also keeps the operands alive; of float64 in words
	batch        []BatchDim
	set          *kernelSet
	shared       bool // use all threads
	a, b         operand
	packA, packB bool
	c, bias      unsafe.Pointer
	cs           int // bytes between rows of C
	first, last  int // flags of the first and the last slice of k

	// The piece of the product that is being worked on, and how.
	rows, cols span
	pass
	heights split // rows in panels
	packNow [2]bool
	across  int  // parts that share a panel of A
	once    bool // a panel of A is packed when it is read, where the one before was

	vector vectorProduct

	bufA, bufB hostmem.Block
	// The loops of the phases, made once.
	packLoop, computeLoop, columnLoop, vectorLoop, batchLoop func(lo, hi int)
}

// pass is a slice of k, and how it is computed.
type pass struct {
	steps  span
	flags  int  // of its tiles
	finish bool // apply what the micro-kernels do not
	round  bool // to bfloat16
}

// idle holds the products that are not in use: as many as ever ran at once.
var idle struct {
	sync.Mutex
	list []*product
}

func acquire() *product {
	idle.Lock()
	defer idle.Unlock()
	if n := len(idle.list); n > 0 {
		p := idle.list[n-1]
		idle.list = idle.list[:n-1]
		return p
	}
	p := new(product)
	p.packLoop, p.computeLoop, p.columnLoop = p.packParts, p.computeParts, p.computeColumns
	p.vectorLoop, p.batchLoop = p.vectorParts, p.batchParts
	return p
}

// release returns p to the list, without the operands.
func (p *product) release() {
	p.source, p.vector = Product[float32]{}, vectorProduct{}
	p.a, p.b, p.c, p.bias = operand{}, operand{}, nil, nil
	idle.Lock()
	defer idle.Unlock()
	idle.list = append(idle.list, p)
}

// multiplyAssembly computes a batch of products if the level has
// micro-kernels. It reports whether it did.
func multiplyAssembly(q *Product[float32], batch []BatchDim, count int, e elements) bool {
	set := setOf(e)
	if set == nil {
		return false
	}
	p := acquire()
	defer p.release()
	p.source, p.set = *q, set
	p.batch = p.batch[:0]
	for _, d := range batch {
		p.batch = append(p.batch, BatchDim{d.Size, d.A * e.words(), d.B * e.words(), d.C * e.words()})
	}
	work := q.M * q.N * q.K
	if count > 1 && work < batchWork {
		p.shareBatch(count, work)
		return true
	}
	for i := range count {
		e := q.element(p.batch, i)
		p.element(&e, work >= parallelWork)
	}
	return true
}

// shareBatch runs products that are too small to be shared one by one.
func (p *product) shareBatch(count, work int) {
	if count*work < parallelWork {
		p.batchParts(0, count)
		return
	}
	par.For(count, ceilDiv(parallelWork/4, max(work, 1)), p.batchLoop)
}

// batchParts computes the products from lo to hi of a batch.
func (p *product) batchParts(lo, hi int) {
	q := acquire()
	defer q.release()
	q.set = p.set
	for i := lo; i < hi; i++ {
		e := p.source.element(p.batch, i)
		q.element(&e, false)
	}
}

// element computes one product. Where the system has no memory for the
// buffers, Go does it without.
func (p *product) element(e *Product[float32], shared bool) {
	p.source, p.shared = *e, shared
	if p.set.elements == singles && p.row() {
		return
	}
	if !p.prepare() {
		p.withoutMemory(e)
		return
	}
	p.run()
}

// withoutMemory computes one product in Go.
func (p *product) withoutMemory(e *Product[float32]) {
	switch p.set.elements {
	case halves:
		multiplyPairs(e)
	case doubles:
		d := doublesOf(e)
		multiplyGo(&d, nil, 1)
	default:
		multiplyGo(e, nil, 1)
	}
}

// prepare decides what to pack, and makes the buffers. It reports whether
// there was memory for them.
func (p *product) prepare() bool {
	q, lanes, size := &p.source, p.set.lanes(), p.set.size
	p.a, p.b = operandOf(q.A, q.ARow, q.ACol), operandOf(q.B, q.BCol, q.BRow)
	if q.K == 0 { // nothing to read: form no addresses outside of A and B
		p.a, p.b = operand{}, operand{}
	}
	p.a.zip(q.zip.highA, q.zip.steps)
	p.b.zip(q.zip.highB, q.zip.steps)
	p.c, p.cs = unsafe.Pointer(unsafe.SliceData(q.C)), 4*q.CRow
	p.bias = unsafe.Pointer(unsafe.SliceData(q.Bias))
	p.first, p.last = 0, 0
	if q.Accumulate {
		p.first = accumulate
	}
	if q.Bias != nil {
		p.last |= addBias
	}
	if q.Act == ActReLU && q.Before == nil {
		p.last |= relu
	}
	few := q.M <= neverPack && p.a.step == size && p.b.step%closeSteps != 0 &&
		(p.a.lane%farStep != 0 || splitBy(q.M, p.set.height).part(0).n+2 <= ways) // a tile reads two vectors of B
	p.packA = p.a.high != 0 || p.a.lane != size && (p.a.step != size || !p.set.rows) ||
		!few && (q.N > packCols || q.N > lanes && max(p.a.lane, p.a.step) >= farStep)
	p.packB = q.M > packRows || q.M > neverPack && p.b.step >= farStep ||
		p.b.lane != size // the kernels read vectors of B
	return p.growBuffers()
}

// slices splits k, and tall and wide the rows and the panels of B.
func (p *product) slices() split { return splitBy(p.source.K, p.set.stepsK) }

func (p *product) tall() split { return splitBy(p.source.M, blockM) }

func (p *product) wide() split {
	panels := ceilDiv(p.source.N, p.set.lanes())
	if p.source.M <= neverPack && !p.packB { // parts are small enough, and threads wait for each other once
		return split{panels, 1}
	}
	return splitBy(panels, p.most())
}

// most is the number of panels of B that stay in the second cache.
func (p *product) most() int { return p.set.columns / p.set.lanes() }

func (p *product) growBuffers() bool {
	most := p.slices().part(0).n
	ok := true
	if p.packA {
		panels := ceilDiv(p.tall().part(0).n, p.set.height)
		ok = grow(&p.bufA, p.set.size*p.set.laneA*most*panels)
	}
	panels := 0
	switch {
	case p.packB:
		panels = p.wide().part(0).n
	case p.source.N%p.set.vector != 0:
		panels = 1
	}
	ok = grow(&p.bufB, p.set.size*p.set.lanes()*most*panels) && ok
	return ok
}

// grow makes a buffer hold n bytes; what it held is lost. It reports whether
// there was memory. Large ones are of large pages: wherever small ones lie in
// memory, more of them than it has ways may fall into a set of the second cache.
func grow(b *hostmem.Block, n int) bool {
	if n <= b.Size {
		return true
	}
	if n >= largeBuffer {
		n = ceilDiv(n, hostmem.LargePage) * hostmem.LargePage
	}
	bigger, err := hostmem.Alloc(n)
	if err != nil {
		return false
	}
	if err := b.Free(); err != nil {
		panic(err) // the block is our own: only a bug can make it unknown to the system
	}
	*b = bigger
	return true
}

// run walks over the product in pieces whose packed operands fit in the
// buffers, all of them for one slice of k before the next. Where nothing is
// packed each part goes through all slices, and threads wait for each other
// once.
func (p *product) run() {
	for s := range p.slices().parts {
		if p.pass = p.sliced(s); s == 0 || !p.unpacked() {
			p.slice()
		}
	}
}

// unpacked reports whether all operands are used as they lie.
func (p *product) unpacked() bool {
	return !p.packA && !p.packB && p.source.N%p.set.vector == 0
}

// sliced is slice s of k.
func (p *product) sliced(s int) pass {
	slices := p.slices()
	w := pass{steps: slices.part(s), flags: accumulate}
	if s == 0 {
		w.flags = p.first
	}
	if s == slices.parts-1 {
		w.flags |= p.last
		w.finish = p.source.Act > ActReLU || p.source.Before != nil
		w.round = p.set.elements == halves
	}
	return w
}

// slice computes one slice of k.
func (p *product) slice() {
	tall, wide, lanes := p.tall(), p.wide(), p.set.lanes()
	for i := range tall.parts {
		if p.rows = tall.part(i); p.byColumns() {
			p.cols, p.heights = span{0, p.source.N}, splitBy(p.rows.n, p.set.height)
			p.across = min(p.panelsB(), mostColumns*par.Threads())
			p.phase(p.across, 1, p.columnLoop)
			continue
		}
		p.heights = splitBy(p.rows.n, p.set.height)
		for j := range wide.parts {
			panels := wide.part(j)
			left := panels.from * lanes
			p.cols = span{left, min(panels.n*lanes, p.source.N-left)}
			p.packNow = [2]bool{p.packA && j == 0, p.packB || p.cols.n%p.set.vector != 0}
			p.across = min(panels.n, max(ceilDiv(leastParts, p.heights.parts), ceilDiv(panels.n, p.most())))
			p.once = p.packNow[0] && p.a.step == p.set.size && p.across == 1 && wide.parts == 1
			p.packNow[0] = p.packNow[0] && !p.once
			p.phase(p.panelsToPack(), p.packGrain(), p.packLoop)
			p.phase(p.heights.parts*p.across, p.computeGrain(), p.computeLoop)
		}
	}
}

// byColumns reports whether the parts of a piece are columns, for all of its rows: where these are few, nothing is packed, and every thread
// has some, a panel of B is read once for all rows, and no thread reads what another does. Kernels with masks, whose panels are larger, were
// not measured.
func (p *product) byColumns() bool {
	return p.source.M <= neverPack && p.shared && ceilDiv(p.source.N, p.set.lanes()) >= someColumns*par.Threads() &&
		p.unpacked() && !p.set.masks && !p.sliced(p.slices().parts-1).finish
}

// packGrain is the number of panels to pack in one go: where rows of A lie side by side, as many as there are for a thread,
// which reads on along them.
func (p *product) packGrain() int {
	if p.packNow[0] && p.a.lane == p.set.size && !p.set.masks {
		return ceilDiv(p.panelsToPack(), par.Threads())
	}
	return 1
}

// computeGrain is the number of panels of A that have one place in its buffer, one after the other.
func (p *product) computeGrain() int {
	if p.once {
		return ceilDiv(p.heights.parts, leastParts)
	}
	return 1
}

// phase runs a loop over parts, so many at a time.
func (p *product) phase(parts, grain int, loop func(lo, hi int)) {
	if p.shared {
		par.For(parts, grain, loop)
	} else if parts > 0 {
		loop(0, parts)
	}
}

// panelsB is the number of panels of B in the piece, and firstB the first one
// that is packed: the last one at least if its columns fill no vector.
func (p *product) panelsB() int { return ceilDiv(p.cols.n, p.set.lanes()) }

func (p *product) firstB() int {
	if p.packB {
		return 0
	}
	return p.panelsB() - 1
}

func (p *product) panelsToPack() int {
	n := 0
	if p.packNow[0] {
		n += p.heights.parts
	}
	if p.packNow[1] {
		n += p.panelsB() - p.firstB()
	}
	return n
}

// packParts packs panels of A and, after them, of B.
func (p *product) packParts(lo, hi int) {
	panelsA := 0
	if p.packNow[0] {
		panelsA = p.heights.parts
	}
	if lo < panelsA {
		p.packRows(lo, min(hi, panelsA))
	}
	lanes := p.set.lanes()
	for i := max(lo, panelsA); i < hi; i++ {
		j := i - panelsA + p.firstB()
		p.b.pack(p.panelB(j), p.set, lanes, span{p.cols.from + j*lanes, min(lanes, p.cols.n-j*lanes)}, p.steps)
	}
}

// packRows packs panels of A from lo to hi. Those of one height whose rows lie side by side go together.
func (p *product) packRows(lo, hi int) {
	for lo < hi {
		rows, same := p.heights.part(lo), 1
		for lo+same < hi && p.heights.part(lo+same).n == rows.n {
			same++
		}
		if same < fewBeside || !p.a.packBeside(p.panelA(lo), p.set, p.below(rows), same, p.steps) {
			same = 1
			p.packPanel(lo, lo)
		}
		lo += same
	}
}

// packPanel packs panel i of A at the place of another.
func (p *product) packPanel(i, place int) {
	p.a.pack(p.panelA(place), p.set, p.set.laneA, p.below(p.heights.part(i)), p.steps)
}

// below is a span of the rows of the piece in A.
func (p *product) below(rows span) span { return span{p.rows.from + rows.from, rows.n} }

func (p *product) panelA(i int) unsafe.Pointer {
	return unsafe.Add(hostmem.Pointer(p.bufA.Addr), p.set.size*p.set.laneA*p.steps.n*i)
}

func (p *product) panelB(j int) unsafe.Pointer {
	return unsafe.Add(hostmem.Pointer(p.bufB.Addr), p.set.size*p.set.lanes()*p.steps.n*(j-p.firstB()))
}

// computeParts computes parts of the piece: a panel of A by some panels of B
// each.
func (p *product) computeParts(lo, hi int) {
	columns := split{p.panelsB(), p.across}
	for i := lo; i < hi; i++ {
		panel := i % p.heights.parts
		place := panel
		if p.once { // the place is of this thread, and in its first cache
			place = lo
			p.packPanel(panel, place)
		}
		part := columns.part(i / p.heights.parts)
		p.compute(&p.pass, panel, place, part)
		for s := 1; s < p.slices().parts && p.unpacked(); s++ {
			w := p.sliced(s)
			p.compute(&w, panel, place, part)
		}
	}
}

// computeColumns computes parts of the piece that are panels of B by all of its rows.
func (p *product) computeColumns(lo, hi int) {
	columns := split{p.panelsB(), p.across}
	for i := lo; i < hi; i++ {
		for s := range p.slices().parts {
			w := p.sliced(s)
			p.column(&w, columns.part(i))
		}
	}
}

// column multiplies all rows with some panels of B, one after the other.
func (p *product) column(w *pass, panels span) {
	var all [neverPack / leastHeight]tile
	tiles, lanes, wide := all[:p.heights.parts], p.set.lanes(), p.set.size*p.set.lanes()
	for i := range tiles {
		rows := p.heights.part(i)
		tiles[i] = tile{k: w.steps.n, flags: w.flags, cs: p.cs, rows: rows.n, bs: p.b.step}
		p.locateA(&tiles[i], i, rows.from, w.steps.from)
	}
	for j := panels.from; j < panels.from+panels.n; j++ {
		b, columns := p.b.at(j*lanes, w.steps.from), min(lanes, p.source.N-j*lanes)
		for i := range tiles {
			t := &tiles[i]
			t.b, t.c = b, unsafe.Add(p.c, p.heights.part(i).from*p.cs+j*wide)
			if p.bias != nil {
				t.bias = unsafe.Add(p.bias, j*wide)
			}
			p.set.computeTile(t, columns)
		}
	}
}

// compute multiplies panel i of A, packed at the place of another, with some panels of B, which come from the
// second cache while the panel of A stays in the first.
func (p *product) compute(w *pass, i, place int, panels span) {
	b := p.block(i, panels)
	if w.round && w.flags&accumulate == 0 {
		p.computeRounded(w, i, place, panels, b)
		return
	}
	at := b.top*p.source.CRow + b.left*p.set.words()
	p.tiles(w, i, place, panels, unsafe.Add(p.c, 4*at), p.cs)
	if !w.finish && !w.round {
		return
	}
	for r := range b.rows {
		c := p.source.C[at+r*p.source.CRow:][:b.cols*p.set.words()]
		if w.finish {
			p.activate(c, b.top+r, b.left)
		}
		if w.round {
			p.source.zip.round(c, at+r*p.source.CRow)
		}
	}
}

// block is a part of C.
type block struct{ top, left, rows, cols int }

// block is the part of C that panel i of A and some panels of B make.
func (p *product) block(i int, panels span) block {
	rows, left := p.heights.part(i), panels.from*p.set.lanes()
	return block{p.rows.from + rows.from, p.cols.from + left, rows.n, min(panels.n*p.set.lanes(), p.cols.n-left)}
}

// computeRounded is compute where sums are done in one slice of k: they need
// not go to memory.
func (p *product) computeRounded(w *pass, i, place int, panels span, b block) {
	var sums [maxHeight][maxColumns]float32
	p.tiles(w, i, place, panels, unsafe.Pointer(&sums), int(unsafe.Sizeof(sums[0])))
	for r := range b.rows {
		p.source.zip.round(sums[r][:b.cols], (b.top+r)*p.source.CRow+b.left)
	}
}

// tiles computes the tiles of a block of C, which begins at c and whose rows
// are cs bytes apart. What does not change is worked out before: a tile takes
// half a microsecond.
func (p *product) tiles(w *pass, i, place int, panels span, c unsafe.Pointer, cs int) {
	rows, lanes, wide := p.heights.part(i), p.set.lanes(), p.set.size*p.set.lanes()
	t := tile{k: w.steps.n, flags: w.flags, cs: cs, rows: rows.n, vectors: 2, mask: uint32(1<<lanes - 1)}
	p.locateA(&t, place, p.rows.from+rows.from, w.steps.from)
	left := p.cols.from + panels.from*lanes
	var b unsafe.Pointer
	next := wide // from a panel of B to the next
	if p.packB {
		b, t.bs, next = p.panelB(panels.from), wide, wide*t.k
	} else {
		b, t.bs = p.b.at(left, w.steps.from), p.b.step
	}
	whole := min(panels.n, p.cols.n/lanes-panels.from)
	for j := range panels.n {
		t.b, t.c = unsafe.Add(b, j*next), unsafe.Add(c, j*wide)
		if p.bias != nil {
			t.bias = unsafe.Add(p.bias, p.set.size*left+j*wide)
		}
		if j < whole {
			p.set.compute(&t)
			continue
		}
		if p.cols.n%p.set.vector != 0 {
			t.b, t.bs = p.panelB(panels.from+j), wide
		}
		p.set.computeTile(&t, p.cols.n%lanes)
	}
}

// activate applies the activation to a part of a row of C.
func (p *product) activate(c []float32, row, left int) {
	if p.set.elements == doubles {
		d := doublesOf(&p.source)
		d.activate(as[float64](c), row, left)
		return
	}
	p.source.activate(c, row, left)
}

// locateA tells the tile where a panel of A is, whose first row is top and whose first step is step: packed at place i, or
// in A.
func (p *product) locateA(t *tile, i, top, step int) {
	switch {
	case p.packA:
		t.a, t.as = p.panelA(i), p.set.size*p.set.laneA
	case p.a.step == p.set.size:
		t.a, t.as = p.a.at(top, step), p.a.lane
		t.flags |= byRows
	default:
		t.a, t.as = p.a.at(top, step), p.a.step
	}
}
