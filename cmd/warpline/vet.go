package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/internal/vet"
	"github.com/warpline-ml/warpline/internal/vetpy"
	"github.com/warpline-ml/warpline/train"
)

const vetLong = `Say what training programs in Python do wrong, by reading them: losses kept with their graphs, gradients that are never zeroed,
values that are read in every step, evaluations that record, scalers out of order, and some thirty more. Nothing is run, and no
Python is needed. Of a folder all programs and notebooks are read, but for those of installed packages.

Each finding has the line, what to write there, what that gains, and how sure it is. A comment silences a line for a rule:

  losses.append(loss)  # warpline: ok R06

Python 3.8 to 3.14, and PyTorch's own loops, Lightning's modules and Accelerate's loops are known. The exit status is 0 when
nothing was found, 1 when something was, 2 when a file could not be read.`

const vetExample = `  warpline vet train.py
  warpline vet . --skip R13
  warpline vet --explain R06
  warpline vet --json notebook.ipynb | jq -r '.findings[].fix'
  warpline vet --sarif . >vet.sarif`

// vetting are the flags of vet.
type vetting struct {
	skip    []string
	explain string
	rules   bool
	sarif   bool
}

func newVet() *cobra.Command {
	v := &vetting{}
	cmd := &cobra.Command{
		Use: "vet FILE.py|FILE.ipynb|DIR...", Short: "Say what training programs do wrong, by reading them", Long: vetLong, Example: vetExample,
		Args: func(cmd *cobra.Command, args []string) error {
			if v.explain != "" || v.rules {
				return from(0, 0)(cmd, args)
			}
			return from(1, -1)(cmd, args)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringSliceVar(&v.skip, "skip", nil, "rules that are not asked, by id or name, with commas between them")
	f.StringVar(&v.explain, "explain", "", "show a rule: why, a program that is broken, and the same mended")
	f.BoolVar(&v.rules, "rules", false, "list all rules")
	f.BoolVar(&v.sarif, "sarif", false, "write findings as SARIF 2.1.0, which code hosts read")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s := newScreen(cmd)
		switch {
		case v.rules:
			return listRules(s)
		case v.explain != "":
			return explainRule(s, v.explain)
		}
		return v.run(cmd, s, args)
	}
	return cmd
}

// rule finds a rule, or says which there are.
func rule(name string) (vet.Rule, error) {
	if r, ok := vet.Find(name); ok {
		return r, nil
	}
	return vet.Rule{}, advice.Failf("warpline vet --rules lists them", "no rule is called %q", name)
}

func listRules(s *screen) error {
	t := render.Table{Header: []string{"rule", "name", "why"}}
	for _, r := range vet.Rules() {
		if err := s.emit(map[string]string{"rule": r.ID, "name": r.Name, "why": r.Why}); err != nil {
			return err
		}
		t.Rows = append(t.Rows, []string{r.ID, r.Name, r.Why})
	}
	for _, r := range t.Rows {
		s.say("%s  %s", r[0], r[1])
		s.say("     %s", r[2])
	}
	return s.failure()
}

func explainRule(s *screen, name string) error {
	r, err := rule(name)
	if err != nil {
		return err
	}
	if err := s.emit(map[string]any{"rule": r.ID, "name": r.Name, "why": r.Why, "examples": r.Examples()}); err != nil {
		return err
	}
	s.say("%s %s: %s", r.ID, r.Name, r.Why)
	for _, e := range r.Examples() {
		fmt.Fprintf(s.text, "\nbroken:\n\n%s\nmended:\n\n%s", indented(strings.ReplaceAll(e.Broken, "# want:", "# here:")), indented(e.Mended))
	}
	return s.failure()
}

// indented is a program for the screen.
func indented(program string) string {
	var b strings.Builder
	for line := range strings.Lines(program) {
		if strings.TrimSpace(line) != "" {
			b.WriteString("    ")
		}
		b.WriteString(line)
	}
	return b.String()
}

// vetted is the JSON of a file.
type vetted struct {
	File     string      `json:"file"`
	Findings []vet.Found `json:"findings"`
	Error    string      `json:"error,omitempty"` // why it could not be read
}

// run reads files. One that cannot be read is told, and the others are read all the same.
func (v *vetting) run(cmd *cobra.Command, s *screen, paths []string) error {
	for _, name := range v.skip {
		if _, err := rule(name); err != nil {
			return err
		}
	}
	if v.sarif && s.json != nil {
		return advice.Failf("leave one of them out", "--sarif and --json both write to the standard output")
	}
	files, err := vetpy.Files(paths)
	if err != nil {
		return advice.Explain(err, "name programs, notebooks or folders that are there")
	}
	if len(files) == 0 {
		return advice.Failf("name a program, a notebook or a folder that has some", "%s has no programs in Python", strings.Join(paths, ", "))
	}
	var all []vet.InFile
	found, failed := 0, 0
	for i, name := range files {
		if cmd.Context().Err() != nil {
			return train.ErrInterrupted
		}
		if len(files) > 200 {
			s.passing(render.Progress{Label: "reading", Done: int64(i), Total: int64(len(files)), Fields: []string{name}})
		}
		one, err := v.file(name)
		if err != nil {
			failed++
		}
		found += len(one)
		if err := v.tell(s, name, one, err); err != nil {
			return err
		}
		all = append(all, vet.InFile{File: name, Found: one})
	}
	s.clear()
	return v.end(s, all, found, failed)
}

// file is what is found in a file, but for what nobody asks.
func (v *vetting) file(name string) ([]vet.Found, error) {
	found, err := vetpy.CheckFile(name)
	return slices.DeleteFunc(found, func(f vet.Found) bool {
		return slices.ContainsFunc(v.skip, func(n string) bool { return strings.EqualFold(n, f.Rule) || strings.EqualFold(n, f.Name) })
	}), err
}

// tell shows what is found in a file.
func (v *vetting) tell(s *screen, name string, found []vet.Found, err error) error {
	line := vetted{File: name, Findings: found}
	if found == nil {
		line.Findings = []vet.Found{}
	}
	if err != nil {
		line.Error = err.Error()
	}
	if err := s.emit(line); err != nil {
		return err
	}
	if err != nil {
		s.Note(err.Error() + ": not read")
	}
	if v.sarif {
		return nil
	}
	for i := range found {
		s.clear()
		s.finding(&found[i])
	}
	return s.failure()
}

// finding shows one finding: where, the line, what is wrong, what to write.
func (s *screen) finding(f *vet.Found) {
	s.say("%s: %s [%s %s, %s]", f.Finding.Line, f.Title, f.Rule, f.Name, sureness(f.Confidence))
	fmt.Fprintf(s.text, "    %s\n", render.Truncate(f.Source, max(s.tableWidth()-6, 20)))
	for _, e := range f.Evidence {
		s.say("  also    %s", e.Text)
	}
	s.say("  fix     %s", f.Fix)
	s.say("  gain    %s", f.Gain.Text)
	s.say("  unless  %s", f.DisprovedBy)
	fmt.Fprintln(s.text)
}

func sureness(c finding.Confidence) string {
	switch c {
	case finding.High:
		return "sure"
	case finding.Medium:
		return "likely"
	}
	return "perhaps"
}

// end says how much was found in all.
func (v *vetting) end(s *screen, all []vet.InFile, found, failed int) error {
	if v.sarif {
		if err := s.unwritten(vet.WriteSARIF(s.text, version(), all)); err != nil {
			return err
		}
	} else {
		s.say("%s in %s", plural(found, "finding"), plural(len(all)-failed, "file"))
	}
	switch {
	case s.failure() != nil:
		return s.failure()
	case failed > 0:
		return advice.Failf("the notes say at which line; this reads Python 3.8 to 3.14", "%s of %d could not be read", plural(failed, "file"), len(all))
	case found > 0:
		return errFindings
	}
	return nil
}
