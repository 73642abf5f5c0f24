// Package monitor samples what the devices of this machine and the processes on them do: cards by NVIDIA's management
// library, and what processes of this library tell of themselves, simulated devices too.
package monitor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/nvml"
	"github.com/warpline-ml/warpline/internal/presence"
	"github.com/warpline-ml/warpline/internal/sorting"
)

// Snapshot is what was there at a time. It is no timeline: what happened between two is not in them.
type Snapshot struct {
	Time      time.Time `json:"time"`
	Driver    string    `json:"driver,omitempty"`   // of NVIDIA's cards
	CUDA      string    `json:"cuda,omitempty"`     // that the driver supports
	NoCards   string    `json:"no_cards,omitempty"` // why nothing is known of cards
	Hint      string    `json:"hint,omitempty"`     // what to do about that
	Host      Host      `json:"host"`
	Devices   []Device  `json:"devices"`
	Processes []Process `json:"processes"`
}

// Host is the machine; what its system does not tell is null.
type Host struct {
	Cores  int      `json:"cores"`
	Busy   *float64 `json:"busy_percent"` // of all cores, since the snapshot before
	Memory *int64   `json:"memory_total_bytes"`
	Used   *int64   `json:"memory_used_bytes"` // and not to be had by dropping caches
}

// Kinds of devices.
const (
	Card      = "card"
	Instance  = "instance" // of a divided card
	Simulated = "simulated"
	Processor = "processor"
	Planned   = "null" // nothing is computed
)

// Device is a device with what it tells, and what processes of this library have of its memory.
type Device struct {
	ID   string `json:"id"` // "0" and "0/1" of cards and instances; else the name that it is opened by
	Kind string `json:"kind"`
	nvml.Device
	Allocated int64 `json:"own_allocated_bytes"`
	Reserved  int64 `json:"own_reserved_bytes"`
}

// Process is one that uses a device.
type Process struct {
	PID     int               `json:"pid"`
	Visible bool              `json:"visible"` // false where its system is another container's
	User    string            `json:"user,omitempty"`
	Command string            `json:"command,omitempty"`
	Elapsed float64           `json:"elapsed_seconds,omitempty"`
	Parents []Parent          `json:"parents,omitempty"` // the nearest first, without the system's first process
	Uses    []Use             `json:"uses"`
	Own     *presence.Process `json:"own,omitempty"` // of this library
}

// Parent is a process that started another.
type Parent struct {
	PID     int    `json:"pid"`
	Command string `json:"command"`
}

// Use is what a process has of a device; null is what nobody tells.
type Use struct {
	Device    string   `json:"device"` // ID
	Graphics  bool     `json:"graphics,omitempty"`
	Memory    *float64 `json:"memory_bytes"`
	Busy      *float64 `json:"utilization_percent"`
	Allocated *int64   `json:"allocated_bytes"`
	Reserved  *int64   `json:"reserved_bytes"`
}

// Sampler takes snapshots. It may be used by several goroutines at once.
type Sampler struct {
	mu      sync.Mutex
	open    func() (*nvml.Library, error)
	reading chan cards // of a reading that is under way; nil for none
	began   time.Time  // of it
	users   map[int]string
	ticks   [2]uint64 // of the processor: busy and all, at the snapshot before
}

// cards is what a reading of all cards gave.
type cards struct {
	driver, cuda string
	devices      []nvml.Device
	err          error
}

// New returns a sampler. The library of the cards is opened by the first snapshot.
func New() *Sampler { return &Sampler{open: sync.OnceValues(nvml.Open), users: map[int]string{}} }

// patience is how long a snapshot waits for cards and processes.
const patience = 700 * time.Millisecond

// Sample takes a snapshot, in less than a second: cards and processes that do not answer are left out, and the cards' absence
// is told.
func (s *Sampler) Sample() *Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := make(chan []presence.Process, 1)
	go func() { own <- presence.All(patience) }()
	c := s.read()
	snap := &Snapshot{Time: time.Now(), Driver: c.driver, CUDA: c.cuda, Host: s.host()}
	if c.err != nil {
		snap.NoCards, snap.Hint = c.err.Error(), advice.HintOf(c.err)
	}
	for i := range c.devices {
		snap.addCard(&c.devices[i])
	}
	snap.addOwn(<-own)
	for i := range snap.Processes {
		s.identify(&snap.Processes[i])
	}
	snap.clean()
	return snap
}

// read waits for the cards, and for those who did not answer last time rather than asking them again.
func (s *Sampler) read() cards {
	if s.reading == nil {
		s.reading, s.began = make(chan cards, 1), time.Now()
		go func(to chan<- cards) { to <- readCards(s.open) }(s.reading)
	}
	select {
	case c := <-s.reading:
		s.reading = nil
		return c
	case <-time.After(patience):
		return cards{err: advice.Failf("a card or its driver hangs: dmesg and nvidia-smi tell which",
			"NVIDIA's management library has not answered for %.0f s", time.Since(s.began).Seconds())}
	}
}

func readCards(open func() (*nvml.Library, error)) (c cards) {
	var l *nvml.Library
	if l, c.err = open(); c.err != nil {
		return c
	}
	n, err := l.Count()
	if err != nil {
		c.err = err
		return c
	}
	c.driver, c.cuda = l.Versions()
	c.devices = make([]nvml.Device, n)
	var asking sync.WaitGroup
	for i := range n {
		asking.Go(func() { c.devices[i] = l.Read(i) })
	}
	asking.Wait()
	return c
}

// addCard adds a card with its instances, and the processes on them.
func (s *Snapshot) addCard(d *nvml.Device) {
	id := fmt.Sprint(d.Index)
	s.Devices = append(s.Devices, Device{ID: id, Kind: Card, Device: *d})
	seen := map[int]bool{}
	for i := range d.Instances {
		in := &d.Instances[i]
		part := fmt.Sprintf("%s/%d", id, in.Index)
		s.Devices = append(s.Devices, Device{ID: part, Kind: Instance, Device: *in})
		for _, p := range in.Processes {
			seen[p.PID] = true
			s.process(p.PID, false).use(Use{Device: part, Graphics: p.Graphics, Memory: p.Memory, Busy: p.Busy})
		}
	}
	for _, p := range d.Processes {
		if !seen[p.PID] {
			s.process(p.PID, false).use(Use{Device: id, Graphics: p.Graphics, Memory: p.Memory, Busy: p.Busy})
		}
	}
}

// process is that of a number, added where it is not there, or where the number is another system's.
func (s *Snapshot) process(pid int, hidden bool) *Process {
	for i := range s.Processes {
		if s.Processes[i].PID == pid && !hidden {
			return &s.Processes[i]
		}
	}
	s.Processes = append(s.Processes, Process{PID: pid})
	return &s.Processes[len(s.Processes)-1]
}

// use adds what a process has of a device, to what is known of the two.
func (p *Process) use(u Use) {
	for i := range p.Uses {
		if p.Uses[i].Device == u.Device {
			p.Uses[i].Allocated, p.Uses[i].Reserved = u.Allocated, u.Reserved
			return
		}
	}
	p.Uses = append(p.Uses, u)
}

// addOwn adds what processes of this library tell.
func (s *Snapshot) addOwn(all []presence.Process) {
	for i := range all {
		p := s.process(all[i].PID, all[i].Hidden)
		p.Own = &all[i]
		for _, d := range all[i].Devices {
			at := s.device(&d)
			at.Allocated += d.Allocated
			at.Reserved += d.Reserved
			p.use(Use{Device: at.ID, Allocated: new(d.Allocated), Reserved: new(d.Reserved)})
		}
	}
	sorting.By(s.Processes, func(a, b Process) int { return cmp.Compare(a.PID, b.PID) })
}

// kinds are the devices of this library by the first word of their names.
var kinds = map[string]string{"cpu": Processor, "sim": Simulated, "null": Planned}

// device is the one that a process has open: a card by its address, another by its name. Those that no library tells of are
// added.
func (s *Snapshot) device(d *presence.Device) *Device {
	for i := range s.Devices {
		at := &s.Devices[i]
		if at.ID == d.Name || at.Kind == Card && d.Bus != "" && strings.HasPrefix(d.Name, "cuda") && strings.EqualFold(at.Bus, d.Bus) {
			return at
		}
	}
	kind, _, _ := strings.Cut(d.Name, ":")
	add := Device{ID: d.Name, Kind: cmp.Or(kinds[kind], Card), Device: nvml.Device{Name: d.Model, Bus: d.Bus, Values: map[nvml.Key]float64{}}}
	if d.Total > 0 {
		add.Values[nvml.MemoryTotal] = float64(d.Total)
	}
	s.Devices = append(s.Devices, add)
	return &s.Devices[len(s.Devices)-1]
}

// identify adds what the system knows of a process, and else what it tells itself.
func (s *Sampler) identify(p *Process) {
	hidden := p.Own != nil && p.Own.Hidden
	if known, ok := look(p.PID); ok && !hidden {
		p.Visible, p.Command, p.Elapsed = true, known.command, time.Since(known.began).Seconds()
		p.User, p.Parents = s.user(known.uid), parents(known.parent)
		return
	}
	if p.Own != nil {
		p.Command, p.Elapsed = p.Own.Command, time.Since(p.Own.Started).Seconds()
	}
}

// user is the name of a user's number, looked up once.
func (s *Sampler) user(uid int) string {
	name, ok := s.users[uid]
	if !ok {
		name = userName(uid)
		s.users[uid] = name
	}
	return name
}

// deepest is how many parents are told at most.
const deepest = 16

// parents are those of a process whose parent is pid.
func parents(pid int) (all []Parent) {
	for pid > 1 && len(all) < deepest {
		p, ok := look(pid)
		if !ok {
			break
		}
		all = append(all, Parent{pid, p.command})
		pid = p.parent
	}
	return all
}

// clean drops from texts what is not printed: they are other programs', and a terminal would obey them.
func (s *Snapshot) clean() {
	for i := range s.Devices {
		d := &s.Devices[i]
		d.ID, d.Name, d.UUID, d.Bus = printable(d.ID), printable(d.Name), printable(d.UUID), printable(d.Bus)
	}
	for i := range s.Processes {
		p := &s.Processes[i]
		p.Command, p.User = printable(p.Command), printable(p.User)
		for j := range p.Parents {
			p.Parents[j].Command = printable(p.Parents[j].Command)
		}
		for j := range p.Uses {
			p.Uses[j].Device = printable(p.Uses[j].Device)
		}
		if o := p.Own; o != nil {
			o.Command = printable(o.Command)
			if o.Run != nil {
				o.Run.Task, o.Run.Model, o.Run.Out, o.Run.URL = printable(o.Run.Task), printable(o.Run.Model), printable(o.Run.Out), printable(o.Run.URL)
			}
		}
	}
}

// longest is what of a text is shown, in bytes.
const longest = 500

func printable(s string) string {
	if len(s) > longest {
		s = strings.ToValidUTF8(s[:longest], "") + "…"
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, s)
}

// Lacks lists what devices do not tell, a line for each reason: "0, 1: power limit: this card does not tell".
func (s *Snapshot) Lacks() []string {
	var notes []note
	for i := range s.Devices {
		d := &s.Devices[i]
		of := map[string][]string{}
		for _, k := range slices.Sorted(maps.Keys(d.Lacks)) {
			of[d.Lacks[k]] = append(of[d.Lacks[k]], words(k))
		}
		for _, why := range slices.Sorted(maps.Keys(of)) {
			notes = append(notes, note{d.ID, strings.Join(of[why], ", ") + ": " + why})
		}
	}
	return grouped(notes)
}

// units are the ends of keys.
var units = []string{"_bytes_per_second", "_bytes", "_percent", "_watts", "_celsius", "_hertz", "_total", "_lanes"}

// words is a key without its unit.
func words(k nvml.Key) string {
	text := string(k)
	for _, u := range units {
		if t, ok := strings.CutSuffix(text, u); ok {
			text = t
			break
		}
	}
	return strings.ReplaceAll(text, "_", " ")
}
