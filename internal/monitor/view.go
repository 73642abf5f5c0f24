package monitor

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/warpline-ml/warpline/internal/nvml"
	"github.com/warpline-ml/warpline/internal/presence"
	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/internal/sorting"
)

// Meaning says what the figures do not.
const Meaning = "util is the share of time in which any kernel ran, not work done; power beside its limit says more. " +
	"A snapshot is no timeline: warpline train --profile shows where a step goes, warpline profile RUN shows it again."

// Sorts are what processes are sorted by.
var Sorts = []string{"memory", "util", "pid", "elapsed"}

// View is how snapshots are shown. The zero View is a table of all, by memory.
type View struct {
	Width   int // columns; 0 is 100
	Sort    string
	Tree    bool     // processes below those that started them
	History *History // of the devices; nil: none is drawn
	Lacks   bool     // what devices do not tell
}

// History is what devices told in the last snapshots.
type History struct {
	of map[string]*[2][]float64 // by ID: utilisation and memory, in hundredths
}

// remembered is how many snapshots a History has.
const remembered = 240

// Add remembers a snapshot.
func (h *History) Add(s *Snapshot) {
	if h.of == nil {
		h.of = map[string]*[2][]float64{}
	}
	here := map[string]bool{}
	for i := range s.Devices {
		d := &s.Devices[i]
		here[d.ID] = true
		v := h.of[d.ID]
		if v == nil {
			v = new([2][]float64)
			h.of[d.ID] = v
		}
		used, total := d.memory()
		for j, x := range []float64{d.value(nvml.Utilization), 100 * used / total} {
			v[j] = append(v[j], x)
			v[j] = v[j][max(0, len(v[j])-remembered):]
		}
	}
	maps.DeleteFunc(h.of, func(id string, _ *[2][]float64) bool { return !here[id] })
}

// value is a figure of the device, NaN where it is not told.
func (d *Device) value(k nvml.Key) float64 {
	if v, ok := d.Value(k); ok {
		return v
	}
	return math.NaN()
}

// memory is what is taken of a device's, and all; of devices that no library tells of, what processes of ours have reserved.
func (d *Device) memory() (used, total float64) {
	used = d.value(nvml.MemoryUsed)
	if math.IsNaN(used) {
		used = float64(d.Reserved)
	}
	return used, d.value(nvml.MemoryTotal)
}

// Text lays a snapshot out.
func (v View) Text(s *Snapshot) string {
	v.Width = cmp.Or(v.Width, 100)
	v.Sort = cmp.Or(v.Sort, Sorts[0])
	parts := []string{v.head(s)}
	if len(s.Devices) > 0 {
		parts = append(parts, v.devices(s))
	}
	if len(s.Processes) > 0 {
		parts = append(parts, v.processes(s))
	} else {
		parts = append(parts, "no process uses a device\n")
	}
	if lines := s.Lacks(); v.Lacks && len(lines) > 0 {
		parts = append(parts, v.wrapped("not told: "+strings.Join(lines, "; "))+"\n")
	}
	return strings.Join(append(parts, v.wrapped(Meaning)+"\n"), "\n")
}

func (v View) wrapped(text string) string { return render.Wrap(text, v.Width, 2) }

// head is the machine, and why there are no cards.
func (v View) head(s *Snapshot) string {
	fields := []string{s.Time.Format(time.TimeOnly)}
	if s.Driver != "" {
		fields = append(fields, "NVIDIA driver "+s.Driver)
	}
	if s.CUDA != "" {
		fields = append(fields, "CUDA "+s.CUDA)
	}
	cores := fmt.Sprintf("%d processors", s.Host.Cores)
	if s.Host.Busy != nil {
		cores += fmt.Sprintf(" %.0f %% busy", *s.Host.Busy)
	}
	fields = append(fields, cores)
	if s.Host.Memory != nil {
		fields = append(fields, "memory "+ofTotal(float64(*s.Host.Used), float64(*s.Host.Memory)))
	}
	text := v.wrapped(strings.Join(fields, " · ")) + "\n"
	if s.NoCards != "" {
		text += v.wrapped("no cards: "+s.NoCards) + "\n" + v.wrapped("  "+s.Hint) + "\n"
	}
	return text
}

// ofTotal is "21.4 of 80.0 GiB", in the unit of the whole.
func ofTotal(used, total float64) string {
	if math.IsNaN(total) && used > 0 {
		return render.Bytes(int64(used))
	}
	if math.IsNaN(total) {
		return dash
	}
	whole := render.Bytes(int64(total))
	if used > 0 && used < total/256 { // too little of its unit to be seen
		return render.Bytes(int64(used)) + " of " + whole
	}
	number, unit, _ := strings.Cut(whole, " ")
	scale := 1.0
	for _, u := range []string{"B", "KiB", "MiB", "GiB", "TiB"} {
		if u == unit {
			break
		}
		scale *= 1024
	}
	return fmt.Sprintf("%.*f of %s %s", decimals(number), used/scale, number, unit)
}

// decimals is how many a number has.
func decimals(number string) int {
	_, after, _ := strings.Cut(number, ".")
	return len(after)
}

// dash is what is not told.
const dash = "–"

// figure is what a device tells, as a whole number, or a dash.
func (d *Device) figure(scale float64, k nvml.Key) string {
	if x, ok := d.Value(k); ok {
		return fmt.Sprintf("%.0f", x*scale)
	}
	return dash
}

func anys(texts []string) (out []any) {
	for _, t := range texts {
		out = append(out, t)
	}
	return out
}

// meter is how many columns a bar has.
const meter = 8

// devices is the table of devices. Where there is no room for all of it, power is the last column to go: it says more than
// util does.
func (v View) devices(s *Snapshot) string {
	t := render.Table{Header: []string{"#", "device", "memory", "", "util", "", "power", "heat", "SM clock", "PCIe"},
		Right: []bool{false, false, false, false, true}, Spare: []int{9, 8, 7, 3, 5, 6}}
	if v.History != nil {
		t.Header = append(t.Header, "history of util")
		t.Spare = []int{9, 8, 7, 3, 5, 10, 6}
	}
	var notes []note
	for i := range s.Devices {
		d := &s.Devices[i]
		t.Rows = append(t.Rows, v.device(d))
		for _, text := range d.notes() {
			notes = append(notes, note{d.ID, text})
		}
	}
	text := t.String(v.Width)
	for _, line := range grouped(notes) {
		text += render.Wrap("  "+line, v.Width, 4) + "\n"
	}
	return text
}

// note is something about a device.
type note struct{ id, text string }

// grouped says each text once, behind all devices that it is about.
func grouped(notes []note) (lines []string) {
	of := map[string][]string{}
	var texts []string
	for _, n := range notes {
		if of[n.text] == nil {
			texts = append(texts, n.text)
		}
		of[n.text] = append(of[n.text], n.id)
	}
	for _, text := range texts {
		lines = append(lines, strings.Join(of[text], ", ")+": "+text)
	}
	return lines
}

func (v View) device(d *Device) []string {
	used, total := d.memory()
	name := strings.TrimPrefix(d.Name, "NVIDIA ")
	row := []string{d.ID, name, ofTotal(used, total), render.Meter(used/total, meter), dash, "", dash, dash, dash, dash}
	if u := d.value(nvml.Utilization); !math.IsNaN(u) {
		row[4], row[5] = fmt.Sprintf("%.0f %%", u), render.Meter(u/100, meter)
	}
	for i, c := range [...]struct {
		is     nvml.Key
		format string
		of     []string
	}{
		{nvml.Power, "%s of %s W", []string{d.figure(1, nvml.Power), d.figure(1, nvml.PowerLimit)}},
		{nvml.Temperature, "%s °C", []string{d.figure(1, nvml.Temperature)}},
		{nvml.SMClock, "%s of %s MHz", []string{d.figure(1e-6, nvml.SMClock), d.figure(1e-6, nvml.SMClockMax)}},
		{nvml.PCIeWidth, "gen %s ×%s", []string{d.figure(1, nvml.PCIeGeneration), d.figure(1, nvml.PCIeWidth)}},
	} {
		if _, ok := d.Value(c.is); ok {
			row[6+i] = fmt.Sprintf(c.format, anys(c.of)...)
		}
	}
	if v.History != nil {
		past := v.History.of[d.ID]
		if past == nil {
			past = new([2][]float64)
		}
		row = append(row, render.Spark(past[0], 100, 2*meter))
	}
	return row
}

// notes is what a device has beside its row: why it fails, why its clocks are low, and a link that is narrower than it could
// be. An idle card lowers the generation of its link, so that says nothing.
func (d *Device) notes() (notes []string) {
	add := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	if d.Failed != "" {
		add("%s", d.Failed)
	}
	for _, r := range d.Reasons {
		if r.Slow {
			add("%s: clocks are held down: %s", r.Name, r.Text)
		}
	}
	if w, most := d.value(nvml.PCIeWidth), d.value(nvml.PCIeMaxWidth); w < most {
		add("%.0f of %.0f PCIe lanes: another slot, or the card reseated, may have all", w, most)
	}
	if n := d.value(nvml.ECCUncorrected); n > 0 {
		add("memory errors that could not be corrected: %.0f; a program may have computed with wrong values; nvidia-smi -q -d ECC,ROW_REMAPPER", n)
	}
	if why := d.Lacks[nvml.Utilization]; d.Kind == Card && d.value(nvml.MIG) == 1 {
		add("divided, instances: %d; util: %s", len(d.Instances), cmp.Or(why, "of the whole card"))
	}
	if d.Kind == Simulated {
		add("a simulated card, in this machine's memory: it is never busy by a clock")
	}
	return notes
}

// processes is the table of processes, one line for each device that a process uses.
func (v View) processes(s *Snapshot) string {
	t := render.Table{Header: []string{"pid", "user", "on", "memory", "allocated", "reserved", "util", "step", "elapsed", "command"},
		Right: []bool{true, false, false, true, true, true, true, false, true, false}, Spare: []int{1, 8, 6, 7}}
	known := map[int]bool{}
	for _, p := range v.sorted(s) {
		depth := 0
		if v.Tree {
			depth = v.above(&t, p, known)
		}
		for i, u := range p.Uses {
			t.Rows = append(t.Rows, row(p, &u, i == 0, depth))
		}
	}
	return t.String(v.Width)
}

// above adds the parents of a process, the outermost first, that are not there yet, and returns how deep the process is.
func (v View) above(t *render.Table, p *Process, known map[int]bool) int {
	for i := len(p.Parents) - 1; i >= 0; i-- {
		parent := p.Parents[i]
		if known[parent.PID] {
			continue
		}
		known[parent.PID] = true
		cells := make([]string, len(t.Header))
		cells[0], cells[len(cells)-1] = fmt.Sprint(parent.PID), branch(len(p.Parents)-1-i)+parent.Command
		t.Rows = append(t.Rows, cells)
	}
	known[p.PID] = true
	return len(p.Parents)
}

// branch is what stands before a command in a tree.
func branch(depth int) string {
	if depth == 0 {
		return ""
	}
	return strings.Repeat("  ", depth-1) + "└ "
}

func row(p *Process, u *Use, first bool, depth int) []string {
	cells := []string{"", "", u.Device, bytesOr(u.Memory), dash, dash, dash, "", "", ""}
	if u.Allocated != nil {
		cells[4], cells[5] = render.Bytes(*u.Allocated), render.Bytes(*u.Reserved)
	}
	if u.Busy != nil {
		cells[6] = fmt.Sprintf("%.0f %%", *u.Busy)
	}
	if !first {
		return cells
	}
	cells[0], cells[1], cells[7], cells[8] = fmt.Sprint(p.PID), cmp.Or(p.User, dash), progress(p), dash
	if p.Elapsed > 0 {
		cells[8] = render.Duration(time.Duration(p.Elapsed * float64(time.Second)))
	}
	cells[9] = branch(depth) + p.Command
	if !p.Visible {
		cells[9] = strings.TrimSpace(cells[9] + " (of another container: not visible from here)")
	}
	return cells
}

// progress is how far a process of ours is: "311/1000, 52/s".
func progress(p *Process) string {
	if p.Own == nil {
		return ""
	}
	text, pace := "", paceOf(p.Own)
	if r := p.Own.Run; r != nil {
		text = fmt.Sprintf("%d/%d", r.Step, r.Steps)
	} else if p.Own.Steps > 0 {
		text = fmt.Sprint(p.Own.Steps)
	}
	if text != "" && pace > 0 {
		text += ", " + render.Rate(1/pace) + "/s"
	}
	return text
}

// paceOf is the seconds of a step: of a training's own, which may launch whole steps at once, else of the optimizers.
func paceOf(p *presence.Process) float64 {
	if p.Run != nil && p.Run.Pace > 0 {
		return p.Run.Pace
	}
	return p.Pace
}

func bytesOr(n *float64) string {
	if n == nil {
		return dash
	}
	return render.Bytes(int64(*n))
}

// sorted are the processes in the view's order; in a tree, by their parents.
func (v View) sorted(s *Snapshot) []*Process {
	var all []*Process
	for i := range s.Processes {
		all = append(all, &s.Processes[i])
	}
	key := func(p *Process) (k float64) {
		for _, u := range p.Uses {
			switch {
			case v.Sort == "util" && u.Busy != nil:
				k -= *u.Busy
			case v.Sort == "memory" && u.Memory != nil:
				k -= *u.Memory
			case v.Sort == "memory" && u.Reserved != nil:
				k -= float64(*u.Reserved)
			}
		}
		if v.Sort == "elapsed" {
			return -p.Elapsed
		}
		return k
	}
	sorting.By(all, func(a, b *Process) int {
		if v.Tree {
			return slices.Compare(lineage(a), lineage(b))
		}
		return cmp.Or(cmp.Compare(key(a), key(b)), cmp.Compare(a.PID, b.PID))
	})
	return all
}

// lineage are the numbers from the outermost parent to the process.
func lineage(p *Process) (all []int) {
	for i := len(p.Parents) - 1; i >= 0; i-- {
		all = append(all, p.Parents[i].PID)
	}
	return append(all, p.PID)
}
