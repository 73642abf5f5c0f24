package prof

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/durable"
	"github.com/warpline-ml/warpline/internal/finding"
)

// format names profiles in files; its number goes up when what older programs read changes.
const (
	formats = "warpline-profile-"
	format  = formats + "1"
)

// errVersion is that of a file of another version of the program.
var errVersion = errors.New("a profile of another version")

// stored is a profile as its file has it. Events are rows of numbers: start, took, sequence number, range, what, interval.
type stored struct {
	Format    string           `json:"format"`
	Devices   []Device         `json:"devices"`
	Took      time.Duration    `json:"took_ns"`
	Dropped   int              `json:"dropped"`
	Trouble   string           `json:"trouble,omitempty"`
	Unreached []string         `json:"unreached,omitempty"`
	Growing   []finding.Growth `json:"growing,omitempty"`
	Cold      bool             `json:"cold,omitempty"` // the window has the first steps
	Memory    []*Timeline      `json:"memory,omitempty"`
	Steps     [][2]int64       `json:"steps"` // number, nanoseconds
	Kernels   []kernel         `json:"kernels"`
	Ranges    []part           `json:"ranges"`
	Sites     []stack          `json:"sites"`
	Whats     []activity       `json:"whats"`
	Blocks    [][5]int64       `json:"blocks,omitempty"` // changes of memory: moment, device, address, bytes, whether it is the device's
	Times     [][2]int64       `json:"times"`            // began, ended
	Events    [][6]int64       `json:"events"`
}

// Write writes the profile to a file that [Read] reads: all that tables, traces and findings need.
func (p *Profile) Write(path string) error {
	return durable.WriteFile(path, func(w io.Writer) error {
		b := bufio.NewWriterSize(w, 1<<16)
		if err := p.write(b); err != nil {
			return err
		}
		return b.Flush()
	})
}

// write writes tables as encoding/json does, and the long rows of numbers one by one.
func (p *Profile) write(w *bufio.Writer) error {
	s := stored{
		Format: format, Devices: p.Devices, Took: p.Took, Dropped: p.Dropped, Unreached: p.Unreached, Growing: p.growing, Memory: p.Memory, Cold: p.cold,
		Steps: [][2]int64{}, Kernels: p.kernels, Ranges: p.ranges, Sites: p.sites, Whats: p.whats, Blocks: p.storedBlocks(), Times: [][2]int64{}, Events: [][6]int64{},
	}
	if p.Err != nil {
		s.Trouble = p.Err.Error()
	}
	for _, b := range p.steps {
		s.Steps = append(s.Steps, [2]int64{int64(b.step), b.at})
	}
	raw, err := json.Marshal(s)
	if err != nil {
		return err
	}
	const tail = `"times":[],"events":[]}`
	w.Write(raw[:len(raw)-len(tail)])
	w.WriteString(`"times":[`)
	for i, t := range p.times {
		writeRow(w, i, t.began, t.ended)
	}
	w.WriteString("],\n\"events\":[")
	for i := range p.all {
		e := &p.all[i]
		writeRow(w, i, e.start, e.took, int64(e.seq), int64(e.part), int64(e.what), int64(e.span))
	}
	_, err = w.WriteString("]}\n")
	return err
}

func writeRow(w *bufio.Writer, i int, row ...int64) {
	if i > 0 {
		w.WriteString(",\n")
	}
	var room [20]byte
	for j, v := range row {
		w.WriteByte("[,"[min(j, 1)])
		w.Write(strconv.AppendInt(room[:0], v, 10))
	}
	w.WriteByte(']')
}

// Read reads a profile that [Profile.Write] wrote.
func Read(path string) (*Profile, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p, err := read(f)
	if err != nil {
		hint := "give the profile.json that train --profile, or a Profile's Write, left"
		if errors.Is(err, errVersion) {
			hint = "profile again with this program, or look at it with the one that wrote it"
		}
		return nil, advice.Explain(fmt.Errorf("%s: %w", path, err), hint)
	}
	return p, nil
}

func read(r io.Reader) (*Profile, error) {
	var s stored
	dec := json.NewDecoder(bufio.NewReaderSize(r, 1<<16))
	if err := dec.Decode(&s); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, fmt.Errorf("no profile: %w", err)
	}
	if s.Format != format {
		err := fmt.Errorf("its format is %.40q, and this program reads %q", s.Format, format)
		if strings.HasPrefix(s.Format, formats) {
			err = fmt.Errorf("%w: %w", errVersion, err)
		}
		return nil, err
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	p := &Profile{
		Devices: s.Devices, Took: s.Took, Dropped: s.Dropped, Unreached: s.Unreached, growing: s.Growing, Memory: s.Memory, cold: s.Cold,
		kernels: s.Kernels, ranges: s.Ranges, sites: s.Sites, whats: s.Whats, blocks: readBlocks(s.Blocks),
	}
	if s.Trouble != "" {
		p.Err = errors.New(s.Trouble)
	}
	for _, b := range s.Steps {
		p.steps = append(p.steps, boundary{int(b[0]), b[1]})
	}
	for _, t := range s.Times {
		p.times = append(p.times, interval{t[0], t[1]})
	}
	for _, e := range s.Events {
		p.all = append(p.all, record{start: e[0], took: e[1], seq: uint64(e[2]), part: uint32(e[3]), what: uint32(e[4]), span: uint32(e[5])})
	}
	return p, nil
}

// longest is what a time of a file may be, in nanoseconds: years, and sums of them still count.
const longestTime = math.MaxInt64 >> 12

func sane(times ...int64) bool {
	for _, t := range times {
		if t < -longestTime || t > longestTime {
			return false
		}
	}
	return true
}

// check refuses what no window is like: numbers of nothing in a table, ranges within themselves, times that end before they
// begin.
func (s *stored) check() error {
	if len(s.Devices) == 0 || len(s.Devices) > math.MaxUint8 || s.Took < 0 || !sane(int64(s.Took)) || s.Dropped < 0 {
		return fmt.Errorf("%d devices, %d ns, %d events that were dropped", len(s.Devices), s.Took, s.Dropped)
	}
	for i := range s.Steps {
		if !sane(s.Steps[i][1]) {
			return fmt.Errorf("step %d begins at %d", i, s.Steps[i][1])
		}
	}
	for i, t := range s.Memory {
		if err := t.check(); err != nil {
			return fmt.Errorf("memory of device %d: %w", i, err)
		}
	}
	if err := s.checkBlocks(); err != nil {
		return err
	}
	if err := s.checkRanges(); err != nil {
		return err
	}
	for i := range s.Whats {
		if err := s.checkWhat(&s.Whats[i]); err != nil {
			return fmt.Errorf("what events are of, number %d: %w", i, err)
		}
	}
	for i, t := range s.Times {
		if t[1] < t[0] || !sane(t[0], t[1]) {
			return fmt.Errorf("interval %d is from %d to %d", i, t[0], t[1])
		}
	}
	for i, e := range s.Events {
		if index(e[4], len(s.Whats)) && s.Whats[e[4]].kind == device.KindRange && e[3] == 0 {
			return fmt.Errorf("event %d is of a range, and names none", i)
		}
		if !sane(e[0], e[1]) || e[1] < 0 || e[2] < 0 || !index(e[3], len(s.Ranges)+1) || !index(e[4], len(s.Whats)) || !index(e[5], len(s.Times)+1) {
			return fmt.Errorf("event %d is %v, of %d ranges, %d kinds of events and %d intervals", i, e, len(s.Ranges), len(s.Whats), len(s.Times))
		}
	}
	return nil
}

// index reports whether i is one of n.
func index(i int64, n int) bool { return i >= 0 && i < int64(n) }

// check refuses columns of other lengths than there are moments.
func (t *Timeline) check() error {
	if t == nil || len(t.At) == 0 || len(t.Bytes) != len(t.Labels) || len(t.Reserved) != len(t.At) || t.Peak < 0 {
		return errors.New("no columns, or not one for each label")
	}
	for i, column := range t.Bytes {
		if len(column) != len(t.At) {
			return fmt.Errorf("%d values of %.40q at %d moments", len(column), t.Labels[i], len(t.At))
		}
	}
	return nil
}

// checkRanges walks from each range outward: who has seen more ranges than there are goes round.
func (s *stored) checkRanges() error {
	depth := make([]int32, len(s.Ranges)) // 0: not known
	for i := range s.Ranges {
		n := int32(0)
		for at := uint32(i + 1); at != 0; n++ {
			if int(at) > len(s.Ranges) || int(n) > len(s.Ranges) {
				return fmt.Errorf("range %d lies in none of the %d, or in itself", i, len(s.Ranges))
			}
			if depth[at-1] > 0 {
				n += depth[at-1] - 1
				at = 0
				continue
			}
			at = s.Ranges[at-1].Parent
		}
		depth[i] = n
	}
	return nil
}

func (s *stored) checkWhat(a *activity) error {
	known := false
	for _, k := range device.EventKinds() {
		if k.Name == a.Kind {
			a.kind, known = k.Kind, true
		}
	}
	if !known || a.Bytes < 0 || int(a.Device) >= len(s.Devices) || int(a.Kernel) > len(s.Kernels) || int(a.Site) >= len(s.Sites) {
		return fmt.Errorf("%.40q of device %d, kernel %d, site %d, %d bytes", a.Kind, a.Device, a.Kernel, a.Site, a.Bytes)
	}
	if a.Kernel == 0 && (a.kind == device.KindLaunch || a.kind == device.KindFill) {
		return fmt.Errorf("a %s without a kernel", a.Kind)
	}
	if a.Kernel > 0 {
		if k := &s.Kernels[a.Kernel-1]; k.FLOPs < 0 || k.Bytes < 0 {
			return fmt.Errorf("a kernel of %d FLOPs and %d bytes", k.FLOPs, k.Bytes)
		} else if products()[k.Op] && len(k.Ins) == 0 {
			return fmt.Errorf("a %s without operands", k.Op)
		}
	}
	return nil
}
