package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/check"
	"github.com/warpline-ml/warpline/internal/machine"
	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/train"
)

const checkLong = `Run every operation on a device, in every dtype and over awkward shapes, and compare with a float64 reference by the
table of tolerances; then memory, queues, events and copies, and several devices where there are some. It is the first
thing to run on a new machine; docs/check.md says how to read the table. The exit status is 0 when all passed, 1 when
something failed, 2 when it could not be run.`

// autoName is the value of --record without one.
const autoName = "auto"

func newCheck() *cobra.Command {
	k := &checking{}
	var list bool
	var part string
	cmd := &cobra.Command{
		Use: "check", Short: "Check a device against the reference", Long: checkLong,
		Example: "  warpline check --device sim:0\n  warpline check --device cuda:0 --record --torch\n  warpline check --device cpu --ops matmul,softmax --seed 7",
		Args:    k.noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			k.cmd, k.s = cmd, newScreen(cmd)
			if f := cmd.Flags().Lookup("ops"); f.Changed && len(k.config.Ops) == 0 {
				return advice.Failf("leave --ops out to check all; warpline check --list has their names", "--ops names no operation")
			}
			if cmd.Flags().Changed("part") {
				var err error
				if k.config.Part, err = check.ParsePart(part); err != nil {
					return err
				}
			}
			if list {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), strings.Join(check.Ops(), "\n"))
				return k.s.unwritten(err)
			}
			return k.run()
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&k.config.Device, "device", "", "device to check: cpu, cuda:N, sim:N, sim:a100-80x4 (default the best there is)")
	f.StringSliceVar(&k.config.Ops, "ops", nil, "only these operations, by name (default all, and the device's own promises)")
	f.StringSliceVar(&k.config.Skip, "skip", nil, "not these operations")
	f.BoolVar(&list, "list", false, "list the names of the operations")
	f.BoolVar(&k.config.Short, "short", false, "leave out the large shapes")
	f.StringVar(&part, "part", "", "a share of the cases, which machines or times divide among them: 1/3, 2/3, 3/3 (default all)")
	f.StringVar(&k.file, "record", "", "ask the device about what the simulator assumes, and keep all results in a file (default warpline-check-DEVICE-DATE.json)")
	f.Lookup("record").NoOptDefVal = autoName
	f.BoolVar(&k.torch, "torch", false, "compare results and speed with PyTorch too, of the Python in WARPLINE_PYTHON or on the path")
	f.Uint64Var(&k.config.Seed, "seed", 0, "of the operands (default a fresh one)")
	return cmd
}

// checking is a run of the command.
type checking struct {
	cmd    *cobra.Command
	s      *screen
	config check.Config
	torch  bool
	python string
	file   string // of the record, or empty

	report *check.Report
	beside *check.Torch
	apart  error // why the comparison with PyTorch did not come to its end: the rest is worth keeping
	probes []check.Answer
	times  []check.Timed
}

// noArgs refuses arguments, of which one may be meant for --record.
func (k *checking) noArgs(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case k.file == autoName:
		return &advice.Error{Text: fmt.Sprintf("check takes no argument, and %q is one", args[0]), Hint: "the file of the record is given with =, as in --record=" + quoted(args[0])}
	}
	return tooMany(cmd, args[0])
}

// run does the parts one after the other and shows each at its end.
func (k *checking) run() error {
	err := k.parts()
	if k.interrupted() {
		return train.ErrInterrupted
	}
	return err
}

func (k *checking) interrupted() bool { return k.cmd.Context().Err() != nil }

func (k *checking) parts() error {
	if err := k.prepare(); err != nil {
		return err
	}
	for _, part := range []func() error{k.conform, k.compare, k.probe, k.time} {
		if err := part(); err != nil {
			return err
		}
		if k.interrupted() || k.report.Broken != "" || k.beside != nil && k.beside.Broken != "" {
			break
		}
	}
	k.report.Cut = k.interrupted()
	unwritten := k.keep()
	if err := k.s.emit(k.summary()); err != nil {
		return err
	}
	if unwritten != nil {
		return unwritten
	}
	if err := k.s.failure(); err != nil {
		return err
	}
	if k.apart != nil {
		return k.apart
	}
	if k.failed() {
		return errFindings
	}
	return nil
}

// prepare refuses what cannot be done ahead of the long part.
func (k *checking) prepare() error {
	if err := machine.CheckEnvironment(); err != nil {
		return err
	}
	if k.config.Device == "" {
		best, passed := machine.Best()
		if k.config.Device = best; passed != nil {
			k.s.Note(passed.Error())
		}
	}
	var err error
	if k.file != "" {
		if k.file == autoName {
			k.file = check.FileName(k.config.Device, time.Now())
		}
		if err = check.Recordable(k.config.Device); err == nil {
			err = check.Writable(k.file)
		}
	}
	if k.torch && err == nil {
		if err = check.Comparable(k.config.Device); err == nil {
			k.python, err = check.FindPython(k.cmd.Context())
		}
	}
	return k.explain(err)
}

// explain gives an error that has no hint one about operations or devices.
func (k *checking) explain(err error) error {
	var known *advice.Error
	var unknown *check.UnknownError
	switch {
	case errors.As(err, &known):
		return err
	case errors.As(err, &unknown):
		return &advice.Error{Text: unknown.Error(), Hint: advice.Meant(strings.ToLower(unknown.Name), check.Ops()) + "warpline check --list names them", Err: err}
	}
	return machine.Explain(k.config.Device, err)
}

func (k *checking) conform() (err error) {
	k.config.Progress = k.progress("check")
	k.report, err = check.Run(k.cmd.Context(), k.config)
	k.s.clear()
	if k.report == nil {
		return k.explain(err)
	}
	for i := range k.report.Rows {
		if err := k.s.emit(&k.report.Rows[i]); err != nil {
			return err
		}
	}
	fmt.Fprint(k.s.text, k.report.Text(k.s.tableWidth()))
	return err
}

func (k *checking) compare() error {
	if !k.torch {
		return nil
	}
	k.beside, k.apart = check.CompareTorch(k.cmd.Context(), k.config.Device, k.python, k.progress("PyTorch"))
	k.s.clear()
	if k.beside == nil {
		return nil
	}
	for i := range k.beside.Rows {
		if err := k.s.emit(&k.beside.Rows[i]); err != nil {
			return err
		}
	}
	fmt.Fprint(k.s.text, k.beside.Text(k.s.tableWidth()))
	return nil
}

func (k *checking) probe() (err error) {
	if k.file == "" {
		return nil
	}
	k.probes, err = check.RunProbes(k.cmd.Context(), k.config.Device, k.progress("probes"))
	k.s.clear()
	if err != nil {
		return err
	}
	for i := range k.probes {
		if err := k.s.emit(&k.probes[i]); err != nil {
			return err
		}
	}
	fmt.Fprint(k.s.text, check.ProbesText(k.probes, k.s.tableWidth()))
	return nil
}

// time keeps what operations take beside the model.
func (k *checking) time() (err error) {
	if k.file == "" {
		return nil
	}
	if k.times, err = check.Times(k.cmd.Context(), k.config.Device); err != nil {
		if k.interrupted() {
			return nil
		}
		return err
	}
	for i := range k.times {
		if err := k.s.emit(&k.times[i]); err != nil {
			return err
		}
	}
	fmt.Fprint(k.s.text, "\n", check.TimesText(k.times, k.config.Device, k.s.tableWidth()))
	return nil
}

// keep writes the record that was asked for, also of what was done until an interrupt. If it fails, there is no file.
func (k *checking) keep() error {
	if k.file == "" {
		return nil
	}
	err := k.write()
	switch {
	case err != nil && k.interrupted(): // which is how the command ends
		k.s.say("\nno record was written: %v", err)
	case err == nil && k.interrupted():
		k.s.say("\n%s has the record of what was done", k.file)
	case err == nil:
		k.s.say("\n%s has the record", k.file)
	}
	if err != nil {
		k.file = ""
	}
	return err
}

func (k *checking) write() error {
	r, err := check.NewRecord(k.report, k.beside, k.probes)
	if err != nil {
		return err
	}
	r.Times = k.times
	r.Warpline, r.Command = version(), k.line()
	if err := r.Write(k.file); err != nil {
		return &advice.Error{Text: err.Error(), Hint: "make room, or give another --record=FILE", Err: err}
	}
	return nil
}

// line is the command line without the record's place.
func (k *checking) line() string {
	words := []string{k.cmd.CommandPath()}
	k.cmd.Flags().Visit(func(f *pflag.Flag) {
		word := "--" + f.Name
		if f.Value.Type() != "bool" && f.Name != "record" {
			word += "=" + strings.Trim(f.Value.String(), "[]")
		}
		words = append(words, quoted(word))
	})
	return strings.Join(words, " ")
}

// failed reports whether a part found something.
func (k *checking) failed() bool {
	return k.report.Failed > 0 || k.beside != nil && k.beside.Failed() > 0 || check.HasFailed(k.probes)
}

// summary is the last line of JSON.
func (k *checking) summary() any {
	return struct {
		Final bool `json:"final"`
		*check.Report
		Record string `json:"record,omitempty"`
	}{true, k.report, k.file}
}

// progress shows which piece of a part is under way: on a terminal in the live line, elsewhere now and then in one of the
// standard error.
func (k *checking) progress(label string) func(done, all int, name string) {
	return func(done, all int, name string) {
		k.s.passing(render.Progress{Label: label, Done: int64(done), Total: int64(all), Fields: []string{name}})
	}
}
