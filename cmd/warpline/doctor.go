package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/check"
	"github.com/warpline-ml/warpline/internal/doctor"
	"github.com/warpline-ml/warpline/internal/doctor/probe"
	"github.com/warpline-ml/warpline/internal/machine"
	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/train"
)

const doctorLong = `Say why this machine does not compute on its NVIDIA cards, or does so slowly: from the bus over the kernel's module, the
device nodes and the driver's libraries up to CUDA, and what keeps it slow beside. It ends with the first layer that is
broken, the evidence, one command to type, and what could not be tested because of it.

Nothing is installed, changed or sent, no context is made on a card, and no program is run but this one, a second time
for each library of NVIDIA's, which may hang. Where there is no card it says what is there in its place.

The exit status is 0 when nothing was found, 1 when something was, 2 when it could not look.`

const doctorExample = `  warpline doctor
  warpline doctor --json
  warpline doctor --pid 4242
  warpline doctor --save facts.json
  warpline doctor --from facts.json
  warpline doctor --bundle ticket.json
  warpline doctor --deep --device sim:0`

// doctoring is what doctor is told.
type doctoring struct {
	from, save, bundle string
	pid                int
	deep               bool
	device             string // of deep; empty: the cards that nobody uses
}

func newDoctor() *cobra.Command {
	var d doctoring
	cmd := &cobra.Command{Use: "doctor", Short: "Say why this machine does not compute on its cards", Long: doctorLong, Example: doctorExample, Args: from(0, 0)}
	cmd.Flags().SortFlags = false
	cmd.Flags().IntVar(&d.pid, "pid", 0, "look at a live process, too")
	cmd.Flags().BoolVar(&d.deep, "deep", false, "run kernels, matrix products and copies on the cards that nobody uses, and compare; it says what it will do first")
	cmd.Flags().StringVar(&d.device, "device", "", "for --deep: this device, used or not")
	cmd.Flags().StringVar(&d.save, "save", "", "keep all facts in a file, with names and paths as they are")
	cmd.Flags().StringVar(&d.bundle, "bundle", "", "keep facts for a ticket in a file, without names, paths, addresses, serial numbers and tokens")
	cmd.Flags().StringVar(&d.from, "from", "", "judge the facts of a file, of this machine or another")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return d.run(cmd) }
	return cmd
}

func (d *doctoring) run(cmd *cobra.Command) error {
	s := newScreen(cmd)
	facts, err := d.facts(cmd, s)
	if err != nil {
		return err
	}
	if err := d.keep(facts, s); err != nil {
		return err
	}
	diagnosis := doctor.Judge(facts)
	if err := s.emit(diagnosis); err != nil {
		return err
	}
	if _, err := io.WriteString(s.text, diagnosis.Text(s.tableWidth())); err != nil {
		return s.unwritten(err)
	}
	if len(diagnosis.Findings) > 0 {
		return errFindings
	}
	return nil
}

// keep writes the files that were asked for.
func (d *doctoring) keep(facts *doctor.Facts, s *screen) error {
	if d.save != "" {
		if err := facts.Write(d.save); err != nil {
			return advice.Explain(err, "give --save another place")
		}
	}
	if d.bundle == "" {
		return nil
	}
	if err := doctor.Bundle(facts).Write(d.bundle); err != nil {
		return advice.Explain(err, "give --bundle another place")
	}
	s.Note(d.bundle + " has the facts without names, paths, addresses, serial numbers and tokens; look at it before it goes out")
	return nil
}

// check refuses flags that do not go together.
func (d *doctoring) check() error {
	switch {
	case d.pid < 0:
		return advice.Failf("give the number of a process: warpline top and ps list them", "--pid is %d", d.pid)
	case d.from != "" && (d.pid != 0 || d.deep):
		return advice.Failf("leave out --from to look at this machine", "--from judges facts of a file, and --pid and --deep look at this machine")
	case d.device != "" && !d.deep:
		return advice.Failf("add --deep", "--device is what --deep runs on")
	}
	return nil
}

// facts are those of a file, or of this machine.
func (d *doctoring) facts(cmd *cobra.Command, s *screen) (*doctor.Facts, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	if d.from != "" {
		f, err := os.Open(d.from)
		if err != nil {
			return nil, advice.Explain(err, "give a file that warpline doctor --save wrote")
		}
		defer f.Close()
		return doctor.Read(d.from, f)
	}
	program, err := os.Executable()
	if err != nil {
		return nil, advice.Explain(err, "start warpline by its full path")
	}
	say := func(words string) { s.passing(render.Progress{Label: words}) }
	facts := probe.Collect(cmd.Context(), probe.Config{Tool: version(), PID: d.pid, Executable: program, Floor: machine.OldestCUDA, Say: say})
	s.clear()
	if p := facts.Process; p != nil && p.Errno == "ENOENT" {
		return nil, advice.Failf("ps lists processes; one of another container has another number here", "there is no process %d", d.pid)
	}
	if d.deep {
		if err := d.dive(cmd.Context(), facts, s); err != nil {
			return nil, err
		}
	}
	if cmd.Context().Err() != nil {
		return nil, train.ErrInterrupted
	}
	return facts, nil
}

// dive runs kernels, products and copies on devices, and puts what comes of it into the facts.
func (d *doctoring) dive(ctx context.Context, facts *doctor.Facts, s *screen) error {
	names, used := facts.Free(), facts.Used()
	if d.device != "" {
		names, used = []string{d.device}, nil
	}
	if len(names)+len(used) == 0 {
		facts.Notes = append(facts.Notes, "--deep had no card to run on; --device sim:0 or cpu tries it without one")
	}
	for _, name := range used {
		facts.Notes = append(facts.Notes, "--deep leaves "+name+" alone: a process uses it; --device "+name+" takes it all the same")
	}
	for _, name := range names {
		s.Note("--deep will make a context on " + name + ", compile its kernels, compute sums and matrix products, and copy to it, from it, and to the next card of its kind; it takes some memory and a minute or two")
		report, err := check.Run(ctx, check.Config{Device: name, Short: true, Seed: 1, Skip: without("add", "matmul"), Progress: func(done, all int, part string) {
			s.passing(render.Progress{Label: name, Done: int64(done), Total: int64(all), Fields: []string{part}})
		}})
		s.clear()
		if err != nil {
			facts.Deep = append(facts.Deep, doctor.Deep{Device: name, Part: "device", Name: "open", Cases: 1, Failed: 1, First: err.Error()})
			continue
		}
		for _, r := range report.Rows {
			facts.Deep = append(facts.Deep, doctor.Deep{Device: name, Part: r.Part, Name: r.Name, Cases: r.Cases, Failed: r.Failed, First: r.First, Skipped: r.Skipped, Seconds: r.Seconds})
		}
	}
	return nil
}

// without are all operations but some.
func without(names ...string) (out []string) {
	for _, op := range check.Ops() {
		if !slices.Contains(names, op) {
			out = append(out, op)
		}
	}
	return out
}

// newDoctorProbe is the hidden command of doctor's children.
func newDoctorProbe() *cobra.Command {
	return &cobra.Command{Use: probe.ChildCommand + " LIBRARY", Hidden: true, Args: from(1, 1), Example: fmt.Sprintf("  warpline %s nvml", probe.ChildCommand),
		RunE: func(cmd *cobra.Command, args []string) error {
			return advice.Explain(probe.Answer(args[0], cmd.OutOrStdout()), "it is for warpline doctor")
		}}
}
