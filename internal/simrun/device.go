package simrun

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/gpusim"
	"github.com/warpline-ml/warpline/internal/hostmem"
	"github.com/warpline-ml/warpline/internal/render"
)

// OnDevice is the same kernel with the same arguments on another device, and how its results differ.
type OnDevice struct {
	Device  string     `json:"device"`
	Model   string     `json:"model"`
	Seconds float64    `json:"seconds"` // by the device's clock; 0 where it has none
	Buffers []Compared `json:"buffers"`
	Error   string     `json:"error"` // why it has no results; empty otherwise
}

// Compared is a buffer of a simulated run and of another device's, element by element.
type Compared struct {
	Arg       int     `json:"arg"`
	Type      string  `json:"type"`
	Shape     []int   `json:"shape"`
	Elements  int     `json:"elements"`
	Unwritten int     `json:"unwritten"` // by the simulated run, and not compared
	Exact     int     `json:"exact"`     // of the same bits
	Different int     `json:"different"` // by more than the tolerance
	Tolerance float64 `json:"tolerance"` // of numbers beyond 1 as a share
	Worst     float64 `json:"worst"`     // likewise; of elements that are no numbers in one run and numbers in the other, infinite: null
	First     int     `json:"first"`     // the first that differs; -1: none
	Simulated string  `json:"simulated"` // it, there
	There     string  `json:"there"`     // and here
}

// Differs tells whether results differ, or are missing.
func (o *OnDevice) Differs() bool {
	if o.Error != "" {
		return true
	}
	for i := range o.Buffers {
		if o.Buffers[i].Different > 0 {
			return true
		}
	}
	return false
}

// twin is a device on which the kernel runs again, opened before the simulated run.
type twin struct {
	name  string
	dev   device.Device
	load  device.Loader
	start [][]byte // of each buffer
}

// openTwin opens the device that a config names; nil for none.
func (j *job) openTwin(c Config) (*twin, error) {
	switch {
	case c.Device == "":
		return nil, nil
	case c.Sample > 0:
		return nil, advice.Failf("leave out --sample or --device", "--sample runs some of the blocks, and what the others write is missing")
	case !(c.Tolerance >= 0):
		return nil, advice.Failf("give a share, such as 1e-5, or 0 for the same bits", "--tolerance is %v", c.Tolerance)
	}
	dev, name, err := device.Open(c.Device)
	if err != nil {
		return nil, err
	}
	load, ok := device.As[device.Loader](dev)
	if info := dev.Info(); !ok || info.Null {
		return nil, advice.Failf("name a card, cuda:0, or another simulated one, sim:h100-80", "%s runs no kernels of GPUs", name)
	}
	t := &twin{name: name, dev: dev, load: load, start: make([][]byte, len(j.args))}
	for i := range j.args {
		if a := &j.args[i]; a.buffer() {
			t.start[i] = make([]byte, a.bytes)
			if err := j.dev.Read(t.start[i], a.addr); err != nil {
				return nil, refused(err)
			}
		}
	}
	return t, nil
}

// buffer tells whether an argument is one.
func (a *argument) buffer() bool { return a.kind != scalar && a.kind != null }

// again runs the kernel on the device and compares the buffers. What goes wrong there is in the result; a device that was used and
// failed is out of use for the process.
func (j *job) again(ctx context.Context, t *twin, c Config) (*OnDevice, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	o := &OnDevice{Device: t.name, Model: t.dev.Info().Model, Buffers: []Compared{}}
	got, err := j.runOn(t, o)
	if err != nil {
		o.Error = err.Error()
		return o, nil
	}
	for i := range j.args {
		a := &j.args[i]
		if !a.buffer() {
			continue
		}
		want := make([]byte, a.bytes)
		if err := j.dev.Read(want, a.addr); err != nil {
			return nil, refused(err)
		}
		o.Buffers = append(o.Buffers, j.compare(i, want, got[i], c))
	}
	return o, nil
}

// runOn is what the buffers hold after the kernel has run on the device.
func (j *job) runOn(t *twin, o *OnDevice) (got [][]byte, err error) {
	m, err := t.load.Load(j.kernel.Name, []byte(strings.Join(j.file.lines, "\n")))
	if err != nil {
		return nil, err
	}
	q, err := t.dev.NewQueue()
	if err != nil {
		return nil, err
	}
	defer func() {
		if failed := q.Close(); err == nil {
			err = failed
		}
	}()
	l := &device.Own{Kernel: j.kernel.Name, Name: j.kernel.Name, Grid: j.grid, Block: j.block, Shared: j.shared, Params: bytes.Clone(j.params)}
	var args []device.Arg
	defer func() {
		for _, a := range args {
			t.dev.Free(a.Mem)
		}
	}()
	for i := range j.args {
		a := &j.args[i]
		if !a.buffer() || a.bytes == 0 {
			continue
		}
		clear(l.Params[j.kernel.Offsets[i]:][:8])
		mem, err := t.dev.Alloc(int64(a.bytes))
		if err != nil {
			return nil, err
		}
		l.Places = append(l.Places, device.Place{At: j.kernel.Offsets[i], Arg: len(args)})
		l.Need = append(l.Need, int64(a.bytes))
		args = append(args, device.Arg{Mem: mem})
		if err := j.move(q, args[len(args)-1], t.start[i], true); err != nil {
			return nil, err
		}
	}
	k, err := m.Prepare(l)
	if err != nil {
		return nil, err
	}
	if o.Seconds, err = launchTimed(q, k, args); err != nil {
		return nil, err
	}
	got = make([][]byte, len(j.args))
	at := 0
	for i := range j.args {
		if a := &j.args[i]; a.buffer() && a.bytes > 0 {
			got[i] = make([]byte, a.bytes)
			if err := j.move(q, args[at], got[i], false); err != nil {
				return nil, err
			}
			at++
		}
	}
	return got, nil
}

// move copies to or from the device.
func (j *job) move(q device.Queue, at device.Arg, data []byte, there bool) error {
	host, err := hostmem.Alloc(len(data))
	if err != nil {
		return err
	}
	defer host.Free()
	mem := device.Arg{Mem: device.Mem{Addr: uint64(host.Addr), Size: int64(len(data)), Host: true}}
	if there {
		copy(host.Bytes(), data)
		return q.Copy(at, mem, int64(len(data)))
	}
	if err := q.Copy(mem, at, int64(len(data))); err != nil {
		return err
	}
	err = q.Sync()
	copy(data, host.Bytes())
	return err
}

// launchTimed launches and waits. The time is the device's, where it tells one.
func launchTimed(q device.Queue, k *device.Kernel, args []device.Arg) (seconds float64, err error) {
	timer, ok := device.As[device.Timer](q)
	if !ok {
		if err := q.Launch(k, args, nil); err != nil {
			return 0, err
		}
		return 0, q.Sync()
	}
	from, err := timer.Stamp()
	if err != nil {
		return 0, err
	}
	if err := q.Launch(k, args, nil); err != nil {
		return 0, err
	}
	to, err := timer.Stamp()
	if err != nil {
		return 0, err
	}
	if err := q.Sync(); err != nil {
		return 0, err
	}
	var took time.Duration
	took, err = to.Since(from)
	return took.Seconds(), err
}

// tolerances are what results may be off by, of numbers beyond 1 as a share: hardware approximates functions, and tensor cores
// cut off, in the last bits.
var tolerances = map[string]float64{"f64": 1e-12, "f32": 1e-5, "f16": 2e-3, "bf16": 1.6e-2}

// compare compares a buffer, but for elements that the simulated run never wrote.
func (j *job) compare(i int, want, got []byte, c Config) Compared {
	a := &j.args[i]
	x := Compared{Arg: i, Type: a.elem.name, Shape: a.shape, Elements: a.bytes / max(a.elem.size, 1), First: -1, Tolerance: tolerances[a.elem.name]}
	if c.ToleranceGiven {
		x.Tolerance = c.Tolerance
	}
	book := j.options.Checks&gpusim.Initcheck != 0
	size := a.elem.size
	for e := range x.Elements {
		w, g := want[e*size:][:size], got[e*size:][:size]
		switch off := a.elem.apart(w, g); {
		case book && !j.dev.Written(a.addr+uint64(e*size), size):
			x.Unwritten++
		case off == 0:
			x.Exact++
		default:
			x.Worst = max(x.Worst, off)
			if off <= x.Tolerance {
				continue
			}
			if x.Different++; x.First < 0 {
				x.First, x.Simulated, x.There = e, a.elem.show(w), a.elem.show(g)
			}
		}
	}
	if math.IsInf(x.Worst, 0) {
		x.Worst = math.MaxFloat64
	}
	return x
}

// apart is by how much two elements differ, of numbers beyond 1 as a share; 0 for the same bits and for two that are no numbers.
func (e elem) apart(want, got []byte) float64 {
	if bytes.Equal(want, got) {
		return 0
	}
	w, g := e.float(want), e.float(got)
	switch {
	case math.IsNaN(w) && math.IsNaN(g):
		return 0
	case math.IsNaN(w) || math.IsNaN(g) || math.IsInf(w, 0) || math.IsInf(g, 0):
		return math.Inf(1)
	case e.kind != 'f':
		return max(math.Abs(w-g), 1) // int64 beyond 2^53 too
	case w == g: // 0 and -0
		return math.SmallestNonzeroFloat64
	}
	return math.Abs(w-g) / max(1, math.Abs(w))
}

// float is an element as a float64, integers rounded.
func (e elem) float(b []byte) float64 {
	var raw [8]byte
	copy(raw[:], b)
	u := binary.LittleEndian.Uint64(raw[:])
	switch {
	case e.name == "f64":
		return math.Float64frombits(u)
	case e.name == "f32":
		return float64(math.Float32frombits(uint32(u)))
	case e.name == "f16":
		return dtype.F16.Decode(u)
	case e.name == "bf16":
		return dtype.BF16.Decode(u)
	case e.kind == 'i':
		shift := 64 - 8*e.size
		return float64(int64(u<<shift) >> shift)
	}
	return float64(u)
}

func (e elem) show(b []byte) string {
	if e.half() {
		return strconv.FormatFloat(e.float(b), 'g', -1, 32)
	}
	return first(e, b)[0]
}

// text is the comparison for people.
func (o *OnDevice) text(width int) string {
	head := fmt.Sprintf("the same on %s", o.Device)
	if o.Model != "" {
		head += ", " + o.Model
	}
	if o.Error != "" {
		return head + "\n" + render.Wrap("it failed: "+o.Error, width, 0) + "\n"
	}
	if o.Seconds > 0 {
		head += ", in " + render.Duration(time.Duration(1e9*o.Seconds))
	}
	t := render.Table{Header: []string{"argument", "", "elements", "same bits", "differ", "worst", "first"}, Right: []bool{true, false, true, true, true, true, false}}
	for i := range o.Buffers {
		b := &o.Buffers[i]
		row := []string{strconv.Itoa(b.Arg), b.Type + shapeText(b.Shape), strconv.Itoa(b.Elements), strconv.Itoa(b.Exact), strconv.Itoa(b.Different), fmt.Sprintf("%.2g", b.Worst), ""}
		if b.First >= 0 {
			row[6] = fmt.Sprintf("element %d: %s, simulated %s", b.First, b.There, b.Simulated)
		} else if b.Unwritten > 0 {
			row[6] = fmt.Sprintf("%d were never written", b.Unwritten)
		}
		t.Rows = append(t.Rows, row)
	}
	verdict := "the results agree"
	if o.Differs() {
		verdict = "the results differ"
	}
	return head + "\n" + t.String(width) + verdict + "\n"
}
