package kineto

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
)

// reading is a trace while it is read.
type reading struct {
	*Trace
	w    *window
	p    parsed
	cats map[string]*category
	cat  *category // of the last event
	last struct {  // of the last event, since the next is likely of the same row
		pid, tid []byte
		track    uint16
	}
	rows    map[[2]uint32]uint16
	streams map[[2]int64]uint16
	classes []class // of names
	ids     map[int64]uint32
	found   bool  // traceEvents, or a bare array of events
	viewed  *View // what the events are for, in place of what is judged; or nil
}

// category is one spelling of a category.
type category struct {
	kind  kind
	count int
}

// counts are what is counted of all events, kept or not.
type counts struct {
	events     int
	phases     map[string]int
	categories map[string]int
	keys       []string // of the file's outer object
	steps      int      // events of the host named ProfilerStep#N
	stepTime   int64
	loads      int        // waits for a DataLoader's next batch
	loader     int64      // time in them
	beyond     [kinds]int // events that were not kept
	negative   int        // durations below zero
	garbage    int        // times that are no numbers, or longer than a week
	unusable   int        // of them, events of a device
	broken     int        // events that are not JSON
	large      int        // events too large to look at
	processes  int        // that call the driver
	cut        string     // where the file breaks off, and how
}

// ErrNoTrace is what Read says of a file that has no events.
var ErrNoTrace = errors.New("no Chrome trace: neither an object with traceEvents nor an array of events")

// Read reads a Kineto or Chrome trace, decompressed, of any size in bounded memory. A file that breaks off, or turns into
// something else, is a trace up to there with a note; an error says that nothing could be read, or that ctx is done.
func Read(ctx context.Context, r io.Reader) (*Trace, error) { return readInto(ctx, r, nil) }

func readInto(ctx context.Context, r io.Reader, viewed *View) (*Trace, error) {
	a := readAhead(ctx, r)
	defer a.close()
	rd := &reading{
		Trace: &Trace{Rank: -1, names: newInterner()},
		w:     newWindow(a), cats: map[string]*category{}, rows: map[[2]uint32]uint16{}, streams: map[[2]int64]uint16{},
		classes: []class{0}, ids: map[int64]uint32{}, viewed: viewed,
	}
	rd.counts.phases, rd.counts.categories = map[string]int{}, map[string]int{}
	err := rd.file()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if !rd.found {
		if err == nil || errors.Is(err, ErrNoTrace) {
			return nil, ErrNoTrace
		}
		return nil, fmt.Errorf("byte %d, before any event: %w", rd.w.read(), err)
	}
	if rd.counts.events == 0 && err == nil && rd.counts.large > 0 {
		err = errTooLarge
	}
	if rd.counts.events == 0 && err != nil {
		return nil, fmt.Errorf("no event up to byte %d, where it breaks off: %w", rd.w.read(), err)
	}
	rd.Bytes, rd.control, rd.badUTF8 = rd.w.read(), rd.w.control, rd.w.badUTF8
	if err != nil {
		rd.counts.cut = fmt.Sprintf("cut at byte %d: %v", rd.w.read(), err)
	}
	for name, c := range rd.cats {
		rd.counts.categories[name] = c.count
	}
	if viewed != nil {
		viewed.finish(rd)
	} else {
		rd.finish()
	}
	return rd.Trace, nil
}

func (rd *reading) file() error {
	w := rd.w
	switch c := w.space(); c {
	case '[':
		return rd.events()
	case '{':
		w.pos++
		return rd.members()
	case 0xEF: // the byte order mark of UTF-8
		if bytes.HasPrefix(w.data(), []byte("\xEF\xBB\xBF")) {
			w.pos += 3
			return rd.file()
		}
	case 0:
		if w.err != nil && w.err != io.EOF {
			return w.err
		}
		return errors.New("an empty file")
	}
	return ErrNoTrace
}

// members reads the outer object.
func (rd *reading) members() error {
	w := rd.w
	for {
		switch c := w.space(); c {
		case 0:
			return w.ended()
		case '}':
			w.pos++
			return nil
		case ',':
			w.pos++
			continue
		case '"':
		default:
			return fmt.Errorf("byte %d: %q where a key should be", w.offset(), c)
		}
		k, err := w.value()
		if err != nil {
			return err
		}
		key := string(content(k))
		if c := w.space(); c != ':' {
			return fmt.Errorf("byte %d: no colon behind the key %.40q", w.offset(), key)
		}
		w.pos++
		if err := rd.outer(key); err != nil {
			return err
		}
	}
}

// ended is the error of a stream that ends where more should come.
func (w *window) ended() error {
	if w.err == nil || w.err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return w.err
}

const keysLimit = 200

func (rd *reading) outer(key string) error {
	w := rd.w
	if key == "traceEvents" {
		if w.space() != '[' {
			return fmt.Errorf("byte %d: traceEvents is no array", w.offset())
		}
		return rd.events()
	}
	if len(rd.counts.keys) < keysLimit && len(key) < 200 {
		rd.counts.keys = append(rd.counts.keys, key)
	}
	switch key {
	case "distributedInfo", "deviceProperties", "baseTimeNanoseconds":
	default:
		return w.pass()
	}
	v, err := w.value()
	if err != nil {
		return err
	}
	rd.metadata(key, v)
	return nil
}

// metadata takes what is known of the outer object's members; one of another form is left out.
func (rd *reading) metadata(key string, v []byte) {
	switch key {
	case "baseTimeNanoseconds":
		rd.Base, _ = strconv.ParseInt(string(content(v)), 10, 64)
	case "deviceProperties":
		_ = json.Unmarshal(v, &rd.Devices)
	case "distributedInfo":
		var d struct {
			Rank    *int           `json:"rank"`
			World   int            `json:"world_size"`
			Backend string         `json:"backend"`
			NCCL    string         `json:"nccl_version"`
			Groups  []ProcessGroup `json:"pg_config"`
		}
		_ = json.Unmarshal(v, &d)
		if d.Rank != nil {
			rd.Rank = *d.Rank
		}
		rd.World, rd.Backend, rd.NCCL, rd.Groups = d.World, d.Backend, d.NCCL, d.Groups
	}
}

// events reads the array of events.
func (rd *reading) events() error {
	w := rd.w
	w.pos++
	rd.found, rd.eventsAt = true, w.offset()
	for {
		switch c := w.space(); c {
		case 0:
			return w.ended()
		case ']':
			w.pos++
			return nil
		case ',':
			w.pos++
		case '{':
			if err := rd.oneEvent(); err != nil {
				return err
			}
		default:
			if err := rd.recover(); err != nil {
				return err
			}
		}
	}
}

func (rd *reading) oneEvent() error {
	w := rd.w
	for {
		control, badUTF8 := w.control, w.badUTF8
		b := w.data()
		n := rd.p.event(w, b, 0)
		switch {
		case n >= 0:
			rd.take()
			w.pos += n
			return nil
		case n == broken:
			return rd.recover()
		}
		w.control, w.badUTF8 = control, badUTF8 // it is read again
		if w.more() {
			continue
		}
		if w.err != nil {
			return w.ended()
		}
		rd.counts.large++
		return w.pass()
	}
}

// brokenLimit is how many broken events are passed over before the rest is not believed either.
const brokenLimit = 1000

// recover goes to the next event behind one that is not JSON.
func (rd *reading) recover() error {
	rd.counts.broken++
	at := rd.w.offset()
	if rd.counts.broken > brokenLimit {
		return fmt.Errorf("more than %d events are not JSON", brokenLimit)
	}
	if !rd.w.resync() {
		return fmt.Errorf("not JSON from byte %d on", at)
	}
	return nil
}

// take counts the event that was read, and keeps it where it took time.
func (rd *reading) take() {
	p := &rd.p
	rd.counts.events++
	rd.count(p)
	if p.ph != 'X' {
		if p.ph == 'M' && rd.viewed != nil {
			rd.label()
		}
		if p.ph == 'i' && p.onDevice {
			rd.peakBytes[0], rd.peakBytes[1] = max(rd.peakBytes[0], p.allocated), max(rd.peakBytes[1], p.reserved)
		}
		return
	}
	if p.bad || !p.hasStart || p.dur > week {
		rd.counts.garbage++
		if k := rd.cat.kind; k == kernel || k == copying || k == setting {
			rd.counts.unusable++
		}
		return
	}
	if p.dur < 0 {
		rd.counts.negative++
		p.dur = 0
	}
	k := rd.cat.kind
	if rd.viewed != nil {
		rd.see(rd.name(p.name), k)
		return
	}
	if k == other {
		return
	}
	name := rd.name(p.name)
	if k == op || k == annotation {
		rd.mark(rd.classes[name])
	}
	rd.keep(name, k)
}

// mark counts steps and waits for batches.
func (rd *reading) mark(c class) {
	if c&isStep != 0 {
		rd.counts.steps++
		rd.counts.stepTime += rd.p.dur
	}
	if c&isLoader != 0 {
		rd.counts.loads++
		rd.counts.loader += rd.p.dur
	}
}

const categoriesLimit = 500

func (rd *reading) count(p *parsed) {
	if n := rd.counts.phases; len(n) < 64 || n[string(p.ph)] > 0 {
		n[phaseName(p.ph)]++
	}
	key := p.cat
	if !p.hasCat {
		key = []byte{'(', p.ph, ')'}
	}
	c := rd.cats[string(key)]
	if c == nil {
		if len(rd.cats) >= categoriesLimit {
			key = []byte("(others)")
			c = rd.cats[string(key)]
		}
		if c == nil {
			c = &category{kind: kindOf(string(key))}
			rd.cats[string(key)] = c
		}
	}
	c.count++
	rd.cat = c
}

// phaseNames saves a string per event.
var phaseNames = func() (names [256]string) {
	for i := range names {
		names[i] = string(rune(i))
	}
	return names
}()

func phaseName(ph byte) string { return phaseNames[ph] }

func (rd *reading) name(b []byte) uint32 {
	id := rd.names.id(b)
	for len(rd.classes) < len(rd.names.names) {
		rd.classes = append(rd.classes, classOf(rd.names.names[len(rd.classes)]))
	}
	return id
}

// small is id as 32 bits; larger ones, which some recorders write, are numbered from above.
func (rd *reading) small(id int64) uint32 {
	if id >= 0 && id < math.MaxUint32-1<<22 {
		return uint32(id)
	}
	if n, ok := rd.ids[id]; ok || len(rd.ids) >= 1<<22 {
		return n
	}
	n := math.MaxUint32 - uint32(len(rd.ids))
	rd.ids[id] = n
	return n
}

func (rd *reading) keep(name uint32, k kind) {
	p := &rd.p
	e := event{start: p.start, dur: p.dur, name: name, kind: k}
	into := &rd.ops
	switch k {
	case call, syncing:
		into = &rd.host
		if k == syncing {
			into = &rd.syncs
		}
		e.track = rd.row()
		rd.correlate(&e)
	case kernel, copying, setting:
		into = &rd.device
		e.track = rd.stream()
		rd.correlate(&e)
		rd.deviceArguments(&e)
	case function:
		into = &rd.functions
		e.track, e.ext = rd.row(), uint32(p.pyID)
	default:
		e.track = rd.row()
		e.id, e.ext = rd.names.id(p.shapes), rd.names.id(p.types)
		if e.aux = rd.names.id(p.stack); e.aux != 0 {
			e.flags |= hasStack
		}
	}
	if len(*into) >= limits[k] {
		rd.counts.beyond[k]++
		return
	}
	*into = append(*into, e)
}

func (rd *reading) correlate(e *event) {
	if rd.p.correlation <= 0 {
		e.flags |= noStart
		return
	}
	e.id = rd.small(rd.p.correlation)
}

func (rd *reading) deviceArguments(e *event) {
	p := &rd.p
	if p.graph > 0 {
		e.flags |= graphed
	}
	if e.kind != kernel {
		e.aux = uint32(len(rd.bytes))
		if len(rd.bytes) < limits[copying] {
			rd.bytes = append(rd.bytes, max(p.bytes, 0))
		} else {
			e.aux = 0
		}
		return
	}
	if f, err := strconv.ParseFloat(string(p.blocks), 32); err == nil && f >= 0 {
		e.aux = math.Float32bits(float32(f))
	}
	if rd.classes[e.name]&isComm != 0 {
		e.ext = rd.communication(e)
	}
}

// row is the track of a thread.
func (rd *reading) row() uint16 {
	p := &rd.p
	if bytes.Equal(p.tid, rd.last.tid) && bytes.Equal(p.pid, rd.last.pid) && rd.last.tid != nil {
		return rd.last.track
	}
	pid, tid := rd.names.id(p.pid), rd.names.id(p.tid)
	key := [2]uint32{pid, tid}
	n, ok := rd.rows[key]
	if !ok {
		n = rd.addTrack(track{pid: rd.names.names[pid], tid: rd.names.names[tid], device: -1})
		if len(rd.rows) < tracksLimit {
			rd.rows[key] = n
		}
	}
	rd.last.pid, rd.last.tid = append(rd.last.pid[:0], p.pid...), append(rd.last.tid[:0], p.tid...)
	rd.last.track = n
	return n
}

// stream is the track of a device's stream.
func (rd *reading) stream() uint16 {
	p := &rd.p
	if !p.hasStream {
		p.stream = number(bytes.TrimPrefix(p.tid, []byte("stream ")), 0)
	}
	key := [2]int64{p.device, p.stream}
	n, ok := rd.streams[key]
	if !ok {
		n = rd.addTrack(track{device: int(p.device), stream: p.stream})
		if len(rd.streams) < tracksLimit {
			rd.streams[key] = n
		}
	}
	return n
}

// tracksLimit is how many threads and streams are told apart.
const tracksLimit = 1 << 14

func (rd *reading) addTrack(t track) uint16 {
	if len(rd.tracks) < tracksLimit {
		rd.tracks = append(rd.tracks, t)
	}
	return uint16(len(rd.tracks) - 1)
}
