package litmus

// path is one way of a thread through its code. What it reads is not known yet: values are expressions of reads.
type path struct {
	events  []pathEvent
	demands []demand // what branches decided
	final   []*expr  // of the registers, at the end
}

// pathEvent is one access, fence or barrier of a path. An atomic is two: a read, and a write behind it.
type pathEvent struct {
	in      *Instruction
	writes  bool     // the store, or the write of an atomic
	value   *expr    // what it writes
	control uint64   // reads (indices into the path's events) that branches before it depend on
	args    [2]*expr // of a barrier: number and count; nil: none
}

// demand is that a comparison comes out as the path went.
type demand struct {
	a, b *expr
	cmp  compare
	want bool
}

// expr is a value: a constant, what an event of the path read, or arithmetic of such.
type expr struct {
	arith   arith
	args    []*expr
	number  int64
	read    int // index into the path's events, or -1
	depends uint64
}

func number64(v int64) *expr { return &expr{number: v, read: -1} }

func readOf(event int) *expr { return &expr{read: event, depends: 1 << event} }

func (e *expr) known() bool { return e.read < 0 && e.args == nil }

// apply is arithmetic, done at once where all is known.
func apply(a arith, args ...*expr) *expr {
	e := &expr{arith: a, args: args, read: -1}
	known := true
	for _, x := range args {
		e.depends |= x.depends
		known = known && x.known()
	}
	if known {
		v, _ := e.eval(nil)
		return number64(v)
	}
	return e
}

// eval is the value, if all that it needs has been read. read tells what an event of the path read.
func (e *expr) eval(read func(event int) (int64, bool)) (int64, bool) {
	if e.read >= 0 {
		return read(e.read)
	}
	if e.args == nil {
		return e.number, true
	}
	var v [3]int64
	for i, x := range e.args {
		var ok bool
		if v[i], ok = x.eval(read); !ok {
			return 0, false
		}
	}
	if e.arith == cas { // old, expected, new: a write that fails stores what was there
		if v[0] == v[1] {
			return v[2], true
		}
		return v[0], true
	}
	return operations[e.arith](v[0], v[1]), true
}

// same is whether two expressions are written alike.
func (e *expr) same(f *expr) bool {
	if e == f {
		return true
	}
	if e.arith != f.arith || e.number != f.number || e.read != f.read || len(e.args) != len(f.args) {
		return false
	}
	for i := range e.args {
		if !e.args[i].same(f.args[i]) {
			return false
		}
	}
	return true
}

// maxEvents is how many events one execution may have, the initial writes included: sets of them are words.
const maxEvents = 64

// stepsPerPath bounds the work on ways that come to nothing.
const stepsPerPath = 100

// unroller finds the paths of a thread.
type unroller struct {
	thread *Thread
	rounds int        // of a loop that writes
	alive  [][]bool   // registers that are read before they are written, at each instruction
	heads  []bool     // instructions that something behind them jumps to
	paths  []*path    // found
	cut    bool       // some loop went on beyond its rounds
	long   *walkState // a path with too many events, or nil
	limit  int        // of paths
	tooFew bool       // more paths than limit, or too many steps on the way to them
	steps  int        // taken

	wide []bool // locations whose accesses are all in one another's scope: there an atomic that changes nothing leaves no trace
}

// walkState is where a walk through the code is.
type walkState struct {
	at      int
	regs    []*expr
	path    path
	control uint64
	visits  map[int]visit
}

// visit is how a loop's head was reached last.
type visit struct {
	regs   []*expr
	events int // how many there were
	count  int
}

// unroll finds all paths of a thread. A round of a loop that comes back to where it was, with no register that matters
// changed and nothing written, is no path of its own: without its reads an execution has fewer orders to obey and the same
// end. So a loop that waits is complete with its last round; others are followed for so many rounds.
//
// An atomic that stores what it read counts as nothing written where all accesses are in one another's scope: atomicity puts
// it right behind the write that it read from, and whoever reads from it may as well read from that.
//
// told are the registers whose final values matter.
func unroll(th *Thread, told, wide []bool, rounds, limit int) *unroller {
	u := &unroller{thread: th, rounds: rounds, limit: limit, alive: liveness(th, told), wide: wide}
	u.heads = make([]bool, len(th.Code))
	for i, in := range th.Code {
		if in.op == opBranch && in.target <= i {
			u.heads[in.target] = true
		}
	}
	start := walkState{visits: map[int]visit{}}
	for _, v := range th.Init {
		start.regs = append(start.regs, number64(v))
	}
	u.walk(start)
	return u
}

// walk follows the code to its end; it calls itself where a branch may go both ways.
func (u *unroller) walk(s walkState) {
	for s.at < len(u.thread.Code) {
		u.steps++
		u.tooFew = u.tooFew || u.steps > stepsPerPath*u.limit
		if u.long != nil || u.tooFew || u.heads[s.at] && !u.enter(&s) {
			return
		}
		in := &u.thread.Code[s.at]
		if in.op == opBranch {
			if !u.branch(&s, in) {
				return
			}
			continue
		}
		u.step(&s, in)
		s.at++
		if len(s.path.events) > maxEvents {
			u.long = &s
			return
		}
	}
	s.path.final = s.regs
	if len(u.paths) == u.limit {
		u.tooFew = true
		return
	}
	u.paths = append(u.paths, &s.path)
}

// enter says whether a walk that comes to a loop's head goes on.
func (u *unroller) enter(s *walkState) bool {
	v, again := s.visits[s.at]
	if again && !u.effects(s, v.events) && u.unchanged(s.at, v.regs, s.regs) {
		return false
	}
	if v.count > u.rounds {
		u.cut = true
		return false
	}
	visits := make(map[int]visit, len(s.visits)+1)
	for at, old := range s.visits {
		visits[at] = old
	}
	visits[s.at] = visit{append([]*expr(nil), s.regs...), len(s.path.events), v.count + 1}
	s.visits = visits
	return true
}

// effects is whether the events from one on write something, or meet other threads at a barrier.
func (u *unroller) effects(s *walkState, from int) bool {
	for i := from; i < len(s.path.events); i++ {
		e := &s.path.events[i]
		if e.in.op == opBarrier || e.writes && !(e.in.op == opAtomic && u.wide[e.in.loc] && s.path.silent(i)) {
			return true
		}
	}
	return false
}

// silent is whether the write of an atomic stores what the atomic has read, by what branches decided.
func (p *path) silent(write int) bool {
	e, old := &p.events[write], readOf(write-1)
	switch e.in.arith {
	case cas:
		return e.value.args != nil && p.differ(old, e.value.args[1])
	case exch:
		return p.equal(old, e.value)
	}
	return e.in.arith == "add" && e.value.args != nil && e.value.args[1].known() && e.value.args[1].number == 0
}

// differ and equal are whether branches have found two values so.
func (p *path) differ(a, b *expr) bool {
	return p.decided(a, b, "!=", true) || p.decided(a, b, "==", false)
}
func (p *path) equal(a, b *expr) bool {
	return p.decided(a, b, "==", true) || p.decided(a, b, "!=", false)
}

func (p *path) decided(a, b *expr, c compare, want bool) bool {
	for _, d := range p.demands {
		if d.cmp == c && d.want == want && (d.a.same(a) && d.b.same(b) || d.a.same(b) && d.b.same(a)) {
			return true
		}
	}
	return false
}

func (u *unroller) unchanged(at int, a, b []*expr) bool {
	for r, live := range u.alive[at] {
		if live && !a[r].same(b[r]) {
			return false
		}
	}
	return true
}

// branch takes a branch, both ways if both are possible. It reports whether this walk goes on.
func (u *unroller) branch(s *walkState, in *Instruction) bool {
	if len(in.args) == 0 {
		s.at = in.target
		return true
	}
	a, b := s.operand(in.args[0]), s.operand(in.args[1])
	if a.known() && b.known() {
		s.at++
		if in.cmp.holds(a.number, b.number) {
			s.at = in.target
		}
		return true
	}
	s.control |= a.depends | b.depends
	taken := s.fork()
	taken.at = in.target
	taken.path.demands = append(taken.path.demands, demand{a, b, in.cmp, true})
	s.at++
	s.path.demands = append(s.path.demands, demand{a, b, in.cmp, false})
	u.walk(taken)
	return true
}

// fork is a copy of its own.
func (s *walkState) fork() walkState {
	c := *s
	c.regs = append([]*expr(nil), s.regs...)
	c.path.events = append([]pathEvent(nil), s.path.events...)
	c.path.demands = append([]demand(nil), s.path.demands...)
	return c
}

func (s *walkState) operand(v value) *expr {
	if v.reg < 0 {
		return number64(v.constant)
	}
	return s.regs[v.reg]
}

func (s *walkState) emit(e pathEvent) int {
	e.control = s.control
	s.path.events = append(s.path.events, e)
	return len(s.path.events) - 1
}

// step does what is no branch.
func (u *unroller) step(s *walkState, in *Instruction) {
	var args []*expr
	for _, v := range in.args {
		args = append(args, s.operand(v))
	}
	switch in.op {
	case opLocal:
		if in.arith == move {
			s.regs[in.dst] = args[0]
			return
		}
		s.regs[in.dst] = apply(in.arith, args...)
	case opLoad:
		s.regs[in.dst] = readOf(s.emit(pathEvent{in: in}))
	case opStore:
		s.emit(pathEvent{in: in, writes: true, value: args[0]})
	case opAtomic:
		old := readOf(s.emit(pathEvent{in: in}))
		s.emit(pathEvent{in: in, writes: true, value: stored(in.arith, old, args)})
		if in.dst >= 0 {
			s.regs[in.dst] = old
		}
	case opBarrier:
		e := pathEvent{in: in}
		copy(e.args[:], args)
		s.emit(e)
	default:
		s.emit(pathEvent{in: in})
	}
}

// stored is what an atomic writes.
func stored(a arith, old *expr, args []*expr) *expr {
	switch a {
	case exch:
		return args[0]
	case cas:
		return apply(cas, old, args[0], args[1])
	}
	return apply(a, old, args[0])
}

// liveness is which registers may still be read, before each instruction and at the end, where those are that are told.
func liveness(th *Thread, told []bool) [][]bool {
	n := len(th.Code)
	live := make([][]bool, n+1)
	for i := range live {
		live[i] = make([]bool, len(th.Registers))
	}
	copy(live[n], told)
	for changed := true; changed; {
		changed = false
		for i := n - 1; i >= 0; i-- {
			changed = flow(&th.Code[i], live[i], live[i+1], live) || changed
		}
	}
	return live
}

// flow adds to here what is alive before an instruction. It reports whether that is more than before.
func flow(in *Instruction, here, next []bool, live [][]bool) bool {
	changed := false
	add := func(r int) {
		if !here[r] {
			here[r], changed = true, true
		}
	}
	for r := range here {
		after := next[r]
		if in.op == opBranch {
			after = live[in.target][r] || len(in.args) > 0 && next[r]
		}
		if after && r != in.dst {
			add(r)
		}
	}
	for _, v := range in.args {
		if v.reg >= 0 {
			add(v.reg)
		}
	}
	return changed
}
