package monitor

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/internal/nvml"
)

// exposition writes metrics in Prometheus's text format, version 0.0.4: a head for each, then its samples.
type exposition struct {
	strings.Builder
	name string // of the metric whose head is written
}

// sample writes one, with labels in pairs.
func (e *exposition) sample(name, help string, value float64, labels ...string) {
	if e.name != name {
		kind := "gauge"
		if strings.HasSuffix(name, "_total") {
			kind = "counter"
		}
		fmt.Fprintf(e, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
		e.name = name
	}
	e.WriteString(name)
	sep := "{"
	for i := 0; i+1 < len(labels); i += 2 {
		fmt.Fprintf(e, "%s%s=\"%s\"", sep, labels[i], escaper.Replace(labels[i+1]))
		sep = ","
	}
	if len(labels) > 0 {
		e.WriteString("}")
	}
	fmt.Fprintf(e, " %s\n", strconv.FormatFloat(value, 'g', -1, 64))
}

var escaper = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

// WritePrometheus writes the snapshot as metrics. What a device does not tell has no sample. Command lines are left out:
// they may hold secrets, and whoever scrapes keeps them.
func (s *Snapshot) WritePrometheus(w io.Writer) error {
	var e exposition
	cards := 1.0
	if s.NoCards != "" {
		cards = 0
	}
	e.sample("warpline_nvml_up", "1 if NVIDIA's management library answers.", cards)
	s.figures(&e)
	for i := range s.Devices {
		d := &s.Devices[i]
		for _, r := range d.Reasons {
			e.sample("warpline_gpu_clock_reason", "1 for each reason why clocks are low.", 1, "device", d.ID, "reason", r.Name)
		}
	}
	s.uses(&e)
	s.runs(&e)
	_, err := io.WriteString(w, e.String())
	return err
}

// figures are those of devices, one metric after the other.
func (s *Snapshot) figures(e *exposition) {
	for _, f := range nvml.Figures() {
		for i := range s.Devices {
			d := &s.Devices[i]
			if v, ok := d.Value(f.Key); ok {
				e.sample("warpline_gpu_"+string(f.Key), f.Help, v, "device", d.ID, "kind", d.Kind, "name", d.Name, "uuid", d.UUID)
			}
		}
	}
}

// uses are what processes have of devices.
func (s *Snapshot) uses(e *exposition) {
	for _, m := range []struct {
		name, help string
		of         func(u *Use) (float64, bool)
	}{
		{"memory_bytes", "Memory of a device that a process has taken.", func(u *Use) (float64, bool) { return told(u.Memory) }},
		{"utilization_percent", "Share of time in which a process's kernels ran: it is not work done.", func(u *Use) (float64, bool) { return told(u.Busy) }},
		{"allocated_bytes", "Memory of a device that values of a process take.", func(u *Use) (float64, bool) { return whole(u.Allocated) }},
		{"reserved_bytes", "Memory of a device that the allocator of a process holds.", func(u *Use) (float64, bool) { return whole(u.Reserved) }},
	} {
		for i := range s.Processes {
			p := &s.Processes[i]
			for j := range p.Uses {
				if v, ok := m.of(&p.Uses[j]); ok {
					e.sample("warpline_process_"+m.name, m.help, v, "pid", strconv.Itoa(p.PID), "user", p.User, "device", p.Uses[j].Device)
				}
			}
		}
	}
}

func told(v *float64) (float64, bool) {
	if v == nil {
		return 0, false
	}
	return *v, true
}

func whole(v *int64) (float64, bool) {
	if v == nil {
		return 0, false
	}
	return float64(*v), true
}

// runs are how far trainings are.
func (s *Snapshot) runs(e *exposition) {
	for _, m := range []struct {
		name, help string
		of         func(p *Process) (float64, bool)
	}{
		{"warpline_run_steps_total", "Steps that optimizers of a process have made.", func(p *Process) (float64, bool) { return float64(p.Own.Steps), p.Own.Steps > 0 }},
		{"warpline_run_step_seconds", "Time from a step to the next, smoothed.", func(p *Process) (float64, bool) { return paceOf(p.Own), paceOf(p.Own) > 0 }},
		{"warpline_run_loss", "Loss of the last step.", func(p *Process) (float64, bool) {
			if p.Own.Run == nil {
				return 0, false
			}
			return told(p.Own.Run.Loss)
		}},
	} {
		for i := range s.Processes {
			p := &s.Processes[i]
			if p.Own == nil {
				continue
			}
			if v, ok := m.of(p); ok {
				labels := []string{"pid", strconv.Itoa(p.PID)}
				if p.Own.Run != nil {
					labels = append(labels, "task", p.Own.Run.Task)
				}
				e.sample(m.name, m.help, v, labels...)
			}
		}
	}
}
