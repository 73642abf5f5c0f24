package kineto

// parsed is an event as it stands in the window: slices of it, and numbers.
type parsed struct {
	ph             byte
	cat, name      []byte
	pid, tid       []byte
	start, dur     int64
	hasStart, bad  bool // bad: a number that is none
	hasCat         bool
	shapes, types  []byte
	stack          []byte
	correlation    int64
	stream, device int64
	hasStream      bool
	bytes          int64
	blocks         []byte // blocks per multiprocessor
	graph          int64
	pyID           int64
	allocated      int64
	reserved       int64
	onDevice       bool   // of memory events
	label          []byte // of a row
	coll           parsedCollective
}

// parsedCollective are the arguments of a collective's kernel.
type parsedCollective struct {
	found                     bool
	name, group, ranks, dtype []byte
	size, seq, in, out        int64
	p2p                       bool
}

// event reads the event at b[i] and gives the index behind it.
func (p *parsed) event(w *window, b []byte, i int) int {
	*p = parsed{correlation: -1, coll: parsedCollective{seq: -1}}
	return w.members(b, i, func(key []byte, at int) int {
		if string(key) == "args" && at < len(b) && b[at] == '{' {
			return w.members(b, at, func(key []byte, at int) int { return p.argument(w, b, key, at) })
		}
		next := w.skip(b, at)
		if next > 0 {
			p.member(key, b[at:next])
		}
		return next
	})
}

// content is a string without its quotes, and any other value as it stands.
func content(v []byte) []byte {
	if len(v) >= 2 && v[0] == '"' {
		return v[1 : len(v)-1]
	}
	return v
}

func (p *parsed) member(key, v []byte) {
	switch string(key) {
	case "ph":
		if c := content(v); len(c) > 0 {
			p.ph = c[0]
		}
	case "cat":
		p.cat, p.hasCat = content(v), true
	case "name":
		p.name = content(v)
	case "pid":
		p.pid = content(v)
	case "tid":
		p.tid = content(v)
	case "ts":
		var ok bool
		p.start, ok = microseconds(content(v))
		p.hasStart, p.bad = true, p.bad || !ok
	case "dur":
		var ok bool
		p.dur, ok = microseconds(content(v))
		p.bad = p.bad || !ok
	}
}

func (p *parsed) argument(w *window, b []byte, key []byte, at int) int {
	next := w.skip(b, at)
	if next < 0 || len(key) == 0 {
		return next
	}
	v := content(b[at:next])
	switch string(key) {
	case "correlation":
		p.correlation = number(v, -1)
	case "stream":
		p.stream, p.hasStream = integer(v)
	case "device":
		p.device = number(v, 0)
	case "bytes":
		p.bytes = number(v, 0)
	case "size":
		if p.bytes == 0 {
			p.bytes = number(v, 0)
		}
	case "blocks per SM":
		p.blocks = v
	case "Input Dims", "Input dims":
		p.shapes = v
	case "Input type":
		p.types = v
	case "Call stack":
		p.stack = v
	case "graph id":
		p.graph = number(v, 0)
	case "Python id":
		p.pyID = number(v, 0)
	case "name":
		p.label = v
	case "Device Type":
		p.onDevice = number(v, 0) != 0
	case "Total Allocated":
		p.allocated = number(v, 0)
	case "Total Reserved":
		p.reserved = number(v, 0)
	default:
		p.coll.argument(key, v)
	}
	return next
}

func (c *parsedCollective) argument(key, v []byte) {
	switch string(key) {
	case "Collective name":
		c.name, c.found = v, true
	case "Process Group Name":
		c.group, c.found = v, true
	case "Process Group Ranks":
		c.ranks = v
	case "Group size":
		c.size = number(v, 0)
	case "In msg nelems":
		c.in = number(v, 0)
	case "Out msg nelems":
		c.out = number(v, 0)
	case "dtype":
		c.dtype = v
	case "Seq":
		c.seq = number(v, -1)
	case "Src Rank", "Dst Rank":
		c.p2p = true
	}
}

// number is a whole number, or what it is without one.
func number(v []byte, without int64) int64 {
	if n, ok := integer(v); ok {
		return n
	}
	return without
}
