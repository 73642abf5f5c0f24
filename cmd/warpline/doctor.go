package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/doctor"
	"github.com/warpline-ml/warpline/internal/doctor/probe"
	"github.com/warpline-ml/warpline/internal/machine"
	"github.com/warpline-ml/warpline/internal/render"
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
  warpline doctor --from facts.json`

// doctoring is what doctor is told.
type doctoring struct {
	from, save string
	pid        int
}

func newDoctor() *cobra.Command {
	var d doctoring
	cmd := &cobra.Command{Use: "doctor", Short: "Say why this machine does not compute on its cards", Long: doctorLong, Example: doctorExample, Args: from(0, 0)}
	cmd.Flags().SortFlags = false
	cmd.Flags().IntVar(&d.pid, "pid", 0, "look at a live process, too")
	cmd.Flags().StringVar(&d.save, "save", "", "keep all facts in a file, with names and paths as they are")
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
	if d.save != "" {
		if err := facts.Write(d.save); err != nil {
			return advice.Explain(err, "give --save another place")
		}
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

// facts are those of a file, or of this machine.
func (d *doctoring) facts(cmd *cobra.Command, s *screen) (*doctor.Facts, error) {
	if d.from != "" {
		f, err := os.Open(d.from)
		if err != nil {
			return nil, advice.Explain(err, "give a file that warpline doctor --save wrote")
		}
		defer f.Close()
		return doctor.Read(d.from, f)
	}
	if d.pid < 0 {
		return nil, advice.Failf("give the number of a process: warpline top and ps list them", "--pid is %d", d.pid)
	}
	program, err := os.Executable()
	if err != nil {
		return nil, advice.Explain(err, "start warpline by its full path")
	}
	s.Note("looking at files, nodes and libraries of this machine; nothing is changed")
	say := func(words string) { s.passing(render.Progress{Label: words}) }
	facts := probe.Collect(cmd.Context(), probe.Config{Tool: version(), PID: d.pid, Executable: program, Floor: machine.OldestCUDA, Say: say})
	s.clear()
	if p := facts.Process; p != nil && p.Errno == "ENOENT" {
		return nil, advice.Failf("ps lists processes; one of another container has another number here", "there is no process %d", d.pid)
	}
	return facts, cmd.Context().Err()
}

// newDoctorProbe is the hidden command of doctor's children.
func newDoctorProbe() *cobra.Command {
	return &cobra.Command{Use: probe.ChildCommand + " LIBRARY", Hidden: true, Args: from(1, 1), Example: fmt.Sprintf("  warpline %s nvml", probe.ChildCommand),
		RunE: func(cmd *cobra.Command, args []string) error {
			return advice.Explain(probe.Answer(args[0], cmd.OutOrStdout()), "it is for warpline doctor")
		}}
}
